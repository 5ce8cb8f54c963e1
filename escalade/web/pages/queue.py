"""The queue's health on one page: each sign beside its threshold and what to do."""

from flask import Blueprint, render_template

from escalade import queue_health
from escalade.web.access import needs
from escalade.web.context import context

pages = Blueprint("queue_page", __name__)


@pages.get("/queue")
@needs("responder")
def show() -> str:
    """Every sign, the three that tell when to leave Postgres first."""
    with context().db.read() as tx:
        signs = queue_health.examine(tx)
    return render_template("queue/show.html", signs=signs)
