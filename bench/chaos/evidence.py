"""What the database says at the end of a campaign."""

import time
from collections import defaultdict
from collections.abc import Sequence
from math import inf
from typing import Any

import psycopg

from bench.chaos.record import Attempt, Move, Record
from bench.chaos.stage import App

OPEN = """
select count(*) from notification_attempt where kind = 'PAGE' and status in ('PENDING', 'IN_FLIGHT')
"""
ATTEMPTS = """
select id, incident_id, idempotency_key, status, extract(epoch from first_due_at)::float8
from notification_attempt where kind = 'PAGE' order by id
"""
TRIES = "select attempt_id, claim_seq, outcome from attempt_try"
# The owner of a claim names its process: host, pid, and a mark of its own.
MOVES = """
select attempt, seq, split_part(owner, ':', 2)::int, before, after, extract(epoch from at)::float8,
    extract(epoch from lease_until)::float8, port, coalesce(error, '')
from chaos_move order by at
"""
STOPPED = """
select incident_id, extract(epoch from min(at))::float8
from incident_event where event in ('acknowledged', 'resolved') group by incident_id
"""


def wait_until_quiet(conn: "psycopg.Connection[Any]", seconds: float) -> None:
    """Wait until no page is under way, or for so long: what is still open then is counted as lost."""
    end = time.monotonic() + seconds
    while conn.execute(OPEN).fetchone() != (0,) and time.monotonic() < end:
        time.sleep(0.1)


def read(conn: "psycopg.Connection[Any]", record: Record, apps: Sequence[App]) -> None:
    """Add attempts with their tries, every claim and what ended it, and what was stopped when, to the record."""
    tries: dict[int, dict[int, str]] = defaultdict(dict)
    for attempt, seq, outcome in conn.execute(TRIES):
        tries[attempt][seq] = outcome
    for row in conn.execute(ATTEMPTS):
        record.attempts.append(Attempt(*row, tries=tries[row[0]]))
    for attempt, seq, pid, before, after, at, lease_until, port, error in conn.execute(MOVES):
        by = who(apps, port, at)
        record.moves.append(Move(attempt, seq, pid, before, after, at, lease_until or inf, by, error))
    record.stopped = dict(conn.execute(STOPPED).fetchall())


def who(apps: Sequence[App], port: int | None, at: float) -> int | None:
    """The process whose connection came from this port at this time, as the server sees it."""
    wires = ((app, wire) for app in apps for wire in app.wires)
    found = ((opened, app) for app, wire in wires for opened, own in wire.reached if own == port and opened <= at)
    opened, app = max(found, key=lambda pair: pair[0], default=(0.0, None))
    return max(life for life in app.lives if life[0] <= opened)[1] if app else None
