"""Incidents: list, open, look at, and everything a person can do to one."""

from collections.abc import Callable

from flask import Blueprint, Response, jsonify

from escalade import clean, durations, opening, overview, shown, targets, timeline
from escalade import incidents as verbs
from escalade.db import Tx
from escalade.errors import Invalid, NotFound
from escalade.inbound.base import Event
from escalade.inbound.generic import SEVERITIES
from escalade.incident import Incident
from escalade.incidents import Answer
from escalade.web.access import caller, needs
from escalade.web.api import asked
from escalade.web.api.asked import Body
from escalade.web.context import context

blueprint = Blueprint("api_incidents", __name__, url_prefix="/api/v1/incidents")

TARGET_LIMIT = 300


@blueprint.get("")
@needs("viewer")
def listing() -> Response:
    """The newest first."""
    statuses, n, before = asked.statuses(overview.INCIDENT_STATUSES), asked.limit(), asked.before(int)
    with context().db.read() as tx:
        found = overview.incidents(tx, statuses, asked.query("service"), before[0] if before else None, n + 1)
        rows = shown.incidents(tx, found[:n], context().config.base_url)
    return jsonify(incidents=rows, next=asked.cursor(found[n - 1].id) if len(found) > n else None)


@blueprint.post("")
@needs("responder")
def trigger() -> tuple[Response, int]:
    """Open an incident on a service, or for one target."""
    fields = asked.body("service", "target", "title", "details", "severity", "link")
    event = _event(fields)
    if ("service" in fields) == ("target" in fields):
        raise Invalid("Name either a service or a target.", "service")
    with context().db.begin() as tx:
        incident = _opened(tx, fields, event)
        row = shown.one_incident(tx, incident, context().config.base_url)
    return jsonify(incident=row), 201


def _event(fields: Body) -> Event:
    severity = asked.text(fields, "severity", 20, required=False) or "error"
    if severity not in SEVERITIES:
        raise Invalid(f"severity must be {', '.join(SEVERITIES[:-1])} or {SEVERITIES[-1]}.", "severity")
    address = asked.text(fields, "link", clean.LINK_LIMIT, required=False)
    link = clean.link(address)
    if address and link is None:
        raise Invalid("link must be an http or https address.", "link")
    title = asked.text(fields, "title", clean.TITLE_LIMIT)
    details = asked.text(fields, "details", clean.DETAILS_LIMIT, required=False)
    event = Event("trigger", severity=severity, link=link, **clean.fields(title=title, details=details))
    if not event.title:
        raise Invalid("title must not be empty.", "title")
    return event


def _opened(tx: Tx, fields: Body, event: Event) -> Incident:
    actor = caller().actor
    if "target" in fields:
        target = targets.resolve(tx, asked.text(fields, "target", TARGET_LIMIT))
        return opening.trigger_target(tx, target, event, actor)
    try:
        source = opening.service(tx, asked.text(fields, "service", TARGET_LIMIT), actor)
    except NotFound as refusal:
        # The address is known; what the body says is not.
        raise Invalid(refusal.message, refusal.field) from None
    return opening.trigger(tx, source, event)[0]


@blueprint.get("/<int:incident_id>")
@needs("viewer")
def one(incident_id: int) -> Response:
    """One incident with its attempts and its timeline."""
    with context().db.read() as tx:
        row = shown.one_incident(tx, verbs.find(tx, incident_id), context().config.base_url)
        attempts = [shown.attempt(view) for view in overview.of_incident(tx, incident_id)]
        events = [shown.event(entry) for entry in timeline.of_incident(tx, incident_id)]
    return jsonify(incident=row, attempts=attempts, events=events)


def act(do: Callable[[Tx, str], Answer]) -> Response:
    """One verb in one transaction, and what it did."""
    with context().db.begin() as tx:
        done = shown.answer(tx, do(tx, caller().actor), context().config.base_url)
    return jsonify(done)


@blueprint.post("/<int:incident_id>/acknowledge")
@needs("responder")
def acknowledge(incident_id: int) -> Response:
    """Somebody is on it: nothing more is sent."""
    asked.body()
    return act(lambda tx, actor: verbs.acknowledge(tx, incident_id, actor))


@blueprint.post("/<int:incident_id>/resolve")
@needs("responder")
def resolve(incident_id: int) -> Response:
    """It is over."""
    asked.body()
    return act(lambda tx, actor: verbs.resolve(tx, incident_id, actor))


@blueprint.post("/<int:incident_id>/unacknowledge")
@needs("responder")
def unacknowledge(incident_id: int) -> Response:
    """Nobody is on it after all: a new round begins."""
    asked.body()
    return act(lambda tx, actor: verbs.unacknowledge(tx, incident_id, actor))


@blueprint.post("/<int:incident_id>/reopen")
@needs("responder")
def reopen(incident_id: int) -> Response:
    """It is not over after all: a new round begins."""
    asked.body()
    return act(lambda tx, actor: verbs.reopen(tx, incident_id, actor))


@blueprint.post("/<int:incident_id>/escalate")
@needs("responder")
def escalate(incident_id: int) -> Response:
    """The next step now."""
    asked.body()
    return act(lambda tx, actor: verbs.escalate(tx, incident_id, actor))


@blueprint.post("/<int:incident_id>/snooze")
@needs("responder")
def snooze(incident_id: int) -> Response:
    """Silent for a while; then a new round begins."""
    seconds = durations.seconds(asked.body("for").get("for"), "for")
    return act(lambda tx, actor: verbs.snooze(tx, incident_id, seconds, actor))


@blueprint.post("/<int:incident_id>/reassign")
@needs("responder")
def reassign(incident_id: int) -> Response:
    """Somebody else is told from here on."""
    target = asked.text(asked.body("target"), "target", TARGET_LIMIT)
    return act(lambda tx, actor: verbs.reassign(tx, incident_id, targets.resolve(tx, target), actor))


@blueprint.post("/<int:incident_id>/note")
@needs("responder")
def note(incident_id: int) -> Response:
    """A line in the timeline."""
    text = clean.details_text(asked.text(asked.body("text"), "text", clean.DETAILS_LIMIT))[0]
    return act(lambda tx, actor: verbs.note(tx, incident_id, text, actor))
