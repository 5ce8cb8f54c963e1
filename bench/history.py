"""What a long history costs: claims, the dashboard and alerts with millions of old rows, beside an empty database.

make bench ARGS=--history        (BENCH_ARCHIVED and BENCH_FUTURE set how many rows there are)
"""

import json
import os
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import psycopg

from bench import process
from bench.drain import CHANNEL, ROWS
from bench.latency import quantile
from bench.run import new_database
from escalade import attempts, embedded, sessions
from escalade.attempts import Room
from escalade.db import Database, Session
from escalade.delivery import Links
from escalade.dispatch import Settings
from escalade.doorbell import Doorbell
from escalade.engine import Engine
from escalade.health import Health
from escalade.senders import Senders
from escalade.tokens import Signer
from escalade.transports import Network, Receipt, Transport

ARCHIVED = int(os.environ.get("BENCH_ARCHIVED", "10000000"))
FUTURE = int(os.environ.get("BENCH_FUTURE", "1000000"))
DUE = 10_000
ASKED = 300
COOKIE = "escalade"
KEYS = count()
EVERYTHING = Room([], [], {}, 1000)
NOTHING = Transport("nothing", "Nothing", lambda message, network: Receipt(), lambda a: None, str, 0, False, False)
OLD = """
insert into incident (id, service_id, service_name, title, details, severity, urgency, status, sanitized, policy,
    round, step, repeats_left, opened_at, opened_by, last_alert_at, count, resolved_at, resolved_by)
overriding system value
select 1000000 + n, (select min(id) from service), 'api', 'Disk full on db-' || n, '', 'critical', 'high', 'RESOLVED',
    false, '{"name": "default", "repeat": 0, "steps": []}', 1, 1, 0,
    clock_timestamp() - interval '300 days' + n * interval '1 second', 'integration:api/bench',
    clock_timestamp() - interval '299 days', 1, clock_timestamp() - interval '299 days' + n * interval '1 second',
    'alice@example.com'
from generate_series(1, %(incidents)s) n
"""
ARCHIVE = """
insert into notification_attempt_archive (id, incident_id, kind, event, status, lane, round, step, recipient, target,
    transport, destination, pace_seconds, due_at, first_due_at, tries, max_tries, replays, claimed_at, claim_seq,
    cancel_requested, recheck, idempotency_key, summary, delivered_at, finished_at)
select 100000000 + n, 1000000 + n / 10, 'PAGE', 'triggered', 'DELIVERED', 'high', 1, 1, 'method:1', 'user:a',
    'webhook',
    'webhook:example.com', 0, at, at, 1, 8, 0, at, 1, false, false, md5(n::text), '', at, at
from generate_series(1, %(rows)s) n,
    lateral (select clock_timestamp() - interval '300 days' + n * interval '100 milliseconds' as at) t
"""
TRIES = """
insert into attempt_try (attempt_id, claim_seq, try, started_at, ended_at, outcome, request, answer)
select 100000000 + n, 1, 1, clock_timestamp(), clock_timestamp(), 'delivered', '', ''
from generate_series(1, %(rows)s) n
"""
EVENTS = """
insert into incident_event (incident_id, at, event, actor, data)
select 1000000 + n / 3, clock_timestamp(), 'triggered', 'integration:api/bench', '{}'
from generate_series(1, 3 * %(incidents)s) n
"""
# Pages that are due in the days to come, of incidents that are open.
LATER = """
insert into notification_attempt (incident_id, kind, event, status, lane, round, step, recipient, target, transport,
    destination, pace_seconds, due_at, first_due_at, tries, max_tries, replays, claim_seq, cancel_requested, recheck,
    idempotency_key, summary, channel_id)
select (select max(id) from incident where status <> 'RESOLVED'), 'PAGE', 'triggered', 'PENDING', 'high', 2, 1,
    'later:' || n, 'bench', 'nothing', 'nothing', 0, at, at, 0, 8, 0, 0, false, false, md5(n::text), '', %(channel)s
from generate_series(1, %(rows)s) n,
    lateral (select clock_timestamp() + interval '1 day' + n * interval '1 second' as at) t
"""


