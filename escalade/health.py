"""What the engine says about itself and the web reads: plain values, no lock needed for any of them."""

import time
from dataclasses import dataclass, field
from threading import Thread


@dataclass(slots=True)
class Health:
    """The state of this process's engine. `ticked` is monotonic seconds; `poll` is the longest sleep, in seconds."""

    engine_expected: bool = True
    engine: Thread | None = None
    ticked: float = field(default_factory=time.monotonic)
    poll: float = 5.0
    listening: bool = False
    draining: bool = False
    in_flight: int = 0

    def alive(self) -> bool:
        """Whether the engine's thread lives, or none is expected here."""
        return not self.engine_expected or (self.engine is not None and self.engine.is_alive())

    def since_tick(self) -> float:
        """Seconds since the engine last went round."""
        return time.monotonic() - self.ticked

    def ticking(self) -> bool:
        """Whether the engine has ticked within three polls, or none is expected here."""
        return not self.engine_expected or self.since_tick() < 3 * max(self.poll, 1.0)
