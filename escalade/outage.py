"""Times without delivery: whoever goes round again says how long nobody did, and which pages were late for it.

The last round of any engine is kept in the database, so it does not matter whether the process was killed, stopped,
or could not reach the database; where another instance went on, nothing was down.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from escalade import metrics
from escalade.db import Begin, Tx, as_json

log = logging.getLogger("escalade.outage")

# Engines note their rounds every 15 s, and a restart takes some: less than this says nothing.
DOWN = timedelta(seconds=30)
LISTED = 20
NAMED = 5
SHOWN = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Late:
    """An attempt that was due while nothing was delivered; `total` is how many such there are."""

    id: int
    incident_id: int | None
    kind: str
    due_at: datetime
    total: int


@dataclass(frozen=True, slots=True)
class Outage:
    """A time without delivery, aware, in UTC; `pages` lists the first of its `late_pages`, by attempt and incident."""

    began_at: datetime
    ended_at: datetime
    late_pages: int
    pages: list[dict[str, Any]]

    @property
    def seconds(self) -> float:
        """How long it lasted."""
        return (self.ended_at - self.began_at).total_seconds()


def report(begin: Begin) -> int:
    """An engine goes round again: if none has for a while, say so, once for all instances; how many pages were
    late. Raises psycopg.Error."""
    with begin() as tx:
        last = tx.value("lock_delivery")
        tx.reread_clock()
        tx.run("delivery_ran", now=tx.now)
        if last is None or tx.now - last <= DOWN:
            return 0
        late = tx.many(Late, "late_for_outage", now=tx.now, n=LISTED)
        total = late[0].total if late else 0
        pages = as_json([_listed(page) for page in late])
        tx.run("insert_outage", began_at=last, now=tx.now, late_pages=total, pages=pages)
        seconds = (tx.now - last).total_seconds()
    metrics.outages.inc()
    log.warning("delivery was down for %.0f s, since %s; %s", seconds, last.isoformat(" ", "seconds"), _words(late))
    return total


def latest(tx: Tx, within: timedelta = SHOWN) -> Outage | None:
    """The last time that delivery was down, if that has ended lately."""
    return tx.maybe(Outage, "latest_outage", since=tx.now - within)


def _listed(page: Late) -> dict[str, Any]:
    return {"attempt": page.id, "incident": page.incident_id, "kind": page.kind, "due_at": page.due_at.isoformat()}


def _words(late: Sequence[Late]) -> str:
    if not late:
        return "no page was late"
    total = late[0].total
    named = [_name(page) for page in late[:NAMED]]
    more = f" and {total - len(named)} more" if total > len(named) else ""
    return f"{total} {'page was' if total == 1 else 'pages were'} late: {', '.join(named)}{more}"


def _name(page: Late) -> str:
    what = "next step" if page.kind == "STEP" else f"attempt {page.id}"
    return f"{what} of incident {page.incident_id}, due {page.due_at:%H:%M:%S}"
