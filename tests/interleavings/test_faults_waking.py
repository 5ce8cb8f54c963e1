"""Faults of other queues about connections, wake-ups, isolation and time, numbered as in docs/faults.md."""

import re
import tomllib
from contextlib import ExitStack
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import psycopg
import pytest

from escalade import attempts, climbing, incidents
from escalade.db import ROOT, Database, Tx
from escalade.doorbell import Doorbell
from escalade.health import Health
from escalade.listener import Listener
from escalade.oncall import Rotation, Schedule, shifts
from tests import factories
from tests.clock import MovedClock
from tests.engines import running_engine
from tests.interleavings.hands import Hands, claim, settle
from tests.interleavings.invariants import check
from tests.interleavings.scenes import crowd, opened
from tests.receiver import Arrived, receiver, wait_for

ALICE = "alice@example.com"
END = "select pg_terminate_backend(pid) from pg_stat_activity where pid = any(%s)"


def delivered(database: Database, incident_id: int) -> bool:
    """Whether its page has arrived."""
    return ("PAGE", "DELIVERED") in factories.statuses(database, incident_id)


def test_q26_pages_leave_while_the_web_holds_every_connection_of_its_pool(database: Database) -> None:
    with receiver() as phone, running_engine(database.url, database.doorbell), ExitStack() as held:
        incident = factories.open_incident(database, factories.ladder(database, phone.url))
        for _ in range(database.pool.max_size):
            held.enter_context(database.connection())
        phone.wait(1)
        with psycopg.connect(database.url) as conn:
            asked = "select 1 from notification_attempt where incident_id = %s and status = 'DELIVERED'"
            wait_for(lambda: conn.execute(asked, [incident.id]).fetchone())


def test_q29_the_driver_is_one_that_keeps_notifications_between_two_looks(database: Database) -> None:
    needs = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    [bound] = re.findall(r"psycopg\[binary,pool\]>=([\d.]+)", "\n".join(needs))
    assert tuple(map(int, bound.split("."))) >= (3, 2, 10)
    conn = psycopg.connect(database.url, autocommit=True)
    with conn:
        Tx(conn).run("listen_for_others")
        assert not list(conn.notifies(timeout=0.01))
        with database.read() as tx:
            tx.run("notify_engines")
        conn.execute("select 1")
        assert list(conn.notifies(timeout=5, stop_after=1)), "it came while something else was asked"


def test_q34_a_transaction_with_many_pages_notifies_once(database: Database) -> None:
    service = crowd(database, people=30)
    with psycopg.connect(database.url, autocommit=True) as conn:
        Tx(conn).run("listen_for_others")
        factories.open_incident(database, service)
        factories.open_incident(database, service)
        assert len(list(conn.notifies(timeout=0.3))) == 2


def test_q33_q36_the_listener_reads_all_the_time_and_holds_no_snapshot(database: Database) -> None:
    health, bell = Health(), Doorbell()
    listener = Listener(database.url, bell, health)
    listener.start()
    try:
        wait_for(lambda: health.listening)
        with database.read() as tx:
            for _ in range(2000):
                tx.conn.execute("select pg_notify('escalade', repeat('x', 4000) || %s)", [str(_)])
        asked = """select state, wait_event, backend_xmin is null from pg_stat_activity
            where datname = current_database() and query like 'select pg_notify%%' and pid <> pg_backend_pid()
            and state = 'idle'"""
        wait_for(lambda: factories.run(database, asked) == [("idle", "ClientRead", True)])
        [[used]] = factories.run(database, "select pg_notification_queue_usage()")
        assert used < 0.01
    finally:
        listener.stop()
        listener.thread.join(5)


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_q41_a_database_that_defaults_to_another_isolation_changes_nothing(
    database: Database, hands: Hands, level: str
) -> None:
    incident = opened(database, people=2)
    [[name]] = factories.run(database, "select current_database()")
    factories.run(database, f"alter database {name} set default_transaction_isolation = '{level}'")
    try:
        taken = hands.start(lambda begin: claim(alone(begin), "one")).done()
        ack = hands.call(incidents.acknowledge, incident.id, ALICE, before="commit").stopped()
        late = hands.start(lambda begin: settle(alone(begin), taken, "RETRY")).blocked()
        ack.done()
        assert [row.status for row in late.done()] == ["CANCELLED"] * 2
    finally:
        factories.run(database, f"alter database {name} reset default_transaction_isolation")


