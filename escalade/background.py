"""A thread beside the engine that is started once and told to stop."""

import threading


class Background:
    """Runs `_run` in a thread of its own until `stopping` is set; subclasses say what it does."""

    def __init__(self, name: str) -> None:
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin."""
        self.thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """End; at most `timeout` seconds are waited."""
        self.stopping.set()
        self.thread.join(timeout)

    def _run(self) -> None:
        raise NotImplementedError
