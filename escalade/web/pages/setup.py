"""What is configured, as lists: people, schedules, policies, services. Each leads to its form."""

from typing import Any

from flask import Blueprint, render_template, request

from escalade import settings
from escalade.web.access import needs
from escalade.web.context import context
from escalade.web.pages import words

pages = Blueprint("setup_page", __name__)

LISTS = {
    "people": "setup_people",
    "channels": "setup_channels",
    "schedules": "setup_schedules",
    "policies": "setup_policies",
    "services": "setup_services",
}


@pages.get("/setup")
@needs("viewer")
def show() -> str:
    """Everything that is configured; addresses and keys stay hidden."""
    with context().db.read() as tx:
        found: dict[str, Any] = {name: tx.many(dict, query) for name, query in LISTS.items()}
        found["fallback"] = [words.whom(target) for target in settings.fallback(tx)]
        found["repage"] = settings.repage_exhausted_after(tx)
    return render_template("setup/show.html", deleted=request.args.get("said") == "deleted", **found)
