"""The doorbell by NOTIFY: it proves itself, rings, comes back after a lost connection, and ends when told."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from escalade import listener
from escalade.db import Database
from escalade.doorbell import Doorbell
from escalade.health import Health
from escalade.listener import Listener
from tests.receiver import wait_for

END = """select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and query like 'select pg_notify%'"""


@pytest.fixture(autouse=True)
def quick_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A listener asks every second whether to stop: here more often."""
    monkeypatch.setattr(listener, "SLICE_SECONDS", 0.05)


@contextmanager
def listening(url: str, pauses: list[float] | None = None) -> Iterator[tuple[Doorbell, Health]]:
    """A running listener, its doorbell and its health. With `pauses` it notes its pauses there and skips them."""
    bell, health = Doorbell(), Health()
    found = Listener(url, bell, health)
    if pauses is not None:
        found.stopping.wait = lambda timeout=None: bool(pauses.append(timeout))  # type: ignore[method-assign]
    found.start()
    try:
        yield bell, health
    finally:
        found.stop()
        found.thread.join(5)
        assert not found.thread.is_alive()


def proved(bell: Doorbell, health: Health) -> None:
    """Wait until it works, and forget the ring with which it says so."""
    wait_for(lambda: health.listening and bell.event.is_set())
    bell.event.clear()


def ring(database: Database) -> None:
    """As a transaction of another process does."""
    with database.begin() as tx:
        tx.ring()


def test_it_proves_itself_and_looks_once_for_what_it_missed(database: Database) -> None:
    with listening(database.url) as (bell, health):
        assert bell.event.wait(5)
        assert health.listening
    assert health.listening is False


def test_another_process_rings_it(database: Database) -> None:
    with listening(database.url) as (bell, health):
        proved(bell, health)
        ring(database)
        assert bell.event.wait(5)


def test_a_transaction_that_is_undone_rings_nobody(database: Database) -> None:
    with listening(database.url) as (bell, health):
        proved(bell, health)
        with pytest.raises(ZeroDivisionError), database.begin() as tx:
            tx.ring()
            raise ZeroDivisionError
        assert not database.doorbell.event.is_set()
        ring(database)
        assert bell.event.wait(5)


def test_nobody_else_is_told_where_this_process_has_a_free_hand(database: Database) -> None:
    with listening(database.url) as (bell, health):
        proved(bell, health)
        database.doorbell.idle = True
        ring(database)
        assert database.doorbell.event.is_set()
        assert not bell.event.wait(0.2)


def test_it_comes_back_after_a_lost_connection_as_quickly_each_time_and_looks_once(database: Database) -> None:
    pauses: list[float] = []
    with listening(database.url, pauses) as (bell, health), psycopg.connect(database.url, autocommit=True) as conn:
        for _ in range(4):
            proved(bell, health)
            assert conn.execute(END).fetchall() == [(True,)]
            assert bell.event.wait(5)
        proved(bell, health)
        ring(database)
        assert bell.event.wait(5)
    assert len(pauses) >= 4
    assert all(pause <= 1.2 for pause in pauses)


def test_where_no_notification_comes_through_it_says_so_and_asks_again_ever_later(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(listener, "PROOF_SECONDS", 0.01)
    monkeypatch.setattr(psycopg.Connection, "notifies", lambda self, **more: iter(()))
    with listening(database.url, pauses) as (bell, health):
        wait_for(lambda: len(pauses) >= 8)
        assert not health.listening
        assert not bell.event.is_set()
    assert 1.6 <= pauses[0] <= 2.4
    assert pauses[4] > 20
    assert max(pauses) <= 72
