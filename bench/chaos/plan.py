"""Which faults come in which order: the same seed gives the same plan."""

import random
from dataclasses import dataclass

# What each kind does stands in bench/chaos/faults.py.
DATABASE = ("restart_fast", "restart_immediate")


@dataclass(frozen=True)
class Size:
    """How large a campaign is."""

    pages: int
    processes: int
    kills: int
    restarts: int
    cuts: int
    terminations: int
    pauses: int
    full_disks: int
    failover: bool

    @property
    def kills_in_send(self) -> int:
        """How many of the kills strike while a send is under way: half of them, at least."""
        return (self.kills + 1) // 2


FULL = Size(2200, 3, 24, 5, 6, 4, 2, 1, True)
SHORT = Size(200, 2, 4, 1, 1, 1, 0, 1, False)


def plan(size: Size, rng: random.Random) -> list[str]:
    """The kinds of the faults, in order."""
    kinds = ["kill_in_send"] * size.kills_in_send + ["kill"] * (size.kills - size.kills_in_send)
    kinds += [DATABASE[number % 2] for number in range(size.restarts)]
    kinds += ["cut_one" if number % 2 else "cut_all" for number in range(size.cuts)]
    kinds += ["terminate"] * size.terminations + ["pause"] * size.pauses + ["full_disk"] * size.full_disks
    rng.shuffle(kinds)
    if size.failover:
        kinds.insert(rng.randrange(len(kinds) // 3, 2 * len(kinds) // 3), "failover")
    return kinds
