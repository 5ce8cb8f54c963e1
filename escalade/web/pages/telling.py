"""What a page says of an action that has just been done. Worked out from what is stored, so that an address can
carry it as one word and nobody can make a page say something else."""

import re

from escalade import incidents, timeline
from escalade.db import Tx
from escalade.errors import NotFound
from escalade.timeline import Entry
from escalade.web.pages import words

EVENTS = ("triggered", "acknowledged", "resolved", "unacknowledged", "reopened", "escalated", "snoozed", "reassigned")
ALREADY = "already"
NOTED = "noted"


def replayed(done: int, skipped: int) -> str:
    """The word for a replay of many."""
    return f"replayed-{done}-{skipped}"


def told(tx: Tx, word: str, incident_id: int | None) -> str:
    """The sentence for a word; empty where there is nothing to say."""
    counts = re.fullmatch(r"replayed-(\d{1,6})-(\d{1,6})", word)
    if counts is not None:
        return _replayed(int(counts[1]), int(counts[2]))
    if word == NOTED:
        return "Note added."
    if incident_id is None or word not in (*EVENTS, ALREADY):
        return ""
    if word == ALREADY:
        return _already(tx, incident_id)
    entry = tx.maybe(Entry, "latest_event", incident_id=incident_id, event=word)
    return f"#{incident_id}: {sentence(entry)}" if entry is not None else ""


def sentence(entry: Entry) -> str:
    """How an event reads on a page: with what it stopped."""
    said = timeline.sentence(entry)
    stopped = words.stopped(entry.data.get("cancelled") or 0, entry.data.get("in_flight") or [])
    return f"{said}. {stopped}" if stopped else said


def _replayed(done: int, skipped: int) -> str:
    said = f"{words.plural(done, 'page')} sent again."
    if skipped:
        said += f" {words.plural(skipped, 'page')} skipped: nobody needs to be paged for it any more."
    return said


def _already(tx: Tx, incident_id: int) -> str:
    try:
        incident = incidents.find(tx, incident_id)
    except NotFound:
        return ""
    for state, at, by in (
        ("acknowledged", incident.acknowledged_at, incident.acknowledged_by),
        ("resolved", incident.resolved_at, incident.resolved_by),
    ):
        if incident.status == state.upper() and at is not None:
            return f"#{incident_id} was already {state} by {by} at {words.stamp(at)}."
    return f"#{incident_id} is open already; nothing was changed."
