"""Says in the log what has failed for good: a line each, and of many within a minute how many more there were."""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass

from escalade.db import Tx

log = logging.getLogger("escalade.failures")

LINES = 20
MINUTE = 60.0


@dataclass(frozen=True, slots=True)
class Failure:
    """An attempt that failed for good; `reason` holds no secret, as it is shown on the page too."""

    id: int
    incident_id: int | None
    who: str
    transport: str
    reason: str


class Failures:
    """What one engine has told lately."""

    def __init__(self) -> None:
        self.began = -MINUTE
        self.told = 0
        self.more = 0

    def tell(self, tx: Tx, ids: Sequence[int]) -> None:
        """Warn of these attempts, as far as this minute has room for lines; past that nothing is looked up."""
        self.tell_rest()
        named = list(ids[: LINES - self.told])
        self.told += len(named)
        self.more += len(ids) - len(named)
        for row in tx.many(Failure, "failures", ids=named) if named else []:
            of = f"incident {row.incident_id}: " if row.incident_id is not None else ""
            log.warning("%sattempt %s to %s by %s failed: %s", of, row.id, row.who, row.transport, row.reason)

    def tell_rest(self) -> None:
        """Once the minute is over, say how many more failed in it."""
        now = time.monotonic()
        if now - self.began < MINUTE:
            return
        if self.more:
            log.warning("and %d more attempts failed; all are at /attempts?status=FAILED", self.more)
        self.began, self.told, self.more = now, 0, 0
