"""What wakes the engine, and the time that comes along with it. It knows nothing of the database."""

import threading
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Reading:
    """A time read from the database, and the monotonic moment at which it was asked for."""

    now: datetime
    at: float


class Doorbell:
    """Wakes the engine. In this process by an event; in another by NOTIFY where nobody here could take the work.

    `idle` is kept by the engine: True while it has a sender free, so that telling other instances is needless.
    """

    def __init__(self) -> None:
        self.event = threading.Event()
        self.reading: Reading | None = None
        self.news = False
        self.idle = False
        self.notify = True

    def needs_notify(self) -> bool:
        """Whether other instances must be told: nobody here has a free hand."""
        return self.notify and not self.idle

    def ring(self, reading: Reading | None = None) -> None:
        """Wake the engine of this process; with the time of what rang, it need not ask for it."""
        self.reading = reading
        self.news = True
        self.nudge()

    def nudge(self) -> None:
        """Wake the engine for what is no news to the database: a sender is back."""
        if not self.event.is_set():
            self.event.set()
