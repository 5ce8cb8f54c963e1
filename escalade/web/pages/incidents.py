"""One incident: what happened, what was sent, and what people do to it."""

from collections.abc import Callable

from flask import Blueprint, Response, render_template, request

from escalade import clean, durations, incidents
from escalade.db import Tx
from escalade.incidents import Answer
from escalade.web.access import caller, needs
from escalade.web.context import context
from escalade.web.pages import answering, reaching, regions, telling

pages = Blueprint("incident_pages", __name__, url_prefix="/incidents/<int:incident_id>")


@pages.get("")
@needs("viewer")
def show(incident_id: int) -> str:
    """The whole page. Raises NotFound."""
    with context().db.read() as tx:
        seen = regions.incident(tx, incident_id)
        said = answering.said(tx, incident_id)
    return render_template("incidents/show.html", said=said, **seen)


@pages.get("/live")
@needs("viewer")
def live(incident_id: int) -> Response:
    """The live part alone; 204 while nothing has changed."""
    same = answering.unchanged()
    if same is not None:
        return same
    with context().db.read() as tx:
        seen = regions.incident(tx, incident_id) | {"said": answering.said(tx, incident_id)}
    return answering.fragment("incidents/_live.html", seen)


def act(incident_id: int, word: str, verb: Callable[[Tx, str], Answer]) -> Response:
    """Do it in one transaction, and show the state it leaves. A second time changes nothing and says so."""
    with context().db.begin() as tx:
        answer = verb(tx, caller().actor)
    return answering.done(word if answer.changed else telling.ALREADY, incident_id)


@pages.post("/acknowledge")
@needs("responder")
def acknowledge(incident_id: int) -> Response:
    """Somebody is on it."""
    return act(incident_id, "acknowledged", lambda tx, actor: incidents.acknowledge(tx, incident_id, actor))


@pages.post("/resolve")
@needs("responder")
def resolve(incident_id: int) -> Response:
    """It is over."""
    return act(incident_id, "resolved", lambda tx, actor: incidents.resolve(tx, incident_id, actor))


@pages.post("/unacknowledge")
@needs("responder")
def unacknowledge(incident_id: int) -> Response:
    """Nobody is on it after all."""
    return act(incident_id, "unacknowledged", lambda tx, actor: incidents.unacknowledge(tx, incident_id, actor))


@pages.post("/reopen")
@needs("responder")
def reopen(incident_id: int) -> Response:
    """It is not over after all."""
    return act(incident_id, "reopened", lambda tx, actor: incidents.reopen(tx, incident_id, actor))


@pages.post("/escalate")
@needs("responder")
def escalate(incident_id: int) -> Response:
    """The next step now."""
    return act(incident_id, "escalated", lambda tx, actor: incidents.escalate(tx, incident_id, actor))


@pages.post("/snooze")
@needs("responder")
def snooze(incident_id: int) -> Response:
    """Silent for a while."""
    seconds = durations.seconds(request.form.get("for", ""), "for", label='"Snooze for"')
    return act(incident_id, "snoozed", lambda tx, actor: incidents.snooze(tx, incident_id, seconds, actor))


@pages.post("/reassign")
@needs("responder")
def reassign(incident_id: int) -> Response:
    """Page somebody else instead."""
    label = request.form.get("target", "")
    return act(
        incident_id,
        "reassigned",
        lambda tx, actor: incidents.reassign(tx, incident_id, reaching.chosen(tx, label, "target"), actor),
    )


@pages.post("/note")
@needs("responder")
def note(incident_id: int) -> Response:
    """A line for the timeline."""
    text, _ = clean.details_text(request.form.get("text", ""))
    return act(incident_id, telling.NOTED, lambda tx, actor: incidents.note(tx, incident_id, text, actor))
