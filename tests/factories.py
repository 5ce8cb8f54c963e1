"""Rows for tests, by functions with defaults. Alice is on call, Bob is next, Charlie is an outsider."""

from datetime import date, datetime, time
from typing import Any

from psycopg.types.json import Jsonb

from escalade import opening, tokens
from escalade.db import Database
from escalade.inbound.base import Event
from escalade.incident import Incident
from escalade.transports import TRANSPORTS

KEY = "a-key-of-more-than-twenty-characters"


def insert(db: Database, table: str, **values: Any) -> int:
    """One row; its id."""
    names = ", ".join(values)
    marks = ", ".join(f"%({name})s" for name in values)
    with db.connection() as conn:
        row = conn.execute(f"insert into {table} ({names}) values ({marks}) returning id", values).fetchone()
    assert row is not None
    return int(row[0])


def run(db: Database, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    """A statement of a test's own; its rows, if it has any."""
    with db.connection() as conn:
        cursor = conn.execute(statement, values)
        return cursor.fetchall() if cursor.description else []


def now(db: Database) -> datetime:
    """The database's time."""
    with db.read() as tx:
        return tx.now


def user(db: Database, name: str = "alice", role: str = "responder", password_hash: str | None = None) -> int:
    """A person, reached by nothing yet."""
    return insert(
        db,
        "app_user",
        email=f"{name}@example.com",
        name=name.title(),
        role=role,
        timezone="UTC",
        password_hash=password_hash,
        created_at=now(db),
    )


def contact(db: Database, user_id: int, address: str, kind: str = "webhook", **more: Any) -> int:
    """A contact method; pace as its transport's default unless given."""
    values = {
        "name": f"{kind}{more.pop('number', '')}",
        "secret": None,
        "updates": False,
        "pace_seconds": int(TRANSPORTS[kind].default_pace),
        "verified": True,
        "position": 0,
    } | more
    return insert(
        db,
        "contact_method",
        user_id=user_id,
        kind=kind,
        address=address,
        destination=TRANSPORTS[kind].destination(address),
        **values,
    )


def rule(db: Database, user_id: int, method_id: int, after: int = 0, urgency: str | None = None) -> int:
    """A notification rule."""
    return insert(
        db,
        "notification_rule",
        user_id=user_id,
        contact_method_id=method_id,
        after_seconds=after,
        urgency=urgency,
        position=0,
    )


def channel(db: Database, address: str, kind: str = "webhook", name: str = "ops", **more: Any) -> int:
    """A channel."""
    values = {"secret": None, "updates": False, "pace_seconds": int(TRANSPORTS[kind].default_pace)} | more
    destination = TRANSPORTS[kind].destination(address)
    return insert(db, "channel", name=name, kind=kind, address=address, destination=destination, **values)


def schedule(db: Database, participants: list[int], name: str = "primary", timezone: str = "UTC") -> int:
    """A weekly rotation that began in 2026, so that the first participant's turn comes first."""
    schedule_id = insert(db, "schedule", name=name, timezone=timezone)
    insert(
        db,
        "rotation",
        schedule_id=schedule_id,
        name="weekly",
        position=0,
        participants=participants,
        unit="week",
        length=1000,
        start_date=date(2026, 1, 5),
        handoff_time=time(9),
        restrictions=Jsonb([]),
    )
    return schedule_id


def policy(db: Database, *steps: tuple[int, list[tuple[str, int]]], name: str = "default", repeat: int = 0) -> int:
    """A policy; each step is (wait in seconds, [(kind, id), ...])."""
    policy_id = insert(db, "escalation_policy", name=name, repeat=repeat)
    for position, (wait, targets) in enumerate(steps, 1):
        step_id = insert(db, "escalation_step", policy_id=policy_id, position=position, wait_seconds=wait)
        for place, (kind, target_id) in enumerate(targets):
            insert(db, "escalation_target", step_id=step_id, position=place, **{f"{kind}_id": target_id})
    return policy_id


def service(db: Database, policy_id: int, name: str = "api", urgency: str = "high", **more: Any) -> int:
    """A service."""
    return insert(db, "service", name=name, policy_id=policy_id, urgency=urgency, **more)


def integration(db: Database, service_id: int, kind: str = "generic", key: str = KEY, name: str = "prom") -> int:
    """An integration with a known key."""
    return insert(
        db,
        "integration",
        service_id=service_id,
        name=name,
        kind=kind,
        key_hash=tokens.digest(key),
        key_prefix=key[:6],
        verify=False,
    )


def fallback(db: Database, kind: str, target_id: int, name: str) -> None:
    """Whom to tell when a policy is exhausted."""
    value = Jsonb([{"kind": kind, "id": target_id, "name": name}])
    run(db, "insert into setting (name, value) values ('fallback', %s)", value)


def open_incident(db: Database, service_id: int, key: str | None = None, title: str = "Disk full") -> Incident:
    """An incident opened as an alert opens it."""
    with db.begin() as tx:
        source = opening.Source(service_id, "api", None, "integration:api/prom")
        incident, _ = opening.trigger(tx, source, Event("trigger", title, severity="critical", dedup_key=key))
        return incident


def ladder(db: Database, address: str, wait: int = 300, **more: Any) -> int:
    """Alice on call, then Bob, each by webhook; the service's id."""
    alice, bob = user(db, "alice"), user(db, "bob")
    for person in (alice, bob):
        rule(db, person, contact(db, person, f"{address}/{'alice' if person == alice else 'bob'}"))
    primary = schedule(db, [alice, bob])
    return service(db, policy(db, (wait, [("schedule", primary)]), (wait, [("user", bob)]), **more))


def statuses(db: Database, incident_id: int) -> list[tuple[str, str]]:
    """Kind and status of every attempt of an incident, in order."""
    return [
        (row[0], row[1])
        for row in run(
            db, "select kind, status from notification_attempt where incident_id = %s order by id", incident_id
        )
    ]


def events(db: Database, incident_id: int) -> list[str]:
    """The timeline's words, in order."""
    return [
        row[0] for row in run(db, "select event from incident_event where incident_id = %s order by id", incident_id)
    ]
