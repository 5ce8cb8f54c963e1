"""When to try again: how long to wait after a failed send, and what a Retry-After header asks for."""

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

FIRST_DELAY = 5.0
MAX_DELAY = 300.0
MAX_RETRY_AFTER = 3600.0

_SECONDS = re.compile(r"[0-9]{1,18}(\.[0-9]{1,18})?")


def delay(tries: int, jitter: float, retry_after: float | None = None) -> float:
    """Seconds to wait after try number `tries`: 5 s, doubled with each try up to 300 s, of it half to all.

    `jitter`, drawn by the caller from [0, 1), chooses between half (0) and all (1) of it; ValueError outside.
    A count below 1 is taken as 1. The wait is never shorter than `retry_after` seconds, of which no more than
    3600 are obeyed.
    """
    if not 0 <= jitter <= 1:
        raise ValueError(f"jitter lies between 0 and 1, not at {jitter}")
    doublings = min(max(tries, 1) - 1, 10)  # bounded here, because a power of a large count fits no float
    wait = min(FIRST_DELAY * 2.0**doublings, MAX_DELAY) * (0.5 + jitter / 2)
    if retry_after is not None and retry_after > wait:
        return min(retry_after, MAX_RETRY_AFTER)
    return wait


def parse_retry_after(value: str, now: datetime) -> float | None:
    """The seconds a Retry-After header asks to wait: a number, or an HTTP date counted from `now` (aware).

    A date in the past is 0; a date without a zone is UTC. None for what is neither number nor date.
    """
    value = value.strip()
    if _SECONDS.fullmatch(value):
        return float(value)
    try:
        at = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):  # the parser lets any of them through
        return None
    return max(0.0, ((at if at.tzinfo else at.replace(tzinfo=UTC)) - now).total_seconds())
