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


FULL = Size(2200, 3, 24, 5, 6, 4, 2, 1, True)
SHORT = Size(200, 2, 4, 1, 1, 1, 0, 0, False)


def plan(size: Size, rng: random.Random) -> list[str]:
    """The kinds of the faults, in order. Half of the kills, at least, strike while a send is under way."""
    kinds = ["kill_in_send" if number % 2 == 0 else "kill" for number in range(size.kills)]
    kinds += [DATABASE[number % 2] for number in range(size.restarts)]
    kinds += ["cut_one" if number % 2 else "cut_all" for number in range(size.cuts)]
    kinds += ["terminate"] * size.terminations + ["pause"] * size.pauses + ["full_disk"] * size.full_disks
    rng.shuffle(kinds)
    if size.failover:
        kinds.insert(rng.randrange(len(kinds) // 3, 2 * len(kinds) // 3), "failover")
    return kinds
