"""Who can be told: whether an action that pages has reached somebody, and whom a form offers."""

from collections.abc import Iterable
from dataclasses import dataclass

from escalade import rota, targets, timeline
from escalade.db import Tx
from escalade.errors import Invalid
from escalade.ladder import Target
from escalade.timeline import Entry

PAGING = ("triggered", "unacknowledged", "reopened", "escalated", "reassigned")
SETTLED = {"step_reached", "acknowledged", "resolved", "auto_resolved"}
OUTCOMES = "step_skipped step_failed target_skipped exhausted fallback_told fallback_missing".split()


@dataclass(frozen=True, slots=True)
class Choice:
    """Somebody an incident can be given to; `lacking` says why nobody would be told, as things are now."""

    target: Target
    lacking: str

    @property
    def words(self) -> str:
        """For the list."""
        return f"{self.target.name} ({self.target.kind}{', ' if self.lacking else ''}{self.lacking})"


def shortfall(tx: Tx, incident_id: int, entry: Entry) -> str:
    """How the sentence of an action goes on where nobody has been told since; empty where somebody has,
    or where it no longer matters."""
    if entry.event not in PAGING:
        return ""
    found = tx.many(Entry, "events_since", incident_id=incident_id, id=entry.id, events=[*SETTLED, *OUTCOMES])
    if not found or any(outcome.event in SETTLED for outcome in found):
        return ""
    return f", but {_why(found)}.{_fallback(found)}"


def _why(found: Iterable[Entry]) -> str:
    skipped = [f"{entry.data['target']} ({entry.data['why']})" for entry in found if entry.event == "target_skipped"]
    put_off = [timeline.sentence(entry) for entry in found if entry.event == "step_failed"]
    reasons = "; ".join(dict.fromkeys(skipped + put_off))
    if reasons:
        return f"nobody could be told: {reasons}"
    return "nobody is left to be told" if any(entry.event == "exhausted" for entry in found) else "nobody could be told"


def _fallback(found: Iterable[Entry]) -> str:
    for entry in found:
        if entry.event == "fallback_told":
            return f" The fallback is told: {entry.data['people']}."
        if entry.event == "fallback_missing":
            return " No fallback could be told either."
    return ""


def choices(tx: Tx) -> list[Choice]:
    """Whom an incident can be given to."""
    people = {row["email"] for row in tx.many(dict, "reachable_people")}
    on_call = {turn.schedule.name: [user.email for user in turn.people] for turn in rota.on_call(tx, tx.now)}
    return [Choice(one, _lacking(one, people, on_call)) for one in tx.many(Target, "pageable_targets")]


def _lacking(target: Target, people: set[str], on_call: dict[str, list[str]]) -> str:
    if target.kind == "user":
        return "" if target.name in people else "no contact method"
    if target.kind == "schedule" and not people.intersection(on_call.get(target.name, [])):
        return "nobody to reach is on call" if on_call.get(target.name) else "nobody is on call"
    return ""


def chosen(tx: Tx, label: str, field: str) -> Target:
    """The target that a form names. Raises Invalid."""
    if ":" not in label:
        raise Invalid("Choose whom to page from the list.", field)
    return targets.resolve(tx, label, field)
