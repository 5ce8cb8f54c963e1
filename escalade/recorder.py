"""Records outcomes beside the engine: in a thread and on a connection of its own, so that no claim waits for it.

Only the statement runs there. What is in hand, and what is told of it, stays with the engine's thread.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

import psycopg

from escalade import attempts
from escalade.attempts import Outcome, Settled
from escalade.db import Session, Tx

CLOSE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Recorded:
    """What one settle did: the outcomes that it took, and what became of each. `refused`: somebody holds a lock on the
    rows of others, which were left out."""

    outcomes: Sequence[Outcome]
    settled: Sequence[Settled]
    refused: bool


def record(tx: Tx, owner: str, outcomes: Sequence[Outcome], blocked: bool) -> Recorded:
    """Record outcomes. One whose rows a stranger holds a lock on is left for later, and keeps no other waiting; with
    `blocked` it is known that there is one."""
    if not blocked:
        try:
            return Recorded(outcomes, attempts.settle(tx, owner, outcomes) if outcomes else [], False)
        except psycopg.errors.LockNotAvailable:
            pass
    free = attempts.not_locked(tx, [outcome.id for outcome in outcomes])
    some = [outcome for outcome in outcomes if outcome.id in free]
    return Recorded(some, attempts.settle(tx, owner, some) if some else [], len(some) < len(outcomes))


class Recorder:
    """One thread with one connection, closed together with the engine's own."""

    def __init__(self, session: Session, owner: str, wake: Callable[[], None]) -> None:
        self.session = session
        self.owner = owner
        self.wake = wake
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="recorder")
        self.running: Future[Recorded] | None = None

    @property
    def busy(self) -> bool:
        """Whether outcomes are being recorded, or were and nobody has asked what became of them."""
        return self.running is not None

    def begin(self, tx: Tx, outcomes: Sequence[Outcome], blocked: bool) -> None:
        """Record these at the time of `tx`; the engine is woken when it is done."""
        mine = self.session.single()
        mine.take_clock(tx.now)
        self.running = self.thread.submit(record, mine, self.owner, outcomes, blocked)
        self.running.add_done_callback(lambda _: self.wake())

    def done(self) -> Recorded | None:
        """What was recorded, once; None while it goes on. Raises psycopg.Error where the database would not."""
        if self.running is None or not self.running.done():
            return None
        running, self.running = self.running, None
        return running.result()

    def close(self) -> None:
        """Give the connection back. What does not end in a moment is cut: it is safe to record it again."""
        if self.running is not None and wait([self.running], CLOSE_SECONDS).not_done:
            self.session.cut()
        self.thread.submit(self.session.close)
        self.thread.shutdown(wait=False)