def alone(begin: Any) -> Tx:
    """Statements that are each a transaction of their own, on the connection of a stepped verb."""
    return Tx(begin.__self__.conn)


def test_q41_a_deadlock_of_a_result_is_tried_again_and_the_page_is_not(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, raised = attempts.settle, []

    def deadlocked_once(*args: Any) -> Any:
        if not raised:
            raised.append(args)
            raise psycopg.errors.DeadlockDetected("deadlock detected")
        return real(*args)

    monkeypatch.setattr(attempts, "settle", deadlocked_once)
    with receiver() as phone, running_engine(database.url, database.doorbell):
        incident = factories.open_incident(database, factories.ladder(database, phone.url))
        wait_for(lambda: delivered(database, incident.id))
        assert raised and len(phone.arrived) == 1


def test_q42_a_connection_that_is_lost_during_a_send_sends_nothing_twice(database: Database) -> None:
    def cut(arrived: Arrived) -> int:
        pids = "select array_agg(pid) from pg_stat_activity where application_name = 'escalade' and state = 'idle'"
        with psycopg.connect(database.url, autocommit=True) as conn:
            row = conn.execute(pids + " and datname = current_database()").fetchone()
            conn.execute(END, row)
        return 200

    with receiver() as phone, running_engine(database.url, database.doorbell):
        phone.answer = cut
        incident = factories.open_incident(database, factories.ladder(database, phone.url))
        with psycopg.connect(database.url, autocommit=True) as conn:
            asked = "select status, claim_seq from notification_attempt where incident_id = %s and kind = 'PAGE'"
            wait_for(lambda: conn.execute(asked, [incident.id]).fetchone() == ("DELIVERED", 1))
        assert len(phone.arrived) == 1


def test_q51_claims_and_results_wait_for_no_incident(database: Database, hands: Hands, clock: MovedClock) -> None:
    incident = opened(database, people=3)
    holder = hands.call(incidents.lock, incident.id, before="commit").stopped()
    taken = hands.call(claim, "one").done()
    hands.call(settle, taken[:1], "DELIVERED").done()
    hands.call(settle, taken[1:2], "FAILED").done()
    clock.pass_(seconds=21)
    assert hands.call(attempts.reap).done() == 1
    holder.done()
    assert check(database.url) == []


def test_q59_a_step_whose_process_dies_between_taking_it_and_its_pages_is_taken_again(
    database: Database, hands: Hands, clock: MovedClock
) -> None:
    incident = opened(database, wait=300)
    clock.pass_(seconds=300.5)
    step = hands.start(climbing.escalate_due, before="insert_pages").stopped()
    factories.run(database, END, [step.pid])
    with pytest.raises(psycopg.OperationalError):
        step.done()
    assert ("STEP", "PENDING") in factories.statuses(database, incident.id)
    assert climbing.escalate_due(database.begin) == 1
    assert factories.statuses(database, incident.id).count(("PAGE", "PENDING")) == 3
    assert check(database.url) == []


@pytest.mark.parametrize(("day", "hours"), [(date(2026, 3, 29), 23), (date(2026, 10, 25), 25)])
def test_q54_a_hand_off_in_the_hour_that_is_lost_or_comes_twice_happens_once(day: date, hours: int) -> None:
    turns = Rotation("daily", ("alice", "bob"), "day", 1, date(2026, 1, 1), time(2, 30))
    start = datetime.combine(day, time(0), UTC) - timedelta(days=2)
    found = shifts(Schedule("Europe/Berlin", (turns,)), start, start + timedelta(days=5))
    whole = found[1:-1]
    assert all(len(shift.users) == 1 for shift in found)
    assert all(
        one.end == after.start and one.users != after.users for one, after in zip(found, found[1:], strict=False)
    )
    assert sum(((shift.end - shift.start) for shift in whole), timedelta()) == whole[-1].end - whole[0].start
    assert any(abs((shift.end - shift.start).total_seconds() / 3600 - hours) <= 0.5 for shift in whole)


def test_q54_every_time_in_the_database_is_an_instant(database: Database) -> None:
    other = """select table_name, column_name from information_schema.columns
        where table_schema = 'public' and data_type = 'timestamp without time zone'"""
    assert factories.run(database, other) == []
