"""The first run: from the first login to a page that arrives, step by step, and never again afterwards.

The key of the integration is kept nowhere, so the page that shows it is the answer to what made it, and carries it
along in its forms.
"""

import hashlib
import json
from typing import Any, cast

from flask import Blueprint, Response, make_response, redirect, render_template, request, url_for

from escalade import first_steps, opening
from escalade.db import Tx
from escalade.errors import Conflict, Invalid, NotFound, Refusal
from escalade.first_steps import ALERT, Steps
from escalade.tokens import digest
from escalade.web.access import needs
from escalade.web.context import context
from escalade.web.pages import answering, regions, words

pages = Blueprint("first_steps", __name__, url_prefix="/welcome")

OVER = "The first steps are done. All of it can be changed under Setup."


@pages.get("")
@needs("admin")
def show() -> str:
    """The step it is at; with ?step=reach the first one again, for another way to be reached."""
    with context().db.read() as tx:
        steps = found(tx)
        return drawn(tx, steps, again=request.args.get("step") == "reach")


@pages.post("/reach")
@needs("admin")
def reach() -> Response:
    """Note how to reach this person. Raises NotFound once it is over."""
    form = request.form
    try:
        with context().db.begin() as tx:
            first_steps.reach_by(tx, found(tx), form.get("kind", ""), form.get("address", ""))
    except Invalid as refusal:
        return typed_again(refusal, again=True, kind=form.get("kind", ""), address=form.get("address", ""))
    return onward()


@pages.post("/service")
@needs("admin")
def service() -> Response:
    """Make the first service and show its key, this once. Raises NotFound once it is over."""
    try:
        with context().db.begin() as tx:
            steps = found(tx)
            if steps.service is not None:
                raise Conflict("The first service is there already.", "name")
            key = first_steps.make_service(tx, steps, request.form.get("name", ""))
    except (Invalid, Conflict) as refusal:
        return typed_again(refusal, name=request.form.get("name", ""))
    return with_key(key)


@pages.post("/key")
@needs("admin")
def key() -> Response:
    """Another key, where the first was not copied. Raises NotFound or Conflict."""
    with context().db.begin() as tx:
        made = first_steps.new_key(tx, found(tx))
    return with_key(made)


@pages.post("/look")
@needs("admin")
def look() -> Response:
    """The page again with its key, for a browser without a script. Raises NotFound once it is over."""
    return with_key(request.form.get("key", ""))


@pages.post("/alert")
@needs("admin")
def alert() -> Response:
    """Send the first alert from here. Raises NotFound once it is over."""
    with context().db.begin() as tx:
        first_steps.alert(tx, found(tx))
    return with_key(request.form.get("key", ""))


@pages.get("/live")
@needs("admin")
def live() -> Response:
    """What has become of the alert; 204 while nothing has changed. Raises NotFound once it is over."""
    with context().db.read() as tx:
        seen = region(tx, found(tx))
    if request.args.get("v") == seen["watermark"]:
        return Response(status=204)
    return answering.fragment("welcome/_live.html", seen)


@pages.post("/done")
@needs("admin")
def done() -> Response:
    """It is over, and does not come back."""
    with context().db.begin() as tx:
        first_steps.end(tx)
    return cast(Response, redirect(url_for("now.show"), 303))


def found(tx: Tx) -> Steps:
    """How far it is. Raises NotFound once it is over."""
    steps = first_steps.find(tx)
    if steps is None:
        raise NotFound(OVER)
    words.use_zone(steps.user.timezone)
    return steps


def onward() -> Response:
    """To the step that comes now."""
    return cast(Response, redirect(url_for("first_steps.show"), 303))


def with_key(key: str) -> Response:
    """The page with the key; one that is not of this service is not shown."""
    with context().db.read() as tx:
        steps = found(tx)
        return make_response(drawn(tx, steps, key=key if fits(tx, steps, key) else ""))


def fits(tx: Tx, steps: Steps, key: str) -> bool:
    """Whether this is a key of the first service."""
    try:
        return opening.integration(tx, digest(key)).source.service_name == steps.service
    except NotFound:
        return False


def typed_again(refusal: Refusal, again: bool = False, **typed: str) -> Response:
    """The step as it was typed, and what is wrong with it. Raises NotFound once it is over."""
    with context().db.read() as tx:
        page = drawn(tx, found(tx), again=again, refusal=refusal.message, typed=typed)
    return make_response(page, 422)


def drawn(tx: Tx, steps: Steps, again: bool = False, key: str = "", **more: Any) -> str:
    """The page of the step."""
    config = context().config
    if not steps.methods or again:
        return render_template("welcome/reach.html", steps=steps, kinds=first_steps.offered(config), **more)
    if steps.service is None:
        return render_template("welcome/service.html", steps=steps, **more)
    return render_template("welcome/alert.html", key=key, command=command(key), **region(tx, steps))


def command(key: str) -> str:
    """What to paste into a terminal."""
    body = json.dumps({"title": ALERT, "severity": "critical"})
    return f"curl -H 'Content-Type: application/json' -d '{body}' {context().config.base_url}/hooks/{key}"


def region(tx: Tx, steps: Steps) -> dict[str, Any]:
    """The live part: what has become of the alert."""
    came, delivery = first_steps.arrival(tx, steps), regions.delivery(tx)
    pages_seen = [(page.id, page.status, page.tries, page.due_at, page.last_error) for page in came.pages]
    state = (came.incident.id if came.incident else None, pages_seen, delivery.stopped)
    mark = hashlib.sha256(repr(state).encode()).hexdigest()[:20]
    return {"steps": steps, "came": came, "delivery": delivery, "now": came.now, "watermark": mark}