@dataclass(frozen=True)
class Figures:
    """Seconds: of a commit of one row (what the disk itself takes at that time) at p50, of a claim at p50 and p99, of
    the dashboard and of an alert at p95."""

    commit: float
    claim_p50: float
    claim_p99: float
    dashboard: float
    ingest: float


def fill(url: str, archived: int = ARCHIVED, future: int = FUTURE) -> float:
    """Write the history; how many seconds that took."""
    started = time.perf_counter()
    with psycopg.connect(url, autocommit=True) as conn:
        incidents = max(1, archived // 10)
        conn.execute(OLD, {"incidents": incidents})
        conn.execute(EVENTS, {"incidents": incidents})
        conn.execute(ARCHIVE, {"rows": archived})
        conn.execute(TRIES, {"rows": archived})
        channel = _number(conn, CHANNEL)
        conn.execute(LATER, {"rows": future, "channel": channel})
        for table in (
            "incident",
            "incident_event",
            "notification_attempt",
            "notification_attempt_archive",
            "attempt_try",
        ):
            conn.execute(f"vacuum analyze {table}".encode())
        # What the filling leaves to be written down belongs to it, not to what is measured next.
        conn.execute("checkpoint")
    return time.perf_counter() - started


def prepare(url: str, phone: str) -> None:
    """People, a policy, and a few open incidents, as on any day."""
    process.configure(url, phone)
    with psycopg.connect(url, autocommit=True) as conn:
        _number(conn, CHANNEL)


def quiet(url: str, app: process.App) -> Figures:
    """Claims of 16 rows one after the other, the dashboard, and alerts, each alone."""
    due(url, DUE // 2)
    claims = _claims(url)
    cookie = _cookie(url)
    return Figures(
        _commit(url),
        quantile(claims, 0.5),
        quantile(claims, 0.99),
        _p95(lambda n: _dashboard(app, cookie)),
        _p95(lambda n: _alert(app)),
    )


def draining(url: str, app: process.App) -> Figures:
    """The same while an engine drains what is due."""
    cookie = _cookie(url)
    with timed_claims() as claims, engine(url):
        due(url, DUE)
        dashboard = _p95(lambda n: _dashboard(app, cookie))
        due(url, DUE)
        ingest = _p95(lambda n: _alert(app))
        commit = _commit(url)
    return Figures(commit, quantile(claims, 0.5), quantile(claims, 0.99), dashboard, ingest)


@contextmanager
def timed_claims() -> Iterator[list[float]]:
    """How long each claim of the engine takes that finds something."""
    found: list[float] = []
    real = attempts.claim

    def claim(*args: Any, **more: Any) -> list[attempts.Claimed]:
        started = time.perf_counter()
        rows = real(*args, **more)
        if rows:
            found.append(time.perf_counter() - started)
        return rows

    attempts.claim = claim
    try:
        yield found
    finally:
        attempts.claim = real


def due(url: str, rows: int) -> None:
    """So many pages that are due now."""
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute("delete from notification_attempt where destination like 'nothing:%'")
        channel = _number(conn, CHANNEL)
        incident = _number(conn, "select max(id) from incident where status <> 'RESOLVED'")
        conn.execute(ROWS, {"rows": rows, "incident": incident, "channel": channel})


@contextmanager
def engine(url: str) -> Iterator[Engine]:
    """An engine in this process with a transport that does nothing."""
    bell = Doorbell()
    hands = Senders(16, Network(), {"nothing": NOTHING}, bell.nudge)
    running = Engine(url, Settings(), hands, Links("http://127.0.0.1", Signer(["bench"])), bell, Health())
    running.start()
    try:
        yield running
    finally:
        running.stop()


def _claims(url: str) -> list[float]:
    session, found = Session(url), []
    for _ in range(DUE // 2 // 16):
        tx = session.single()
        assert tx.now
        started = time.perf_counter()
        rows = attempts.claim(tx, "high", "bench", 20, 16, EVERYTHING)
        found.append(time.perf_counter() - started)
        assert len(rows) == 16, len(rows)
    session.close()
    return found


def _commit(url: str) -> float:
    found = []
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute("create table if not exists bench_floor (at timestamptz)")
        for _ in range(ASKED):
            started = time.perf_counter()
            conn.execute("insert into bench_floor values (clock_timestamp())")
            found.append(time.perf_counter() - started)
    return quantile(found, 0.5)


def _cookie(url: str) -> str:
    db = Database(url, size=1)
    with db.begin() as tx:
        user = tx.conn.execute("select id from app_user order by id limit 1").fetchone()
        assert user is not None
        tx.conn.execute("update app_user set role = 'admin' where id = %s", user)
        session = sessions.start(tx, user[0])
    db.close()
    return session


def _p95(ask: Callable[[int], None]) -> float:
    found = []
    for number in range(ASKED):
        started = time.perf_counter()
        ask(number)
        found.append(time.perf_counter() - started)
    return quantile(found[10:], 0.95)


def _dashboard(app: process.App, cookie: str) -> None:
    asked = urllib.request.Request(f"{app.url}/", headers={"cookie": f"{COOKIE}={cookie}"})
    with urllib.request.urlopen(asked, timeout=30) as answer:
        assert answer.url.endswith("/") and b"Now" in answer.read()


def _alert(app: process.App) -> None:
    body = json.dumps({"title": "Disk full", "severity": "critical", "dedup_key": f"history-{next(KEYS)}"}).encode()
    asked = urllib.request.Request(f"{app.url}/hooks/{process.KEY}", body, {"content-type": "application/json"})
    with urllib.request.urlopen(asked, timeout=30) as answer:
        assert answer.status == 202


def _number(conn: "psycopg.Connection[Any]", statement: str) -> int:
    row = conn.execute(statement.encode()).fetchone()
    return int(str(row[0])) if row else 0


def measure(empty: str, full: str) -> None:
    """Print the figures of both databases side by side. Each is measured a moment after the other: what the machine
    does meanwhile, and what the filling left for the disk to do, weighs on both."""
    with process.phone() as phone:
        for url in (empty, full):
            prepare(url, phone.url)
            with process.app(url, "--no-engine") as app:
                for _ in range(20):
                    _alert(app)
        seconds = fill(full)
        print(f"{ARCHIVED:,} archived and {FUTURE:,} future attempts written in {seconds:.0f} s", flush=True)
        with psycopg.connect(empty, autocommit=True) as conn:
            conn.execute("vacuum analyze")
        # The first claims after the filling write whole pages to the WAL: they are shown apart.
        for state, how in (("first", quiet), ("quiet", quiet), ("draining", draining), ("again", quiet)):
            _say(state, *(_measured(url, how) for url in (empty, full)))


def _measured(url: str, how: Callable[[str, process.App], Figures]) -> Figures:
    with process.app(url, "--no-engine") as app:
        return how(url, app)


def _say(state: str, empty: Figures, full: Figures) -> None:
    for name in ("commit", "claim_p50", "claim_p99", "dashboard", "ingest"):
        one, other = (getattr(figures, name) * 1000 for figures in (empty, full))
        what = name.replace("_", " ") if "_" in name else f"{name} {'p50' if name == 'commit' else 'p95'}"
        beside = f"{other / one:5.2f} times" + ("" if name == "commit" else " (aim 1.5)")
        print(f"{state:9}{what:14} empty {one:7.1f} ms   full {other:7.1f} ms   {beside}", flush=True)


def main() -> None:
    """Both databases on one server of their own."""
    with tempfile.TemporaryDirectory(prefix="escalade-history-") as name, embedded.running(Path(name), {}) as server:
        measure(new_database(server, "empty"), new_database(server, "long_history"))


if __name__ == "__main__":
    main()
