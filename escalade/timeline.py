"""The append-only record of what happened to an incident, and how each event reads."""

import string
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from escalade.db import Tx, as_json


@dataclass(frozen=True, slots=True)
class Entry:
    """One event of an incident's timeline; `at` is aware, in UTC; `actor` is None for Escalade itself."""

    id: int
    at: datetime
    event: str
    actor: str | None
    data: dict[str, Any]


def record(tx: Tx, incident_id: int, event: str, actor: str | None = None, **data: Any) -> None:
    """Append an event, in the caller's transaction, at its time."""
    tx.run("record_event", incident_id=incident_id, now=tx.now, event=event, actor=actor, data=as_json(data))


def of_incident(tx: Tx, incident_id: int) -> list[Entry]:
    """The timeline of one incident, oldest first."""
    return tx.many(Entry, "events_of_incident", incident_id=incident_id)


SENTENCES = {
    "triggered": "Opened by {actor}",
    "step_reached": "Round {round}, step {step}: {people}",
    "target_skipped": "{target} skipped: {why}",
    "step_skipped": "Round {round}, step {step} skipped: {why}",
    "step_failed": "Round {round}, step {step} put off: {error}",
    "step_hurried": "Every page of the step failed, so the next step is due now",
    "repeated": "Nobody acknowledged: round {round} begins",
    "exhausted": "Nobody acknowledged and no step is left",
    "fallback_told": "Fallback told: {people}",
    "fallback_missing": "No fallback could be told: {why}",
    "acknowledged": "Acknowledged by {actor}",
    "unacknowledged": "Acknowledgement taken back by {actor}",
    "ack_timed_out": "No resolve {after} after the acknowledgement: it starts again",
    "resolved": "Resolved by {actor}",
    "auto_resolved": "Resolved: no alert for {quiet}",
    "reopened": "Reopened by {actor}",
    "snoozed": "Snoozed by {actor} until {until}",
    "still_silent": "Its key is silent until {until}",
    "snooze_ended": "The snooze ended: round {round} begins",
    "repaged": "The alert repeats, and nobody has answered: round {round} begins",
    "reassigned": "Reassigned to {target} by {actor}",
    "escalated": "Escalated by {actor}",
    "note": "{text}",
    "delivered": "Attempt {attempt} delivered (try {try})",
    "retry": "Attempt {attempt}, try {try}: {error}; it will be tried again",
    "failed": "Attempt {attempt} failed after {try} tries: {error}",
    "cancelled": "Attempt {attempt} cancelled in the air: {error}",
    "late": "Attempt {attempt} is late by {seconds} s",
    "lease_expired": "Attempt {attempt}, try {try}: the lease ran out, so it may have been delivered",
    "replayed": "Attempt {attempt} sent again by {actor}",
    "left_without_end": "Open with nothing pending and no end: escalate or resolve it",
}


Piece = str | datetime


def pieces(entry: Entry) -> list[Piece]:
    """How the event reads, with its times left as times: a page shows them in its reader's zone."""
    pattern = SENTENCES.get(entry.event, entry.event.replace("_", " "))
    data = entry.data | {"actor": entry.actor or "Escalade"}
    found: list[Piece] = []
    for words, name, _, _ in string.Formatter().parse(pattern):
        found.append(words)
        if name is not None:
            found.append(_value(name, data[name]) if name in data else "?")
    return found


def sentence(entry: Entry) -> str:
    """How the event reads in the API and on the command line, with its times in UTC."""
    return "".join(piece if isinstance(piece, str) else stamp(piece) for piece in pieces(entry))


def stamp(at: datetime) -> str:
    """Day, time and zone of an aware time, as in `30 Nov 20:31:05 UTC`."""
    return f"{at.day} {at:%b %H:%M:%S %Z}"


def _value(name: str, value: Any) -> Piece:
    if name in ("error", "why"):
        return _reason(value)
    return _moment(str(value)) if name == "until" else str(value)


def _moment(text: str) -> Piece:
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        return text


def _reason(value: Any) -> str:
    """A reason as a part of a sentence; it may come as a sentence of its own."""
    return str(value).rstrip(".") if value is not None else "no reason given"
