"""What is old leaves the hot table, and then the database, and nothing else does."""

from escalade import housekeeping, incidents
from escalade.db import Database
from tests import factories
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
