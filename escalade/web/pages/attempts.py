"""The queue as a list, and sending again what failed."""

import re

from flask import Blueprint, Response, render_template, request

from escalade import attempts, replays
from escalade.errors import Invalid
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
    ids = listed_ids(request.form.get("ids", ""))
    sent = replays.replay_failed(context().db.begin, caller().actor, ids=ids)
    return answering.done(telling.replayed(sent.replayed, sent.skipped), request.form.get("incident", type=int))


def listed_ids(text: str) -> list[int]:
    """The ids of a list such as 1,2,3. Raises Invalid."""
    if re.fullmatch(r"[0-9]{1,18}(,[0-9]{1,18})*", text) is None:
        raise Invalid("The list of attempts cannot be read.", "ids")
    return [int(part) for part in text.split(",")]
