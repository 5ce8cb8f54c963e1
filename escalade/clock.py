"""The database's time as the engine has it: read, or carried on for a while by our own monotonic clock."""

import time
from datetime import timedelta

from escalade.db import Session, Tx
from escalade.doorbell import Reading


class Clock:
    """The last reading. `at` is the monotonic moment of the time last handed out: leases count from there."""

    def __init__(self) -> None:
        self.at = 0.0
        self._read: Reading | None = None

    def fresh(self, session: Session) -> Tx:
        """Statements at a time that is read now."""
        tx = session.single()
        assert tx.now
        self._read = tx.reading
        # The moment before the question: a lease may seem older than it is, never younger.
        self.at = self._read.at if self._read is not None else 0.0
        return tx

    def learn(self, reading: Reading | None) -> None:
        """Take over a time that somebody else has read; None: what is known is not recent enough."""
        self._read = reading

    def carried(self, session: Session, most: float) -> Tx:
        """Statements at the last reading carried on, if it is at most so many seconds old; at a fresh one else."""
        now = time.monotonic()
        if self._read is None or now - self._read.at > most:
            return self.fresh(session)
        tx = session.single()
        self.at = now
        tx.take_clock(self._read.now + timedelta(seconds=now - self._read.at))
        return tx
