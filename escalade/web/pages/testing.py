"""Send a test page to one contact and watch it go: waiting, on its way, delivered or failed, with every try."""

import hashlib
from typing import Any, cast

from flask import Blueprint, Response, redirect, render_template, request, url_for

from escalade import overview, trials, users
from escalade.db import Tx
from escalade.errors import Forbidden, Invalid, NotFound
from escalade.overview import AttemptView
from escalade.trials import Contact
from escalade.web.access import caller, needs
from escalade.web.context import context
from escalade.web.pages import answering, regions, words

pages = Blueprint("test_pages", __name__, url_prefix="/setup/tests")


@pages.get("")
@needs("responder")
def choose() -> str:
    """Everybody and everything a test can be sent to: for an admin all of it, else one's own."""
    with context().db.read() as tx:
        found = [one for one in trials.contacts(tx) if may_test(one)]
    return render_template("tests/choose.html", contacts=found)


@pages.post("")
@needs("responder")
def send() -> Response:
    """Send one, and show how it goes. Raises NotFound, Forbidden or Invalid."""
    method, channel = (request.form.get(name, type=int) for name in ("method", "channel"))
    if (method is None) == (channel is None):
        raise Invalid("Choose a contact method or a channel.", "method")
    with context().db.begin() as tx:
        to = trials.contact_method(tx, method) if method is not None else trials.channel(tx, channel or 0)
        if not may_test(to):
            raise Forbidden("You may send tests to yourself; an admin to everybody.")
        attempt_id = trials.begin(tx, to)
    return cast(Response, redirect(url_for("test_pages.show", attempt_id=attempt_id), 303))


@pages.get("/<int:attempt_id>")
@needs("responder")
def show(attempt_id: int) -> str:
    """How it goes. Without a script: as it stands, with a link to look again."""
    with context().db.read() as tx:
        seen = region(tx, attempt_id)
    return render_template("tests/show.html", **seen)


@pages.get("/<int:attempt_id>/live")
@needs("responder")
def live(attempt_id: int) -> Response:
    """The live part alone; 204 while nothing has changed."""
    with context().db.read() as tx:
        seen = region(tx, attempt_id)
    if request.args.get("v") == seen["watermark"]:
        return Response(status=204)
    return answering.fragment("tests/_live.html", seen)


def may_test(to: Contact) -> bool:
    """Whether the caller may send a test there."""
    who = caller()
    return who.may("admin") or (to.user_id is not None and to.user_id == who.user_id)


def region(tx: Tx, attempt_id: int) -> dict[str, Any]:
    """The test as it stands. Raises NotFound, also for an attempt that is no test, or a test that is not one's own."""
    who = caller()
    words.use_zone(users.find(tx, who.user_id).timezone if who.user_id is not None else "UTC")
    seen = overview.attempt(tx, attempt_id)
    own = seen.user_id is not None and seen.user_id == who.user_id
    if seen.event != "test" or not (who.may("admin") or own):
        raise NotFound(f"There is no test page {attempt_id}.")
    stopped = regions.delivery(tx)
    return {
        "attempt": seen,
        "tries": overview.tries(tx, seen),
        "now": tx.now,
        "delivery": stopped,
        "to": contact(tx, attempt_id),
        "watermark": mark(seen, stopped.stopped),
        "over": seen.status in ("DELIVERED", "FAILED", "CANCELLED"),
    }


def contact(tx: Tx, attempt_id: int) -> Contact | None:
    """Whom it was sent to, where they are still there."""
    ids = tx.one(dict, "contact_of_attempt", id=attempt_id)
    try:
        if ids["contact_method_id"] is not None:
            return trials.contact_method(tx, ids["contact_method_id"])
        return trials.channel(tx, ids["channel_id"] or 0)
    except NotFound:
        return None


def mark(seen: AttemptView, stopped: bool) -> str:
    """One text that changes with whatever is shown."""
    shown = (seen.status, seen.tries, seen.due_at, seen.last_error, seen.held_until, seen.held_reason, stopped)
    return hashlib.sha256(repr(shown).encode()).hexdigest()[:20]
