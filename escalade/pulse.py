"""The queue at a glance: how much there is, how the last hour went, and whether each transport delivers. Only reads."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from escalade.db import Tx

HOUR = timedelta(minutes=60)
SLOT = 120  # seconds
SLOTS = 30
COUNTED = 1_000
# The latest results that are looked at: what a poll may cost is bounded, whatever storm there was.
LOOKED_AT = 5_000
# A due page is claimed within one poll; more than this says that something holds it or that nobody claims.
LATE = timedelta(seconds=15)


@dataclass(frozen=True, slots=True)
class Reached:
    """A transport by its latest results: when a message last arrived, and when one last failed for good."""

    transport: str
    delivered_at: datetime | None
    failed_at: datetime | None

    @property
    def failing(self) -> bool:
        """Whether its latest result is a failure."""
        return self.failed_at is not None and (self.delivered_at is None or self.failed_at > self.delivered_at)


@dataclass(frozen=True, slots=True)
class Pulse:
    """`due` counts per slot from now on, `delivered` and `failed` up to now, the oldest slot first; the counts have a +
    where there are more. `whole_since`: before it more came in than is counted."""

    pending: str
    in_flight: str
    failed_count: str
    due: list[int]
    delivered: list[int]
    failed: list[int]
    reached: list[Reached]
    whole_since: datetime | None
    last_test: datetime | None


def read(tx: Tx) -> Pulse:
    """All of it."""
    now = tx.now
    row = tx.one(dict, "pulse", now=now, since=now - HOUR, until=now + HOUR, slot=SLOT, n=LOOKED_AT)
    counts = {name: _count(n) for name, n in tx.one(dict, "queue_counts", n=COUNTED + 1).items()}
    cut = row["whole_since"]
    return Pulse(
        counts["pending"],
        counts["in_flight"],
        counts["failed"],
        _slots(row["slots"], "PENDING"),
        _slots(row["slots"], "DELIVERED")[::-1],
        _slots(row["slots"], "FAILED")[::-1],
        [_reached(*item) for item in row["transports"]],
        cut if cut is not None and cut > now - HOUR else None,
        tx.value("last_test"),
    )


def overdue_since(tx: Tx) -> datetime | None:
    """Since when the first of what is due has waited; None where nothing is due."""
    found: datetime | None = tx.value("oldest_due", now=tx.now)
    return found


def _count(n: int) -> str:
    return f"{COUNTED:,}+" if n > COUNTED else f"{n:,}"


def _slots(rows: list[list[Any]], what: str) -> list[int]:
    found = [0] * SLOTS
    for status, slot, n in rows:
        if status == what and 0 <= slot < SLOTS:
            found[slot] += n
    return found


def _reached(transport: str, delivered_at: str | None, failed_at: str | None) -> Reached:
    return Reached(transport, _time(delivered_at), _time(failed_at))


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
