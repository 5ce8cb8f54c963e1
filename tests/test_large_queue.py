"""What a claim reads in a queue of 200,000 rows, and what a burst, failed pages or a held head change about it."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import psycopg
import pytest
from psycopg import sql

from escalade import attempts, db, opening, overview
from escalade.db import Database, Tx, connect
from escalade.inbound.base import Event
from escalade.migrate import migrate
from tests import factories
from tests.interleavings.hands import ANYWHERE
from tests.test_plans import NOW, PLANS

ROWS = 100_000
# A claim of 16 pages reads each twice: to lock it, and to mark it.
FEW = 50
MAKE = """insert into notification_attempt (incident_id, kind, event, status, lane, round, step, recipient, transport,
        destination, pace_seconds, due_at, first_due_at, tries, max_tries, replays, claim_seq, cancel_requested,
        recheck, idempotency_key, summary, delivered_at, finished_at)
    select n, 'PAGE', 'triggered', %(status)s, 'high', 1, 1, 'rule:1', 'webhook', 'webhook:h' || n %% 20, 0,
        %(due)s::timestamptz + (n - %(first)s) * interval '1 microsecond', %(due)s, 1, 8, 0, 1, false, false,
        %(name)s || n, '', case %(status)s when 'DELIVERED' then %(due)s::timestamptz end,
        case when %(status)s in ('DELIVERED', 'FAILED') then %(due)s::timestamptz end
    from generate_series(%(first)s::int, %(first)s + %(count)s - 1) n"""

OLD = """insert into incident (title, details, severity, urgency, status, sanitized, policy, round, step, repeats_left,
        opened_at, opened_by, last_alert_at, count, resolved_at, service_name, dedup_key, service_id)
    select 'Disk full', '', 'critical', 'high', 'RESOLVED', false, '{"steps": []}', 1, 1, 0, now() - interval '9 days',
        'test', now(), 1, now() - interval '8 days', 'api', 'disk ' || n %% 50, %s
    from generate_series(1, 100000) n"""
READ = """select coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::int from pg_stat_xact_user_tables
    where relname in ('incident', 'notification_attempt', 'notification_attempt_archive', 'incident_event')"""


@pytest.fixture(scope="module")
def queue(server_url: str, worker_name: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection to a queue of as many finished pages as future ones, and no statistics that somebody asked for."""
    name = sql.Identifier(f"escalade_large_{worker_name}_{NOW:%H%M%S%f}")
    with psycopg.connect(server_url, autocommit=True) as conn:
        conn.execute(sql.SQL("create database {}").format(name))
    url = psycopg.conninfo.make_conninfo(server_url, dbname=name.as_string(None).strip('"'))
    try:
        migrate(url)
        with connect(url, statement_ms=60_000) as conn:
            conn.execute("set synchronous_commit = off")
            conn.execute("alter table notification_attempt set (autovacuum_enabled = off)")
            make(conn, "DELIVERED", "-1 day", "finished", ROWS)
            make(conn, "PENDING", "1 hour", "future", ROWS, ROWS)
            conn.execute("vacuum analyze notification_attempt")
            yield conn
    finally:
        with psycopg.connect(server_url, autocommit=True) as conn:
            conn.execute(sql.SQL("drop database {} with (force)").format(name))


def make(conn: psycopg.Connection[Any], status: str, due: str, name: str, count: int, first: int = 0) -> None:
    """So many pages."""
    [at] = conn.execute("select clock_timestamp() + %s::interval", [due]).fetchone() or [None]
    conn.execute(MAKE, {"status": status, "due": at, "name": name, "count": count, "first": first})


class Undone(Exception):
    """Raised to undo what a test did."""


def explained(conn: psycopg.Connection[Any], query: str, mode: str = "auto") -> dict[str, Any]:
    """The plan of a query of the queue as it was run, at this moment."""
    with conn.transaction():
        conn.execute(sql.SQL("set local plan_cache_mode = {}").format(sql.Literal(mode)))
        [now] = conn.execute("select clock_timestamp()").fetchone() or [None]
        values: Mapping[str, Any] = PLANS[query][0] | {"now": now, "destinations": [], "free": [], "closed": []}
        asked = "explain (analyze, verbose, format json) " + db.queries()[query]
        try:
            with conn.transaction():
                row = conn.execute(asked, values, prepare=True).fetchone()
                raise Undone
        except Undone:
            assert row is not None
            return row[0][0]


def read(plan: Mapping[str, Any]) -> int:
    """How many rows of the queue the scans of a plan handed on or threw away."""
    own = 0
    if plan.get("Relation Name") == "notification_attempt" and "Scan" in plan["Node Type"]:
        own = int((plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)) * plan["Actual Loops"])
    return own + sum(read(child) for child in plan.get("Plans", []))


