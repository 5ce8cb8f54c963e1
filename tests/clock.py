"""A clock that tests move. The queries that ask for the time are changed; everything else is given it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from unittest.mock import patch

from escalade import db


class MovedClock:
    """The database's time, so many seconds ahead."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def pass_(self, **delta: float) -> None:
        """Let time pass: seconds, minutes, hours, days."""
        self.ahead += timedelta(**delta).total_seconds()

    def queries(self) -> Mapping[str, str]:
        """All queries, with the clock's replaced."""
        moved = f"(clock_timestamp() + interval '{self.ahead} seconds')"
        return {name: text.replace("clock_timestamp()", moved) for name, text in real_queries().items()}


real_queries = db.queries


@contextmanager
def moved_clock() -> Iterator[MovedClock]:
    """While this lasts, every transaction reads the moved clock."""
    clock = MovedClock()
    with patch.object(db, "queries", clock.queries):
        yield clock
