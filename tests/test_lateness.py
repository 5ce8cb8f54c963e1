"""A page that is late says so once: while it waits, or when it is sent."""

import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta

import pytest

from escalade import attempts, metrics, overview
from escalade.config import Config
from escalade.db import Database, Limits
from escalade.dispatch import Settings
from escalade.doorbell import Doorbell
from escalade.lateness import BATCH, Lateness
from tests import factories
from tests.acting import ALICE, claim, do, end, entries, rows
from tests.clock import MovedClock
from tests.engines import running_engine
from tests.receiver import Receiver, receiver, wait_for
from tests.rows import rows as insert_rows
from tests.web.screens import make_screens

QUICK = Settings(lease=9, deadline=3, poll=0.2)


@pytest.fixture
def phone() -> Iterator[Receiver]:
    """Where everybody's webhooks lead."""
    with receiver() as found:
        yield found


def look(database: Database, lateness: Lateness | None = None) -> int:
    """Look once through the high lane."""
    with database.read() as tx:
        return (lateness or Lateness()).report(tx, "high")


def test_a_page_that_waits_for_too_long_is_late_once_whoever_looks(database: Database, clock: MovedClock) -> None:
    incident = factories.open_incident(database, factories.ladder(database, "http://127.0.0.1:1"))
    lateness = Lateness()
    assert look(database, lateness) == 0
    clock.pass_(seconds=61)
    assert look(database, lateness) == 1
    assert look(database, lateness) == look(database) == 0, "nor after a restart, nor by another instance"
    [late] = entries(database, incident.id, "late")
    assert late == {"attempt": rows(database, incident.id)[0]["id"], "seconds": late["seconds"], "waiting": True}
    assert 61 <= late["seconds"] < 70


def test_it_is_not_said_again_when_it_is_sent_at_last(database: Database, clock: MovedClock) -> None:
    incident = factories.open_incident(database, factories.ladder(database, "http://127.0.0.1:1"))
    clock.pass_(seconds=61)
    look(database)
    end(database, claim(database), "DELIVERED")
    assert len(entries(database, incident.id, "late")) == 1


@pytest.mark.parametrize("outcome", ["DELIVERED", "RETRY", "FAILED", "UNKNOWN"])
def test_one_that_is_first_tried_too_late_is_late_whatever_comes_of_it(
    database: Database, clock: MovedClock, outcome: str
) -> None:
    incident = factories.open_incident(database, factories.ladder(database, "http://127.0.0.1:1"))
    clock.pass_(seconds=61)
    end(database, claim(database), outcome)
    look(database)
    assert len(entries(database, incident.id, "late")) == 1


def test_a_claim_that_is_given_back_says_nothing(database: Database, clock: MovedClock) -> None:
    incident = factories.open_incident(database, factories.ladder(database, "http://127.0.0.1:1"))
    clock.pass_(seconds=61)
    end(database, claim(database), "RELEASE")
    assert entries(database, incident.id, "late") == []
    clock.pass_(seconds=61)
    assert look(database) == 1, "it waits on"


def test_a_replay_is_a_new_wish_and_may_be_late_again(database: Database, clock: MovedClock) -> None:
    incident = factories.open_incident(database, factories.ladder(database, "http://127.0.0.1:1"))
    clock.pass_(seconds=61)
    end(database, claim(database), "FAILED")
    do(database, attempts.replay_one, rows(database, incident.id)[0]["id"], ALICE)
    assert look(database) == 0
    clock.pass_(seconds=61)
    look(database)
    assert len(entries(database, incident.id, "late")) == 2


def test_the_limit_is_the_one_that_is_set(clean_url: str, clock: MovedClock) -> None:
    with closing(Database(clean_url, limits=Limits(late_seconds=600))) as database:
        factories.open_incident(database, factories.ladder(database, "http://127.0.0.1:1"))
        clock.pass_(seconds=500)
        assert look(database) == 0
        clock.pass_(seconds=101)
        assert look(database) == 1


def test_many_are_told_of_a_batch_at_a_time_and_none_is_left_out(database: Database, clock: MovedClock) -> None:
    due = factories.now(database)
    insert_rows(database, BATCH + 50, due_at=due, first_due_at=due)
    clock.pass_(seconds=61)
    lateness = Lateness()
    assert [look(database, lateness) for _ in range(3)] == [BATCH, 50, 0]


def test_two_who_look_at_once_tell_of_each_once(database: Database, clock: MovedClock) -> None:
    insert_rows(database, 100)
    clock.pass_(seconds=61)
    gate, found = threading.Barrier(4), []

    def one() -> None:
        gate.wait(10)
        found.append(look(database))

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sum(found) == 100
    assert factories.run(database, "select count(*) from incident_event where event = 'late'") == [(100,)]


def test_the_engine_tells_of_a_page_that_waits_for_its_receiver(
    database: Database, phone: Receiver, clock: MovedClock
) -> None:
    incident = factories.open_incident(database, factories.ladder(database, phone.url))
    destination = rows(database, incident.id)[0]["destination"]
    later = factories.now(database) + timedelta(hours=2)
    factories.run(database, "insert into destination values (%s, 5, %s, 'It said 429.', now())", destination, later)
    clock.pass_(seconds=70)
    with running_engine(database.url, Doorbell(), settings=QUICK):
        wait_for(lambda: entries(database, incident.id, "late"))
    assert phone.to("/alice") == []


def test_how_late_a_page_is_and_was_is_shown_and_measured(
    database: Database, config: Config, phone: Receiver, clock: MovedClock
) -> None:
    incident = factories.open_incident(database, factories.ladder(database, phone.url, wait=3600))
    client = make_screens(database, config).client("alice")
    assert "late by" not in client.get("/").text
    clock.pass_(seconds=75)
    page = client.get("/").text
    assert "late by <time" in page and "data-age>1:1" in page
    before = sample(90)
    with running_engine(database.url, Doorbell(), settings=QUICK):
        wait_for(lambda: rows(database, incident.id)[0]["status"] == "DELIVERED")
    assert sample(300) == before + 1
    assert "was late by 1:1" in client.get("/attempts?status=DELIVERED").text
    [view, *_] = do(database, overview.of_incident, incident.id)
    assert 75 <= view.late_by(view.finished_at or view.due_at) < 90


def sample(most: float) -> float:
    """How many pages were at most so late, by the histogram's bucket that ends there or above."""
    buckets = {s.labels["le"]: s.value for f in metrics.page_delay.collect() for s in f.samples if "le" in s.labels}
    return next(value for edge, value in buckets.items() if float(edge) >= most)
