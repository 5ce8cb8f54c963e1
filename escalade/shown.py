"""What the API and the command line show as JSON: the fields of the contract, times in UTC, addresses masked."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from escalade import overview, timeline
from escalade.api_tokens import ApiToken
from escalade.db import Tx
from escalade.incident import Incident
from escalade.incidents import Answer
from escalade.overview import AttemptView, Try
from escalade.timeline import Entry

Shown = dict[str, Any]

INCIDENT_FIELDS = (
    "id title details severity urgency status dedup_key link step round exhausted_at opened_at last_alert_at count "
    "acknowledged_at acknowledged_by resolved_at snoozed_until"
).split()
ATTEMPT_FIELDS = (
    "id incident_id kind status lane step round target user channel transport address due_at first_due_at held_until "
    "held_reason tries max_tries claimed_at lease_owner lease_until cancel_requested idempotency_key last_error "
    "delivered_at finished_at"
).split()


def when(at: datetime | None) -> str | None:
    """A time as the API writes it."""
    return None if at is None else at.isoformat().replace("+00:00", "Z")


def _picked(row: object, names: list[str]) -> Shown:
    values = {name: getattr(row, name) for name in names}
    return {name: when(value) if isinstance(value, datetime) else value for name, value in values.items()}


def incident(row: Incident, escalates_at: datetime | None, base_url: str) -> Shown:
    """One incident."""
    return _picked(row, INCIDENT_FIELDS) | {
        "url": f"{base_url}/incidents/{row.id}",
        "service": row.service_name,
        "policy": row.policy["name"],
        "escalates_at": when(escalates_at),
    }


def incidents(tx: Tx, rows: Sequence[Incident], base_url: str) -> list[Shown]:
    """Several incidents."""
    due = overview.escalates_at(tx, [row.id for row in rows])
    return [incident(row, due.get(row.id), base_url) for row in rows]


def one_incident(tx: Tx, row: Incident, base_url: str) -> Shown:
    """One incident, with when its next step is due."""
    return incidents(tx, [row], base_url)[0]


def answer(tx: Tx, done: Answer, base_url: str) -> Shown:
    """What an action did."""
    air = [
        {"attempt_id": page.attempt_id, "user": page.user, **({"channel": page.channel} if page.channel else {})}
        for page in done.in_flight
    ]
    return {
        "incident": one_incident(tx, done.incident, base_url),
        "changed": done.changed,
        "cancelled": done.cancelled,
        "in_flight": air,
    }


def attempt(view: AttemptView) -> Shown:
    """One attempt."""
    return _picked(view, ATTEMPT_FIELDS)


def attempt_try(one: Try) -> Shown:
    """One try of an attempt."""
    return {
        "try": one.try_,
        "started_at": when(one.started_at),
        "ended_at": when(one.ended_at),
        "outcome": one.outcome,
        "error": one.error,
        "request": one.request,
        "answer": one.answer,
    }


def event(entry: Entry) -> Shown:
    """One line of the timeline, as data and as a sentence."""
    return _picked(entry, ["id", "at", "event", "actor", "data"]) | {"text": timeline.sentence(entry)}


def token(one: ApiToken) -> Shown:
    """One token, without its secret."""
    return _picked(one, ["name", "role", "created_at", "last_used_at", "expires_at", "created_by"])
