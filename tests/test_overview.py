"""What people see of the queue: what pages next and whom, and a mark that moves with every change."""

from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest

from escalade import attempts, incidents, opening, overview
from escalade.attempts import Outcome, Room
from escalade.db import Database, Session, Tx
from escalade.inbound.base import Event
from escalade.nextup import Lookup
from tests import factories
from tests.factories import run

OWNER = "test:1"
ROOM = Room(closed=[], held=[], free={}, each=100)


@pytest.fixture
def service(database: Database) -> int:
    return factories.ladder(database, "http://127.0.0.1:9", repeat=1)


def look(db: Database, read: Callable[[Tx], Any]) -> Any:
    with db.read() as tx:
        return read(tx)


def mark(db: Database) -> str:
    return str(look(db, overview.watermark))


def claim(db: Database) -> list[attempts.Claimed]:
    with db.begin() as tx:
        return attempts.claim(tx, "high", OWNER, 20, 10, ROOM)


def settle(db: Database, claimed: list[attempts.Claimed], outcome: str, delay: float = 0.0) -> None:
    with db.begin() as tx:
        done = [Outcome(one.id, one.claim_seq, outcome, tx.now, tx.now, delay, "refused") for one in claimed]
        attempts.settle(tx, OWNER, done)


def test_what_pages_next_names_who_and_when(database: Database, service: int) -> None:
    incident = factories.open_incident(database, service)
    page, step = look(database, overview.pending)
    assert (page.kind, page.who, page.incident_title) == ("PAGE", "Alice", "Disk full")
    assert (step.kind, step.who, step.step) == ("STEP", "Bob", 2)
    assert step.due_at == incident.opened_at + timedelta(seconds=300)
    assert look(database, lambda tx: overview.pending(tx, 1)) == [page]


def test_whom_each_later_step_would_page(database: Database, service: int) -> None:
    incident = factories.open_incident(database, service)

    def who(step: int) -> str:
        with database.read() as tx:
            return Lookup(tx).who(incidents.find(tx, incident.id), step, tx.now)

    assert (who(1), who(2), who(3)) == ("Alice", "Bob", "round 2: Alice")
    run(database, "update incident set repeats_left = 0")
    assert who(3) == "nobody is left, and no fallback can be told"
    channel = factories.channel(database, "http://127.0.0.1:9")
    factories.fallback(database, "channel", channel, "ops")
    assert who(3) == "nobody is left; the fallback #ops is told"
    run(database, "delete from channel")
    run(database, "delete from contact_method")
    assert who(1) == who(2) == "nobody can be reached"
    run(database, "update schedule set timezone = 'Mars/Olympus'")
    assert who(1) == "nobody can be reached"


def test_a_step_is_worked_out_for_the_time_it_is_due(database: Database, service: int) -> None:
    factories.open_incident(database, service)
    run(database, "update rotation set unit = 'hour', length = 1")
    run(
        database,
        "update incident set policy = jsonb_set(policy, '{steps,1,targets}', policy #> '{steps,0,targets}')",
    )
    seen = set()
    for hour in range(2):
        due = f"date_trunc('hour', now()) + interval '{hour + 1} hours 30 minutes'"
        run(database, f"update notification_attempt set due_at = {due} where kind = 'STEP'")
        seen.add(look(database, overview.pending)[-1].who)
    assert seen == {"Alice", "Bob"}


def test_the_three_lists_and_their_counts(database: Database, service: int) -> None:
    for _ in range(3):
        factories.open_incident(database, service)
    first, second, third = claim(database)
    settle(database, [first], "FAILED")
    settle(database, [second], "RETRY", 60)
    assert [view.id for view in look(database, overview.failed)] == [first.id]
    assert [view.id for view in look(database, overview.in_flight)] == [third.id]
    pages = [view.id for view in look(database, overview.pending) if view.kind == "PAGE"]
    assert pages == [second.id]


