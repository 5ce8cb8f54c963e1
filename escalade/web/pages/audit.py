"""Who changed what, for admins."""

from flask import Blueprint, render_template, request

from escalade import audit
from escalade.web.access import needs
from escalade.web.context import context
from escalade.web.pages.account import use_own_zone

pages = Blueprint("audit_page", __name__)


@pages.get("/setup/audit")
@needs("admin")
def show() -> str:
    """Changes, the newest first; `before` in the address is the id to go on from."""
    before = request.args.get("before", type=int)
    with context().db.read() as tx:
        found = audit.page(tx, before if before is not None and 0 < before < 2**63 else None, audit.PAGE + 1)
        use_own_zone(tx)
    entries = found[: audit.PAGE]
    following = entries[-1].id if len(found) > len(entries) else None
    return render_template("audit/show.html", entries=entries, following=following)
