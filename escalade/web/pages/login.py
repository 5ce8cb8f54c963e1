"""Log in, log out, and the one-time link by which the first person gets in."""

import hmac

from flask import Blueprint, Response, make_response, render_template, request

from escalade import first_steps, settings, users
from escalade.db import Tx
from escalade.errors import Invalid, NotFound, Unauthenticated
from escalade.tokens import digest
from escalade.users import User
from escalade.web import access
from escalade.web.access import needs, public
from escalade.web.context import context

pages = Blueprint("login_page", __name__)

OVER = "This link is no longer valid: a newer one was printed, or somebody can log in already."


@pages.get("/login")
@public
def show() -> str:
    """The form."""
    return render_template("login/show.html", next=request.args.get("next", ""))


@pages.post("/login")
@public
def log_in() -> Response:
    """Check the password and go on to where the person wanted to be."""
    email, then = request.form.get("email", ""), request.form.get("next", "")
    try:
        return access.login(email, request.form.get("password", ""), then)
    except Unauthenticated as refusal:
        page = render_template("login/show.html", next=then, email=email, refusal=refusal.message)
        return make_response(page, 401)


@pages.post("/logout")
@needs("viewer")
def logout() -> Response:
    """End the session."""
    return access.logout()


@pages.get("/start/<token>")
@public
def start(token: str) -> str:
    """The form for the first admin. Raises NotFound once anybody can log in, and for any other token."""
    with context().db.read() as tx:
        check_start(tx, token)
    return render_template("login/start.html", token=token)


@pages.post("/start/<token>")
@public
def make_first(token: str) -> Response:
    """Make the first admin and log them in."""
    access.check_origin(strict=False)
    form = request.form
    email, name, zone = form.get("email", ""), form.get("name", ""), form.get("timezone") or "UTC"
    try:
        with context().db.begin() as tx:
            check_start(tx, token)
            if tx.value("take_start_token", token_hash=digest(token)) is None:
                raise NotFound(OVER)
            first = first_admin(tx, email, name, zone, form.get("password", ""))
            first_steps.begin(tx, first.id)
    except Invalid as refusal:
        page = render_template(
            "login/start.html", token=token, email=email, name=name, timezone=zone, refusal=refusal.message
        )
        return make_response(page, 422)
    return access.enter(first.id, "/welcome")


def check_start(tx: Tx, token: str) -> None:
    """Whether this is a link from the log, and still needed. Raises NotFound."""
    given = digest(token)
    known = any(hmac.compare_digest(kept, given) for kept in settings.start_tokens(tx))
    if not known or users.anybody_with_password(tx):
        raise NotFound(OVER)


def first_admin(tx: Tx, email: str, name: str, zone: str, password: str) -> User:
    """The first admin; somebody of this e-mail who cannot log in yet becomes it. Raises Invalid."""
    known = users.by_email(tx, email)
    if known is None:
        known = users.create(tx, email, "admin", name, zone)
    else:
        known = users.change(tx, known.id, name or known.name, "admin", zone)
    users.set_password(tx, known.id, password)
    return known
