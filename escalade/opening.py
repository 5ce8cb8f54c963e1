"""Alerts and people open incidents. One transaction per alert; the first step is fanned out in it."""

import logging
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import psycopg

from escalade import fanout, incidents, ladder, sealing, settings, timeline
from escalade.db import Tx, as_json
from escalade.doorbell import Reading
from escalade.errors import NotFound
from escalade.inbound.base import Event
from escalade.incident import Incident
from escalade.ladder import Target

log = logging.getLogger("escalade.opening")

FLOOD_KEY = "escalade:flood"
NO_LIMIT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Source:
    """Where an alert comes from: a service, and the integration of it (None for a person)."""

    service_id: int
    service_name: str
    integration_id: int | None
    actor: str


@dataclass(frozen=True, slots=True)
class Done:
    """What an alert did; action is triggered, deduplicated, acknowledged, resolved or ignored."""

    id: int | None
    action: str


@dataclass(frozen=True, slots=True)
class Opened(Incident):
    """An incident just opened or counted on; `silent_until` where its key was snoozed in an earlier incident."""

    silent_until: datetime | None


# Opens the incident once more, or counts on it; None where there is nothing to open it on.
Again = Callable[[], Opened | None]


@dataclass(frozen=True, slots=True)
class Integration:
    """An integration found by its key."""

    id: int
    name: str
    kind: str
    secret: str | None
    verify: bool
    service_id: int
    service_name: str
    now: datetime

    @property
    def source(self) -> Source:
        """As the sender of alerts."""
        actor = f"integration:{self.service_name}/{self.name}"
        return Source(self.service_id, self.service_name, self.id, actor)


def integration(tx: Tx, key_hash: str) -> Integration:
    """The integration a key (given as its SHA-256 in hex) belongs to. Raises NotFound."""
    found = tx.maybe(Integration, "integration_by_key", key_hash=key_hash)
    if found is None:
        raise NotFound("No integration has this key.")
    # Only an alert that has to prove itself needs the secret: no other is lost for one that cannot be read.
    return replace(found, secret=sealing.opened(tx.limits.sealing_keys, found.secret)) if found.verify else found


def service(tx: Tx, name: str, actor: str) -> Source:
    """A service as the source of an incident that a person opens. Raises NotFound."""
    row = tx.maybe(dict, "service_by_name", name=name)
    if row is None:
        raise NotFound(f"There is no service {name!r}.", "service")
    return Source(row["id"], row["name"], None, actor)


def accept(tx: Tx, source: Source, event: Event, reading: Reading | None = None) -> Done:
    """Do what one alert says, in a transaction of its own. A resolve or acknowledge whose key is not open changes
    nothing. `reading`: the time of a moment ago, for what locks nothing before it needs the time."""
    if event.action == "trigger":
        if reading is not None:
            tx.carry(reading)
        incident, new = trigger(tx, source, event, alone=True)
        return Done(incident.id, "triggered" if new else "deduplicated")
    if event.action == "ignore":
        return Done(None, "ignored")
    found = tx.value("open_by_key", service_id=source.service_id, dedup_key=event.dedup_key)
    if found is None:
        return Done(None, "ignored")
    if event.action == "resolve":
        return Done(found, "resolved" if incidents.resolve(tx, found, source.actor).changed else "ignored")
    incident_ = incidents.lock(tx, found)
    if incident_.status == "RESOLVED":
        return Done(None, "ignored")
    incidents.acknowledge(tx, found, source.actor)
    return Done(found, "acknowledged")


def trigger(tx: Tx, source: Source, event: Event, *, alone: bool = False) -> tuple[Incident, bool]:
    """Open an incident, or count the alert on the one open under its key. The incident, and whether it is new.

    A service with too many open incidents takes further alerts as repeats of one incident that says so. `alone`:
    nothing else is in this transaction. Raises NotFound where the service has been deleted in the meantime.
    """
    write_it = partial(write, tx, source, event, tx.limits.max_open)
    opened = write_it()
    full = opened is None and tx.value("service_exists", id=source.service_id)
    if full:
        write_it = partial(write, tx, source, flood(tx.limits.max_open), NO_LIMIT)
        opened = write_it()
    incident, new = take(tx, source, opened, write_it if alone else None)
    return incident, new and not full


def flood(most: int) -> Event:
    """The alert that stands for all that came after the limit."""
    title = f"Flood of alerts: {most:,} incidents are open, and further alerts are only counted here"
    return Event("trigger", title, severity="critical", dedup_key=FLOOD_KEY)


