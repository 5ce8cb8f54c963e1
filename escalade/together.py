"""Acknowledging many incidents: one transaction each, so that no incident waits for another."""

from collections.abc import Sequence
from dataclasses import dataclass

from escalade import incidents
from escalade.db import Begin
from escalade.errors import Conflict, NotFound


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """How many are acknowledged now by this, and how many somebody had acknowledged or resolved before."""

    changed: int
    skipped: int


def acknowledge(begin: Begin, incident_ids: Sequence[int], actor: str) -> Acknowledged:
    """Acknowledge exactly these."""
    ids = list(dict.fromkeys(incident_ids))
    changed = sum(_acknowledge(begin, incident_id, actor) for incident_id in ids)
    return Acknowledged(changed, len(ids) - changed)


def _acknowledge(begin: Begin, incident_id: int, actor: str) -> bool:
    try:
        with begin() as tx:
            return incidents.acknowledge(tx, incident_id, actor).changed
    except (Conflict, NotFound):
        return False
