"""Heartbeats: a job says that it ran, and its silence opens an incident.

Whoever changes a heartbeat holds its row first and the incident after it; a beat lets go of the first before it
takes the second, so that a busy incident never costs a sign of life.
"""

import logging
from dataclasses import dataclass
from datetime import datetime

from escalade import opening
from escalade.climbing import away
from escalade.db import Begin
from escalade.durations import words
from escalade.errors import NotFound
from escalade.inbound.base import Event
from escalade.opening import Source

log = logging.getLogger("escalade.heartbeats")

PUT_OFF_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A heartbeat that was found by its key, or is late. `last_beat_at` is aware, in UTC."""

    id: int
    name: str
    interval_seconds: int
    grace_seconds: int
    last_beat_at: datetime
    service_id: int
    service_name: str

    @property
    def source(self) -> Source:
        """As the sender of alerts."""
        return Source(self.service_id, self.service_name, None, f"heartbeat:{self.service_name}/{self.name}")

    @property
    def dedup_key(self) -> str:
        """The key that its incident is open under."""
        return f"heartbeat:{self.name}"


def beat(begin: Begin, key_hash: str, arms: bool) -> bool:
    """A sign of life; resolves the incident that its silence opened. False where it did not count, because it was the
    first and does not arm. Raises NotFound for an unknown key."""
    with begin() as tx:
        found = tx.maybe(Heartbeat, "beat", key_hash=key_hash, arms=arms, now=tx.now)
        if found is None:
            if not tx.value("heartbeat_exists", key_hash=key_hash):
                raise NotFound("No heartbeat has this key.")
            return False
    with begin() as tx:
        opening.accept(tx, found.source, Event("resolve", dedup_key=found.dedup_key))
    return True


def late_due(begin: Begin, limit: int = 20) -> int:
    """Open an incident for each heartbeat that is late, at most `limit` of them; how many. Raises
    psycopg.OperationalError when the database is away."""
    done = 0
    while done < limit and _late_next(begin):
        done += 1
    return done


def _late_next(begin: Begin) -> bool:
    late = None
    try:
        with begin() as tx:
            late = tx.maybe(Heartbeat, "lock_late_heartbeat", now=tx.now)
            if late is not None:
                tx.run("rest_heartbeat", id=late.id)
                opening.trigger(tx, late.source, _event(late))
    except Exception as error:
        if late is None or away(error):
            raise
        log.error("heartbeat %s of %s raised", late.name, late.service_name, exc_info=error)
        with begin() as tx:
            tx.run("put_off_heartbeat", id=late.id, now=tx.now, delay=PUT_OFF_SECONDS)
    return late is not None


def _event(late: Heartbeat) -> Event:
    seen = late.last_beat_at.strftime("%Y-%m-%d %H:%M:%S UTC")
    every = f"every {words(late.interval_seconds)}, with {words(late.grace_seconds)} of grace"
    title = f"Heartbeat {late.name} of {late.service_name} is late"
    details = f"The last beat came at {seen}. One is expected {every}."
    return Event("trigger", title, details, dedup_key=late.dedup_key)
