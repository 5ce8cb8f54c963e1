"""The database layer: the clock, the doorbell, isolation, limits and refusals."""

import threading
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

import psycopg
import pytest
from psycopg import sql

from escalade import db
from escalade.db import Database, Session, connect
from escalade.doorbell import Doorbell
from escalade.errors import NotFound, Unavailable
from tests.receiver import wait_for


def test_the_time_of_a_transaction_is_read_once_and_after_what_came_first(database: Database) -> None:
    with database.begin() as tx:
        before = datetime.now(UTC)
        first = tx.now
        tx.run("wait_at_most", lock_ms="100ms")
        assert tx.now == first
        tx.reread_clock()
        assert tx.now > first
        assert abs(first - before) < timedelta(minutes=1)


def test_a_time_that_was_given_is_taken(database: Database) -> None:
    given = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
    with database.read() as tx:
        tx.take_clock(given)
        assert tx.now == given


@pytest.fixture
def repeatable_url(database_url: str) -> str:
    """The tests' database with another default isolation, for connections made from here on."""
    name = sql.Identifier(psycopg.conninfo.conninfo_to_dict(database_url)["dbname"])
    with connect(database_url) as conn:
        conn.execute(sql.SQL("alter database {} set default_transaction_isolation = 'repeatable read'").format(name))
    yield database_url
    with connect(database_url) as conn:
        conn.execute(sql.SQL("alter database {} reset default_transaction_isolation").format(name))


def isolation(conn: psycopg.Connection) -> str:
    """The isolation of what runs now."""
    return conn.execute("select current_setting('transaction_isolation')").fetchone()[0]


def test_every_connection_reads_committed_whatever_the_database_defaults_to(repeatable_url: str) -> None:
    with psycopg.connect(repeatable_url, autocommit=True) as conn:
        assert isolation(conn) == "repeatable read"
    pool, session = Database(repeatable_url, size=1), Session(repeatable_url)
    try:
        for begin in (pool.begin, pool.read, session.begin):
            with begin() as tx:
                assert isolation(tx.conn) == "read committed"
        assert isolation(session.single().conn) == "read committed"
        with connect(repeatable_url) as conn:
            assert isolation(conn) == "read committed"
    finally:
        pool.close()
        session.close()


def test_every_session_has_its_limits(database: Database) -> None:
    with database.read() as tx:
        limits = tx.conn.execute(
            """select current_setting('lock_timeout'), current_setting('statement_timeout'),
                current_setting('idle_in_transaction_session_timeout'), current_setting('timezone')"""
        ).fetchone()
    assert limits == ("2s", "10s", "5s", "UTC")


def test_one_row_that_is_not_there_is_not_found(database: Database) -> None:
    with database.read() as tx:
        assert tx.maybe(dict, "incident_by_id", id=1) is None
        with pytest.raises(NotFound):
            tx.one(dict, "incident_by_id", id=1)


def test_what_raises_is_rolled_back_and_rings_nobody(database: Database) -> None:
    with pytest.raises(RuntimeError), database.begin() as tx:
        tx.run("put_setting", name="fallback", value=db.as_json([]))
        tx.ring()
        raise RuntimeError
    assert not database.doorbell.event.is_set()
    with database.read() as tx:
        assert tx.value("setting_by_name", name="fallback") is None


def test_the_doorbell_rings_after_the_commit(database: Database) -> None:
    with database.begin() as tx:
        tx.ring()
        assert not database.doorbell.event.is_set()
    assert database.doorbell.event.is_set()


@pytest.mark.parametrize("idle", [False, True])
def test_other_instances_are_told_once_a_transaction_and_only_if_nobody_here_is_free(
    database: Database, idle: bool
) -> None:
    database.doorbell.idle = idle
    with connect(database.url) as listening:
        db.Tx(listening).run("listen_for_others")
        with database.begin() as tx:
            tx.ring()
            tx.ring()
        assert len(list(listening.notifies(timeout=0.3))) == (0 if idle else 1)


def test_a_doorbell_without_notify_tells_nobody() -> None:
    bell = Doorbell()
    bell.notify = False
    assert not bell.needs_notify()


def test_no_free_connection_is_a_refusal_and_not_a_wait(clean_url: str) -> None:
    pool = Database(clean_url, size=1, wait=0.05)
    try:
        with pool.read():
            with pytest.raises(Unavailable, match="away or busy"), pool.read():
                pass
    finally:
        pool.close()


def test_a_connection_that_was_ended_is_a_refusal_and_the_next_one_works(database: Database) -> None:
    with pytest.raises(Unavailable), database.read() as tx:
        _end(database.url, tx.conn.info.backend_pid)
        wait_for(lambda: _is_gone(database.url, tx.conn.info.backend_pid))
        tx.value("clock")
    with database.read() as tx:
        assert tx.now


def test_a_session_says_that_it_is_broken(clean_url: str) -> None:
    session = Session(clean_url)
    assert not session.broken
    _end(clean_url, session.conn.info.backend_pid)
    with pytest.raises(psycopg.OperationalError), session.begin() as tx:
        tx.value("clock")
    assert session.broken


def _end(url: str, pid: int) -> None:
    with connect(url) as conn:
        conn.execute("select pg_terminate_backend(%s)", [pid])


def _is_gone(url: str, pid: int) -> bool:
    with connect(url) as conn:
        return conn.execute("select 1 from pg_stat_activity where pid = %s", [pid]).fetchone() is None


def test_a_holder_that_stalls_does_not_keep_others_for_ever(clean_url: str) -> None:
    with connect(clean_url) as holder, connect(clean_url, lock_ms=100) as other:
        with holder.transaction():
            holder.execute("select pg_advisory_xact_lock(1)")
            begun = threading.Event()
            begun.set()
            with pytest.raises(psycopg.errors.LockNotAvailable):
                other.execute("select pg_advisory_xact_lock(1)")


def test_k095_when_every_connection_was_cut_the_next_alert_is_taken_at_once(clean_url: str) -> None:
    pool = Database(clean_url, size=4, wait=30)
    with ExitStack() as held:
        for _ in range(4):
            held.enter_context(pool.connection())
    with connect(clean_url) as conn:
        conn.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )
        left = "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
        wait_for(lambda: conn.execute(left).fetchone() == (0,), what="end of the others")
    asked: list[float] = []
    with patch.object(pool.pool, "getconn", wraps=pool.pool.getconn) as getconn, pool.begin() as tx:
        assert tx.now
        asked = [call.args[0] for call in getconn.call_args_list]
    # The dead ones were thrown out one after the other; the pool's own check would have paused for 15 s between them.
    assert len(asked) <= 5 and asked[0] - asked[-1] < 12
    pool.close()


def test_a_standby_is_a_refusal_and_its_connection_is_not_used_again(clean_url: str) -> None:
    standby = Database(f"{clean_url}&options=-c%20default_transaction_read_only%3Don", size=1)
    pids = []
    for _ in range(2):
        with pytest.raises(Unavailable), standby.begin() as tx:
            pids.append(tx.conn.info.backend_pid)
            tx.run("put_setting", name="secret_key", value=db.as_json("x"))
    assert pids[0] != pids[1]
    standby.close()


def test_a_network_that_swallows_packets_is_noticed_within_seconds(clean_url: str) -> None:
    with connect(clean_url) as conn:
        assert conn.info.get_parameters()["tcp_user_timeout"] == "10000"


def test_q30_the_pool_pauses_for_seconds_only_however_long_the_database_was_away(database: Database) -> None:
    # It doubles its pauses up to this: by default up to five minutes, which is how long alerts would be refused.
    assert database.pool.reconnect_timeout == 3.0
