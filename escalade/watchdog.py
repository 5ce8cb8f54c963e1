"""The thread that looks after the other threads: one that has ended is started again, one that stands still is told
of, with the place where it stands, and turns /healthz and /readyz red where no new thread can take over.
"""

import logging
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from typing import Protocol

from escalade import metrics
from escalade.background import Background
from escalade.health import Health

log = logging.getLogger("escalade.watchdog")

EVERY_SECONDS = 1.0
# Between two starts of one thread, at least, in seconds: one that ends at once would fill the log.
RESTART_SECONDS = 5.0


class Watched(Protocol):
    """A worker with a thread."""

    name: str
    stopping: threading.Event
    thread: threading.Thread

    def restart(self) -> None:
        """Go on in a new thread."""

    def still_for(self) -> float:
        """Seconds for which it has stood still; 0 while it goes on."""

    def replaceable(self) -> bool:
        """Whether a new thread may take over from one that stands still."""


class Watchdog(Background):
    """Looks after these workers, every second."""

    def __init__(self, workers: Sequence[Watched], health: Health, every: float = EVERY_SECONDS) -> None:
        super().__init__("watchdog")
        self.workers = workers
        self.health = health
        self.every = every
        self.pause = RESTART_SECONDS
        self.started_at: dict[str, float] = {}
        self.still: set[str] = set()

    def _run(self) -> None:
        while self.wanted():
            try:
                self.look()
            except Exception:
                # Nobody watches the watchdog: it must not end.
                log.exception("the watchdog's round raised; it goes on")
            self.stopping.wait(self.every)

    def look(self) -> None:
        """Look once after each worker."""
        faults = [fault for worker in self.workers if (fault := self._look(worker))]
        self.health.faults = tuple(faults)

    def _look(self, worker: Watched) -> str | None:
        """What is wrong with a worker that the engine's own health does not say."""
        if worker.stopping.is_set() or self.health.draining:
            return None
        if not worker.thread.is_alive():
            self._start_again(worker, "has ended")
            return None
        seconds = worker.still_for()
        if not seconds:
            self.still.discard(worker.name)
            return None
        if worker.name not in self.still:
            self.still.add(worker.name)
            metrics.stalls.labels(worker.name).inc()
            log.error("the %s has stood still for %.0f s:\n%s", worker.name, seconds, place(worker.thread))
        if worker.replaceable():
            self._start_again(worker, "stands still")
            return None
        return f"the {worker.name} has stood still for {seconds:.0f} s"

    def _start_again(self, worker: Watched, why: str) -> None:
        now = time.monotonic()
        if now - self.started_at.get(worker.name, -self.pause) < self.pause:
            return
        self.started_at[worker.name] = now
        log.error("the thread of the %s %s; it is started again", worker.name, why)
        metrics.restarts.labels(worker.name).inc()
        worker.restart()


def place(thread: threading.Thread) -> str:
    """Where a thread stands, as a traceback shows it."""
    frame = sys._current_frames().get(thread.ident or 0)
    return "".join(traceback.format_stack(frame)) if frame is not None else "nowhere"
