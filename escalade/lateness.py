"""Pages that wait for longer than they should: each is said to be late once, while it still waits.

A page that is late when it is sent is told by the statement that records the send; the mark on its row sees to it
that only one of the two speaks.
"""

import logging
from datetime import UTC, datetime, timedelta

from escalade.db import Tx

log = logging.getLogger("escalade.lateness")

BATCH = 200
BEGINNING = datetime(2000, 1, 1, tzinfo=UTC)


class Lateness:
    """How far each lane has been looked through: what was due before that has been told, however long it waits."""

    def __init__(self) -> None:
        self.looked: dict[str, datetime] = {}

    def report(self, tx: Tx, lane: str) -> int:
        """Tell of the pages of a lane that have become late since the last look, a batch at most; how many."""
        after = self.looked.get(lane, BEGINNING)
        before = tx.now - timedelta(seconds=tx.limits.late_seconds)
        if before <= after:
            return 0
        found = tx.values("mark_late", lane=lane, after=after, before=before, now=tx.now, n=BATCH)
        self.looked[lane] = before if len(found) < BATCH else found[-1]
        if found:
            log.warning("%d pages are late, the first due since %s", len(found), found[0].isoformat(" ", "seconds"))
        return len(found)
