"""Fixtures of every test: one Postgres server a run, a database a worker, emptied before each test."""

import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from urllib.parse import urlsplit

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from psycopg import sql

from escalade import embedded, postmaster
from escalade.config import Config
from escalade.db import Database, connect
from escalade.migrate import migrate
from tests.clock import MovedClock, moved_clock

# Rows go in this order, so that no foreign key holds one back; DELETE is faster than TRUNCATE on empty tables.
TABLES = """attempt_try notification_attempt notification_attempt_archive incident_event incident destination
    contact_turn engine_instance delivery outage session login_guess login_link api_token audit setting heartbeat
    integration service
    escalation_target escalation_step escalation_policy override roster_change rotation schedule channel
    notification_rule contact_method app_user""".split()

# How long an example takes says how busy the machine is.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


def pytest_configure(config: pytest.Config) -> None:
    """The first process starts the server; workers are told where it is."""
    _take_signals()
    if hasattr(config, "workerinput") or os.environ.get("TEST_DATABASE_URL"):
        return
    folder = Path(tempfile.mkdtemp(prefix="escalade-test-"))
    config.add_cleanup(lambda: _end(folder))
    os.environ["TEST_DATABASE_URL"] = embedded.start(folder, environ={})


def _take_signals() -> None:
    """SIGTERM ends the run by way of its clean-up. Nothing is ignored, as it would be in the programs that tests
    start too: a shell lets what it starts in the background ignore SIGINT."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _stop)
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _stop(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # said once is enough: the clean-up goes on to its end
    pytest.exit("told to stop", 128 + number)


def _end(folder: Path) -> None:
    os.environ.pop("TEST_DATABASE_URL", None)
    embedded.stop(folder)
    postmaster.end(folder / "postgres")  # where the run was told to stop while the server was starting
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def server_url() -> str:
    """The server's maintenance database."""
    return os.environ["TEST_DATABASE_URL"]


@pytest.fixture(scope="session")
def database_url(server_url: str, worker_name: str) -> Iterator[str]:
    """A migrated database of this worker's own."""
    name = f"escalade_test_{os.getpid()}_{worker_name}"
    with psycopg.connect(server_url, autocommit=True) as conn:
        conn.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        # Nothing here outlives the run, so no commit needs to wait for the disk.
        conn.execute(sql.SQL("alter database {} set synchronous_commit = off").format(sql.Identifier(name)))
    url = urlsplit(server_url)._replace(path=f"/{name}").geturl()
    migrate(url)
    yield url
    with psycopg.connect(server_url, autocommit=True) as conn:
        conn.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


@pytest.fixture(scope="session")
def worker_name(request: pytest.FixtureRequest) -> str:
    """The name of this test worker; main where there is only one process."""
    return getattr(request.config, "workerinput", {}).get("workerid", "main")


@pytest.fixture
def clean_url(database_url: str) -> str:
    """The worker's database, emptied."""
    with connect(database_url) as conn:
        conn.execute("select set_config('escalade.pruning', 'on', false)")  # the audit lets nothing else go
        for table in TABLES:
            conn.execute(sql.SQL("delete from {}").format(sql.Identifier(table)))
    return database_url


@pytest.fixture
def database(clean_url: str) -> Iterator[Database]:
    """A pool on an empty, migrated database."""
    db = Database(clean_url, size=8)
    yield db
    db.close()


@pytest.fixture
def config(clean_url: str) -> Config:
    """A configuration that allows loopback."""
    return Config.read({"DATABASE_URL": clean_url, "ESCALADE_ALLOW_PRIVATE_ADDRESSES": "on"})


@pytest.fixture
def clock() -> Iterator[MovedClock]:
    """A clock that the test moves."""
    with moved_clock() as moved:
        yield moved