def claimed(conn: psycopg.Connection[Any], mode: str = "auto") -> tuple[int, int]:
    """How many rows a claim took, and how many it read for that."""
    plan = explained(conn, "claim", mode)["Plan"]
    return int(plan["Actual Rows"]), read(plan)


def test_q44_pages_for_later_cost_the_look_nothing_and_need_no_move_to_become_due(queue) -> None:
    assert read(explained(queue, "whats_due")["Plan"]) < FEW
    assert claimed(queue)[0] == 0
    with pytest.raises(Undone), queue.transaction():
        queue.execute("update notification_attempt set due_at = now() where idempotency_key = 'future100000'")
        assert claimed(queue)[0] == 1
        raise Undone


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
def test_q45_a_claim_reads_what_it_takes_however_much_lies_around_it(queue, mode: str) -> None:
    with pytest.raises(Undone), queue.transaction():
        make(queue, "PENDING", "-1 minute", "due", 50, 3 * ROWS)
        taken, rows_read = claimed(queue, mode)
        assert taken == 16 and rows_read < FEW
        raise Undone


@pytest.mark.parametrize("mode", ["auto", "force_custom_plan", "force_generic_plan"])
def test_q47_a_burst_that_no_statistics_know_of_does_not_flip_the_plan(queue, mode: str) -> None:
    with pytest.raises(Undone), queue.transaction():
        make(queue, "PENDING", "-1 minute", "burst", 20_000, 3 * ROWS)
        taken, rows_read = claimed(queue, mode)
        assert taken == 16 and rows_read < FEW
        raise Undone


def test_q48_failed_pages_at_the_head_are_not_even_read(queue) -> None:
    with pytest.raises(Undone), queue.transaction():
        make(queue, "FAILED", "-2 hours", "failed", 10_000, 3 * ROWS)
        make(queue, "PENDING", "-1 minute", "due", 50, 4 * ROWS)
        taken, rows_read = claimed(queue)
        assert taken == 16 and rows_read < FEW
        raise Undone


def test_q48_pages_that_others_hold_at_the_head_are_passed_by(queue) -> None:
    make(queue, "PENDING", "-1 minute", "held", 500, 3 * ROWS)
    held = "select id from notification_attempt where status = 'PENDING' and due_at <= now() for no key update"
    try:
        with psycopg.connect(queue.info.dsn, password=queue.info.password) as other:
            other.execute(held)
            make(queue, "PENDING", "0", "free", 20, 4 * ROWS)
            taken, rows_read = claimed(queue)
            assert taken == 16 and rows_read < FEW + 500
    finally:
        queue.execute("delete from notification_attempt where idempotency_key ~ '^(held|free)'")


def test_q49_the_queue_is_vacuumed_by_numbers_of_its_own_and_apart_from_its_history(queue) -> None:
    rows = queue.execute(
        """select relname, option_name, option_value from pg_class, pg_options_to_table(reloptions)
        where relname in ('notification_attempt', 'notification_attempt_archive')"""
    ).fetchall()
    found = {name: value for table, name, value in rows if table == "notification_attempt"}
    assert found["autovacuum_vacuum_scale_factor"] == found["autovacuum_analyze_scale_factor"] == "0"
    assert int(found["autovacuum_vacuum_threshold"]) <= 5000


def test_q49_no_session_of_ours_keeps_a_snapshot_for_long(queue) -> None:
    limits = "select current_setting('idle_in_transaction_session_timeout'), current_setting('lock_timeout')"
    assert queue.execute(limits).fetchone() == ("5s", "2s")


def test_k096_an_alert_a_claim_and_the_dashboard_read_no_more_where_there_is_much_history(queue) -> None:
    database = Database(queue.info.dsn + f" password={queue.info.password}", size=2)
    try:
        service = factories.ladder(database, "http://127.0.0.1:9")
        for number in range(10):
            factories.open_incident(database, service, f"disk {number}")
        queue.execute(OLD, [service])
        queue.execute("vacuum analyze incident")
        source = opening.Source(service, "api", None, "integration:api/prom")
        asked: dict[str, Callable[[Tx], object]] = {
            "an alert": lambda tx: opening.trigger(tx, source, Event("trigger", "Disk full", dedup_key="disk 49")),
            "a repeat": lambda tx: opening.trigger(tx, source, Event("trigger", "Disk full", dedup_key="disk 1")),
            "a claim": lambda tx: attempts.claim(tx, "high", "one", 20, 16, ANYWHERE),
            "open incidents": overview.open_incidents,
            "what pages next": overview.pending,
        }
        found = {}
        for name, ask in asked.items():
            with database.begin() as tx:
                ask(tx)
                [found[name]] = tx.conn.execute(READ).fetchone() or [0]
        assert {name: read for name, read in found.items() if read > 500} == {}
    finally:
        database.close()
