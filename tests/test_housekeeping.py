"""What is old leaves the hot table, and then the database, and nothing else does."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from escalade import attempts, housekeeping, incidents, strays
from escalade.db import Begin, Database, Tx
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
    assert housekeeping.prune(database.begin, 365) > 0
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
    assert housekeeping.prune(database.begin, 365) == 3 + 3, "with a try of each"
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
    assert housekeeping.prune(database.begin, 365) > 0


HOT = """
insert into notification_attempt (incident_id, kind, event, status, lane, round, step, recipient, transport,
    destination, pace_seconds, due_at, first_due_at, tries, max_tries, replays, claim_seq, cancel_requested, recheck,
    idempotency_key, summary, finished_at)
select {}, 'NOTICE', 'test', 'FAILED', 'high', 1, 1, 'method:1', 'log', 'log', 0, now(), now(), 1, 8, 0, 1, false,
    false, 'key', '', now()
from generate_series(1, {})
returning id
"""
TRIED = "insert into attempt_try select {}, n, 1, now(), now(), 'failed', null, '', '' from generate_series(1, {}) n"
NOTED = """insert into incident_event (incident_id, at, event, data)
    select {}, now(), 'note', '{{}}' from generate_series(1, {}) returning id"""
LEFT = """
select (select count(*) from incident) + (select count(*) from incident_event) + (select count(*) from attempt_try)
    + (select count(*) from notification_attempt) + (select count(*) from notification_attempt_archive)
    + (select count(*) from outage)
