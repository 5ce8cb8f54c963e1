"""Who is on call, when shifts change, and overrides."""

from datetime import timedelta

from flask import Blueprint, Response, jsonify

from escalade import overrides, rota, shown
from escalade.errors import Conflict, Invalid
from escalade.overrides import Wanted
from escalade.web.access import caller, needs
from escalade.web.api import asked
from escalade.web.api.asked import Body
from escalade.web.context import context

blueprint = Blueprint("api_rota", __name__, url_prefix="/api/v1")

RANGE = timedelta(days=14)
LONGEST_RANGE = timedelta(days=366)
EMAIL_LIMIT = 300


@blueprint.get("/oncall")
@needs("viewer")
def oncall() -> Response:
    """Who is on call at a time; without one, now."""
    at = asked.query_instant("at")
    with context().db.read() as tx:
        at = at or tx.now
        found = rota.on_call(tx, at, asked.query("schedule"))
    rows = [{"schedule": item.schedule.name, "users": [user.email for user in item.people]} for item in found]
    return jsonify(at=shown.when(at), schedules=rows)


@blueprint.get("/schedules/<name>/shifts")
@needs("viewer")
def shifts(name: str) -> Response:
    """The turns between two times, without gaps; two weeks from now unless they are given."""
    start, end = asked.query_instant("from"), asked.query_instant("to")
    with context().db.read() as tx:
        start = start or tx.now
        end = end or start + RANGE
        if not start < end <= start + LONGEST_RANGE:
            raise Invalid("to must come after from, by at most 366 days.", "to")
        try:
            turns = rota.shifts(tx, name, start, end)
        except ValueError as fault:
            raise Conflict(f"The schedule cannot be worked out: {fault}.") from None
    rows = [
        {"start": shown.when(turn.start), "end": shown.when(turn.end), "users": [user.email for user in turn.people]}
        for turn in turns
    ]
    return jsonify(schedule=name, shifts=rows)


@blueprint.post("/schedules/<name>/overrides")
@needs("responder")
def create_override(name: str) -> tuple[Response, int]:
    """One more override."""
    wanted = _wanted(asked.body("kind", "user", "replaces", "start", "end"))
    with context().db.begin() as tx:
        override_id = overrides.create(tx, name, wanted, caller().actor)
    return jsonify(override={"id": override_id}), 201


def _wanted(fields: Body) -> Wanted:
    return Wanted(
        kind=asked.text(fields, "kind", 20),
        user=asked.text(fields, "user", EMAIL_LIMIT),
        replaces=asked.text(fields, "replaces", EMAIL_LIMIT, required=False) or None,
        start=asked.instant(fields.get("start"), "start"),
        end=asked.instant(fields.get("end"), "end"),
    )


@blueprint.delete("/schedules/<name>/overrides/<int:override_id>")
@needs("responder")
def delete_override(name: str, override_id: int) -> tuple[str, int]:
    """End an override."""
    with context().db.begin() as tx:
        overrides.delete(tx, name, override_id)
    return "", 204
