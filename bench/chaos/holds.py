"""Who held which page, from when to when, and what struck it meanwhile: read from the log of the database's trigger."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

from bench.chaos.record import Fault, Move, Request

# A fault may show so long after its cause is over, in seconds: what was stuck in the network then reaches the database.
MARGIN = 0.5
# A claim is written down before its page leaves; the clocks of the two logs differ by no more, in seconds.
WIRE = 0.05
RAN_OUT = "the lease ran out"


@dataclass(frozen=True)
class Hold:
    """One claim of a page: whose, from when to when, and how long its lease was to last. `by` is who ended it."""

    attempt: int
    seq: int
    pid: int
    claimed: float
    lease_until: float
    ended: float = inf
    by: int | None = None
    error: str = ""

    def taken_back_early(self) -> float:
        """How many seconds before the end of its lease somebody took it from its holder; 0 where nobody did."""
        taken = self.ended < inf and (self.by != self.pid or self.error.startswith(RAN_OUT))
        return max(0.0, self.lease_until - self.ended) if taken else 0.0


def holds_of(moves: Sequence[Move]) -> dict[int, list[Hold]]:
    """The holds of each attempt, in order."""
    found: dict[int, list[Hold]] = defaultdict(list)
    for move in sorted(moves, key=lambda item: (item.at, item.seq)):
        mine = found[move.attempt]
        if mine and mine[-1].ended == inf:
            mine[-1] = replace(mine[-1], ended=move.at, by=move.by, error=move.error)
        if move.after == "IN_FLIGHT":
            mine.append(Hold(move.attempt, move.seq, move.pid, move.at, move.lease_until))
    return found


def struck(hold: Hold, fault: Fault) -> bool:
    """Whether the fault hit the process that held the page, its connection or the database, while it was held."""
    if fault.hit is not None and hold.pid not in fault.hit:
        return False
    return fault.began <= hold.ended and fault.mended + MARGIN >= hold.claimed


def matched(requests: Sequence[Request], holds: Sequence[Hold]) -> Iterator[tuple[Request, Hold | None]]:
    """Each arrival, the last one first, with the claim that sent it: the latest before it that sent none later."""
    free = list(holds)
    for request in reversed(requests):
        mine = [hold for hold in free if hold.claimed <= request.arrived + WIRE]
        if mine:
            free.remove(mine[-1])
        yield request, mine[-1] if mine else None
