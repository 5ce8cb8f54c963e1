"""A row that a stranger holds a lock on keeps its own page waiting, and no other."""

import threading
from collections.abc import Iterator

import psycopg
import pytest

from escalade.db import Database
from tests import factories
from tests.engines import running_engine
from tests.receiver import Receiver, receiver, wait_for


@pytest.fixture
def phone() -> Iterator[Receiver]:
    """Where both are reached."""
    with receiver() as found:
        yield found


@pytest.fixture
def services(database: Database, phone: Receiver) -> dict[str, int]:
    """Alice, who has a pace, and Bob, who has none, each with a service of their own."""
    made = {}
    for name, pace in (("alice", 1), ("bob", 0)):
        person = factories.user(database, name)
        factories.rule(database, person, factories.contact(database, person, f"{phone.url}/{name}", pace_seconds=pace))
        policy = factories.policy(database, (300, [("user", person)]), name=name)
        made[name] = factories.service(database, policy, name=name)
    return made


def delivered(database: Database, incident_id: int) -> bool:
    return ("PAGE", "DELIVERED") in factories.statuses(database, incident_id)


def test_a_page_in_the_air_whose_row_is_locked_is_recorded_once_it_is_free(
    database: Database, phone: Receiver, services: dict[str, int]
) -> None:
    go = threading.Event()

    def answer(arrived: object) -> int:
        go.wait(10)
        return 200

    phone.answer = answer
    with running_engine(database.url, database.doorbell), psycopg.connect(database.url) as stranger:
        first = factories.open_incident(database, services["alice"])
        phone.wait(1, "/alice")
        stranger.execute("select id from notification_attempt for update")
        go.set()
        second = factories.open_incident(database, services["bob"], "other")
        phone.wait(1, "/bob", 1.5)
        wait_for(lambda: delivered(database, second.id))
        assert not delivered(database, first.id)
        stranger.rollback()
        wait_for(lambda: delivered(database, first.id))
    assert len(phone.to("/alice")) == 1


def test_a_contact_whose_turn_is_locked_keeps_no_other_waiting(
    database: Database, phone: Receiver, services: dict[str, int]
) -> None:
    with running_engine(database.url, database.doorbell), psycopg.connect(database.url) as stranger:
        first = factories.open_incident(database, services["alice"])
        wait_for(lambda: delivered(database, first.id))
        over = "select count(*) from contact_turn where until <= clock_timestamp()"
        wait_for(lambda: factories.run(database, over) == [(1,)])
        stranger.execute("select bundle from contact_turn for update")
        factories.open_incident(database, services["alice"], "again")
        factories.open_incident(database, services["bob"], "other")
        phone.wait(1, "/bob", 1.5)
        assert len(phone.to("/alice")) == 1
        stranger.rollback()
        phone.wait(2, "/alice")


def test_a_receiver_whose_row_is_locked_costs_no_connection(
    database: Database, phone: Receiver, services: dict[str, int], caplog: pytest.LogCaptureFixture
) -> None:
    phone.answer = lambda arrived: 500
    with running_engine(database.url, database.doorbell), psycopg.connect(database.url) as stranger:
        factories.open_incident(database, services["bob"])
        wait_for(lambda: factories.run(database, "select count(*) from destination") == [(1,)])
        stranger.execute("select name from destination for update")
        second = factories.open_incident(database, services["bob"], "other")
        failed = "select count(*) from attempt_try t join notification_attempt a on a.id = t.attempt_id"
        wait_for(lambda: factories.run(database, f"{failed} where a.incident_id = %s", second.id) == [(1,)])
        stranger.rollback()
    assert "the database is away" not in caplog.text
