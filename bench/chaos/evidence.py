"""What the database says at the end of a campaign."""

import time
from collections import defaultdict
from typing import Any

import psycopg

from bench.chaos.record import Attempt, Claim, Record

OPEN = """
select count(*) from notification_attempt where kind = 'PAGE' and status in ('PENDING', 'IN_FLIGHT')
"""
ATTEMPTS = """
select id, incident_id, idempotency_key, status, extract(epoch from first_due_at)::float8
from notification_attempt where kind = 'PAGE' order by id
"""


def wait_until_quiet(conn: "psycopg.Connection[Any]", seconds: float) -> None:
    """Wait until no page is under way, or for so long: what is still open then is counted as lost."""
    end = time.monotonic() + seconds
    while conn.execute(OPEN).fetchone() != (0,) and time.monotonic() < end:
        time.sleep(0.1)


def read(conn: "psycopg.Connection[Any]", record: Record) -> None:
    """Add attempts with their tries, and every claim, to the record."""
    tries: dict[int, list[str]] = defaultdict(list)
    for attempt, outcome in conn.execute("select attempt_id, outcome from attempt_try order by attempt_id, claim_seq"):
        tries[attempt].append(outcome)
    for row in conn.execute(ATTEMPTS):
        record.attempts.append(Attempt(*row, tries=tuple(tries[row[0]])))
    record.claims = [Claim(*row) for row in conn.execute("select attempt, seq, owner, before from chaos_claim")]
