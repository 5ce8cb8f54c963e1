"""Killed processes and a database that goes away: nothing is lost, and what may have been sent twice says so."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest

from escalade import embedded, incidents, postmaster
from escalade.db import Database
from escalade.dispatch import Settings
from escalade.doorbell import Doorbell
from escalade.errors import Unavailable
from escalade.migrate import migrate
from tests import factories
from tests.acting import ALICE, do, entries, rows, state
from tests.engines import NETWORK, make_engine, running_engine
from tests.receiver import Receiver, receiver, wait_for

ROOT = Path(__file__).resolve().parent.parent
QUICK = Settings(lease=9, deadline=3, poll=0.1)


@pytest.fixture
def phone() -> Iterator[Receiver]:
    """Where everybody's webhooks lead."""
    with receiver() as found:
        yield found


@contextmanager
def engine_process(url: str, lease: float) -> Iterator[subprocess.Popen[bytes]]:
    """An engine in a process of its own, killed at the end at the latest."""
    command = [sys.executable, "-m", "tests.engine_process", url, str(lease)]
    process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def tries(database: Database) -> list[tuple[int, str]]:
    """Number and outcome of every try, in order."""
    return factories.run(database, "select try, outcome from attempt_try order by claim_seq")


def test_k058_k064_after_a_kill_during_a_send_another_takes_over_under_the_same_key(
    database: Database, phone: Receiver
) -> None:
    go = threading.Event()
    phone.answer = lambda arrived: 200 if arrived.body["attempt"]["try"] > 1 or go.wait(5) else 500
    incident = factories.open_incident(database, factories.ladder(database, phone.url))
    with engine_process(database.url, lease=2.0) as process:
        [first] = phone.wait(1)
        held_until = rows(database, incident.id)[0]["lease_until"]
        process.kill()
        process.wait()
        go.set()
    with running_engine(database.url, Doorbell(), settings=QUICK):
        _, second = phone.wait(2)
        wait_for(lambda: rows(database, incident.id)[0]["status"] == "DELIVERED")
    [row] = rows(database, incident.id)
    assert row["claimed_at"] >= held_until, "not before the lease had ended"
    assert second.headers["idempotency-key"] == first.headers["idempotency-key"]
    assert [item.body["attempt"]["id"] for item in (first, second)] == [row["id"]] * 2
    assert tries(database) == [(1, "unknown"), (2, "delivered")]
    assert entries(database, incident.id, "lease_expired") == [{"attempt": row["id"], "try": 1, "next": "PENDING"}]


def test_k032_a_page_whose_process_was_killed_is_not_sent_after_an_acknowledge(
    database: Database, phone: Receiver
) -> None:
    go = threading.Event()
    phone.answer = lambda arrived: 200 if go.wait(5) else 500
    incident = factories.open_incident(database, factories.ladder(database, phone.url))
    with engine_process(database.url, lease=1.0) as process:
        phone.wait(1)
        process.kill()
        process.wait()
    answer = do(database, incidents.acknowledge, incident.id, ALICE)
    assert [page.user for page in answer.in_flight] == [ALICE]
    go.set()
    with running_engine(database.url, Doorbell(), settings=QUICK):
        wait_for(lambda: rows(database, incident.id)[0]["status"] == "CANCELLED")
    assert len(phone.arrived) == 1
    assert tries(database) == [(1, "unknown")]


def test_an_engine_that_comes_back_gives_back_what_it_claimed_and_never_heard_of(
    database: Database, phone: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    incident = factories.open_incident(database, factories.ladder(database, phone.url))
    engine = make_engine(database.url, Doorbell(), settings=Settings(lease=60, deadline=3, poll=0.1))
    real, lost = engine.dispatch._send, []

    def lose_once(*args: object) -> None:
        if not lost:
            lost.append(args)
            raise psycopg.OperationalError("the connection broke before the answer came")
        real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(engine.dispatch, "_send", lose_once)
    engine.start()
    try:
        phone.wait(1)
        wait_for(lambda: rows(database, incident.id)[0]["status"] == "DELIVERED")
    finally:
        engine.stop(10)
    [row] = rows(database, incident.id)
    assert (row["tries"], row["claim_seq"], len(phone.arrived)) == (1, 2, 1)


def test_a_result_that_cannot_be_recorded_is_kept_and_recorded_later(database: Database, phone: Receiver) -> None:
    incident = factories.open_incident(database, factories.ladder(database, phone.url))
    go = threading.Event()
    phone.answer = lambda arrived: 200 if go.wait(5) else 500
    with running_engine(database.url, Doorbell(), settings=QUICK) as engine:
        phone.wait(1)
        stopping = threading.Thread(target=engine.stop, args=(10,))
        stopping.start()
        wait_for(engine.stopping.is_set)
        with psycopg.connect(database.url, autocommit=True) as conn:
            wait_for(lambda: not engine.doorbell.idle)
            conn.execute(
                """select pg_terminate_backend(pid) from pg_stat_activity
                where datname = current_database() and application_name = 'escalade' and pid <> pg_backend_pid()"""
            )
        go.set()
        stopping.join(10)
        assert not stopping.is_alive(), "it ends: nothing is left in its hands"
    wait_for(lambda: do(database, incidents.find, incident.id))
    assert [row["status"] for row in rows(database, incident.id)] == ["DELIVERED"]
    assert tries(database) == [(1, "delivered")]


@pytest.fixture
def own_server() -> Iterator[tuple[Database, Path]]:
    """A migrated database on a server that the test may stop: its pool, and the server's data."""
    # Not below pytest's own directory: another run would close that to the account that the server runs as.
    with TemporaryDirectory(prefix="escalade-test-") as folder, embedded.running(Path(folder), {}) as url:
        migrate(url)
        with closing(Database(url, size=4, wait=1.0)) as database:
            yield database, Path(folder) / "postgres"


def restart(data: Path) -> None:
    """Stop the server without any goodbye; whoever uses it here sees to it that it comes back."""
    server = postmaster.find(data)
    assert server is not None
    os.kill(server.pid, signal.SIGQUIT)
    wait_for(lambda: (now := postmaster.find(data)) and now.ready and now.pid != server.pid, 30, "new server")


def test_k095_k098_the_database_restarts_during_a_send_and_everything_goes_on(
    own_server: tuple[Database, Path], phone: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "escalade.engine")
    database, data = own_server
    go = threading.Event()
    phone.answer = lambda arrived: 200 if arrived.path == "/bob" or go.wait(20) else 500
    service = factories.ladder(database, phone.url)
    patient = {
        "network": replace(NETWORK, read_timeout=25, deadline=25),
        "settings": Settings(lease=40, deadline=25, poll=0.2),
    }
    with running_engine(database.url, **patient), running_engine(database.url, **patient):
        incident = factories.open_incident(database, service)
        [page] = phone.wait(1)
        restart(data)
        wait_for(lambda: _works_again(database, incident.id), 10, "working pool")
        assert rows(database, incident.id)[0]["status"] == "IN_FLIGHT"
        go.set()
        wait_for(lambda: rows(database, incident.id)[0]["status"] == "DELIVERED")
        assert phone.arrived == [page], "no second worker sent it while the first held its lease"
        do(database, incidents.escalate, incident.id, ALICE)
        phone.wait(1, "/bob")
        wait_for(lambda: caplog.messages.count("the database is back") >= 2, what="word from each engine")
    assert tries(database)[0] == (1, "delivered")


def _works_again(database: Database, incident_id: int) -> bool:
    try:
        return state(database, incident_id).id == incident_id
    except Unavailable:
        return False
