"""Failures that other queues had in the field, each by its number, where no other file has its test."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from escalade import attempts
from escalade.config import Config
from escalade.db import Database
from escalade.dispatch import Settings
from escalade.doorbell import Doorbell
from tests import factories
from tests.acting import claim, end, rows
from tests.clock import MovedClock
from tests.engines import make_engine, running_engine
from tests.receiver import Receiver, receiver, wait_for
from tests.web.serving import make_app, token

ROOT = Path(__file__).resolve().parent.parent
NEVER = Settings(lease=9, deadline=3, poll=60)


@pytest.fixture
def phone() -> Iterator[Receiver]:
    """Where everybody's webhooks lead."""
    with receiver() as found:
        yield found


def test_q10_leases_are_taken_back_with_nothing_in_the_queue_but_them(
    database: Database, phone: Receiver, clock: MovedClock
) -> None:
    """No row asks for it: an engine that finds an expired lease takes it back."""
    incident = factories.open_incident(database, factories.ladder(database, phone.url))
    claim(database)
    factories.run(database, "delete from notification_attempt where kind = 'STEP'")
    clock.pass_(minutes=1)
    with running_engine(database.url, Doorbell(), settings=Settings(lease=9, deadline=3, poll=0.2)):
        wait_for(lambda: rows(database, incident.id)[0]["status"] == "DELIVERED")


def test_q18_leases_past_their_end_are_counted_while_no_engine_takes_them_back(
    database: Database, config: Config, clock: MovedClock
) -> None:
    factories.open_incident(database, factories.ladder(database, "http://127.0.0.1:1"))
    claim(database)
    clock.pass_(minutes=5)
    headers = {"Authorization": f"Bearer {token(database, 'viewer')}"}
    text = make_app(database, config).test_client().get("/metrics", headers=headers).text
    assert "escalade_leases_overdue 1.0" in text


def test_q37_what_rings_during_a_round_is_seen_by_the_next_and_waits_for_no_poll(
    database: Database, phone: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = factories.ladder(database, phone.url)
    bell, real, opened = Doorbell(), attempts.whats_due, threading.Event()

    def due_then_opened(tx: object) -> attempts.Due:
        found = real(tx)  # type: ignore[arg-type]
        if not opened.is_set():
            opened.set()
            factories.open_incident(database, service)
            bell.ring()
        return found

    monkeypatch.setattr(attempts, "whats_due", due_then_opened)
    with running_engine(database.url, bell, settings=NEVER):
        phone.wait(1, "/alice")


def test_q53_times_are_the_databases_alone_however_wrong_the_machines_clock_is(
    database: Database, phone: Receiver
) -> None:
    wrong = f"import time; real = time.time; time.time = lambda: real() + 86400 * 3;{RUN}"
    incident = factories.open_incident(database, factories.ladder(database, phone.url))
    process = subprocess.Popen([sys.executable, "-c", wrong, database.url], cwd=ROOT)
    try:
        wait_for(lambda: rows(database, incident.id)[0]["status"] == "DELIVERED", 20)
        row = rows(database, incident.id)[0]
        assert abs(row["delivered_at"] - factories.now(database)) < timedelta(minutes=1)
        assert not phone.to("/bob"), "Bob is due in five minutes"
    finally:
        process.kill()
        process.wait()


RUN = """
import sys, threading
from tests.engines import make_engine
from escalade.dispatch import Settings
make_engine(sys.argv[1], settings=Settings(lease=6, deadline=1, poll=0.2)).start()
threading.Event().wait()
"""


def test_q56_a_process_that_ends_without_a_word_leaves_its_pages_to_the_lease(
    database: Database, phone: Receiver, clock: MovedClock
) -> None:
    go = threading.Event()
    phone.answer = lambda arrived: 200 if len(phone.arrived) > 1 or go.wait(20) else 500
    incident = factories.open_incident(database, factories.ladder(database, phone.url))
    process = subprocess.Popen([sys.executable, "-c", RUN, database.url], cwd=ROOT)
    try:
        phone.wait(1, seconds=20)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        clock.pass_(seconds=10)
        with running_engine(database.url, Doorbell(), settings=Settings(lease=9, deadline=3, poll=0.2)):
            wait_for(lambda: rows(database, incident.id)[0]["status"] == "DELIVERED")
    finally:
        go.set()
        process.kill()
        process.wait()


def test_q56_q57_what_a_stop_gives_back_is_due_at_once_and_has_used_no_try(database: Database, phone: Receiver) -> None:
    incident = factories.open_incident(database, factories.ladder(database, phone.url))
    engine = make_engine(database.url, Doorbell())
    engine.thread.start()
    wait_for(lambda: rows(database, incident.id)[0]["status"] == "IN_FLIGHT")
    engine.stop(10)
    [row] = rows(database, incident.id)
    assert (row["status"], row["tries"], row["last_error"]) == ("PENDING", 0, None)
    assert row["due_at"] <= factories.now(database)
    assert factories.run(database, "select count(*) from attempt_try") == [(0,)]


def test_q57_a_release_of_the_last_try_is_not_the_end_of_it(database: Database) -> None:
    incident = factories.open_incident(database, factories.ladder(database, "http://127.0.0.1:1"))
    factories.run(database, "update notification_attempt set tries = max_tries - 1 where kind = 'PAGE'")
    end(database, claim(database), "RELEASE")
    [row] = rows(database, incident.id)
    assert (row["status"], row["tries"]) == ("PENDING", row["max_tries"] - 1)
    assert len(claim(database)) == 1


def test_q58_a_replay_keeps_the_row(database: Database) -> None:
    incident = factories.open_incident(database, factories.ladder(database, "http://127.0.0.1:1"))
    end(database, claim(database), "FAILED")
    [before] = rows(database, incident.id)
    with database.begin() as tx:
        attempts.replay_one(tx, before["id"], "alice@example.com")
    [after] = rows(database, incident.id)
    assert (after["id"], after["status"]) == (before["id"], "PENDING")
