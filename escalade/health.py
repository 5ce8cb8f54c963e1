"""What the engine says about itself and the web reads: plain values, no lock needed for any of them."""

import time
from dataclasses import dataclass, field
from threading import Thread

from escalade.db import PATIENCE_SECONDS

# A server with several addresses is tried at each, and a name may take its time to be looked up.
CONNECTING_SECONDS = 60.0


@dataclass(slots=True)
class Health:
    """The state of this process's engine.

    Moments are monotonic seconds: `ticked` when a round last ended, `pulsed` when the engine last showed that it goes
    on, be it only in waiting for the database. `poll` is the longest sleep, in seconds; `away` says why the database
    cannot be used; `stuck` counts senders that should long be back, of `senders`; `faults` are those of other threads.
    """

    engine_expected: bool = True
    engine: Thread | None = None
    ticked: float = field(default_factory=time.monotonic)
    pulsed: float = field(default_factory=time.monotonic)
    patience: float = PATIENCE_SECONDS
    connecting: bool = False
    poll: float = 5.0
    listening: bool = False
    draining: bool = False
    in_flight: int = 0
    away: str | None = None
    senders: int = 0
    stuck: int = 0
    faults: tuple[str, ...] = ()

    def alive(self) -> bool:
        """Whether the engine's thread lives, or none is expected here."""
        return not self.engine_expected or (self.engine is not None and self.engine.is_alive())

    def pulse(self) -> None:
        """The engine goes on."""
        self.pulsed = time.monotonic()

    def since_tick(self) -> float:
        """Seconds since the engine last went round."""
        return time.monotonic() - self.ticked

    def ticking(self) -> bool:
        """Whether the engine has ticked within three polls, or none is expected here."""
        return not self.engine_expected or self.since_tick() < 3 * max(self.poll, 1.0)

    def still_for(self) -> float:
        """Seconds for which the engine has stood still, beyond three polls and the longest that an answer of the
        database may take; 0 while it goes on. One that waits for a database that is away goes on."""
        silent = time.monotonic() - self.pulsed
        most = 3 * max(self.poll, 1.0) + self.patience + (CONNECTING_SECONDS if self.connecting else 0.0)
        return silent if silent > most else 0.0

    def broken(self) -> str | None:
        """What only a restart of the process mends, or None. A database that is away is no such thing."""
        if self.draining:
            return None
        if not self.alive():
            return "the engine's thread has ended"
        if self.engine_expected and self.still_for():
            return f"the engine has stood still for {self.still_for():.0f} s"
        if self.stuck and self.stuck >= self.senders:
            return f"all {self.senders} senders are stuck"
        return self.faults[0] if self.faults else None

    def idle_reason(self) -> str | None:
        """Why no page can go out from here, as far as the engine knows, or None."""
        if self.draining:
            return "this process is about to stop"
        if broken := self.broken():
            return broken
        if self.engine_expected and self.away is not None:
            return f"the database is away: {self.away}"
        if not self.ticking():
            return f"the engine has not ticked for {self.since_tick():.0f} s"
        return None
