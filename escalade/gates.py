"""One gate per destination (transport and host): how many sends may be in flight, not before when, and why.

The counts are of this process; what is wrong with a destination, and whose turn it is to try it, is kept in the table,
so that every instance knows it and the dashboard can say it. A contact with a pace has a turn too.
"""

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from escalade.attempts import Claimed, Room
from escalade.db import Tx
from escalade.holds import TRUST
from escalade.retry import MAX_RETRY_AFTER
from escalade.transports import DeliveryError


@dataclass(frozen=True, slots=True)
class Trouble:
    """What is wrong with a destination: failures in a row, not to be tried before, the last error, and until when
    some process has the turn to try it."""

    name: str
    failures: int
    not_before: datetime
    reason: str
    turn_until: datetime | None = None


def read(tx: Tx) -> tuple[dict[str, Trouble], dict[str, datetime]]:
    """What is wrong with which destination, and until when which contact has to wait."""
    rows = tx.many(dict, "gates", now=tx.now)
    troubles = {row["name"]: Trouble(**row) for row in rows if row["reason"] is not None}
    return troubles, {row["name"]: row["not_before"] for row in rows if row["reason"] is None}


class Gates:
    """The gates as this process, the `owner` of its turns, sees them."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.rng = random.Random()
        self.in_flight: Counter[str] = Counter()
        self.troubles: dict[str, Trouble] = {}
        self.contacts: dict[str, datetime] = {}
        self.turns: set[str] = set()

    def refresh(self, tx: Tx) -> None:
        """Read what is wrong with which destination, and which contacts have to wait."""
        self.troubles, self.contacts = read(tx)

    def room(self, now: datetime, most: int) -> Room:
        """What the next claim of a lane may take, which may have `most` messages in flight: all but two of them (of
        a few, half) for a healthy destination, so that one that hangs leaves a way out for the others."""
        each = max(most - 2, (most + 1) // 2)
        free = {name: self.places(name, now, each) for name in {*self.in_flight, *self.troubles}}
        self._share(free, max(1, most // 2))
        closed = [name for name, places in free.items() if places <= 0]
        held = [name for name, until in self.contacts.items() if until > now]
        failing = [name for name, places in free.items() if places > 0 and self.failing(name)]
        return Room(closed, held, free, each, failing)

    def took(self, rows: Iterable[Claimed], room: Room) -> None:
        """Remember the turns that a claim took."""
        self.turns.update(row.destination for row in rows if row.destination in room.failing)

    def places(self, name: str, now: datetime, each: int) -> int:
        """How many more messages may leave for this destination: one at a time after three failures in a row."""
        trouble = self.troubles.get(name)
        if trouble is not None and max(trouble.not_before, trouble.turn_until or now) > now:
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
        """When the next closed destination may be tried again, or the next contact be told something."""
        times = [*(item.not_before for item in self.troubles.values()), *self.contacts.values()]
        return min((at for at in times if at > now), default=None)

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
                self._free(tx, self.troubles[name])
        elif not error.permanent:
            self._hold(tx, name, error)

    def _free(self, tx: Tx, known: Trouble) -> None:
        tx.run("free_destination", name=known.name, now=tx.now)
        self.turns.discard(known.name)
        if known.not_before > tx.now:
            self.troubles[known.name] = replace(known, failures=0, turn_until=None)
        else:
            del self.troubles[known.name]

    def _hold(self, tx: Tx, name: str, error: DeliveryError) -> None:
        until = tx.now + timedelta(seconds=min(error.retry_after or 0.0, MAX_RETRY_AFTER))
        known = self.troubles.get(name)
        # One that says until when is obeyed, and has not failed.
        failures = 0 if error.limited and error.retry_after else 1
        if known is not None:
            until = max(until, known.not_before)
        tx.run(
            "hold_destination",
            name=name,
            failures=failures,
            not_before=until,
            reason=error.message,
            now=tx.now,
            owner=self.owner,
        )
        self.turns.discard(name)
        self.troubles[name] = Trouble(name, (known.failures if known else 0) + failures, until, error.message)

    def give_back(self, tx: Tx) -> None:
        """End the turns of tries that are back and said nothing of their destination."""
        back = [name for name in self.turns if name not in self.in_flight]
        if back:
            tx.run("release_destinations", names=back, owner=self.owner)
            self.turns.difference_update(back)
