"""The engine's tests once more, through PgBouncer in transaction mode, with the doorbell by NOTIFY off.

Every statement may meet another backend there, so nothing may rest on a session: no prepared statement, no LISTEN, no
lock that outlives its transaction.
"""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from escalade.db import Database, connect
from escalade.migrate import migrate
from tests import factories, test_dispatch, test_engine, test_engine_faults, test_engines_together
from tests.bouncer import bouncing, program
from tests.engines import running_engine
from tests.interleavings.scenes import opened
from tests.receiver import receiver, wait_for
from tests.servers import Server
from tests.stories import test_main_job
from tests.test_dispatch import Desk, desk
from tests.test_engine import phone

__all__ = ["desk", "phone"]

pytestmark = pytest.mark.skipif(program() is None, reason="PgBouncer is missing: apt-get install pgbouncer")

# With the server_login_retry of docs/running.md, in seconds; with PgBouncer's own it is about 20.
LATEST = 8.0
# These are about the notification or the connection itself: the backend that a client is told of is the pooler's.
LEFT_OUT = {
    "test_no_transaction_is_open_while_bytes_are_on_the_wire",
    "test_results_are_not_lost_with_a_connection_that_breaks_before_they_are_recorded",
    "test_a_page_leaves_at_once_when_another_process_rings",
    "test_a_server_that_lets_in_and_does_no_work_is_asked_less_and_less_often",
}
for module in (test_dispatch, test_engine, test_engine_faults, test_engines_together, test_main_job):
    for name, found in vars(module).items():
        if name.startswith("test_") and callable(found) and name not in LEFT_OUT:
            globals()[name] = found


@pytest.fixture(scope="module")
def through(database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The worker's database through a pooler of its own."""
    with bouncing(database_url, tmp_path_factory.mktemp("bouncer")) as url:
        yield url


@pytest.fixture
def clean_url(clean_url: str, through: str) -> str:
    """The worker's database, emptied, through the pooler."""
    return through


def test_q28_through_a_pooler_nothing_is_prepared_and_each_transaction_says_how_it_is_isolated(through: str) -> None:
    with connect(through) as conn:
        assert conn.prepare_threshold is None
        for _ in range(8):
            conn.execute("select 1")
        with conn.transaction():
            assert conn.execute("show transaction isolation level").fetchone() == ("read committed",)


def test_q28_no_backend_is_held_while_bytes_are_on_the_wire(database: Database, desk: Desk, database_url: str) -> None:
    opened(database, people=1)
    desk.open.clear()
    desk.claim()
    wait_for(lambda: desk.sent)
    with connect(database_url) as conn:
        held = "select count(*) from pg_stat_activity where datname = current_database() and state like 'idle in%'"
        assert conn.execute(held).fetchone() == (0,)


def test_straight_to_the_server_statements_are_prepared(database_url: str) -> None:
    with connect(database_url) as conn:
        assert conn.prepare_threshold == 3


def test_q27_a_schema_is_made_through_a_pooler(through: str, server_url: str) -> None:
    name = "escalade_bounced"
    with psycopg.connect(server_url, autocommit=True) as conn:
        conn.execute(f"drop database if exists {name} with (force)".encode())
        conn.execute(f"create database {name}".encode())
    url = through.rpartition("/")[0] + f"/{name}"
    try:
        migrate(url)
        db = Database(url, size=2)
        with db.read() as tx:
            assert tx.value("is_read_only") is False
        db.close()
    finally:
        with psycopg.connect(server_url, autocommit=True) as conn:
            conn.execute(f"drop database {name} with (force)".encode())


def test_after_a_restart_of_the_server_behind_a_pooler_a_page_leaves_within_seconds(tmp_path: Path) -> None:
    server, own = Server(tmp_path / "server"), tmp_path / "bouncer"
    server.create()
    server.start()
    own.mkdir()
    try:
        migrate(server.url())
        with bouncing(server.url(), own) as url, receiver() as arrived, running_engine(url):
            # Opened straight at the server: only the engine has to find its way back through the pooler.
            incidents = Database(server.url(), size=2)
            service = factories.ladder(incidents, arrived.url)
            factories.open_incident(incidents, service, "before")
            arrived.wait(1)
            incidents.close()
            server.kill()
            server.start()
            incidents = Database(server.url(), size=2)
            factories.open_incident(incidents, service, "after")
            incidents.close()
            arrived.wait(2, seconds=LATEST)
    finally:
        server.kill()
