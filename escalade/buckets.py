"""A limit on how often something may happen: token buckets, kept in this process.

Several instances each allow the whole rate, which is what they can each bear; a limit counted in the database would
cost a write for every alert that is refused.
"""

import threading
import time
from collections.abc import Callable


class Buckets:
    """A bucket a key: it fills at `rate` a second up to `burst`, and each event takes one."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._lock = threading.Lock()
        self._levels: dict[int, tuple[float, float]] = {}

    def take(self, key: int) -> float:
        """0.0 where the event may happen; else the seconds until it may."""
        with self._lock:
            now = self._clock()
            level, since = self._levels.get(key, (self._burst, now))
            level = min(self._burst, level + (now - since) * self._rate)
            taken = level >= 1
            self._levels[key] = (level - 1 if taken else level, now)
            return 0.0 if taken else (1 - level) / self._rate