"""
OUTAGES = """insert into outage (began_at, ended_at, late_pages, pages)
    select now() - interval '1 hour', now(), 0, '[]' from generate_series(1, {}) returning id"""
# Each statement of prune, and a row that it would forget.
PRUNED = {
    "attempts_to_prune": "notification_attempt",
    "archived_to_prune": "notification_attempt_archive where incident_id is not null",
    "loose_to_prune": "notification_attempt_archive where incident_id is null",
    "prune_tries": "attempt_try",
    "prune_events": "incident_event",
    "incidents_to_prune": "incident",
    "prune_outages": "outage",
}


def everything_old(db: Database, clock: MovedClock, times: int = 3, archiving: Begin | None = None) -> None:
    """Something of all that prune forgets, long over: `times` rows of each, of one incident."""
    with receiver() as phone:
        incident = resolved_incident(db, phone.url)
    factories.run(db, LOOSE)
    clock.pass_(days=8)
    assert housekeeping.archive(archiving or db.begin, 7) > 3
    hot = [row[0] for row in factories.run(db, HOT.format(incident, times))]
    factories.run(db, TRIED.format(hot[0], times) + " returning attempt_id")
    factories.run(db, NOTED.format(incident, times))
    factories.run(db, OUTAGES.format(times))
    clock.pass_(days=400)


def left(db: Database) -> int:
    """How many rows there are of all that prune forgets."""
    return int(factories.run(db, LEFT)[0][0])


class Watched(Tx):
    """A transaction that says which statement it has just made, while it is still open."""

    def __init__(self, conn: psycopg.Connection[Any], told: Callable[[str], None]) -> None:
        super().__init__(conn)
        self.told = told

    def values(self, name: str, /, **params: Any) -> list[Any]:
        """As any, and then says so."""
        found = super().values(name, **params)
        self.told(name)
        return found

    def run(self, name: str, /, **params: Any) -> int:
        """As any, and then says so."""
        found = super().run(name, **params)
        self.told(name)
        return found


def watched(db: Database, told: Callable[[str], None]) -> Begin:
    """Transactions that are interrupted after each of their statements."""

    @contextmanager
    def begin() -> Iterator[Tx]:
        with db.begin() as tx:
            yield Watched(tx.conn, told)

    return begin


def test_q39_a_claim_in_the_middle_of_archive_and_of_each_statement_of_prune_waits_for_nothing(
    database: Database, clock: MovedClock
) -> None:
    claimed: list[str] = []

    def between(name: str) -> None:
        service = factories.run(database, "select max(id) from service")[0][0]
        factories.open_incident(database, service, f"{name} {len(claimed)}")
        started = time.monotonic()
        assert len(claim(database)) == 1, name
        assert time.monotonic() - started < 1, f"the claim waited for {name}"
        claimed.append(name)

    everything_old(database, clock, archiving=watched(database, between))
    assert housekeeping.prune(watched(database, between), 365) > 0
    assert set(claimed) >= {"archive_attempts", *PRUNED, "prune_attempts", "prune_archived", "prune_incidents"}


@pytest.mark.parametrize("statement", PRUNED)
def test_q39_q40_prune_waits_for_no_row_that_somebody_holds(
    database: Database, clock: MovedClock, statement: str
) -> None:
    everything_old(database, clock)
    with psycopg.connect(database.url) as holder:
        holder.execute(f"select * from {PRUNED[statement]} limit 1 for update".encode())
        started = time.monotonic()
        while housekeeping.prune(database.begin, 365):
            pass
        assert time.monotonic() - started < 1.5, "a wait for a lock ends after two seconds"
        assert left(database) > 0
    while housekeeping.prune(database.begin, 365):
        pass
    assert left(database) == 0


def test_q40_prune_is_bounded_by_rows_and_not_by_incidents(database: Database, clock: MovedClock) -> None:
    everything_old(database, clock, times=40)
    before = left(database)
    batches = []
    while gone := housekeeping.prune(database.begin, 365, rows=10):
        assert left(database) == before - gone
        before -= gone
        batches.append(gone)
    assert before == 0 and max(batches) <= 3 * 10 and len(batches) > 12


def test_q40_each_transaction_of_prune_is_within_the_bound(database: Database, clock: MovedClock) -> None:
    everything_old(database, clock, times=40)
    gone: list[int] = []

    @contextmanager
    def begin() -> Iterator[Tx]:
        before = left(database)
        with database.begin() as tx:
            yield tx
        gone.append(before - left(database))

    while housekeeping.prune(begin, 365, rows=10):
        pass
    assert left(database) == 0 and max(gone) == 10


@pytest.mark.parametrize("chore", ["archive", "prune", "strays"])
def test_an_error_in_housekeeping_stops_no_page(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, chore: str
) -> None:
    caplog.set_level(logging.CRITICAL, "escalade.engine")
    tried: list[str] = []

    def wrong(begin: Begin, *args: object) -> int:
        tried.append(chore)
        with begin() as tx:
            tx.conn.execute("select 1 / 0")
        return 0

    wrong.__name__ = chore
    if chore == "strays":
        monkeypatch.setattr(strays, "report_strays", wrong)
    else:
        monkeypatch.setattr(housekeeping, chore, wrong)
    with receiver() as phone, running_engine(database.url, database.doorbell) as engine:
        wait_for(lambda: tried, what="the chore")
        connection = engine.dispatch.recorder
        factories.open_incident(database, factories.ladder(database, phone.url))
        phone.wait(1, "/alice")
        assert engine.dispatch.recorder is connection, "the engine had to connect anew"


@pytest.mark.parametrize("chore", ["archive", "prune"])
def test_a_connection_lost_in_housekeeping_is_made_again(
    database: Database, monkeypatch: pytest.MonkeyPatch, chore: str
) -> None:
    tried: list[int] = []

    def cut(begin: Begin, days: int) -> int:
        with begin() as tx:
            tried.append(tx.conn.info.backend_pid)
            tx.conn.execute("select pg_terminate_backend(pg_backend_pid())")
        return 0

    monkeypatch.setattr(housekeeping, chore, cut)
    with receiver() as phone, running_engine(database.url, database.doorbell) as engine:
        wait_for(lambda: engine.health.away is not None or tried and engine.wait < 1, what="the loss")
        factories.open_incident(database, factories.ladder(database, phone.url))
        phone.wait(1, "/alice")
        assert len(tried) == 1, "not again at once"


def test_housekeeping_that_takes_too_long_is_no_database_that_is_away(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def slow(tx: Tx, days: int) -> int:
        tx.conn.execute("set local statement_timeout = 50")
        tx.conn.execute("select pg_sleep(5)")
        return 0

    monkeypatch.setattr(attempts, "archive", slow)
    with receiver() as phone, running_engine(database.url, database.doorbell):
        wait_for(lambda: "_archive raised" in caplog.text, what="the report")
        factories.open_incident(database, factories.ladder(database, phone.url))
        phone.wait(1, "/alice")
    assert "the database is away" not in caplog.text and "canceling statement" in caplog.text
