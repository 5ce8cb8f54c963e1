"""What is configured, as lists: people, schedules, policies, services. Changed by `apply`, not here."""

from typing import Any

from flask import Blueprint, render_template

from escalade.web.access import needs
from escalade.web.context import context

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
    return render_template("setup/show.html", **found)
