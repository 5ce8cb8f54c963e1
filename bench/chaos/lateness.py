"""Whether a page came too late, and what excuses it: only what really struck the database, or who held that page."""

from collections.abc import Sequence

from bench.chaos.holds import Hold, struck
from bench.chaos.record import Fault

# Recovery takes a lease and at most this long, in seconds.
GRACE = 2.0


def counted(faults: Sequence[Fault], holds: Sequence[Hold], start: float, end: float, lease: float) -> float:
    """For how many of these seconds nothing excuses that the page waited: more than a lease and GRACE is too late.

    The time in which no process could reach the database does not count. A process that took the page in time and was
    then struck while it held it begins the time anew, from its claim: the page can only be taken from it when its lease
    is over.
    """
    since = start
    for hold in holds:
        hit = any(struck(hold, fault) and fault.began < end for fault in faults)
        if hit and since < hold.claimed < end and _in_reach(faults, since, hold.claimed) <= lease + GRACE:
            since = hold.claimed
    return _in_reach(faults, since, end)


def _in_reach(faults: Sequence[Fault], start: float, end: float) -> float:
    return end - start - out_of_reach(faults, start, end)


def out_of_reach(faults: Sequence[Fault], start: float, end: float) -> float:
    """For how many of these seconds no process could reach the database."""
    total, reached = 0.0, start
    for fault in sorted(faults, key=lambda item: item.began):
        if fault.away_until is None:
            continue
        begun, ended = max(fault.began, reached), min(fault.away_until, end)
        total += max(0.0, ended - begun)
        reached = max(reached, ended)
    return total
