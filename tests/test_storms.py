"""Storms: a thousand incidents for one phone are a few messages, and none of them is lost among them."""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise

import pytest

from escalade import incidents
from escalade.db import Database, Session
from escalade.dispatch import Settings
from escalade.doorbell import Doorbell
from escalade.engine import Engine
from tests import factories
from tests.acting import ALICE
from tests.clock import MovedClock
from tests.engines import SIGNER, make_engine, running_engine
from tests.receiver import Arrived, Receiver, receiver, wait_for

QUICK = Settings(lease=9, deadline=3, poll=0.1)


@pytest.fixture
def phone() -> Iterator[Receiver]:
    """Where everybody's messages lead."""
    with receiver() as found:
        yield found


def on_call(database: Database, address: str, pace: int) -> int:
    """Alice, reached by one webhook with this pace; the service that pages her."""
    alice = factories.user(database)
    factories.contact(database, alice, address, pace_seconds=pace)
    return factories.service(database, factories.policy(database, (3600, [("user", alice)])))


@contextmanager
def by_hand(database: Database) -> Iterator[tuple[Engine, Session]]:
    """An engine whose rounds the test calls."""
    engine, session = make_engine(database.url), Session(database.url)
    engine.senders.start()
    try:
        yield engine, session
    finally:
        engine.senders.stop()
        session.close()


def go_round(engine: Engine, session: Session) -> None:
    """Rounds until nothing is in the air and nothing can leave now."""

    def idle() -> bool:
        engine.doorbell.ring()
        slept = engine.tick(session)
        return slept > 0 and not engine.dispatch.jobs and not engine.dispatch.waiting()

    wait_for(idle, 20, "nothing to do")


def told(message: Arrived) -> list[int]:
    """The incidents a message lists; its link acknowledges exactly these."""
    listed = [item["id"] for item in message.body["incidents"]]
    assert list(SIGNER.read(message.body["ack_url"].rpartition("/")[2]).incident_ids) == listed
    return listed


def test_a_thousand_incidents_in_ten_seconds_are_at_most_ten_messages_in_the_first_minute(
    database: Database, phone: Receiver, clock: MovedClock
) -> None:
    service = on_call(database, f"{phone.url}/alice", pace=10)
    opened: list[int] = []
    acknowledged: dict[int, int] = {}
    with by_hand(database) as (engine, session):
        for second in range(60):
            if second < 10:
                opened += [factories.open_incident(database, service, f"k{second}-{n}").id for n in range(100)]
            if second == 15:
                for incident_id in opened[-200:-100]:
                    with database.begin() as tx:
                        incidents.acknowledge(tx, incident_id, ALICE)
                    acknowledged[incident_id] = len(phone.arrived)
            go_round(engine, session)
            if second == 0:
                assert phone.arrived, "the first page of a quiet contact leaves at once"
            clock.pass_(seconds=1)
    messages = [told(message) for message in phone.arrived]
    assert len(messages) <= 10
    heard = {incident_id for listed in messages for incident_id in listed}
    assert set(opened) - set(acknowledged) <= heard
    for incident_id, before in acknowledged.items():
        assert all(incident_id not in listed for listed in messages[before:])
    assert len([item for listed in messages for item in listed]) == len(heard), "each is told once"


def test_several_processes_keep_the_pace_of_a_contact_together(database: Database, phone: Receiver) -> None:
    """In real time: every process wakes at the end of the pace, and one of them tells what is due."""
    service = on_call(database, f"{phone.url}/alice", pace=1)
    with ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(running_engine(database.url, Doorbell(), settings=QUICK))
        end = time.monotonic() + 4
        opened = []
        while time.monotonic() < end:
            opened.append(factories.open_incident(database, service, f"k{len(opened)}").id)
            time.sleep(0.01)
        wait_for(lambda: {item for message in list(phone.arrived) for item in told(message)} >= set(opened))
    claims = [row[0] for row in factories.run(database, "select distinct claimed_at from notification_attempt"
        " where kind = 'PAGE' order by 1")]  # fmt: skip
    assert len(claims) == len(phone.arrived) <= 7
    assert min((after - before).total_seconds() for before, after in pairwise(claims)) >= 1


