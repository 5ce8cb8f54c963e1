"""Every incident, the newest first: how one that is resolved is found again."""

from flask import Blueprint, render_template, request, url_for

from escalade import overview
from escalade.web.access import needs
from escalade.web.context import context
from escalade.web.pages import regions

pages = Blueprint("history", __name__)

PAGE = 50
LAST_ID = 2**63 - 1
STATUSES = {"ALL": "All", "TRIGGERED": "Triggered", "ACKNOWLEDGED": "Acknowledged", "RESOLVED": "Resolved"}


@pages.get("/incidents")
@needs("viewer")
def show() -> str:
    """Incidents of one status or of all, from the one before `before` on."""
    status = request.args.get("status", "ALL")
    status = status if status in STATUSES else "ALL"
    before = request.args.get("before", type=int)
    with context().db.read() as tx:
        seen = regions.frame(tx)
        chosen = None if status == "ALL" else [status]
        found = overview.incidents(
            tx, chosen, before=None if before is None else min(max(before, 0), LAST_ID), n=PAGE + 1
        )
    older = url_for("history.show", status=status, before=found[PAGE - 1].id) if len(found) > PAGE else None
    newest = url_for("history.show", status=status) if before is not None else None
    return render_template(
        "history/show.html", status=status, statuses=STATUSES, found=found[:PAGE], older=older, newest=newest, **seen
    )
