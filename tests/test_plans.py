"""What the planner does with the queries of the queue on a table of 20,000 future and 20,000 finished rows, with and
without statistics, for plans made for the values at hand and for plans made once for all."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg import sql

from escalade import db
from escalade.attempts import Outcome, settled_rows
from escalade.db import connect
from escalade.migrate import migrate

NOW = datetime.now(UTC)
ROWS = 20_000
OPEN = 500
ATTEMPTS = {"ids": [5, 6, 7], "incident_id": 7, "now": NOW}

# Each query of the queue, values for it, and the indexes it is there for.
PLANS: dict[str, tuple[dict[str, Any], set[str]]] = {
    "claim": (
        {
            "lane": "high",
            "now": NOW,
            "closed": ["webhook:closed"],
            "held": ["method:1"],
            "n": 16,
            "more": 1000,
            "destinations": ["webhook:slow"],
            "free": [1],
            "each": 14,
            "failing": ["webhook:failing"],
            "owner": "me",
            "lease": 20.0,
        },
        {"attempt_due", "attempt_bundle", "notification_attempt_pkey"},
    ),
    "messages_of": ({"ids": [5, 6, 7]}, {"notification_attempt_pkey"}),
    "settle": (
        {
            "outcomes": settled_rows(
                [Outcome(5, 1, "DELIVERED", NOW, NOW), Outcome(6, 1, "RETRY", NOW, NOW, 5.0, "no")]
            ),
            "now": NOW,
            "late": 60.0,
            "owner": "me",
        },
        {"notification_attempt_pkey"},
    ),
    "reap": ({"now": NOW, "known": [5, 6]}, {"attempt_lease"}),
    "recover": ({"owner": "me", "ids": [5], "seqs": [1], "now": NOW}, {"attempt_lease"}),
    "whats_due": ({"now": NOW}, {"attempt_due", "attempt_step_due", "attempt_lease", "attempt_recheck"}),
    "lock_due_step": ({"now": NOW}, {"attempt_step_due"}),
    "late_steps": ({"now": NOW, "n": 5}, {"attempt_step_due"}),
    "due_step_of": (ATTEMPTS, {"attempt_one_step"}),
    "pending_step": (ATTEMPTS, {"attempt_one_step"}),
    "lock_live_attempts": (ATTEMPTS, {"attempt_incident"}),
    "stop_attempts": (ATTEMPTS, {"attempt_incident"}),
    "pages_in_flight": (ATTEMPTS, set()),
    "insert_notices": (ATTEMPTS | {"event": "resolved", "max_tries": 8, "summary": "Over"}, set()),
    "lock_marked_incidents": ({}, {"attempt_recheck"}),
    "clear_marks": (ATTEMPTS, {"attempt_recheck"}),
    "hurry_failed_steps": (ATTEMPTS, {"attempt_one_step"}),
    "replay_attempts": (ATTEMPTS | {"more": 8}, set()),
    "failed_attempts": ({"transport": None, "ids": None, "after": 0}, {"attempt_failed"}),
    "archive_attempts": ({"before": NOW - timedelta(days=2), "n": 2000}, {"attempt_done"}),
    "mark_late": ({"lane": "high", "after": NOW, "before": NOW, "now": NOW, "n": 200}, {"attempt_due"}),
    "late_for_outage": ({"now": NOW, "n": 20}, {"attempt_due", "attempt_step_due", "attempt_lease"}),
    "oldest_overdue": ({"before": NOW, "now": NOW}, {"attempt_step_due", "attempt_lease"}),
    "insert_pages": (
        ATTEMPTS
        | {
            "event": "triggered",
            "lane": "high",
            "round": 1,
            "step": 1,
            "max_tries": 8,
            "recipients": ["method:1"],
            "targets": ["user:alice"],
            "methods": [1],
            "channels": [None],
            "afters": [0.0],
            "people": "user:alice",
            "next": 2,
            "wait": 300.0,
            "wait_untold": 0.0,
        },
        {"attempt_once"},
    ),
}

WANTED = {
    "transport": None,
    "user_id": None,
    "channel_id": None,
    "service": None,
    "since": None,
    "until": None,
    "n": 51,
}
# What the pages ask of the queue, with the indexes that bound it.
PLANS |= {
    "pulse": (
        {"now": NOW, "since": NOW - timedelta(hours=1), "until": NOW + timedelta(hours=1), "slot": 120, "n": 5000},
        {"attempt_done", "attempt_due", "attempt_step_due"},
    ),
    "queue_counts": ({"n": 1001}, {"attempt_due", "attempt_step_due", "attempt_lease", "attempt_failed"}),
    "oldest_due": ({"now": NOW}, {"attempt_due", "attempt_step_due"}),
    "last_test": ({}, {"attempt_incident"}),
    "find_waiting": (WANTED | {"status": "PENDING", "at": None, "id": None}, {"attempt_due", "attempt_step_due"}),
    "find_ended": (WANTED | {"status": "FAILED", "at": NOW, "id": 7}, {"attempt_failed"}),
}

FILL = f"""
insert into incident (title, details, severity, urgency, status, sanitized, policy, round, step, repeats_left,
    opened_at, opened_by, last_alert_at, count, resolved_at)
