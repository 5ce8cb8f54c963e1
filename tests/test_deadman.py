"""The dead man's switch is pinged while pages can go out, and only then."""

import logging
import threading
from datetime import timedelta

import pytest

from escalade.db import Database
from escalade.deadman import Deadman, database_fault
from escalade.health import Health
from tests import factories
from tests.engines import NETWORK
from tests.receiver import receiver
from tests.rows import rows

NOWHERE = "postgresql://nobody@127.0.0.1:1/x"


def test_pinged_while_pages_can_go_out() -> None:
    with receiver() as outside:
        switch = Deadman(f"{outside.url}/ping", NETWORK, Health(engine_expected=False), every=0.05)
        switch.start()
        outside.wait(2, "/ping")
        switch.stop()
        assert not switch.thread.is_alive()


def test_silent_while_the_engine_does_not_go_round() -> None:
    with receiver() as outside:
        assert not Deadman(outside.url, NETWORK, Health(engine_expected=True)).ping()
        assert outside.arrived == []


def test_an_answer_that_does_not_come_stops_nothing() -> None:
    assert not Deadman("http://127.0.0.1:1/ping", NETWORK, Health(engine_expected=False)).ping()


def asked(database: Database) -> str | None:
    """What the database itself says is wrong."""
    return database_fault(database)


def test_silent_while_the_engine_stands_still_or_the_database_is_away_or_all_senders_are_stuck() -> None:
    thread = threading.Thread(target=threading.Event().wait, daemon=True)
    thread.start()
    with receiver() as outside:
        health = Health(engine=thread, senders=4)
        switch = Deadman(outside.url, NETWORK, health)
        switch.thread = threading.current_thread()
        assert switch.ping()
        for wrong in ({"away": "refused"}, {"stuck": 4}, {"draining": True}, {"faults": ("the listener ...",)}):
            right = {name: getattr(health, name) for name in wrong}
            for name, value in wrong.items():
                setattr(health, name, value)
            assert not switch.ping(), wrong
            for name, value in right.items():
                setattr(health, name, value)
        health.ticked -= 1000
        assert not switch.ping(), "the engine does not go round"
        health.ticked += 1000
        assert switch.ping()
        assert len(outside.arrived) == 2


def test_silent_while_the_database_is_away_or_takes_no_writes(database: Database) -> None:
    assert asked(database) is None
    standby = f"{database.url}&options=-c%20default_transaction_read_only%3Don"
    for url, fault in ((standby, "the database is read-only"), (NOWHERE, "the database is away: ")):
        db = Database(url)
        assert str(database_fault(db)).startswith(fault)
        db.close()
    with receiver() as outside:
        switch = Deadman(outside.url, NETWORK, Health(engine_expected=False), lambda: "the database is away: refused")
        assert not switch.ping() and outside.arrived == []


@pytest.mark.parametrize("kind", ["PAGE", "STEP"])
def test_silent_while_the_queue_is_overdue(database: Database, kind: str) -> None:
    due = factories.now(database) - timedelta(seconds=61)
    rows(database, 1, kind=kind, due_at=due, first_due_at=due)
    assert str(asked(database)).startswith("the queue is overdue: what was due at ")


def test_what_its_receiver_or_its_pace_holds_back_is_not_overdue(database: Database) -> None:
    due = factories.now(database) - timedelta(seconds=61)
    rows(database, 1, due_at=due, first_due_at=due, destination="webhook:dead")
    rows(database, 1, due_at=due, first_due_at=due, bundle="method:7")
    factories.run(database, "insert into destination values ('webhook:dead', 5, now(), 'It hangs.', now())")
    factories.run(database, "insert into contact_turn values ('method:7', 'me', now() + interval '9 seconds')")
    assert asked(database) is None
    factories.run(database, "delete from contact_turn")
    assert asked(database) is not None


def test_why_it_is_silent_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    faults = iter(["the queue is overdue", "the queue is overdue", None])
    with receiver() as outside, caplog.at_level(logging.INFO, "escalade.deadman"):
        switch = Deadman(outside.url, NETWORK, Health(engine_expected=False), lambda: next(faults))
        switch.thread = threading.current_thread()
        assert [switch.ping() for _ in range(3)] == [False, False, True]
    assert [record.message for record in caplog.records] == [
        "no page can go out from here, so the dead man's switch is not pinged: the queue is overdue",
        "pages can go out again; the dead man's switch is pinged",
    ]
