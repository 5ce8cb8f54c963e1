"""Web Push for whoever is logged in: switch it on in this browser, try it, or take a browser off again."""

import re
from typing import Any, cast

from flask import Blueprint, Response, make_response, redirect, render_template, request, url_for

from escalade import first_steps, subscriptions, trials
from escalade.db import Tx
from escalade.errors import Forbidden, Invalid
from escalade.first_steps import sentence
from escalade.transfer.faults import Faults
from escalade.transports import push
from escalade.web.access import caller, needs
from escalade.web.context import context

pages = Blueprint("push_page", __name__, url_prefix="/account/push")

# As they call themselves; the first that fits counts, since each claims to be some of the others.
BROWSERS = (("Edg", "Edge"), ("OPR", "Opera"), ("Firefox", "Firefox"), ("Chrome", "Chrome"), ("Safari", "Safari"))
SYSTEMS = (("Android",) * 2, ("iPhone|iPad", "iPhone"), ("Mac",) * 2, ("Windows",) * 2, ("Linux",) * 2)


@pages.get("")
@needs("viewer")
def show() -> str:
    """Whether it can be switched on, and where it is."""
    return drawn()


@pages.post("")
@needs("viewer")
def switch_on() -> Response:
    """Note this browser's subscription. Raises Forbidden for a token, and for viewers, whom nobody pages."""
    email = person()
    label = called(request.headers.get("User-Agent", ""))
    try:
        with context().db.begin() as tx:
            subscriptions.subscribe(tx, email, request.form.get("subscription", ""), label)
            going = first_steps.find(tx) is not None
    except Faults as wrong:
        return make_response(drawn(refusal=sentence(wrong)), 422)
    onward = url_for("first_steps.show") if going and caller().may("admin") else url_for("push_page.show")
    return cast(Response, redirect(onward, 303))


@pages.post("/<int:method_id>/remove")
@needs("viewer")
def switch_off(method_id: int) -> Response:
    """Take a browser off. One that somebody took off meanwhile is off as well."""
    person()
    with context().db.begin() as tx:
        subscriptions.unsubscribe(tx, cast(int, caller().user_id), method_id)
    return cast(Response, redirect(url_for("push_page.show"), 303))


def person() -> str:
    """Whose browser it is. Raises Forbidden for a program, and Invalid for a viewer."""
    who = caller()
    if who.user_id is None:
        raise Forbidden("A token has no browser; log in as a person.")
    if not who.may("responder"):
        raise Invalid("A viewer is never paged, so there is nothing to push.")
    return who.actor


def drawn(**more: Any) -> str:
    """The page."""
    who = caller()
    with context().db.begin() as tx:
        key = subscriptions.public_key(tx) if push.is_installed() else ""
        mine = browsers(tx, who.user_id)
    return render_template("push/show.html", key=key, missing=push.MISSING, browsers=mine, **more)


def browsers(tx: Tx, user_id: int | None) -> list[trials.Contact]:
    """Where push is on for this person."""
    found = trials.contacts(tx) if user_id is not None else []
    return [one for one in found if one.user_id == user_id and one.kind == "push"]


def called(agent: str) -> str:
    """What to call a browser, as in `Chrome Android`."""
    parts = (next((name for sign, name in known if re.search(sign, agent)), "") for known in (BROWSERS, SYSTEMS))
    return " ".join(part for part in parts if part) or "browser"