select 'Disk full', '', 'critical', 'high', case when n <= {OPEN} then 'TRIGGERED' else 'RESOLVED' end, false,
    '{{"steps": []}}', 1, 1, 0, now(), 'test', now(), 1, case when n > {OPEN} then now() end
from generate_series(1, {ROWS // 10}) n;

insert into notification_attempt (incident_id, kind, event, status, lane, round, step, recipient, contact_method_id,
    transport, destination, bundle, pace_seconds, due_at, first_due_at, tries, max_tries, replays, claim_seq,
    cancel_requested, recheck, idempotency_key, summary, lease_owner, lease_until, claimed_at, delivered_at,
    finished_at)
select 1 + n % {ROWS // 10}, kind, 'triggered', status, case when n % 5 = 0 then 'low' else 'high' end, n, 1,
    case kind when 'STEP' then 'step' else 'method:' || n % 50 end, n % 50, 'webhook', 'webhook:h' || n % 20,
    case when n % 2 = 0 then 'method:' || n % 50 end, 10, due, due, 1, 8, 0, 1, false, false, n::text, '',
    'somebody', case status when 'IN_FLIGHT' then now() + interval '20 seconds' end, due,
    case status when 'DELIVERED' then due end, case when status in ('DELIVERED', 'FAILED', 'CANCELLED') then due end
from (
    select n, 'PAGE' as kind, 'PENDING' as status, now() + n * interval '1 second' as due
        from generate_series(1, {ROWS}) n
    union all
    select n, 'PAGE', case when n % 100 = 0 then 'FAILED' when n % 3 = 0 then 'CANCELLED' else 'DELIVERED' end,
        now() - n * interval '10 seconds' from generate_series({ROWS + 1}, {2 * ROWS}) n
    union all
    select n, 'PAGE', 'PENDING', now() - interval '1 second' from generate_series({2 * ROWS + 1}, {2 * ROWS + 100}) n
    union all
    select n, 'PAGE', 'IN_FLIGHT', now() - interval '1 second'
        from generate_series({2 * ROWS + 101}, {2 * ROWS + 116}) n
    union all
    select n, 'STEP', 'PENDING', now() + n * interval '1 second'
        from generate_series({3 * ROWS}, {3 * ROWS + OPEN - 2}) n
) rows;
"""


@pytest.fixture(scope="module")
def plans(server_url: str, worker_name: str) -> Iterator[Mapping[tuple[str, str], str]]:
    """The plan of each query, by its name and how it was made."""
    name = sql.Identifier(f"escalade_plans_{worker_name}_{NOW:%H%M%S%f}")
    with psycopg.connect(server_url, autocommit=True) as conn:
        conn.execute(sql.SQL("create database {}").format(name))
    url = psycopg.conninfo.make_conninfo(server_url, dbname=name.as_string(None).strip('"'))
    try:
        migrate(url)
        with connect(url, statement_ms=60_000) as conn:
            conn.prepare_threshold = None
            conn.execute("alter table notification_attempt set (autovacuum_enabled = off)")
            conn.execute("alter table incident set (autovacuum_enabled = off)")
            conn.execute(FILL)
            found = all_plans(conn, "without statistics")
            conn.execute("analyze")
            yield found | all_plans(conn, "with statistics")
    finally:
        with psycopg.connect(server_url, autocommit=True) as conn:
            conn.execute(sql.SQL("drop database {} with (force)").format(name))


def all_plans(conn: psycopg.Connection[Any], how: str) -> dict[tuple[str, str], str]:
    """The plans of all queries, custom and generic."""
    found = {}
    for mode in ("custom", "generic"):
        conn.execute(sql.SQL("set plan_cache_mode = {}").format(f"force_{mode}_plan"))
        for name, (values, _) in PLANS.items():
            found[name, f"{mode}, {how}"] = explain(conn, name, values)
    return found


def explain(conn: psycopg.Connection[Any], name: str, values: Mapping[str, Any]) -> str:
    """The plan of one prepared query."""
    names = re.findall(r"%\((\w+)\)s", db.queries()[name])
    parts = re.split(r"%\(\w+\)s", db.queries()[name].replace("%%", "%"))
    body = parts[0] + "".join(f"${number}{part}" for number, part in enumerate(parts[1:], 1))
    conn.execute(f"prepare asked as {body}")
    given = sql.SQL(", ").join(sql.Literal(values[one]) for one in names)
    call = sql.SQL("explain (verbose) execute asked({})").format(given) if names else "explain (verbose) execute asked"
    plan = "\n".join(row[0] for row in conn.execute(call).fetchall())
    conn.execute("deallocate asked")
    return plan


def indexes(plan: str) -> set[str]:
    """The indexes a plan uses."""
    used = re.findall(r"Scan(?: Backward)? using (\w+)|Bitmap Index Scan on (?:\w+\.)?(\w+)", plan)
    arbiters = re.findall(r"Conflict Arbiter Indexes: (\w+)", plan)
    return {name for pair in used for name in pair if name} | set(arbiters)


HOW = [f"{mode}, {how}" for mode in ("custom", "generic") for how in ("without statistics", "with statistics")]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", PLANS)
def test_q46_no_query_of_the_queue_reads_the_whole_table(
    plans: Mapping[tuple[str, str], str], name: str, how: str
) -> None:
    assert "Seq Scan on public.notification_attempt " not in plans[name, how], plans[name, how]


@pytest.mark.parametrize("name", ["claim", "messages_of", "settle", "reap", "recover", "whats_due"])
def test_what_the_engine_plans_while_the_queue_is_empty_is_fit_for_a_full_one(database: db.Database, name: str) -> None:
    session = db.Session(database.url)
    try:
        plan = explain(session.conn, name, PLANS[name][0])
    finally:
        session.close()
    assert not re.search(r"Seq Scan on public\.(notification_attempt|incident) ", plan), plan


@pytest.mark.parametrize("how", HOW)
def test_the_idle_poll_reads_no_whole_table_of_incidents(plans: Mapping[tuple[str, str], str], how: str) -> None:
    assert "Seq Scan on public.incident " not in plans["whats_due", how], plans["whats_due", how]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", ["claim", "settle", "reap", "whats_due", "lock_due_step"])
def test_the_loop_uses_its_own_index_whatever_is_known_of_the_table(
    plans: Mapping[tuple[str, str], str], name: str, how: str
) -> None:
    assert PLANS[name][1] <= indexes(plans[name, how]), plans[name, how]


@pytest.mark.parametrize("name", PLANS)
def test_the_indexes_a_query_is_said_to_need_are_used_by_it(plans: Mapping[tuple[str, str], str], name: str) -> None:
    used = set().union(*(indexes(plans[name, how]) for how in HOW))
    # Both begin with the incident: before PostgreSQL 18 the sample behind the statistics decides between them.
    assert PLANS[name][1] <= used | ({"attempt_incident"} if "attempt_once" in used else set())


def test_every_index_of_the_queue_is_used_and_every_one_is_listed(
    plans: Mapping[tuple[str, str], str], database_url: str
) -> None:
    listed = {index for _, wanted in PLANS.values() for index in wanted}
    with connect(database_url) as conn:
        rows = conn.execute("select indexname from pg_indexes where tablename = 'notification_attempt'").fetchall()
    assert {row[0] for row in rows} == listed
