"""The links of invitations and resets: a form for a password, and the form that asks for a reset."""

from flask import Blueprint, Response, make_response, render_template, request

from escalade import login_links
from escalade.errors import Conflict, Invalid, Refusal, TooMany
from escalade.login_links import Owner
from escalade.web import access
from escalade.web.access import public
from escalade.web.context import context
from escalade.web.errors import status_of

pages = Blueprint("login_link_pages", __name__)

# Where a reset is asked for. Tokens have 43 letters, so none is called this.
NEW = "new"
ASKED = "If somebody with this e-mail can log in here, a mail with a link is on its way. It works for an hour."


@pages.get("/invite/<token>")
@public
def invitation(token: str) -> str:
    """The form of an invitation."""
    return form("invite", token)


@pages.post("/invite/<token>")
@public
def accept(token: str) -> Response:
    """Set the first password, and go in."""
    return entered("invite", token)


@pages.get("/reset/<token>")
@public
def reset(token: str) -> str:
    """The form for a new password; for the word `new`, the form that asks for a link."""
    return asking() if token == NEW else form("reset", token)


@pages.post("/reset/<token>")
@public
def set_password(token: str) -> Response:
    """Set the new password and go in; for the word `new`, mail a link."""
    return ask() if token == NEW else entered("reset", token)


def owner(kind: str, token: str) -> Owner:
    """Whose link this is. Raises NotFound or TooMany."""
    login_links.hold_back(context().db.begin, access.origin()[0])
    with context().db.read() as tx:
        return login_links.find(tx, kind, token)


def form(kind: str, token: str, refusal: Invalid | None = None) -> str:
    """The form for a password. It changes nothing: mail programs open every link of a message."""
    return render_template(
        "login/link.html", kind=kind, token=token, person=owner(kind, token), new=NEW, refusal=refusal
    )


def entered(kind: str, token: str) -> Response:
    """The link is used up, and its owner is in."""
    access.check_origin(strict=False)
    login_links.hold_back(context().db.begin, access.origin()[0])
    try:
        with context().db.begin() as tx:
            person = login_links.use(tx, kind, token, request.form.get("password", ""))
    except Invalid as refusal:
        return make_response(form(kind, token, refusal), 422)
    return access.enter(person.id)


def asking(refusal: Refusal | None = None, email: str = "") -> str:
    """The form that asks for a link."""
    sends = bool(context().config.smtp_url)
    return render_template("login/forgotten.html", new=NEW, sends=sends, refusal=refusal, email=email)


def ask() -> Response:
    """The same answer whoever is asked for, and as fast: who it is, is looked up afterwards."""
    access.check_origin(strict=False)
    email, config = request.form.get("email", ""), context().config
    try:
        login_links.request_reset(context().db.begin, config.network(), config.base_url, email, access.origin()[0])
    except (Invalid, Conflict) as refusal:
        return make_response(asking(refusal, email), status_of(refusal))
    except TooMany as refusal:
        answer = make_response(asking(refusal, email), 429)
        answer.headers["Retry-After"] = str(refusal.retry_after)
        return answer
    return make_response(render_template("login/forgotten.html", new=NEW, sends=True, said=ASKED))
