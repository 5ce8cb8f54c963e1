"""Sending many failed pages again: one transaction an incident, so that no incident waits for another."""

from collections.abc import Sequence
from dataclasses import dataclass

from escalade import attempts
from escalade.db import Begin
from escalade.errors import Conflict, NotFound


@dataclass(frozen=True, slots=True)
class Replayed:
    """How many pages are sent again, and how many are not because nobody needs them any more."""

    replayed: int
    skipped: int


def replay_failed(begin: Begin, actor: str, transport: str | None = None, ids: Sequence[int] | None = None) -> Replayed:
    """Send again what has FAILED: all of it, that of one transport, or the given attempts."""
    with begin() as tx:
        found = attempts.failed_by_incident(tx, transport, ids)
    asked = sum(map(len, found.values())) if ids is None else len(set(ids))
    done = sum(_replay(begin, incident_id, chosen, actor) for incident_id, chosen in found.items())
    return Replayed(done, asked - done)


def _replay(begin: Begin, incident_id: int, ids: Sequence[int], actor: str) -> int:
    try:
        with begin() as tx:
            return len(attempts.replay(tx, incident_id, ids, actor))
    except (Conflict, NotFound):
        return 0
