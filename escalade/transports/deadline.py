"""The end of an exchange, as a moment that every wait in it is cut to."""

import time


class Deadline:
    """A moment `seconds` from now on the monotonic clock."""

    __slots__ = ("seconds", "_end")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Seconds until the deadline, more than 0; TimeoutError once it is over."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError("the deadline is over")
        return left

    @property
    def over(self) -> bool:
        """Whether the deadline has passed."""
        return time.monotonic() >= self._end
