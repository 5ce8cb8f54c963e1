"""Now: the one page that is open while something is wrong."""

from flask import Blueprint, Response, render_template, request

from escalade import clean, opening
from escalade.db import Tx
from escalade.errors import Invalid
from escalade.inbound.base import Event
from escalade.inbound.generic import SEVERITIES
from escalade.incident import Incident
from escalade.web.access import caller, needs
from escalade.web.context import context
from escalade.web.pages import answering, reaching, regions

pages = Blueprint("now", __name__)


@pages.get("/")
@needs("viewer")
def show() -> str:
    """The whole page."""
    with context().db.read() as tx:
        seen = regions.now(tx)
        said = answering.said(tx)
    return render_template("now/show.html", said=said, **seen)


@pages.get("/now")
@needs("viewer")
def live() -> Response:
    """The live part alone; 204 while nothing has changed."""
    same = answering.unchanged()
    if same is not None:
        return same
    with context().db.read() as tx:
        seen = regions.now(tx) | {"said": answering.said(tx)}
    return answering.fragment("now/_live.html", seen)


@pages.post("/incidents")
@needs("responder")
def open_by_hand() -> Response:
    """Open an incident on a service, or for one target. Raises Invalid or NotFound."""
    title = request.form.get("title", "").strip()
    if not title:
        raise Invalid("An incident needs a title.", "title")
    severity = request.form.get("severity", "error")
    if severity not in SEVERITIES:
        raise Invalid("Choose the severity from the list.", "severity")
    event = Event("trigger", severity=severity, **clean.fields(title=title))
    with context().db.begin() as tx:
        incident = trigger(tx, request.form.get("for", ""), event, caller().actor)
    return answering.done("triggered", incident.id)


def trigger(tx: Tx, label: str, event: Event, actor: str) -> Incident:
    """Open the incident on what the form names, as in service:api or user:alice@example.com."""
    kind, _, name = label.partition(":")
    if kind == "service":
        return opening.trigger(tx, opening.service(tx, name, actor), event)[0]
    return opening.trigger_target(tx, reaching.chosen(tx, label, "for"), event, actor)
