"""The queue as a list, one attempt with what was said on the wire, and sending again what failed."""

import re
from dataclasses import replace

from flask import Blueprint, Response, render_template, request
from werkzeug.datastructures import MultiDict

from escalade import attempts, listing, replays
from escalade.db import Tx
from escalade.errors import Invalid
from escalade.overview import AttemptView
from escalade.web.access import caller, needs
from escalade.web.context import context
from escalade.web.pages import answering, filters, queue_region, regions, telling

pages = Blueprint("attempt_pages", __name__, url_prefix="/attempts")


@pages.get("")
@needs("viewer")
def show() -> tuple[str, int]:
    """A page of the attempts that fit the filter; 422 where the filter cannot be read."""
    with context().db.read() as tx:
        seen = queue_region.attempts(tx, request.args)
        said = answering.said(tx)
    return render_template("attempts/show.html", said=said, **seen), 422 if seen["faults"] else 200


@pages.get("/live")
@needs("viewer")
def live() -> Response:
    """The live part alone; 204 while nothing has changed."""
    same = answering.unchanged()
    if same is not None:
        return same
    with context().db.read() as tx:
        seen = queue_region.attempts(tx, request.args)
    return answering.fragment("attempts/_live.html", seen)


@pages.get("/<int:attempt_id>")
@needs("viewer")
def one(attempt_id: int) -> str:
    """One attempt, also an archived one, with the request and the answer of each try. Raises NotFound."""
    with context().db.read() as tx:
        seen = queue_region.attempt(tx, attempt_id)
        said = answering.said(tx)
    return render_template("attempts/one.html", said=said, **seen)


@pages.get("/<int:attempt_id>/live")
@needs("viewer")
def one_live(attempt_id: int) -> Response:
    """Its live part alone; 204 while nothing has changed."""
    same = answering.unchanged()
    if same is not None:
        return same
    with context().db.read() as tx:
        seen = queue_region.attempt(tx, attempt_id)
    return answering.fragment("attempts/_one.html", seen)


@pages.post("/<int:attempt_id>/replay")
@needs("responder")
def replay(attempt_id: int) -> Response:
    """Send one failed page again. Raises NotFound, or Conflict where nobody needs it any more."""
    with context().db.begin() as tx:
        attempts.replay_one(tx, attempt_id, caller().actor)
        row = tx.one(dict, "attempt_incident", id=attempt_id)
    return answering.done(telling.replayed(1, 0), row["incident_id"])


@pages.get("/replay")
@needs("responder")
def plan() -> str:
    """Before many are sent again: exactly which, whom they tell, and which of them nobody needs. Changes nothing."""
    with context().db.read() as tx:
        seen = regions.frame(tx)
        planned = queue_region.plan(tx, *_wanted(tx))
    return render_template(
        "attempts/replay.html",
        plan=planned,
        carried=filters.carried(request.args),
        back=request.args.get("back", "attempts"),
        incident=request.args.get("incident", type=int),
        named=queue_region.NAMED,
        **seen,
    )


def _wanted(tx: Tx) -> tuple[list[AttemptView], bool]:
    if "all" not in request.args:
        return listing.chosen(tx, _chosen_ids(request.args)), False
    asked = filters.read(request.args)
    for name, fault in asked.faults.items():
        raise Invalid(fault, name)
    return listing.to_replay(tx, replace(asked.filter, status="FAILED"))


def _chosen_ids(values: MultiDict[str, str]) -> list[int]:
    """The rows that are ticked, or those that a form lists. Raises Invalid."""
    ticked = values.getlist("id")
    if not ticked and "ids" not in values:
        raise Invalid("Choose at least one page to send again.", "id")
    return listed_ids(",".join(ticked) or values["ids"])


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
