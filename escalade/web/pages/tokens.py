"""Tokens of the API, for admins: made, shown once, and revoked."""

from typing import Any

from flask import Blueprint, Response, make_response, render_template, request

from escalade import api_tokens
from escalade.errors import Conflict, Invalid
from escalade.users import ROLES
from escalade.web import access
from escalade.web.access import needs
from escalade.web.context import context
from escalade.web.errors import status_of
from escalade.web.pages.account import use_own_zone

pages = Blueprint("token_pages", __name__, url_prefix="/setup/tokens")

SAID = {"revoked": "Revoked: it opens nothing any more."}
# How long a token may live, as the form offers it; empty means without an end.
DAYS = {"30": "30 days", "90": "90 days", "365": "a year", "": "no end"}


@pages.get("")
@needs("admin")
def show() -> str:
    """Every token, and a form for one more."""
    return page(said=SAID.get(request.args.get("said", "")))


@pages.post("")
@needs("admin")
def create() -> Response:
    """Make a token; this answer is the only one that shows it."""
    form = {name: request.form.get(name, "") for name in ("name", "role", "days")}
    try:
        with context().db.begin() as tx:
            secret = api_tokens.create(tx, form["name"], form["role"], days(form["days"]))
    except (Invalid, Conflict) as refusal:
        return make_response(page(form=form, refusal=refusal), status_of(refusal))
    return make_response(page(secret=secret, made=form["name"].strip()))


def days(text: str) -> int | None:
    """How many days, None without an end. Raises Invalid."""
    if text and not (text.isascii() and text.isdigit() and len(text) < 6):
        raise Invalid("Choose how long the token works.", "days")
    return int(text) if text else None


@pages.post("/revoke")
@needs("admin")
def revoke() -> Response:
    """End a token."""
    with context().db.begin() as tx:
        api_tokens.revoke(tx, request.form.get("name", ""))
    return access.onward("/setup/tokens?said=revoked")


def page(**more: Any) -> str:
    """The list, and what was just done or refused."""
    with context().db.read() as tx:
        found, now = api_tokens.every(tx), tx.now
        use_own_zone(tx)
    values: dict[str, Any] = {"form": {"days": "90", "role": "viewer"}} | more
    return render_template("tokens/show.html", tokens=found, now=now, roles=ROLES, lives=DAYS, **values)
