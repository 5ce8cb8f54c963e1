"""Every incident, the newest first: how one that is resolved is found again, and how many are taken on at once."""

from typing import Any

from flask import Blueprint, Response, render_template, request, url_for

from escalade import clean, overview, together
from escalade.web.access import caller, needs
from escalade.web.context import context
from escalade.web.pages import answering, regions, telling
from escalade.web.pages.attempts import listed_ids

pages = Blueprint("history", __name__)

PAGE = 50
LAST_ID = 2**63 - 1
STATUSES = {"ALL": "All", "TRIGGERED": "Triggered", "ACKNOWLEDGED": "Acknowledged", "RESOLVED": "Resolved"}


@pages.get("/incidents")
@needs("viewer")
def show() -> str:
    """Incidents of one status or of all, of one service or of all, from the one before `before` on."""
    status = request.args.get("status", "ALL")
    status = status if status in STATUSES else "ALL"
    service = clean.text(request.args.get("service", ""), 1_000)[0] or None
    before = request.args.get("before", type=int)
    before = None if before is None else min(max(before, 0), LAST_ID)
    with context().db.read() as tx:
        seen: dict[str, Any] = regions.frame(tx)
        chosen = None if status == "ALL" else [status]
        found = overview.incidents(tx, chosen, service, before, PAGE + 1)
        services = tx.values("service_names")
        said = answering.said(tx)
    more = len(found) > PAGE
    return render_template(
        "history/show.html",
        said=said,
        status=status,
        statuses=STATUSES,
        service=service,
        services=[*services, *([service] if service and service not in services else [])],
        before=before,
        found=found[:PAGE],
        older=url_for("history.show", status=status, service=service, before=found[PAGE - 1].id) if more else None,
        newest=url_for("history.show", status=status, service=service) if before is not None else None,
        waiting=[incident.id for incident in found[:PAGE] if incident.status == "TRIGGERED"],
        **seen,
    )


@pages.post("/incidents/acknowledge")
@needs("responder")
def acknowledge_listed() -> Response:
    """Somebody is on all that the form lists: exactly these, one transaction each. Raises Invalid."""
    ids = listed_ids(request.form.get("ids", ""))
    done = together.acknowledge(context().db.begin, ids, caller().actor)
    kept: dict[str, Any] = {name: request.form.get(name) or None for name in ("status", "service", "before")}
    to = url_for("history.show", said=telling.acknowledged_many(done.changed, done.skipped), **kept)
    return Response(status=303, headers={"Location": to})
