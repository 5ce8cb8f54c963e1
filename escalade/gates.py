"""One gate per destination (transport and host): how many sends may be in flight, not before when, and why.

The counts are of this process; what is wrong with a destination is kept in the table, so that every instance
knows it and the dashboard can say it.
"""

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from escalade.attempts import Room
from escalade.db import Tx
from escalade.transports import DeliveryError

TRUST = 3


@dataclass(frozen=True, slots=True)
class Trouble:
    """What is wrong with a destination: failures in a row, not to be tried before, and the last error."""

    name: str
    failures: int
    not_before: datetime
    reason: str


class Gates:
    """The gates as this process sees them."""

    def __init__(self) -> None:
        self.rng = random.Random()
        self.in_flight: Counter[str] = Counter()
        self.troubles: dict[str, Trouble] = {}

    def refresh(self, tx: Tx) -> None:
        """Read what is wrong with which destination."""
        self.troubles = {trouble.name: trouble for trouble in tx.many(Trouble, "held_destinations")}

    def room(self, now: datetime, held: Mapping[str, datetime], most: int) -> Room:
        """What the next claim of a lane may take, which may have `most` messages in flight: all but two of them (of
        a few, half) for a healthy destination, so that one that hangs leaves a way out for the others."""
        each = max(most - 2, (most + 1) // 2)
        free = {name: self.places(name, now, each) for name in {*self.in_flight, *self.troubles}}
        self._share(free, max(1, most // 2))
        closed = [name for name, places in free.items() if places <= 0]
        return Room(closed, list(held), free, each)

    def places(self, name: str, now: datetime, each: int) -> int:
        """How many more messages may leave for this destination: one at a time after three failures in a row."""
        trouble = self.troubles.get(name)
        if trouble is not None and trouble.not_before > now:
            return 0
        return max(0, (1 if self.failing(name) else each) - self.in_flight[name])

    def failing(self, name: str) -> bool:
        """Whether a destination has failed too often in a row to be trusted."""
        trouble = self.troubles.get(name)
        return trouble is not None and trouble.failures >= TRUST

    def _share(self, free: dict[str, int], most: int) -> None:
        """All failing destinations together may use half of a lane, or many that hang would keep the healthy ones
        waiting. Which of them are tried is left to chance, so that each has its turn."""
        failing = [name for name in free if self.failing(name)]
        left = most - sum(self.in_flight[name] for name in failing)
        for name in self.rng.sample(failing, len(failing)):
            free[name] = min(free[name], max(0, left))
            left -= free[name]

    def opens_at(self, now: datetime) -> datetime | None:
        """When the next closed destination may be tried again."""
        return min((item.not_before for item in self.troubles.values() if item.not_before > now), default=None)

    def begin(self, name: str) -> None:
        """A message leaves."""
        self.in_flight[name] += 1

    def end(self, name: str) -> None:
        """A message is back."""
        self.in_flight[name] -= 1
        if self.in_flight[name] <= 0:
            del self.in_flight[name]

    def record(self, tx: Tx, name: str, error: DeliveryError | None) -> None:
        """Remember how a send went. A refusal of one message for good says nothing against the destination."""
        if error is None:
            if name in self.troubles:
                tx.run("free_destination", name=name)
                del self.troubles[name]
        elif not error.permanent:
            wait = error.retry_after or 0.0
            until = tx.now + timedelta(seconds=min(wait, 3600.0))
            known = self.troubles.get(name)
            failures = 0 if error.limited else 1
            if known is not None:
                until = max(until, known.not_before)
            tx.run("hold_destination", name=name, failures=failures, not_before=until, reason=error.message, now=tx.now)
            self.troubles[name] = Trouble(name, (known.failures if known else 0) + failures, until, error.message)