def take(tx: Tx, source: Source, opened: Opened | None, again: Again | None) -> tuple[Incident, bool]:
    """What follows from the statement that opened or counted. Raises NotFound where it did neither."""
    if opened is None:
        raise NotFound(f"There is no service {source.service_name!r} any more.", "service")
    if opened.count > 1:
        return repage(tx, opened), False
    return begin(tx, opened, _silence(tx, opened), again), True


def _silence(tx: Tx, opened: Opened) -> datetime | None:
    if opened.silent_until is None:
        return None
    # Whoever held the key until now may have ended the silence since the statement began: then this one pages.
    silent: datetime | None = tx.value(
        "silence_of_key", service_id=opened.service_id, dedup_key=opened.dedup_key, now=tx.now, id=opened.id
    )
    return silent


def write(tx: Tx, source: Source, event: Event, most: int) -> Opened | None:
    """Insert the incident, or count on the open one; None where the service is gone or has `most` open ones."""
    try:
        return tx.maybe(Opened, "open_incident", now=tx.now, most=most, **values(source, event))
    except psycopg.errors.ForeignKeyViolation:
        # It was there when the statement began, and its deletion committed before the end.
        raise NotFound(f"There is no service {source.service_name!r} any more.", "service") from None


def values(source: Source, event: Event) -> dict[str, Any]:
    """What an incident takes over from its alert."""
    return {
        "service_id": source.service_id,
        "integration_id": source.integration_id,
        "title": event.title,
        "details": event.details,
        "severity": event.severity,
        "dedup_key": event.dedup_key,
        "link": event.link,
        "alert_group": as_json(event.group) if event.group is not None else None,
        "sanitized": event.sanitized,
        "actor": source.actor,
    }


def trigger_target(tx: Tx, target: Target, event: Event, actor: str) -> Incident:
    """Open an incident that pages one target, with no service and a ladder of one step."""
    incident = tx.one(
        Incident,
        "open_incident_for_target",
        title=event.title,
        details=event.details,
        severity=event.severity,
        link=event.link,
        sanitized=event.sanitized,
        policy=as_json(ladder.single(target, incidents.SINGLE_STEP_WAIT)),
        actor=actor,
        now=tx.now,
    )
    timeline.record(tx, incident.id, "triggered", actor)
    return begin(tx, incident)


def begin(tx: Tx, incident: Incident, silent_until: datetime | None = None, again: Again | None = None) -> Incident:
    """Fan out the first step of a new incident, unless its key is silent. A ladder that raises must not lose the
    alert: what it wrote is undone, and step one goes into the queue, due now, where the engine deals with it.

    `again` opens the incident once more, where nothing else would be lost with this transaction: undoing all of it
    spares every alert whose ladder is sound a savepoint.
    """
    if silent_until is not None:
        timeline.record(tx, incident.id, "still_silent", until=silent_until.isoformat(timespec="seconds"))
        return tx.one(Incident, "snooze", id=incident.id, until=silent_until)
    try:
        with nullcontext() if again else tx.part():
            return fanout.fan_out(tx, incident, 1)
    except psycopg.OperationalError:
        raise
    except Exception as error:
        log.exception("the first step of incident %s raised", incident.id)
        return put_off(tx, _reopened(tx, again) if again else incident, error)


def _reopened(tx: Tx, again: Again) -> Incident:
    tx.undo()
    opened = again()
    if opened is None:
        raise NotFound("The service is gone, or has too many open incidents.", "service")
    return opened


def put_off(tx: Tx, incident: Incident, error: Exception) -> Incident:
    """Leave the first step to the engine, unless another alert of this key opened the incident in between."""
    if incident.count == 1:
        timeline.record(tx, incident.id, "step_failed", round=1, step=1, error=str(error))
        fanout.insert_step(tx, incident, 1, 0)
    return incident


def repage(tx: Tx, incident: Incident) -> Incident:
    """A repeat on an exhausted incident pages again once the stated pause is over; any other only counts."""
    if incident.exhausted_at is None or incident.status != "TRIGGERED":
        return incident
    tx.reread_clock()
    pause = settings.repage_exhausted_after(tx)
    if pause is None or tx.now < incident.exhausted_at + timedelta(seconds=pause):
        return incident
    return incidents.restart(tx, incident, "repaged")
