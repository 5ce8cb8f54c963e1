"""Each sign of the queue's health turns bad for the thing it watches, and says what to do."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from escalade import metrics, queue_health
from escalade.db import Database, connect
from escalade.queue_health import Sign
from escalade.thresholds import Limit, written
from tests import factories
from tests.acting import claim
from tests.clock import MovedClock
from tests.receiver import wait_for


def signs(db: Database) -> dict[str, Sign]:
    """Every sign by its name."""
    with db.read() as tx:
        return {sign.limit.name: sign for sign in queue_health.examine(tx)}


def sign(db: Database, name: str) -> Sign:
    return signs(db)[name]


@contextmanager
def another(db: Database) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """A session of somebody else."""
    with psycopg.connect(db.url, application_name="somebody") as conn:
        yield conn


def test_on_an_empty_queue_nothing_is_past_its_threshold(database: Database) -> None:
    found = signs(database)
    assert len(found) >= 18
    assert [name for name, one in found.items() if one.state == queue_health.ACT] == []
    assert {name for name, one in found.items() if one.state == queue_health.UNKNOWN} <= {
        "claim_seconds",
        "claims_short_ratio",
        "strict_order",
        "autovacuum_age_seconds",
    }
    assert all(one.limit.advice and one.limit.label for one in found.values())


def test_the_three_signals_to_leave_postgres_come_first(database: Database) -> None:
    assert list(signs(database))[:3] == ["throughput", "strict_order", "consumers"]


def test_throughput_counts_what_has_just_ended(database: Database) -> None:
    factories.open_incident(database, factories.ladder(database, "http://127.0.0.1:1"))
    factories.run(
        database,
        "insert into notification_attempt (kind, event, status, lane, round, step, recipient, transport, destination,"
        " pace_seconds, due_at, first_due_at, tries, max_tries, replays, claim_seq, cancel_requested, recheck,"
        " idempotency_key, summary, delivered_at, finished_at) select 'NOTICE', 'test', 'DELIVERED', 'high', 1, 1, 'x',"
        " 'log', 'log', 0, now(), now(), 1, 8, 0, 1, false, false, 'k', '', now(), now() from generate_series(1, 600)"
        " returning id",
    )
    assert sign(database, "throughput").value == pytest.approx(10.0)


def test_k101_what_is_due_and_not_sent_is_seen_by_number_and_age(database: Database, clock: MovedClock) -> None:
    factories.open_incident(database, factories.ladder(database, "http://127.0.0.1:1"))
    clock.pass_(seconds=120)
    found = signs(database)
    assert found["backlog"].value == 1 and "1 in the high lane" in found["backlog"].note
    assert found["oldest_due_seconds"].state == queue_health.WATCH
    clock.pass_(seconds=600)
    assert sign(database, "oldest_due_seconds").state == queue_health.ACT


def test_q18_leases_that_nobody_takes_back_are_seen(database: Database, clock: MovedClock) -> None:
    factories.open_incident(database, factories.ladder(database, "http://127.0.0.1:1"))
    assert len(claim(database)) == 1
    clock.pass_(seconds=20 + 120)
    found = sign(database, "leases_overdue_seconds")
    assert found.state == queue_health.ACT and found.note == "1 of them"


def test_the_oldest_snapshot_is_seen_with_who_holds_it(database: Database, clock: MovedClock) -> None:
    with another(database) as conn:
        conn.execute("set transaction isolation level repeatable read")
        conn.execute("select count(*) from incident")
        clock.pass_(seconds=700)
        found = sign(database, "snapshot_seconds")
        assert found.state == queue_health.WATCH
        assert f"process {conn.info.backend_pid} of somebody (idle in transaction)" in found.note


def test_a_wait_for_a_lock_is_seen(database: Database, clock: MovedClock) -> None:
    factories.open_incident(database, factories.ladder(database, "http://127.0.0.1:1"))
    with another(database) as holder, another(database) as waiter:
        holder.execute("select id from incident for update")
        thread = threading.Thread(target=lambda: waiter.execute("select id from incident for update"))
        thread.start()
        wait_for(lambda: sign(database, "lock_wait_seconds").note == "1 sessions wait")
        clock.pass_(seconds=30)
        assert sign(database, "lock_wait_seconds").state == queue_health.ACT
        holder.rollback()
        thread.join(10)


def test_slots_that_nobody_reads_are_seen_with_what_they_hold(database: Database) -> None:
    with psycopg.connect(database.url, autocommit=True) as conn:
        conn.execute("select pg_create_physical_replication_slot('forgotten', true)")
        try:
            found = sign(database, "idle_slot_gigabytes")
            assert found.note.startswith("forgotten (") and found.value is not None
        finally:
            conn.execute("select pg_drop_replication_slot('forgotten')")
    assert "forgotten" not in sign(database, "idle_slot_gigabytes").note


def test_dead_rows_count_what_vacuum_has_not_taken(database: Database) -> None:
    def dead() -> bool:
        with connect(database.url) as conn:
            conn.execute("select pg_stat_force_next_flush()")
            conn.execute("select count(*) from notification_attempt")
        return (sign(database, "dead_rows").value or 0) >= 50

    service = factories.ladder(database, "http://127.0.0.1:1")
    for number in range(30):
        factories.open_incident(database, service, f"k{number}")
    with connect(database.url) as conn:
        for _ in range(2):
            conn.execute("update notification_attempt set summary = summary")
        conn.execute("select pg_stat_force_next_flush()")
    wait_for(dead, 10, "dead rows")


def test_claims_are_those_of_this_process(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "total", lambda histogram: 0.0)
    found = sign(database, "claim_seconds")
    assert found.state == queue_health.UNKNOWN and found.shown == "cannot be seen"


@contextmanager
def plain_role(db: Database) -> Iterator[Database]:
    """The same database for a role with no more rights than to read it."""
    with psycopg.connect(db.url, autocommit=True) as conn:
        conn.execute("drop role if exists plain")
        conn.execute("create role plain login")
        conn.execute("grant select on all tables in schema public to plain")
    plain = Database(psycopg.conninfo.make_conninfo(db.url, user="plain"), size=1)
    try:
        yield plain
    finally:
        plain.close()
        with psycopg.connect(db.url, autocommit=True) as conn:
            conn.execute("drop owned by plain")
            conn.execute("drop role plain")


def test_what_the_sessions_of_others_do_is_not_called_well_by_a_role_that_cannot_see_it(database: Database) -> None:
    with plain_role(database) as plain:
        found = signs(plain)
    for name in ("snapshot_seconds", "lock_wait_seconds", "slru_waits", "replica_lag_seconds", "connections"):
        assert found[name].state == queue_health.UNKNOWN and "pg_read_all_stats" in found[name].note
    assert found["backlog"].state == queue_health.OK


def test_a_lock_on_the_table_takes_away_the_signs_that_need_it_and_no_other(database: Database) -> None:
    with another(database) as conn:
        conn.execute("lock table notification_attempt in access exclusive mode")
        found = signs(database)
    assert found["backlog"].state == queue_health.UNKNOWN and "holds a lock" in found["backlog"].note
    assert found["connections"].state == queue_health.OK


def test_what_a_role_may_not_see_is_said_and_stops_nothing(database: Database) -> None:
    with psycopg.connect(database.url, autocommit=True) as conn, plain_role(database) as plain:
        conn.execute("revoke execute on function pg_notification_queue_usage() from public")
        try:
            found = signs(plain)
        finally:
            conn.execute("grant execute on function pg_notification_queue_usage() to public")
    assert found["notification_queue"].state == queue_health.UNKNOWN
    assert "permission denied" in found["notification_queue"].note
    assert found["backlog"].state == queue_health.OK


@pytest.mark.parametrize(
    ("value", "state"), [(None, "unknown"), (0, "ok"), (9.9, "ok"), (10, "watch"), (20, "act"), (1e9, "act")]
)
def test_the_state_follows_from_the_thresholds(value: float | None, state: str) -> None:
    assert Sign(Limit("n", "N", "s", 10, 20, "do"), value).state == state


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.25, "share", "25 %"),
        (1234.0, "rows", "1,234 rows"),
        (0.051, "s", "0.05 s"),
        (12.34, "GB", "12.3 GB"),
        (3, "", "3"),
    ],
)
def test_numbers_are_written_with_their_unit(value: float, unit: str, text: str) -> None:
    assert written(value, unit) == text
