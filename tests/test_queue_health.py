"""Each sign of the queue's health turns bad for the thing it watches, and says what to do."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import psycopg
import pytest
from prometheus_client import CollectorRegistry, Counter, Histogram

from escalade import metrics, queue_health, thresholds
from escalade.db import Database, connect
from escalade.growth import Growth
from escalade.queue_health import Sign
from escalade.thresholds import Limit, written
from tests import factories
from tests.acting import claim
from tests.clock import MovedClock
from tests.engines import running_engine
from tests.receiver import receiver, wait_for
from tests.rows import rows


def signs(db: Database) -> dict[str, Sign]:
    """Every sign by its name."""
    with db.read() as tx:
        return {sign.limit.name: sign for sign in queue_health.examine(tx)}


def sign(db: Database, name: str) -> Sign:
    return signs(db)[name]


def lowered(monkeypatch: pytest.MonkeyPatch, name: str, watch: float, act: float) -> None:
    """Thresholds that a test can reach."""
    monkeypatch.setattr(thresholds, name, replace(getattr(thresholds, name), watch=watch, act=act))


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
    assert sign(database, "claims_short_ratio").state == queue_health.UNKNOWN


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


def test_wal_in_a_burst_is_seen_for_ten_minutes_where_somebody_looks(
    database: Database, clock: MovedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    lowered(monkeypatch, "WAL", 0.5, 1)
    monkeypatch.setattr(queue_health, "growth", Growth())
    assert "bursts do not show" in sign(database, "wal_megabytes_per_second").note

    def burst_seen() -> bool:
        clock.pass_(seconds=6)
        found = sign(database, "wal_megabytes_per_second")
        return found.state == queue_health.ACT and "the worst between two looks" in found.note

    with connect(database.url) as conn:
        conn.execute("select pg_logical_emit_message(false, 'test', repeat('x', 20000000))")
        conn.execute("select pg_stat_force_next_flush()")
    wait_for(burst_seen, 10, "the burst")
    clock.pass_(seconds=500)
    assert sign(database, "wal_megabytes_per_second").state == queue_health.ACT
    clock.pass_(seconds=200)
    assert sign(database, "wal_megabytes_per_second").state == queue_health.OK


COPIES = """insert into notification_attempt overriding system value
    select (jsonb_populate_record(a, jsonb_build_object(
        'id', a.id + n, 'recipient', 'x' || n, 'idempotency_key', repeat('x', 200) || n))).*
    from notification_attempt a, generate_series(1, 10000) n"""


def test_the_size_of_the_queue_is_that_of_its_rows_and_indexes(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = sign(database, "queue_gigabytes").value or 0.0
    lowered(monkeypatch, "SIZE", size + 0.001, size + 0.002)
    assert sign(database, "queue_gigabytes").state == queue_health.OK
    rows(database, 1)
    with connect(database.url) as conn:
        conn.execute(COPIES)
    found = sign(database, "queue_gigabytes")
    assert found.state == queue_health.ACT and "GB of indexes" in found.note


def test_an_autovacuum_that_is_behind_is_seen_by_dead_rows_and_by_age(
    database: Database, clock: MovedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    lowered(monkeypatch, "DEAD", 50, 200)
    rows(database, 30)
    with connect(database.url) as conn:
        conn.execute("vacuum notification_attempt")
        assert sign(database, "dead_rows").state == queue_health.OK
        for _ in range(10):
            # By an index, or the pages would be tidied on the way.
            conn.execute("update notification_attempt set due_at = due_at + interval '1 second'")
        conn.execute("select pg_stat_force_next_flush()")
        wait_for(lambda: sign(database, "dead_rows").state == queue_health.ACT, 10, "dead rows")
        clock.pass_(days=2)
        late = sign(database, "autovacuum_age_seconds")
        assert late.state == (queue_health.WATCH if late.note == "never yet" else queue_health.ACT)
        conn.execute("vacuum notification_attempt")
        conn.execute("select pg_stat_force_next_flush()")
    wait_for(lambda: sign(database, "dead_rows").state == queue_health.OK, 10, "no dead rows")
    assert sign(database, "autovacuum_age_seconds").state in (queue_health.OK, queue_health.UNKNOWN)


def test_connections_in_use_are_counted_against_what_may_be(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sign(database, "connections").value or 0.0
    most = int(factories.run(database, "select current_setting('max_connections')::int")[0][0])
    # Other tests come and go on this server.
    lowered(monkeypatch, "CONNECTIONS", before + 8 / most, before + 15 / most)
    assert sign(database, "connections").state == queue_health.OK
    with ExitStack() as open_:
        for _ in range(25):
            open_.enter_context(another(database))
        found = sign(database, "connections")
        assert found.state == queue_health.ACT and found.note.endswith(f" of {most}")


def test_claims_that_find_rows_held_by_others_are_seen(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = CollectorRegistry()
    monkeypatch.setattr(metrics, "claim_seconds", Histogram("claims", "Claims.", registry=registry))
    monkeypatch.setattr(metrics, "claims_short", Counter("short", "Short claims.", registry=registry))
    monkeypatch.setattr(queue_health, "ENOUGH_CLAIMS", 5)
    lowered(monkeypatch, "CONTENTION", 0.01, 0.02)
    ids = rows(database, 20, destination="webhook:held")
    with another(database) as stranger, receiver() as phone:
        stranger.execute("select id from notification_attempt where id = any(%s) for update", [ids])
        service = factories.ladder(database, phone.url)
        factories.open_incident(database, service)
        with running_engine(database.url, database.doorbell):
            wait_for(lambda: sign(database, "claims_short_ratio").state == queue_health.ACT, 15, "contention")
