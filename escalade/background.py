"""A thread beside the engine that is started once and told to stop, and that may be started again in between."""

import threading
import time

# A thread that has not said for so long that it goes on stands still, in seconds.
STILL_SECONDS = 60.0


class Background:
    """Runs `_run` in a thread of its own until it is no longer `wanted`; subclasses say what it does, and call
    `wanted` or `pulse` often enough to be seen alive."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.stopping = threading.Event()
        self.pulsed = time.monotonic()
        self.patience = STILL_SECONDS
        self.left: threading.Thread | None = None
        self.thread = self._new_thread()

    def _new_thread(self) -> threading.Thread:
        return threading.Thread(target=self._run, name=self.name, daemon=True)

    def start(self) -> None:
        """Begin."""
        self.pulse()
        self.thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """End; at most `timeout` seconds are waited."""
        self.stopping.set()
        self.thread.join(timeout)

    def restart(self) -> None:
        """Go on in a new thread: the old one has ended, or stands still and ends when it comes round."""
        self.left = self.thread if self.thread.is_alive() else None
        self.thread = self._new_thread()
        self.start()

    def wanted(self) -> bool:
        """Whether to go on: not told to stop, and no other thread has taken over."""
        if self.mine():
            self.pulse()
        return self.mine() and not self.stopping.is_set()

    def mine(self) -> bool:
        """Whether this is its thread: no other has taken over."""
        return threading.current_thread() is self.thread

    def pulse(self) -> None:
        """The thread goes on."""
        self.pulsed = time.monotonic()

    def still_for(self) -> float:
        """Seconds for which it has stood still, beyond what is long; 0 while it goes on."""
        silent = time.monotonic() - self.pulsed
        return silent if silent > self.patience else 0.0

    def replaceable(self) -> bool:
        """Whether a new thread may take over: only one may be left behind, or they would pile up."""
        return self.left is None or not self.left.is_alive()

    def _run(self) -> None:
        raise NotImplementedError
