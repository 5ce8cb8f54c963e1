"""Up to eight processes on one database: each page is claimed once, nobody stampedes, connections are few."""

import signal
import statistics
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from bench import peers
from bench.chaos import phone
from bench.chaos.alerts import Alerts
from bench.chaos.check import double_claims
from bench.chaos.evidence import read, wait_until_quiet
from bench.chaos.record import Record
from bench.chaos.stage import App, Stage
from escalade import attempts
from escalade.db import Database
from tests import factories
from tests.engines import make_engine
from tests.receiver import wait_for

# What docs/running.md says that a process holds at most, by default.
BUDGET = 8


@pytest.fixture
def stage() -> Iterator[Stage]:
    """Four processes on a server of their own."""
    with tempfile.TemporaryDirectory(prefix="escalade-processes-") as name:
        Path(name).chmod(0o755)
        stage = Stage(Path(name), 4, standby=False)
        try:
            yield stage
        finally:
            stage.close()


def test_k060_four_processes_claim_each_page_once_and_stay_within_their_connections(stage: Stage) -> None:
    record = Record()
    with phone.running() as receiver:
        token = stage.configure(receiver.url)
        stage.start()
        alerts = Alerts(stage, record, token, 60, 60.0)
        alerts.start()
        alerts.finish()
        with stage.connect() as conn:
            wait_until_quiet(conn, 20)
            read(conn, record)
            held = _number(conn, "select count(*) from pg_stat_activity where application_name = 'escalade'")
        assert len(record.claims) >= 100 and list(double_claims(record.claims)) == []
        assert len({claim.owner for claim in record.claims}) > 1
        arrived = [request.attempt for request in receiver.requests]
    assert len(arrived) == len(set(arrived))
    assert len(stage.apps) < held <= len(stage.apps) * BUDGET
    for app in stage.apps:
        app.end(signal.SIGTERM)
        assert app.process is not None and app.process.returncode == 0
    with stage.connect() as conn:
        left = "select count(*) from pg_stat_activity where application_name = 'escalade'"
        wait_for(lambda: _number(conn, left) == 0, 10, "end of all connections")


@pytest.mark.parametrize("processes", [1, 8])
def test_k061_however_many_engines_each_attempt_is_tried_once(database: Database, processes: int) -> None:
    factories.open_incident(database, factories.ladder(database, "http://127.0.0.1:1"))
    shared = peers.share(database.url, processes, rows=800, senders=4)
    assert shared.tries == 800


def test_q35_q38_idle_engines_do_not_look_at_the_same_moments(database: Database) -> None:
    engine = make_engine(database.url)
    with database.read() as tx:
        now, due = tx.now, attempts.whats_due(tx)
    sleeps = [engine.sleep_for(now, due) for _ in range(200)]
    poll = engine.poll()
    assert min(sleeps) < 0.85 * poll and max(sleeps) > 1.15 * poll
    assert statistics.stdev(sleeps) > poll / 20


def test_q23_fifty_ended_backends_leave_no_connection_behind(stage: Stage) -> None:
    with phone.running() as receiver:
        token = stage.configure(receiver.url)
        app = stage.apps[0]
        stage.launch(app)
        stage.wait_ready(app)
        with stage.connect() as conn:
            ended = 0
            while ended < 50:
                ended += len(
                    conn.execute(
                        "select pg_terminate_backend(pid) from pg_stat_activity"
                        " where application_name = 'escalade' and backend_type = 'client backend'"
                    ).fetchall()
                )
                stage.wait_ready(app)
            wait_for(lambda: "escalade_listener_up 1.0" in metrics(app, token), 30, "listener")
            held = _number(conn, "select count(*) from pg_stat_activity where application_name = 'escalade'")
    assert held <= BUDGET


def metrics(app: App, token: str) -> str:
    """What the process says of itself."""
    asked = urllib.request.Request(f"{app.url}/metrics", headers={"authorization": f"Bearer {token}"})
    with urllib.request.urlopen(asked, timeout=5) as answer:
        said: str = answer.read().decode()
        return said


def _number(conn: "psycopg.Connection[tuple[object, ...]]", statement: str) -> int:
    row = conn.execute(statement.encode()).fetchone()
    return int(str(row[0])) if row else 0
