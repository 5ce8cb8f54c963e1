"""Faults of other queues about the loop itself, its clock and its end, and connections that come back."""

import threading
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from escalade import attempts, climbing, listener
from escalade.db import Database, Session, connect
from escalade.doorbell import Doorbell
from escalade.engine import Engine
from escalade.health import Health
from escalade.listener import Listener
from tests import factories
from tests.clock import MovedClock
from tests.engines import make_engine, running_engine
from tests.interleavings.hands import claim, settle
from tests.interleavings.scenes import attempt, opened
from tests.receiver import receiver, wait_for
from tests.rows import rows, take

END_ALL = """select pid, pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()"""


def one_round(database: Database, engine: Engine) -> None:
    """One round of an engine that is not running."""
    session = Session(database.url)
    try:
        engine.tick(session)
    finally:
        session.close()


def end_all(database: Database) -> None:
    """End every connection to the database, as its restart does."""
    with psycopg.connect(database.url, autocommit=True) as conn:
        ended = [row[0] for row in conn.execute(END_ALL).fetchall()]
        left = "select 1 from pg_stat_activity where pid = any(%s)"
        wait_for(lambda: conn.execute(left, [ended]).fetchone() is None, what="end of all connections")


def test_q10_every_engine_takes_back_what_is_lost_whatever_else_raises(
    database: Database, clock: MovedClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("CRITICAL", "escalade.engine")
    incident = opened(database, people=1)

    def raises(begin: Any) -> int:
        raise ZeroDivisionError("this chore is broken")

    monkeypatch.setattr(climbing, "escalate_due", raises)
    for number in range(2):
        take(database)
        clock.pass_(seconds=301)
        one_round(database, make_engine(database.url, transports={}))
        assert factories.events(database, incident.id).count("lease_expired") == number + 1


def test_q18_leases_that_are_overdue_are_counted(database: Database, clock: MovedClock) -> None:
    rows(database, 3)
    take(database, 2)
    clock.pass_(seconds=21)
    with database.read() as tx:
        [found] = tx.many(dict, "gauges", now=tx.now)
    assert (found["in_flight"], found["overdue"]) == (2, 2)


def test_q19_where_no_ring_comes_through_the_poll_finds_the_page(database: Database) -> None:
    deaf = Database(database.url, size=1)
    deaf.doorbell.notify = False
    try:
        with receiver() as phone, running_engine(database.url, Doorbell()) as engine:
            wait_for(lambda: engine.doorbell.idle)
            factories.open_incident(deaf, factories.ladder(deaf, phone.url))
            phone.wait(1)
    finally:
        deaf.close()


def test_q19_a_connection_that_is_half_open_is_given_up_by_its_socket(database: Database) -> None:
    with connect(database.url) as conn:
        found = conn.info.get_parameters()
    assert (found["keepalives"], found["keepalives_idle"], found["tcp_user_timeout"]) == ("1", "10", "10000")


def test_q20_after_every_lost_connection_it_listens_again_and_has_the_engine_look_once(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "SLICE_SECONDS", 0.05)
    health, bell = Health(), Doorbell()
    found = Listener(database.url, bell, health)
    found.start()
    try:
        for _ in range(2):
            wait_for(lambda: health.listening and bell.event.is_set())
            bell.event.clear()
            with database.begin() as tx:
                tx.run("notify_engines")
            assert bell.event.wait(5), "it listens"
            bell.event.clear()
            end_all(database)
            wait_for(lambda: not health.listening)
        wait_for(lambda: health.listening and bell.event.is_set())
    finally:
        found.stop()
        found.thread.join(5)


def test_q30_a_pool_whose_connections_all_died_serves_the_next_one_at_once(database: Database) -> None:
    crowd = [threading.Thread(target=factories.now, args=(database,)) for _ in range(8)]
    for thread in crowd:
        thread.start()
    for thread in crowd:
        thread.join(5)
    for _ in range(3):
        end_all(database)
        with database.begin() as tx:
            assert tx.now


def test_q37_a_ring_during_a_round_is_seen_by_the_next(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = make_engine(database.url)
    real = attempts.whats_due

    def rung_meanwhile(tx: Any) -> Any:
        engine.doorbell.ring()
        return real(tx)

    monkeypatch.setattr(attempts, "whats_due", rung_meanwhile)
    one_round(database, engine)
    assert engine.doorbell.event.is_set()


def test_q53_what_is_due_and_when_next_go_by_one_clock(database: Database, clock: MovedClock) -> None:
    clock.pass_(hours=7)
    [made] = rows(database, 1)
    with database.read() as tx:
        now = tx.now
        taken = claim(tx)
        settle(tx, taken, "RETRY")
    found = attempt(database, made)
    assert found["claimed_at"] == found["due_at"] == now
    assert found["due_at"] > factories.run(database, "select clock_timestamp()")[0][0] + timedelta(hours=6)


@pytest.mark.parametrize("begun", [False, True])
def test_q56_whatever_a_process_that_stops_had_is_the_queues_again(
    database: Database, clock: MovedClock, begun: bool
) -> None:
    incident = opened(database, people=2)
    engine = make_engine(database.url)
    one_round(database, engine)
    if begun:
        # A thread has begun them, and the process is ended before they come back.
        engine.senders.unbegun()
        clock.pass_(seconds=30)
        with database.read() as tx:
            assert attempts.reap(tx) == 2
    else:
        engine.stopping.set()
        session = Session(database.url)
        engine._serve(session)
        session.close()
    assert factories.statuses(database, incident.id)[:2] == [("PAGE", "PENDING")] * 2
    assert len(take(database)) == 2, "due at once"


def test_q57_what_a_stop_gives_back_is_due_now_and_no_try_and_no_error(database: Database) -> None:
    incident = opened(database, people=1)
    before = factories.events(database, incident.id)
    with database.read() as tx:
        taken = claim(tx)
        settle(tx, taken, "RELEASE")
    found = attempt(database, taken[0].id)
    assert (found["status"], found["tries"], found["last_error"]) == ("PENDING", 0, None)
    assert factories.run(database, "select outcome from attempt_try") == []
    assert factories.events(database, incident.id) == before
    assert [row.id for row in take(database)] == [taken[0].id]
