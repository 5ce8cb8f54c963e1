"""The self-check: everything that has to be right for a page to arrive, on one page, each with what to do."""

from flask import Blueprint, render_template

from escalade import doctor, users
from escalade.checks import silence
from escalade.db import Tx
from escalade.web.access import caller, needs
from escalade.web.context import context
from escalade.web.pages import words

pages = Blueprint("checks_page", __name__)

TITLES = {
    "fault": "Pages do not go out, or some of them will not",
    "warning": "Pages go out, but look at this",
    "ok": "In order",
}


@pages.get("/setup/checks")
@needs("responder")
def show() -> str:
    """Look at everything now."""
    with context().db.connection() as conn:
        tx = Tx(conn, context().db.limits)
        who = caller()
        words.use_zone(users.find(tx, who.user_id).timezone if who.user_id is not None else "UTC")
        found = doctor.on_page(conn, context().config)
        signs = silence.signs(tx)
        now = tx.now
    groups = {level: [item for item in found if item.level == level] for level in doctor.LEVELS}
    return render_template("checks/show.html", groups=groups, titles=TITLES, signs=signs, now=now)
