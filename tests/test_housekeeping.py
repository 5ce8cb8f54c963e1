"""What is old leaves the hot table, and then the database, and nothing else does."""

from escalade import attempts, housekeeping, incidents
from escalade.db import Database
from tests import factories
from tests.acting import claim
from tests.clock import MovedClock
from tests.engines import running_engine
from tests.receiver import receiver, wait_for


def resolved_incident(db: Database, address: str) -> int:
    service_id = factories.ladder(db, address)
    with running_engine(db.url, db.doorbell):
        incident = factories.open_incident(db, service_id)
        wait_for(lambda: ("PAGE", "DELIVERED") in factories.statuses(db, incident.id))
    with db.begin() as tx:
        incidents.resolve(tx, incident.id, "alice@example.com")
    return incident.id


def count(db: Database, table: str, incident_id: int) -> int:
    return int(factories.run(db, f"select count(*) from {table} where incident_id = %s", incident_id)[0][0])


def test_finished_attempts_of_resolved_incidents_move_to_the_archive(database: Database, clock: MovedClock) -> None:
    with receiver() as phone:
        done = resolved_incident(database, phone.url)
    hot = count(database, "notification_attempt", done)
    assert housekeeping.archive(database.begin, 7) == 0
    clock.pass_(days=8)
    assert housekeeping.archive(database.begin, 7) == hot
    assert count(database, "notification_attempt", done) == 0
    assert count(database, "notification_attempt_archive", done) == hot


def test_attempts_of_open_incidents_and_failed_ones_stay_hot(database: Database, clock: MovedClock) -> None:
    incident = factories.open_incident(database, factories.ladder(database, "http://127.0.0.1:1"))
    factories.run(
        database,
        "update notification_attempt set status = 'FAILED', finished_at = clock_timestamp() where kind = 'PAGE'",
    )
    clock.pass_(days=30)
    assert housekeeping.archive(database.begin, 7) == 0
    with database.begin() as tx:
        incidents.resolve(tx, incident.id, "alice@example.com")
    clock.pass_(days=30)
    housekeeping.archive(database.begin, 7)
    assert [row for row in factories.statuses(database, incident.id)] == [("PAGE", "FAILED")]


def test_incidents_resolved_long_ago_are_forgotten_with_all_that_belongs_to_them(
    database: Database, clock: MovedClock
) -> None:
    with receiver() as phone:
        old = resolved_incident(database, phone.url)
    clock.pass_(days=300)
    housekeeping.archive(database.begin, 7)
    young = factories.run(
        database,
        "insert into incident_event (incident_id, at, event, data) values (%s, now(), 'note', '{}') returning id",
        old + 1,
    )
    assert housekeeping.prune(database.begin, 365) == 0
    clock.pass_(days=66)
    assert housekeeping.prune(database.begin, 365) == 1
    for table in ("notification_attempt", "notification_attempt_archive", "incident_event"):
        assert count(database, table, old) == 0
    assert factories.run(database, "select count(*) from incident")[0][0] == 0
    assert factories.run(database, "select count(*) from attempt_try")[0][0] == 0
    assert factories.run(database, "select id from incident_event") == young


LOOSE = """
with made as (
    insert into notification_attempt (kind, event, status, lane, round, step, recipient, transport, destination,
        pace_seconds, due_at, first_due_at, tries, max_tries, replays, claim_seq, cancel_requested, recheck,
        idempotency_key, summary, delivered_at, finished_at)
    select 'NOTICE', 'test', 'DELIVERED', 'high', 1, 1, 'method:1', 'log', 'log', 0, now(), now(), 1, 8, 0, 1, false,
        false, 'key', '', now(), now()
    from generate_series(1, 3)
    returning id
)
insert into attempt_try select id, 1, 1, now(), now(), 'delivered', null, '', '' from made returning attempt_id
"""


def test_messages_that_belong_to_no_incident_are_moved_and_then_forgotten(
    database: Database, clock: MovedClock
) -> None:
    factories.run(database, LOOSE)
    clock.pass_(days=8)
    assert housekeeping.archive(database.begin, 7) == 3
    assert housekeeping.prune(database.begin, 365) == 0
    clock.pass_(days=400)
    assert housekeeping.prune(database.begin, 365) == 3
    left = "select (select count(*) from notification_attempt_archive), (select count(*) from attempt_try)"
    assert factories.run(database, left) == [(0, 0)]


def test_outages_long_over_are_forgotten(database: Database, clock: MovedClock) -> None:
    factories.run(
        database,
        "insert into outage (began_at, ended_at, late_pages, pages)"
        " values (now() - interval '1 hour', now(), 0, '[]') returning id",
    )
    housekeeping.prune(database.begin, 365)
    assert factories.run(database, "select count(*) from outage") == [(1,)]
    clock.pass_(days=400)
    housekeeping.prune(database.begin, 365)
    assert factories.run(database, "select count(*) from outage") == [(0,)]


def test_q39_two_instances_archive_at_once_and_share_the_rows(database: Database, clock: MovedClock) -> None:
    with receiver() as phone:
        done = resolved_incident(database, phone.url)
    hot = count(database, "notification_attempt", done)
    clock.pass_(days=8)
    with database.begin() as one:
        first = attempts.archive(one, 7, n=1)
        # The first has not committed: the second passes its rows by, and waits for nobody.
        with database.begin() as other:
            second = attempts.archive(other, 7)
    assert (first, second) == (1, hot - 1)
    assert count(database, "notification_attempt_archive", done) == hot


def test_q40_an_incident_that_somebody_holds_is_forgotten_later(database: Database, clock: MovedClock) -> None:
    with receiver() as phone:
        resolved_incident(database, phone.url)
    clock.pass_(days=400)
    with database.begin() as tx:
        tx.conn.execute("select id from incident for no key update")
        assert housekeeping.prune(database.begin, 365) == 0
    assert housekeeping.prune(database.begin, 365) == 1


def test_q39_neither_keeps_a_claim_waiting_nor_waits_for_one(database: Database, clock: MovedClock) -> None:
    with receiver() as phone:
        resolved_incident(database, phone.url)
    clock.pass_(days=8)
    factories.open_incident(database, factories.run(database, "select max(id) from service")[0][0], "new")
    with database.begin() as tidying:
        assert attempts.archive(tidying, 7) > 0
        assert len(claim(database)) == 1
        assert housekeeping.archive(database.begin, 7) == 0
    clock.pass_(days=400)
    with database.begin() as claiming:
        claiming.conn.execute("select id from notification_attempt where status = 'IN_FLIGHT' for no key update")
        assert housekeeping.prune(database.begin, 365) == 1