def test_open_incidents_come_with_the_exhausted_first(database: Database, service: int) -> None:
    ids = [factories.open_incident(database, service).id for _ in range(4)]
    with database.begin() as tx:
        incidents.acknowledge(tx, ids[0], "alice@example.com")
        incidents.resolve(tx, ids[1], "alice@example.com")
    run(database, "update incident set exhausted_at = now() where id = %s", ids[3])
    assert [one.id for one in look(database, overview.open_incidents)] == [ids[3], ids[2], ids[0]]
    assert look(database, overview.incident_counts) == {"TRIGGERED": 2, "ACKNOWLEDGED": 1}


def test_the_mark_stays_while_nothing_happens(database: Database, service: int) -> None:
    factories.open_incident(database, service)
    assert mark(database) == mark(database)


def test_the_mark_moves_with_every_change_of_an_attempt(database: Database, service: int) -> None:
    factories.open_incident(database, service)
    seen = [mark(database)]
    for outcome in ("RELEASE", "RETRY", "UNKNOWN", "FAILED"):
        claimed = claim(database)
        assert claimed
        seen.append(mark(database))
        settle(database, claimed, outcome)
        seen.append(mark(database))
    with database.begin() as tx:
        attempts.replay_one(tx, claimed[0].id, "alice@example.com")
    seen.append(mark(database))
    run(database, "update notification_attempt set status = 'IN_FLIGHT', lease_until = now() where kind = 'PAGE'")
    seen.append(mark(database))
    with database.begin() as tx:
        assert attempts.reap(tx) == 1
    seen.append(mark(database))
    # A row that was claimed and given back looks as it did before.
    assert seen[0] == seen[2]
    assert len(set(seen)) == len(seen) - 1


def test_the_mark_moves_with_every_change_of_an_incident(database: Database, service: int) -> None:
    seen = [mark(database)]

    def then(do: Callable[[Tx], Any]) -> Any:
        with database.begin() as tx:
            done = do(tx)
        seen.append(mark(database))
        return done

    source = opening.Source(service, "api", None, "integration:api/prom")
    event = Event("trigger", "Disk full", dedup_key="web1-disk")
    incident = then(lambda tx: opening.trigger(tx, source, event))[0]
    then(lambda tx: opening.trigger(tx, source, event))
    for verb in (incidents.acknowledge, incidents.unacknowledge, incidents.escalate, incidents.resolve):
        then(lambda tx, verb=verb: verb(tx, incident.id, "alice@example.com"))
    assert len(set(seen)) == len(seen)


def test_the_mark_moves_with_destinations_overrides_and_the_engine(database: Database, service: int) -> None:
    last = mark(database)
    for statement in (
        "insert into destination values ('webhook:x', 1, now(), 'down', now())",
        "update destination set changed_at = changed_at + interval '1 second'",
        "delete from destination",
        "insert into engine_instance values ('x', now(), now())",
        "update engine_instance set last_tick_at = now() - interval '1 minute'",
        "update app_user set name = 'Alicia' where name = 'Alice'",
        "insert into override (schedule_id, kind, start_at, end_at, source, created_by) select id, 'take',"
        " now() + interval '1 day', now() + interval '2 days', 'person', 'x' from schedule",
    ):
        run(database, statement)
        before, last = last, mark(database)
        assert last != before, statement


def test_the_mark_moves_with_a_hand_off(database: Database, service: int, clock: Any) -> None:
    run(database, "update rotation set unit = 'hour', length = 1")
    first = mark(database)
    clock.pass_(hours=1)
    assert mark(database) != first


def test_the_mark_moves_with_an_event_that_is_committed_late(database: Database, service: int) -> None:
    incident = factories.open_incident(database, service)
    add = "insert into incident_event (incident_id, at, event, data) values (%s, now(), 'note', '{}')"
    with closing(Session(database.url)) as slow:
        with slow.begin() as tx:
            tx.conn.execute(add, [incident.id])
            run(database, add, incident.id)
            before = mark(database)
        assert mark(database) != before
