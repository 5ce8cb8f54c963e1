"""Rows of the queue for tests, made without an alert, and claims of them."""

from collections.abc import Sequence
from typing import Any

from escalade import attempts
from escalade.attempts import Claimed, Room
from escalade.db import Database
from tests import factories
from tests.interleavings.hands import ANYWHERE


def rows(db: Database, count: int, **columns: Any) -> list[int]:
    """So many due pages of one incident, each to its own contact; columns as given, or by number. Their ids."""
    incident_id = columns.pop("incident_id", 0) or bare_incident(db)
    now = factories.now(db)
    values = {
        "kind": "PAGE",
        "event": "triggered",
        "status": "PENDING",
        "lane": "high",
        "round": 1,
        "step": 1,
        "transport": "webhook",
        "destination": "webhook:a",
        "bundle": None,
        "pace_seconds": 0,
        "due_at": now,
        "first_due_at": now,
        "tries": 0,
        "max_tries": 3,
        "replays": 0,
        "claim_seq": 0,
        "cancel_requested": False,
        "recheck": False,
        "summary": "",
    } | columns
    found = []
    for number in range(count):
        row = {name: value(number) if callable(value) else value for name, value in values.items()}
        recipient = f"rule:{incident_id}-{number}-{len(found)}-{row['destination']}-{row['bundle']}-{row['event']}"
        key = f"{recipient}-{row['kind']}-{row['lane']}"
        found.append(
            factories.insert(
                db, "notification_attempt", incident_id=incident_id, recipient=recipient, idempotency_key=key, **row
            )
        )
    return found


def bare_incident(db: Database) -> int:
    """An incident with nothing in the queue."""
    name = f"service-{factories.now(db).timestamp()}"
    policy = factories.policy(db, (300, []), name=name)
    incident = factories.open_incident(db, factories.service(db, policy, name), name)
    factories.run(db, "delete from notification_attempt where incident_id = %s", incident.id)
    return incident.id


def take(db: Database, n: int = 100, room: Room = ANYWHERE, lane: str = "high") -> list[Claimed]:
    """A claim."""
    with db.read() as tx:
        return attempts.claim(tx, lane, "one", 20, n, room)


def ids(found: Sequence[Claimed]) -> list[int]:
    """Their ids, in order."""
    return sorted(row.id for row in found)
