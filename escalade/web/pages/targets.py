"""Whom a form names."""

from escalade.db import Tx
from escalade.errors import Invalid
from escalade.ladder import Target
from escalade.web.pages import regions


def target_named(tx: Tx, label: str) -> Target:
    """The target that a form names, as in user:alice@example.com. Raises Invalid."""
    for target in regions.targets(tx):
        if target.label == label:
            return target
    raise Invalid("Choose a person who can be paged, a schedule or a channel.", "target")
