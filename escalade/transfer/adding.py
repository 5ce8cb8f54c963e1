"""A little more configuration, for a page that asks for one thing: written as a file would say it, so that it passes
the same checks."""

from typing import Any

import yaml

from escalade.db import Tx
from escalade.errors import NotFound
from escalade.transfer import shape
from escalade.transfer.applying import apply
from escalade.transfer.document import Document
from escalade.transfer.exporting import export
from escalade.transfer.faults import Place
from escalade.transfer.writer import Change


def add(tx: Tx, told: dict[str, Any]) -> list[Change]:
    """Apply a file that says this much, its values all texts. Raises Faults."""
    root = Place()
    return apply(tx, Document(shape.FILE.read(told, root), root))


def add_contact_method(tx: Tx, email: str, method: dict[str, str]) -> None:
    """One more way to reach a person, used at once: somebody who has rules of their own gets one for it. Raises Faults,
    or NotFound."""
    tx.run("lock_configuration")
    person = as_told(tx, email)
    methods, rules = person.get("contact_methods", []), person.get("notification_rules", [])
    person["contact_methods"] = [*methods, method]
    if rules:
        person["notification_rules"] = [*rules, {"contact_method": method["name"]}]
    add(tx, {"users": [person]})


def as_told(tx: Tx, email: str) -> dict[str, Any]:
    """What a file says of a person, with what is secret as `kept`. Raises NotFound."""
    people = yaml.load(export(tx), yaml.BaseLoader).get("users", [])
    found = next((person for person in people if person["email"].lower() == email.lower()), None)
    if found is None:
        raise NotFound("There is no such person any more.")
    return dict(found)
