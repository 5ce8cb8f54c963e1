"""What tests do to incidents and to the queue when no engine runs: each call is one transaction."""

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from psycopg.rows import dict_row

from escalade import attempts, climbing, incidents, timeline
from escalade.attempts import Claimed, Outcome, Room
from escalade.db import Database, Tx
from escalade.incident import Incident
from escalade.ladder import Target

P = ParamSpec("P")
R = TypeVar("R")
ALICE, BOB = "alice@example.com", "bob@example.com"
EVERYWHERE = Room([], [], {}, 100)
OWNER = "a test"


def do(db: Database, verb: Callable[Concatenate[Tx, P], R], *args: P.args, **more: P.kwargs) -> R:
    """One verb in a transaction of its own."""
    with db.begin() as tx:
        return verb(tx, *args, **more)


def state(db: Database, incident_id: int) -> Incident:
    """The incident as it is now."""
    return do(db, incidents.find, incident_id)


def entries(db: Database, incident_id: int, event: str) -> list[dict[str, Any]]:
    """What the timeline says with each entry of this event, in order."""
    return [entry.data for entry in do(db, timeline.of_incident, incident_id) if entry.event == event]


def rows(db: Database, incident_id: int, kind: str = "PAGE") -> list[dict[str, Any]]:
    """Every attempt of this kind, whole, in order."""
    with db.connection() as conn, conn.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(
            "select * from notification_attempt where incident_id = %s and kind = %s order by id", (incident_id, kind)
        ).fetchall()


def shape(db: Database, incident_id: int) -> list[tuple[str, int, int, str]]:
    """Kind, round, step and status of every attempt, in order."""
    with db.connection() as conn:
        return conn.execute(
            "select kind, round, step, status from notification_attempt where incident_id = %s order by id",
            (incident_id,),
        ).fetchall()


def picture(db: Database, incident_id: int) -> tuple[Any, ...]:
    """Everything an action could change: the incident, its attempts and its timeline."""
    with db.connection() as conn:
        attempts_ = conn.execute(
            "select * from notification_attempt where incident_id = %s order by id", (incident_id,)
        ).fetchall()
    return state(db, incident_id), attempts_, do(db, timeline.of_incident, incident_id)


def claim(db: Database, owner: str = OWNER, n: int = 100, lease: float = 20) -> list[Claimed]:
    """Take what is due, as an engine does."""
    with db.read() as tx:
        return [row for lane in ("high", "low") for row in attempts.claim(tx, lane, owner, lease, n, EVERYWHERE)]


def end(db: Database, claimed: list[Claimed], outcome: str = "DELIVERED", owner: str = OWNER) -> None:
    """Record what became of claimed rows."""
    with db.read() as tx:
        found = [Outcome(row.id, row.claim_seq, outcome, tx.now, tx.now, error="as the test says") for row in claimed]
        attempts.settle(tx, owner, found)


def send(db: Database, outcome: str = "DELIVERED") -> list[Claimed]:
    """Take what is due and record this outcome of it; what was taken."""
    claimed = claim(db)
    end(db, claimed, outcome)
    return claimed


def climb(db: Database) -> int:
    """What the engine does to incidents as time passes."""
    return climbing.escalate_early(db.begin) + climbing.escalate_due(db.begin) + climbing.wake_due(db.begin)


def person(db: Database, name: str) -> Target:
    """A person as a target."""
    with db.connection() as conn:
        row = conn.execute("select id from app_user where email = %s", (f"{name}@example.com",)).fetchone()
    assert row is not None
    return Target("user", row[0], f"{name}@example.com")
