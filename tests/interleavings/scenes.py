"""Incidents that tests of several connections begin with."""

from typing import Any

from escalade.db import Database
from escalade.incident import Incident
from tests import factories
from tests.interleavings.hands import claim, settle


def crowd(db: Database, people: int = 2, repeat: int = 0, wait: int = 300, **service: Any) -> int:
    """A service whose policy tells so many people at once, then Zoe; each by webhook. Its id."""
    ids = [_person(db, f"person{number}") for number in range(people)]
    first = [("user", user_id) for user_id in ids]
    policy = factories.policy(db, (wait, first), (wait, [("user", _person(db, "zoe"))]), repeat=repeat)
    return factories.service(db, policy, **service)


def _person(db: Database, name: str) -> int:
    user_id = factories.user(db, name)
    factories.contact(db, user_id, f"http://127.0.0.1:9/{name}")
    return user_id


def opened(db: Database, people: int = 2, **more: Any) -> Incident:
    """An incident that has just told so many people."""
    return factories.open_incident(db, crowd(db, people, **more), key="disk")


def all_failed(db: Database, incident: Incident) -> list[int]:
    """Send every page of the incident, and have each fail for good; their ids."""
    with db.read() as tx:
        rows = claim(tx, "failing")
        settle(tx, rows, "FAILED", "failing")
    return [row.id for row in rows]


def attempt(db: Database, attempt_id: int) -> dict[str, Any]:
    """One attempt, every column."""
    with db.connection() as conn, conn.cursor() as cursor:
        cursor.execute("select * from notification_attempt where id = %s", [attempt_id])
        [row] = cursor.fetchall()
        return dict(zip([column.name for column in cursor.description or ()], row, strict=True))


def status(db: Database, attempt_id: int) -> str:
    """The status of one attempt."""
    return str(attempt(db, attempt_id)["status"])
