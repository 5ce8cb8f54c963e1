"""Signs of the queue's health that need servers of their own: replicas, what they and others hold back, and caches."""

import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from escalade import queue_health
from escalade.db import Database
from escalade.growth import Growth
from escalade.migrate import migrate
from escalade.queue_health import Sign
from tests.clock import MovedClock
from tests.receiver import wait_for
from tests.servers import SECONDS, Server
from tests.test_queue_health import lowered, signs

PRIMARY = ("max_prepared_transactions=4", "wal_level=logical")
STANDBY = ("max_prepared_transactions=4", "wal_receiver_status_interval=1s", "max_standby_streaming_delay=-1")


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[Server, Server]]:
    """A primary with the pager's database, and its standby."""
    with tempfile.TemporaryDirectory(prefix="escalade-health-") as name:
        Path(name).chmod(0o755)
        primary, standby = Server(Path(name) / "one", options=PRIMARY), Server(Path(name) / "two", options=STANDBY)
        try:
            primary.create()
            primary.start()
            primary.run("create database pager")
            migrate(primary.url("pager"))
            primary.run("select pg_create_physical_replication_slot('kept')")
            standby.copy(primary)
            standby.start()
            wait_for(lambda: primary.run("select 1 from pg_stat_replication"), SECONDS, "the standby")
            yield primary, standby
        finally:
            standby.kill()
            primary.kill()


@pytest.fixture
def pager(servers: tuple[Server, Server]) -> Iterator[Database]:
    """The pager's database on the primary."""
    with closing(Database(servers[0].url("pager"), size=2)) as db:
        yield db


def horizon(db: Database) -> Sign:
    return signs(db)["horizon_transactions"]


def burn(db: Database, transactions: int = 60) -> None:
    """So many transactions that get a number."""
    with psycopg.connect(db.url, autocommit=True) as conn:
        for _ in range(transactions):
            conn.execute("select pg_current_xact_id()")


def test_a_replica_that_does_not_replay_is_seen_by_its_lag(
    servers: tuple[Server, Server], pager: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    lowered(monkeypatch, "REPLICA", 0.5, 1.5)
    assert signs(pager)["replica_lag_seconds"].state == queue_health.OK
    servers[1].run("select pg_wal_replay_pause()")
    try:
        burn(pager)
        wait_for(lambda: signs(pager)["replica_lag_seconds"].state == queue_health.ACT, 15, "the lag")
        assert "walreceiver: " in signs(pager)["replica_lag_seconds"].note
    finally:
        servers[1].run("select pg_wal_replay_resume()")


def test_a_prepared_transaction_that_nobody_ends_is_seen_by_what_it_holds_back(
    pager: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    lowered(monkeypatch, "HORIZON", 20, 50)
    with psycopg.connect(pager.url, autocommit=True) as conn:
        conn.execute("begin")
        conn.execute("select pg_current_xact_id()")
        conn.execute("prepare transaction 'forgotten'")
        try:
            burn(pager)
            found = horizon(pager)
            assert (found.state, found.note) == (queue_health.ACT, "the prepared transaction forgotten")
            assert "the prepared transaction forgotten" in signs(pager)["snapshot_seconds"].note
        finally:
            conn.execute("rollback prepared 'forgotten'")
    assert horizon(pager).note != "the prepared transaction forgotten"


def test_a_logical_slot_is_seen_by_the_catalog_rows_it_holds_back(
    pager: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    lowered(monkeypatch, "HORIZON", 20, 50)
    with pager.connection() as conn:
        conn.execute("select pg_create_logical_replication_slot('events', 'pgoutput')")
        try:
            burn(pager)
            found = horizon(pager)
            assert (found.state, found.note) == (queue_health.ACT, "the replication slot events (catalogs only)")
        finally:
            conn.execute("select pg_drop_replication_slot('events')")


@pytest.mark.parametrize("slot", ["", "kept"])
def test_a_long_query_on_a_replica_with_feedback_is_seen_on_the_primary(
    servers: tuple[Server, Server], pager: Database, monkeypatch: pytest.MonkeyPatch, slot: str
) -> None:
    lowered(monkeypatch, "HORIZON", 20, 50)
    primary, standby = servers
    standby.run(f"alter system set primary_slot_name = '{slot}'")
    standby.run("alter system set hot_standby_feedback = on")
    standby.run("select pg_reload_conf()")
    who = "the replication slot kept" if slot else "the replica walreceiver (hot_standby_feedback)"
    with psycopg.connect(standby.url("pager")) as conn:
        conn.execute("set transaction isolation level repeatable read")
        conn.execute("select count(*) from incident")
        burn(pager)
        wait_for(lambda: (horizon(pager).state, horizon(pager).note) == (queue_health.ACT, who), 15, "the feedback")


def test_slru_reads_and_a_listener_that_does_not_read_are_seen(
    pager: Database, clock: MovedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_health, "growth", Growth())
    lowered(monkeypatch, "NOTIFY", 0.00001, 0.00002)
    lowered(monkeypatch, "SLRU_READS", 0.5, 1)
    with psycopg.connect(pager.url, autocommit=True) as listener, psycopg.connect(pager.url, autocommit=True) as sender:
        listener.execute("listen anything")
        listener.execute("begin")
        assert signs(pager)["slru_reads_per_second"].state == queue_health.OK
        for number in range(100):
            sender.execute("select pg_notify('anything', %s)", [f"{number} " + "x" * 7000])
        found = signs(pager)["notification_queue"]
        assert found.state == queue_health.ACT and "end it" in found.limit.advice
        listener.execute("commit")
        listener.execute("select pg_stat_force_next_flush()")
        assert signs(pager)["notification_queue"].state == queue_health.OK

        def bad() -> bool:
            clock.pass_(seconds=6)
            found = signs(pager)["slru_reads_per_second"]
            return found.state == queue_health.ACT and "otify: " in found.note

        wait_for(bad, 15, "reads")
