"""Your own account: password, name, time zone, and where you are logged in."""

from typing import Any

from flask import Blueprint, Response, make_response, render_template, request

from escalade import audit, sessions, users
from escalade.db import Tx
from escalade.errors import Conflict, Invalid, Unauthenticated
from escalade.tokens import digest
from escalade.web import access
from escalade.web.access import needs, person_id
from escalade.web.context import context
from escalade.web.pages import words

pages = Blueprint("account_page", __name__, url_prefix="/account")

SAID = {"saved": "Saved.", "password": "Your password is changed; other devices are signed out."}


@pages.get("")
@needs("viewer")
def show() -> str:
    """The forms, and every session."""
    return page(said=SAID.get(request.args.get("said", "")))


@pages.post("")
@needs("viewer")
def change() -> Response:
    """Another name or time zone. The role and the e-mail are the admins' to change."""
    name, zone, seen = (request.form.get(field, "") for field in ("name", "timezone", "seen"))
    try:
        with context().db.begin() as tx:
            person = users.find(tx, person_id())
            if seen != state(person):
                raise Conflict("Somebody else has changed this meanwhile: here is how it is now.")
            users.change(tx, person.id, name, person.role, zone)
    except Invalid as refusal:
        return again(422, profile=refusal, name=name, timezone=zone)
    except Conflict as refusal:
        return again(409, profile=refusal)
    return access.onward("/account?said=saved")


@pages.post("/password")
@needs("viewer")
def change_password() -> Response:
    """Another password, by whoever knows the one it replaces. All sessions end, and this one begins anew."""
    user_id = person_id()
    try:
        with context().db.read() as tx:
            email = users.find(tx, user_id).email
        prove(email)
        with context().db.begin() as tx:
            users.set_password(tx, user_id, request.form.get("password", ""))
    except (Invalid, Unauthenticated) as refusal:
        return again(422, secret=refusal)
    return access.enter(user_id, "/account?said=password")


def prove(email: str) -> None:
    """Raises Unauthenticated where the old password is wrong, TooMany after too many wrong ones."""
    try:
        sessions.prove(context().db.begin, email, request.form.get("old", ""), access.origin()[0])
    except Unauthenticated:
        raise Unauthenticated("That is not your password.", "old") from None


@pages.post("/sign-out")
@needs("viewer")
def sign_out_everywhere() -> Response:
    """End every session of this person, this one too."""
    with context().db.begin() as tx:
        ended = sessions.end_all(tx, person_id())
        audit.record(tx, "signed out everywhere", audit.who(), None, {"sessions": ended})
    return access.left()


def use_own_zone(tx: Tx) -> None:
    """Show the times of this page in the reader's zone; a program reads UTC."""
    user_id = access.caller().user_id
    if user_id is not None:
        words.use_zone(users.find(tx, user_id).timezone)


def state(person: users.User) -> str:
    """What a form shows, in one word: whether it still holds when it is sent."""
    return digest(f"{person.name}\n{person.timezone}")[:16]


def again(status: int, **more: Any) -> Response:
    """The page with what was wrong."""
    return make_response(page(**more), status)


def page(**more: Any) -> str:
    """The page of the person who asks; `more` is what a form was sent with and why it was refused."""
    with context().db.read() as tx:
        person = users.find(tx, person_id())
        found, now = sessions.listing(tx, person.id), tx.now
        use_own_zone(tx)
    here = digest(request.cookies.get(access.cookie_name(), ""))
    return render_template(
        "account/show.html", person=person, seen=state(person), sessions=found, here=here, now=now, **more
    )
