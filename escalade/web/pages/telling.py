"""What a page says of an action that has just been done. Worked out from what is stored, so that an address can
carry it as one word and nobody can make a page say something else."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from escalade import incidents, timeline
from escalade.db import Tx
from escalade.errors import NotFound
from escalade.overview import AttemptView
from escalade.timeline import Entry, Piece
from escalade.web import access
from escalade.web.pages import reaching, words

Row = dict[str, Any]
EVENTS = ("triggered", "acknowledged", "resolved", "unacknowledged", "reopened", "escalated", "snoozed", "reassigned")
ALREADY = "already"
NOTED = "noted"


@dataclass(frozen=True, slots=True)
class Said:
    """The sentence; times in it are times. A warning is kept through refreshes, by its word and its incident."""

    pieces: Sequence[Piece]
    warning: bool = False
    word: str = ""
    about: int | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a timeline; `about` says whom its attempt tells, and how long the try took."""

    id: int
    at: datetime
    pieces: Sequence[Piece]
    about: str
    attempt: int | None = None


def replayed(done: int, skipped: int) -> str:
    """The word for a replay of many."""
    return f"replayed-{done}-{skipped}"


def acknowledged_many(changed: int, skipped: int) -> str:
    """The word for an acknowledgement of many."""
    return f"acknowledged-{changed}-{skipped}"


def told(tx: Tx, word: str, incident_id: int | None) -> Said | None:
    """The sentence for a word; None where there is nothing to say."""
    counts = re.fullmatch(r"replayed-(\d{1,6})-(\d{1,6})", word)
    if counts is not None:
        return Said([_replayed(int(counts[1]), int(counts[2]))])
    counts = re.fullmatch(r"acknowledged-(\d{1,6})-(\d{1,6})", word)
    if counts is not None:
        return Said([_acknowledged(int(counts[1]), int(counts[2]))])
    if word == NOTED:
        return Said(["Note added."])
    if incident_id is None or word not in (*EVENTS, ALREADY):
        return None
    if word == ALREADY:
        return _already(tx, incident_id)
    entry = tx.maybe(Entry, "latest_event", incident_id=incident_id, event=word)
    return _done(tx, incident_id, entry) if entry is not None else None


def sentence(entry: Entry) -> list[Piece]:
    """How an event reads on a page: with what it stopped."""
    stopped = words.stopped(entry.data.get("cancelled") or 0, entry.data.get("in_flight") or [])
    return timeline.pieces(entry) + ([f". {stopped}"] if stopped else [])


def lines(entries: Sequence[Entry], views: Sequence[AttemptView], tries: Mapping[int, Sequence[Row]]) -> list[Line]:
    """A timeline, the latest first."""
    told = {view.id: f"{view.who} by {view.transport}" for view in views if view.kind != "STEP"}
    took = {(number, row["try"]): _took(row) for number, rows in tries.items() for row in rows}
    found = []
    for entry in reversed(entries):
        number = entry.data.get("attempt")
        about = [told.get(number, ""), took.get((number, entry.data.get("try")), "")] if number else []
        found.append(Line(entry.id, entry.at, sentence(entry), ", ".join(filter(None, about)), number))
    return found


def _took(row: Row) -> str:
    return f"{round((row['ended_at'] - row['started_at']).total_seconds() * 1000):,} ms"


def _done(tx: Tx, incident_id: int, entry: Entry) -> Said:
    lacking = reaching.shortfall(tx, incident_id, entry)
    if lacking:
        return Said([f"#{incident_id}: ", *timeline.pieces(entry), lacking], True, entry.event, incident_id)
    return Said([f"#{incident_id}: ", *sentence(entry)])


def _replayed(done: int, skipped: int) -> str:
    said = f"{words.plural(done, 'page')} sent again."
    if skipped:
        said += (
            f" {words.plural(skipped, 'page')} skipped: changed meanwhile, or nobody needs to be paged for it any more."
        )
    return said


def _acknowledged(done: int, skipped: int) -> str:
    said = f"You are on {words.plural(done, 'incident')}."
    if skipped:
        said += f" {words.plural(skipped, 'incident')} skipped: acknowledged or resolved by somebody before."
    return said


def _already(tx: Tx, incident_id: int) -> Said | None:
    try:
        incident = incidents.find(tx, incident_id)
    except NotFound:
        return None
    me = access.caller().actor
    if incident.status == "ACKNOWLEDGED" and incident.acknowledged_at is not None:
        own, by, at = f"You are on #{incident_id} already, since ", incident.acknowledged_by, incident.acknowledged_at
    elif incident.status == "RESOLVED" and incident.resolved_at is not None:
        own, by, at = f"You resolved #{incident_id} already, at ", incident.resolved_by, incident.resolved_at
    else:
        return Said([f"#{incident_id} is open already; nothing was changed."])
    return Said([own if by == me else f"#{incident_id} was already {incident.status.lower()} by {by} at ", at, "."])
