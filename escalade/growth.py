"""How fast running totals grow: at their worst between two looks of the last ten minutes, where somebody looks."""

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Lock

KEPT = timedelta(minutes=10)
# Two looks closer together than this say little of a second.
APART = timedelta(seconds=5)


@dataclass(slots=True)
class _Total:
    at: datetime
    total: float
    rates: deque[tuple[datetime, float]] = field(default_factory=deque)


class Growth:
    """What each total stood at when it was last looked at by this process, and how fast it had grown by then."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.totals: dict[tuple[str, str], _Total] = {}

    def worst(self, database: str, name: str, at: datetime, total: float) -> float | None:
        """Note what this total stands at; its worst rate of the last ten minutes, a second, or None before a second
        look."""
        with self.lock:
            known = self.totals.get((database, name))
            if known is None or total < known.total or at < known.at or at - known.at > KEPT:
                # Never seen, begun anew, or so long ago that a burst would vanish in the average.
                self.totals[database, name] = _Total(at, total)
                return None
            if at - known.at >= APART:
                known.rates.append((at, (total - known.total) / (at - known.at).total_seconds()))
                known.at, known.total = at, total
            while known.rates and at - known.rates[0][0] > KEPT:
                known.rates.popleft()
            return max((rate for _, rate in known.rates), default=None)
