"""The queue: what waits, what is in the air, what failed, and sending it again."""

from flask import Blueprint, Response, jsonify

from escalade import attempts as verbs
from escalade import overview, replays, shown
from escalade.errors import Conflict, Invalid
from escalade.overview import After
from escalade.web.access import caller, needs
from escalade.web.api import asked
from escalade.web.context import context

blueprint = Blueprint("api_attempts", __name__, url_prefix="/api/v1/attempts")


@blueprint.get("")
@needs("viewer")
def listing() -> Response:
    """By due time, then id."""
    statuses, n = asked.statuses(overview.STATUSES), asked.limit()
    incident_id, transport, after = asked.query_id("incident"), asked.query("transport"), _after()
    with context().db.read() as tx:
        found = overview.listing(tx, statuses, incident_id, transport, after, n + 1)
    last = found[n - 1] if len(found) > n else None
    following = None if last is None else asked.cursor(last.due_at.isoformat(), last.id)
    return jsonify(attempts=[shown.attempt(view) for view in found[:n]], next=following)


def _after() -> After | None:
    parts = asked.before(str, int)
    if parts is None:
        return None
    return After(asked.instant(parts[0], "before"), parts[1])


@blueprint.get("/<int:attempt_id>")
@needs("viewer")
def one(attempt_id: int) -> Response:
    """One attempt with its tries."""
    with context().db.read() as tx:
        view = overview.attempt(tx, attempt_id)
        tries = [shown.attempt_try(item) for item in overview.tries(tx, view)]
    return jsonify(attempt=shown.attempt(view), tries=tries)


@blueprint.post("/<int:attempt_id>/replay")
@needs("responder")
def replay(attempt_id: int) -> Response:
    """One failed page again."""
    asked.body()
    with context().db.begin() as tx:
        if overview.attempt(tx, attempt_id).archived:
            raise Conflict(f"Attempt {attempt_id} is in the archive: its incident ended long ago.")
        verbs.replay_one(tx, attempt_id, caller().actor)
        row = shown.attempt(overview.attempt(tx, attempt_id))
    return jsonify(attempt=row)


@blueprint.post("/replay")
@needs("responder")
def replay_many() -> Response:
    """What failed again: all of it, that of one transport, or the given attempts."""
    fields = asked.body("status", "transport", "ids")
    if fields.get("status", "FAILED") != "FAILED":
        raise Invalid("status must be FAILED: nothing else can be sent again.", "status")
    transport = asked.text(fields, "transport", 100, required=False) or None
    done = replays.replay_failed(context().db.begin, caller().actor, transport, asked.ids(fields, "ids"))
    return jsonify(replayed=done.replayed, skipped=done.skipped)
