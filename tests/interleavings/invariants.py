"""The invariants of the queue, read from one snapshot, and from a log of every change of a row."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from escalade.db import connect

# Each lists what breaks it.
RULES = {
    "a row waits for an incident that is not TRIGGERED, or is snoozed": """
        select a.id, a.kind, i.status from notification_attempt a join incident i on i.id = a.incident_id
        where a.kind in ('PAGE', 'STEP') and a.status = 'PENDING'
            and (i.status <> 'TRIGGERED' or i.snoozed_until is not null)""",
    "a page in flight of an incident that is stopped is not flagged": """
        select a.id, i.status from notification_attempt a join incident i on i.id = a.incident_id
        where a.kind = 'PAGE' and a.status = 'IN_FLIGHT' and not a.cancel_requested
            and (i.status <> 'TRIGGERED' or i.snoozed_until is not null)""",
    "an incident has the wrong number of pending steps": """
        select * from (
            select i.id, i.status, i.round,
                (i.status = 'TRIGGERED' and i.exhausted_at is null and i.snoozed_until is null)::int as wanted,
                (select count(*) from notification_attempt a
                    where a.incident_id = i.id and a.kind = 'STEP' and a.status = 'PENDING') as found
            from incident i) x
        where wanted <> found""",
    "a page occurs twice": """
        select incident_id, round, step, recipient from notification_attempt where kind = 'PAGE'
        group by 1, 2, 3, 4 having count(*) > 1""",
    "two incidents are open under one key": """
        select service_id, dedup_key from incident where status <> 'RESOLVED' and dedup_key is not null
        group by 1, 2 having count(*) > 1""",
    "two attempts carry one key": """
        select idempotency_key from notification_attempt group by 1 having count(*) > 1""",
    "a lease without a flight, or a flight without a lease": """
        select id, status from notification_attempt where (status = 'IN_FLIGHT') <> (lease_until is not null)""",
    "the timeline runs backwards": """
        select * from (
            select incident_id, id, event, at, lag(at) over (partition by incident_id order by id) as before
            from incident_event
            where event not in ('delivered', 'late', 'retry', 'failed', 'cancelled', 'lease_expired')) x
        where at < before""",
}

# What a log of every change must never show.
LOG_RULES = {
    "a change of status that is on no diagram": """
        select id, was, now from attempt_log where was <> now and (was, now) not in (
            ('PENDING', 'IN_FLIGHT'), ('PENDING', 'CANCELLED'), ('PENDING', 'DELIVERED'), ('IN_FLIGHT', 'PENDING'),
            ('IN_FLIGHT', 'DELIVERED'), ('IN_FLIGHT', 'FAILED'), ('IN_FLIGHT', 'CANCELLED'), ('FAILED', 'PENDING'),
            ('FAILED', 'DELIVERED'), ('CANCELLED', 'DELIVERED'))""",
    "a claim's number changed outside a claim, or a claim left it": """
        select id, was, now from attempt_log
        where (seq_now - seq_was) <> (was = 'PENDING' and now = 'IN_FLIGHT')::int""",
    "a live lease was claimed again": """
        select id, seq_was from attempt_log where was = 'IN_FLIGHT' and now = 'IN_FLIGHT' and owner_was <> owner_now""",
    "a key changed without a replay, or a replay kept it": """
        select id from attempt_log where (replays_was <> replays_now) <> (key_was <> key_now)""",
    "a flagged page was sent back to the queue": """
        select id, now from attempt_log where flagged and now in ('PENDING', 'FAILED')""",
}

WATCH = """
    create table attempt_log (n bigint generated always as identity, id bigint, was text, now text, seq_was int,
        seq_now int, owner_was text, owner_now text, replays_was int, replays_now int, key_was text, key_now text,
        flagged boolean, at timestamptz);
    create function log_attempt() returns trigger language plpgsql as $$ begin
        insert into attempt_log (id, was, now, seq_was, seq_now, owner_was, owner_now, replays_was, replays_now,
            key_was, key_now, flagged, at)
        values (new.id, old.status, new.status, old.claim_seq, new.claim_seq, old.lease_owner, new.lease_owner,
            old.replays, new.replays, old.idempotency_key, new.idempotency_key, old.cancel_requested,
            clock_timestamp());
        return null; end $$;
    create trigger log_attempt after update on notification_attempt for each row execute function log_attempt();
"""
UNWATCH = """
    drop trigger if exists log_attempt on notification_attempt;
    drop function if exists log_attempt;
    drop table if exists attempt_log;
"""


@contextmanager
def watched(url: str) -> Iterator[None]:
    """While this lasts, every change of an attempt is logged."""
    with connect(url) as conn:
        conn.execute(UNWATCH)
        conn.execute(WATCH)
    try:
        yield
    finally:
        with connect(url) as conn:
            conn.execute(UNWATCH)


def violations(conn: psycopg.Connection[Any], rules: dict[str, str] = RULES) -> list[str]:
    """What is broken, all read from one snapshot."""
    found = []
    with conn.transaction():
        conn.execute("set transaction isolation level repeatable read, read only")
        for rule, query in rules.items():
            if rows := conn.execute(query).fetchall():
                found.append(f"{rule}: {rows[:3]}")
    return found


def check(url: str) -> list[str]:
    """What is broken now."""
    with connect(url) as conn:
        return violations(conn)
