"""What the live parts of the pages show. A page and its refresh draw from the same functions here."""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from escalade import incidents, ladder, outage, overview, pulse, rota, timeline, users
from escalade.db import Tx
from escalade.inbound.generic import SEVERITIES
from escalade.incident import Incident
from escalade.nextup import Lookup
from escalade.overview import AttemptView
from escalade.timeline import Entry
from escalade.web import access
from escalade.web.context import context
from escalade.web.pages import reaching, telling, words

OPEN_SHOWN = 100
NEXT_TURN = timedelta(days=14)
QUEUE_SHOWN = 25
LINES = 300
# What an incident keeps of the alert that opened it.
KEPT = ("title", "details", "severity", "dedup_key", "link", "alert_group")
RESOLVED_SHOWN = 20
STATUSES = {
    "PENDING": "Pending",
    "IN_FLIGHT": "In flight",
    "FAILED": "Failed",
    "DELIVERED": "Delivered",
    "CANCELLED": "Cancelled",
}


@dataclass(frozen=True, slots=True)
class Delivery:
    """Whether pages are going out, when an engine last went round, and since when the first of what is due waits."""

    stopped: bool
    at: datetime | None
    due_since: datetime | None

    def late(self, now: datetime) -> bool:
        """Whether something waits longer than it takes to claim it."""
        return self.due_since is not None and now - self.due_since > pulse.LATE


@dataclass(frozen=True, slots=True)
class Open:
    """An open incident, when its next step is due, and whom that would page then."""

    incident: Incident
    next_at: datetime | None
    next_who: str

    def stray(self, now: datetime) -> bool:
        """Whether nothing will ever move it again. One just opened may have been read before its step."""
        waits = self.incident.status == "TRIGGERED" and not (self.incident.exhausted_at or self.incident.snoozed_until)
        return waits and self.next_at is None and self.incident.opened_at < now - timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Queue:
    """The first of a list of attempts; `count` says how many there are, with a + where that is not known."""

    shown: Sequence[AttemptView]
    more: bool

    @property
    def count(self) -> str:
        """For the heading."""
        return f"{len(self.shown)}+" if self.more else str(len(self.shown))


def now(tx: Tx) -> dict[str, Any]:
    """The dashboard: delivery, open incidents, and the queue."""
    seen = frame(tx)
    counts = overview.incident_counts(tx)
    opened = open_incidents(tx)
    total, waiting = sum(counts.values()), counts["TRIGGERED"]
    return seen | {
        "title": f"({total}) Now · Escalade" if total else "Now · Escalade",
        "spoken": f"{words.plural(total, 'incident')} open, {waiting} not acknowledged",
        "open": opened,
        "open_count": total,
        "outage": outage.latest(tx),
        "pulse": pulse.read(tx),
        "watches": rota.watches(tx, tx.now, NEXT_TURN),
        "pending": queue(overview.pending(tx, QUEUE_SHOWN + 1)),
        "in_flight": queue(overview.in_flight(tx, QUEUE_SHOWN + 1)),
        "failed": queue(overview.failed(tx, QUEUE_SHOWN + 1)),
        "resolved": tx.many(Incident, "resolved_lately", n=RESOLVED_SHOWN),
        "services": tx.values("service_names"),
        "severities": SEVERITIES,
        "choices": reaching.choices(tx),
    }


def incident(tx: Tx, incident_id: int) -> dict[str, Any]:
    """One incident with its timeline and attempts. Raises NotFound."""
    seen = frame(tx)
    found = incidents.find(tx, incident_id)
    [item] = with_next(tx, [found])
    views = overview.of_incident(tx, incident_id)
    attempts = [view for view in views if not over(view)]
    tries = defaultdict(list)
    for row in tx.many(dict, "tries_of_incident", incident_id=incident_id):
        tries[row["attempt_id"]].append(row)
    entries = timeline.of_incident(tx, incident_id)
    return seen | {
        "incident": found,
        "next_at": item.next_at,
        "next_who": item.next_who,
        "ladder": climbs(found, entries),
        "link": words.web_link(found.link),
        "kept": json.dumps({name: getattr(found, name) for name in KEPT}, indent=2, ensure_ascii=False),
        "timeline": telling.lines(entries[-LINES:], views, tries),
        "earlier": max(0, len(entries) - LINES),
        "attempts": attempts,
        "failed_ids": [view.id for view in attempts if view.status == "FAILED"],
        "tries": tries,
        "choices": reaching.choices(tx),
    }


def frame(tx: Tx) -> dict[str, Any]:
    """What every live part needs. The watermark is read first: a change that comes later is then seen next time."""
    caller = access.caller()
    seen, watermark = delivery(tx), mark(tx)
    words.use_zone(users.find(tx, caller.user_id).timezone if caller.user_id is not None else "UTC")
    return {
        "watermark": watermark,
        "now": tx.now,
        "delivery": seen,
        "zone_name": words.zone().key,
        "may_act": caller.may("responder"),
    }


def mark(tx: Tx) -> str:
    """The watermark of everything that is shown."""
    seen = delivery(tx)
    return overview.watermark(tx) + ("-stopped" if seen.stopped else "") + ("-late" if seen.late(tx.now) else "")


def delivery(tx: Tx) -> Delivery:
    """Whether an engine runs: this process's own, or any that says so in the database."""
    health = context().health
    last = tx.value("newest_engine_tick")
    own = health.engine_expected and health.alive() and health.ticking()
    stopped = not own and (last is None or last < tx.now - overview.ENGINE_STALE)
    return Delivery(stopped, last, pulse.overdue_since(tx))


def open_incidents(tx: Tx) -> list[Open]:
    """What is open, in the order it needs people."""
    return with_next(tx, overview.open_incidents(tx, OPEN_SHOWN))


def with_next(tx: Tx, found: Sequence[Incident]) -> list[Open]:
    """Each incident with the time of its next step, and whom that would page."""
    due = overview.escalates_at(tx, [incident.id for incident in found])
    lookup = Lookup(tx)
    return [
        Open(
            item, due.get(item.id), lookup.who(item, item.step + 1, max(due[item.id], tx.now)) if item.id in due else ""
        )
        for item in found
    ]


def queue(found: Sequence[AttemptView], limit: int = QUEUE_SHOWN) -> Queue:
    """A list that was asked for one more than is shown."""
    return Queue(found[:limit], len(found) > limit)


def climbs(incident: Incident, entries: Sequence[Entry]) -> str:
    """Whose ladder the incident climbs, and where on it it is."""
    policy = ladder.read(incident.policy)
    if policy.name is not None:
        return f"{policy.name}, round {incident.round}, step {incident.step}"
    told = ", ".join(words.whom(target) for step in policy.steps for target in step.targets)
    if all(entry.event != "reassigned" for entry in entries):
        return f"None: opened for {told} alone"
    return f"Reassigned to {told}" + ("; its policy no longer applies" if incident.service_name else "")


def over(view: AttemptView) -> bool:
    """A step that has been taken: the timeline tells it."""
    return view.kind == "STEP" and view.status == "DELIVERED"
