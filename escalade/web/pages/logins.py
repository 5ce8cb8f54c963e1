"""Who can log in, for admins: invitations, reset links, and signing somebody out."""

from flask import Blueprint, Response, render_template, request

from escalade import audit, login_links, sessions, users
from escalade.login_links import Link
from escalade.web import access
from escalade.web.access import needs
from escalade.web.context import context

pages = Blueprint("login_pages", __name__, url_prefix="/setup/logins")

SAID = {"out": "Signed out everywhere."}


@pages.get("")
@needs("admin")
def show() -> str:
    """Everybody, and whether they can log in."""
    return page(said=SAID.get(request.args.get("said", "")))


@pages.post("/<int:user_id>/link")
@needs("admin")
def make_link(user_id: int) -> str:
    """A link by which this person sets a password: mailed, or shown here once where no mail can be sent."""
    config = context().config
    with context().db.begin() as tx:
        link = login_links.create(tx, users.find(tx, user_id), config.base_url)
    return page(link=login_links.mailed(config.network(), link))


@pages.post("/<int:user_id>/sign-out")
@needs("admin")
def sign_out(user_id: int) -> Response:
    """End every session of this person: a phone was lost, say."""
    with context().db.begin() as tx:
        person = users.find(tx, user_id)
        ended = sessions.end_all(tx, user_id)
        audit.record(tx, "signed out everywhere", person.email, None, {"sessions": ended})
    return access.onward("/setup/logins?said=out")


def page(said: str | None = None, link: Link | None = None) -> str:
    """The list, and what was just done."""
    with context().db.read() as tx:
        people = users.every(tx)
    return render_template("logins/show.html", people=people, said=said, link=link)
