"""The queue as a list, and sending again what failed."""

from collections.abc import Sequence

from flask import Blueprint, Response, render_template, request

from escalade import attempts
from escalade.errors import Conflict, Invalid, NotFound
from escalade.web.access import caller, needs
from escalade.web.context import context
from escalade.web.pages import answering, regions, telling

pages = Blueprint("attempt_pages", __name__, url_prefix="/attempts")


@pages.get("")
@needs("viewer")
def show() -> str:
    """The attempts of one status."""
    with context().db.read() as tx:
        seen = regions.attempts(tx, answering.wanted_status(request.args.get("status")))
        said = answering.said(tx)
    return render_template("attempts/show.html", said=said, **seen)


@pages.get("/live")
@needs("viewer")
def live() -> Response:
    """The live part alone; 204 while nothing has changed."""
    same = answering.unchanged()
    if same is not None:
        return same
    with context().db.read() as tx:
        seen = regions.attempts(tx, answering.wanted_status(request.args.get("status")))
    return answering.fragment("attempts/_live.html", seen)


@pages.post("/<int:attempt_id>/replay")
@needs("responder")
def replay(attempt_id: int) -> Response:
    """Send one failed page again. Raises NotFound, or Conflict where nobody needs it any more."""
    with context().db.begin() as tx:
        attempts.replay_one(tx, attempt_id, caller().actor)
        row = tx.one(dict, "attempt_incident", id=attempt_id)
    return answering.done(telling.replayed(1, 0), row["incident_id"])


@pages.post("/replay")
@needs("responder")
def replay_shown() -> Response:
    """Send the failed pages that the form lists again, one transaction an incident. Raises Invalid."""
    try:
        ids = [int(text) for text in request.form.get("ids", "").split(",")]
    except ValueError:
        raise Invalid("The list of attempts cannot be read.", "ids") from None
    with context().db.read() as tx:
        found = attempts.failed_by_incident(tx, ids=ids)
    sent = sum(replay_of(incident_id, chosen) for incident_id, chosen in found.items())
    skipped = sum(len(chosen) for chosen in found.values()) - sent
    return answering.done(telling.replayed(sent, skipped), request.form.get("incident", type=int))


def replay_of(incident_id: int, ids: Sequence[int]) -> int:
    """Send the failed pages of one incident again; how many were. None where nobody needs them any more."""
    try:
        with context().db.begin() as tx:
            return len(attempts.replay(tx, incident_id, ids, caller().actor))
    except (Conflict, NotFound):
        return 0