def test_what_a_pace_was_set_on_a_moment_ago_is_kept_by_a_running_engine(database: Database, phone: Receiver) -> None:
    """An engine that has never met a pace does not have to learn of it first."""
    with running_engine(database.url, database.doorbell):
        bare = on_call(database, f"{phone.url}/alice", pace=0)
        for number in range(3):
            factories.open_incident(database, bare, f"bare{number}")
        phone.wait(3)
        bob = factories.user(database, "bob")
        factories.contact(database, bob, f"{phone.url}/bob", pace_seconds=30)
        policy = factories.policy(database, (3600, [("user", bob)]), name="bob")
        paced = factories.service(database, policy, "paced")
        first = factories.open_incident(database, paced, "first")
        phone.wait(1, "/bob")
        for number in range(3):
            factories.open_incident(database, paced, f"later{number}")
        time.sleep(0.5)
    assert [told(message) for message in phone.to("/bob")] == [[first.id]]


def test_a_message_that_failed_holds_back_none_after_it(database: Database, phone: Receiver, clock: MovedClock) -> None:
    phone.answer = lambda arrived: 503
    service = on_call(database, f"{phone.url}/alice", pace=3600)
    with by_hand(database) as (engine, session):
        first = factories.open_incident(database, service, "first")
        go_round(engine, session)
        phone.answer = lambda arrived: 200
        second = factories.open_incident(database, service, "second")
        go_round(engine, session)
        assert [told(message) for message in phone.arrived] == [[first.id], [second.id]]
        clock.pass_(seconds=3601)
        go_round(engine, session)
    assert told(phone.arrived[2]) == [first.id]


def test_what_waits_for_a_message_that_fails_leaves_in_the_round_that_records_it(
    database: Database, phone: Receiver
) -> None:
    service = on_call(database, f"{phone.url}/alice", pace=10)
    go = threading.Event()
    phone.answer = lambda arrived: 503 if go.wait(10) else 500
    with by_hand(database) as (engine, session):
        factories.open_incident(database, service, "first")
        engine.tick(session)
        factories.open_incident(database, service, "second")
        wait_for(lambda: engine.tick(session) > 0 and phone.arrived, what="the second has to wait")
        go.set()
        wait_for(lambda: not engine.senders.results.empty())
        engine.tick(session)
        phone.wait(2)
        go_round(engine, session)


def test_k064_what_left_together_is_tried_again_together_under_the_same_key(
    database: Database, phone: Receiver, clock: MovedClock
) -> None:
    service = on_call(database, f"{phone.url}/alice", pace=10)
    opened = [factories.open_incident(database, service, f"k{number}").id for number in range(20)]
    with by_hand(database) as (engine, session):
        phone.answer = lambda arrived: 503
        go_round(engine, session)
        phone.answer = lambda arrived: 200
        for _ in range(60):
            clock.pass_(seconds=0.1)
            go_round(engine, session)
    assert [told(message) for message in phone.arrived] == [opened, opened]
    assert len({message.headers["idempotency-key"] for message in phone.arrived}) == 1
    assert {item["try"] for item in phone.arrived[1].body["attempts"]} == {2}


def test_who_acknowledges_while_a_storm_is_in_the_air_is_told_nothing_more_of_it(
    database: Database, phone: Receiver, clock: MovedClock
) -> None:
    service = on_call(database, f"{phone.url}/alice", pace=10)
    go = threading.Event()
    phone.answer = lambda arrived: 503 if go.wait(10) else 500
    opened = [factories.open_incident(database, service, f"k{number}").id for number in range(5)]
    with running_engine(database.url, database.doorbell):
        phone.wait(1)
        for incident_id in opened[:3]:
            with database.begin() as tx:
                assert len(incidents.acknowledge(tx, incident_id, ALICE).in_flight) == 1
        phone.answer = lambda arrived: 200
        go.set()
        wait_for(lambda: not factories.run(database, "select id from notification_attempt where status = 'IN_FLIGHT'"))
        clock.pass_(seconds=20)
        database.doorbell.ring()
        phone.wait(2)
    assert [told(message) for message in phone.arrived] == [opened, opened[3:]]
