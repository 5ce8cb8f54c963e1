"""The loop: pages leave when they are due, whoever rings or nobody does; it sleeps when there is nothing to do."""

import re
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from types import SimpleNamespace

import pytest

from escalade import db, incidents, senders
from escalade.db import Database
from escalade.dispatch import Settings
from escalade.doorbell import Doorbell
from escalade.listener import Listener
from tests import factories
from tests.acting import ALICE, claim, do, rows, state
from tests.clock import MovedClock
from tests.engines import SIGNER, make_engine, running_engine
from tests.receiver import Arrived, Receiver, receiver, wait_for

# A poll that no test waits for.
NEVER = Settings(lease=9, deadline=3, poll=60)
SOON = 20.0


@pytest.fixture
def phone() -> Iterator[Receiver]:
    """Where everybody's webhooks lead."""
    with receiver() as found:
        yield found


def settled(database: Database, incident_id: int, status: str = "DELIVERED") -> None:
    """Wait until every page of the incident has this status."""
    wait_for(lambda: {row["status"] for row in rows(database, incident_id)} == {status}, what=status)


def test_a_page_leaves_at_once_when_this_process_rings(database: Database, phone: Receiver) -> None:
    service = factories.ladder(database, phone.url)
    with running_engine(database.url, database.doorbell, settings=NEVER):
        wait_for(lambda: database.doorbell.idle)
        incident = factories.open_incident(database, service)
        [page] = phone.wait(1, "/alice", SOON)
        settled(database, incident.id)
    assert page.body["attempt"] == {"id": rows(database, incident.id)[0]["id"], "try": 1}


def test_a_page_leaves_at_once_when_another_process_rings(database: Database, phone: Receiver) -> None:
    service = factories.ladder(database, phone.url)
    bell = Doorbell()
    with running_engine(database.url, bell, settings=NEVER) as engine:
        listener = Listener(database.url, bell, engine.health)
        listener.start()
        try:
            wait_for(lambda: engine.health.listening)
            factories.open_incident(database, service)
            phone.wait(1, "/alice", SOON)
        finally:
            listener.stop()


def test_with_the_doorbell_dead_the_poll_alone_finds_it(database: Database, phone: Receiver) -> None:
    service = factories.ladder(database, phone.url)
    with running_engine(database.url, Doorbell(), settings=Settings(lease=9, deadline=3, poll=0.2)):
        factories.open_incident(database, service)
        phone.wait(1, "/alice")


def test_a_page_that_is_due_later_is_slept_towards_without_a_ring(database: Database, phone: Receiver) -> None:
    service = factories.ladder(database, phone.url)
    factories.run(database, "update notification_rule set after_seconds = 1")
    with running_engine(database.url, database.doorbell, settings=NEVER):
        incident = factories.open_incident(database, service)
        phone.wait(1, "/alice")
        due = rows(database, incident.id)[0]["due_at"]
        settled(database, incident.id)
    late = (rows(database, incident.id)[0]["claimed_at"] - due).total_seconds()
    assert 0 <= late < NEVER.poll / 2, "the poll would have found it too"


def test_k018_a_step_that_waits_is_taken_after_all_processes_were_restarted(
    database: Database, phone: Receiver, clock: MovedClock
) -> None:
    service = factories.ladder(database, phone.url)
    with running_engine(database.url, database.doorbell):
        incident = factories.open_incident(database, service)
        settled(database, incident.id)
    clock.pass_(minutes=5)
    assert not phone.to("/bob")
    with running_engine(database.url, Doorbell()):
        phone.wait(1, "/bob")
    assert len(phone.arrived) == 2


def test_k067_what_was_accepted_before_a_stop_is_sent_after_the_start(database: Database, phone: Receiver) -> None:
    factories.open_incident(database, factories.ladder(database, phone.url))
    with running_engine(database.url):
        phone.wait(1, "/alice")


def test_k066_after_a_long_stop_nobody_is_paged_for_what_is_over(
    database: Database, phone: Receiver, clock: MovedClock
) -> None:
    service = factories.ladder(database, phone.url)
    over, taken, still_open = (factories.open_incident(database, service, f"k{n}") for n in range(3))
    do(database, incidents.resolve, over.id, ALICE)
    do(database, incidents.acknowledge, taken.id, ALICE)
    clock.pass_(hours=8)
    with running_engine(database.url):
        phone.wait(1, "/bob")
        settled(database, still_open.id)
    assert {item.body["incidents"][0]["id"] for item in phone.arrived} == {still_open.id}


class Counting(dict[str, str]):
    """Queries that are counted as the engine's thread asks for them."""

    def __init__(self, queries: Mapping[str, str]) -> None:
        super().__init__(queries)
        self.asked: Counter[str] = Counter()

    def __getitem__(self, name: str) -> str:
        if threading.current_thread().name == "engine":
            self.asked[name] += 1
        return super().__getitem__(name)


@pytest.mark.parametrize("waiting", [False, True])
def test_an_idle_engine_asks_one_question_a_poll(
    database: Database, phone: Receiver, monkeypatch: pytest.MonkeyPatch, waiting: bool
) -> None:
    if waiting:
        incident = factories.open_incident(database, factories.ladder(database, phone.url))
        do(database, incidents.snooze, incident.id, 3600, ALICE)
    counting = Counting(db.queries())
    monkeypatch.setattr(db, "queries", lambda: counting)
    with running_engine(database.url, Doorbell(), settings=Settings(lease=9, deadline=3, poll=0.25)):
        wait_for(lambda: counting.asked["whats_due"] >= 2)
        counting.asked.clear()
        begun = time.monotonic()
        wait_for(lambda: counting.asked["whats_due"] >= 7)
        asked, polls = Counter(counting.asked), (time.monotonic() - begun) / (0.8 * 0.25)
    assert set(asked) == {"whats_due"}
    assert asked["whats_due"] <= polls + 2


def test_a_contact_that_must_wait_does_not_keep_the_engine_busy(
    database: Database, phone: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = factories.ladder(database, phone.url)
    factories.run(database, "update contact_method set pace_seconds = 60")
    first, _ = (factories.open_incident(database, service, key) for key in ("a", "b"))
    counting = Counting(db.queries())
    monkeypatch.setattr(db, "queries", lambda: counting)
    with running_engine(database.url, Doorbell(), settings=NEVER):
        settled(database, first.id)
        counting.asked.clear()
        time.sleep(2)
        asked = Counter(counting.asked)
    assert asked["whats_due"] <= 5


def test_stopping_gives_back_what_has_not_begun(database: Database, phone: Receiver) -> None:
    incident = factories.open_incident(database, factories.ladder(database, phone.url))
    engine = make_engine(database.url, Doorbell())
    engine.thread.start()
    wait_for(lambda: rows(database, incident.id)[0]["status"] == "IN_FLIGHT")
    engine.stop(10)
    assert not engine.thread.is_alive()
    [row] = rows(database, incident.id)
    assert (row["status"], row["tries"], row["lease_until"]) == ("PENDING", 0, None)
    assert factories.run(database, "select count(*) from attempt_try") == [(0,)]
    assert phone.arrived == []
    assert len(claim(database)) == 1, "another engine can take it at once"


def test_stopping_lets_what_has_begun_end_and_records_it(database: Database, phone: Receiver) -> None:
    incident = factories.open_incident(database, factories.ladder(database, phone.url))
    go = threading.Event()
    phone.answer = lambda arrived: 200 if go.wait(5) else 500
    with running_engine(database.url) as engine:
        phone.wait(1)
        stopping = threading.Thread(target=engine.stop, args=(10,))
        stopping.start()
        wait_for(engine.stopping.is_set)
        assert rows(database, incident.id)[0]["status"] == "IN_FLIGHT"
        go.set()
        stopping.join(10)
        assert not stopping.is_alive()
    assert [row["status"] for row in rows(database, incident.id)] == ["DELIVERED"]
    assert factories.run(database, "select count(*) from engine_instance") == [(0,)]


def test_a_stopped_engine_leaves_telling_others_to_the_notification(database: Database, phone: Receiver) -> None:
    with running_engine(database.url, database.doorbell):
        wait_for(lambda: database.doorbell.idle)
        assert not database.doorbell.needs_notify()
    assert database.doorbell.needs_notify(), "whoever opens an incident now must tell another process"


def test_a_send_begun_too_late_for_its_lease_is_given_back_and_uses_no_try(
    database: Database, phone: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = SimpleNamespace(monotonic=lambda: time.monotonic() + 7)
    monkeypatch.setattr(senders, "time", late)
    incident = factories.open_incident(database, factories.ladder(database, phone.url))
    with running_engine(database.url):
        wait_for(lambda: rows(database, incident.id)[0]["claim_seq"] > 1)
        monkeypatch.setattr(senders, "time", time)
        settled(database, incident.id)
    [row] = rows(database, incident.id)
    assert (row["tries"], len(phone.arrived)) == (1, 1)
    assert factories.run(database, "select try, outcome from attempt_try") == [(1, "delivered")]


def test_a_webhook_without_pace_is_one_page_a_request(database: Database, phone: Receiver) -> None:
    service = factories.ladder(database, phone.url)
    opened = [factories.open_incident(database, service, f"k{n}").id for n in range(10)]
    with running_engine(database.url):
        arrived = phone.wait(10)
    assert sorted(item.body["incidents"][0]["id"] for item in arrived) == opened
    assert all(len(item.body["incidents"]) == len(item.body["attempts"]) == 1 for item in arrived)
    assert len({item.headers["idempotency-key"] for item in arrived}) == 10


def test_a_webhook_with_a_pace_lists_every_attempt_under_one_key(
    database: Database, phone: Receiver, clock: MovedClock
) -> None:
    service = factories.ladder(database, phone.url)
    factories.run(database, "update contact_method set pace_seconds = 30")
    opened = [factories.open_incident(database, service, f"k{n}").id for n in range(10)]
    with running_engine(database.url):
        wait_for(lambda: state_of_all(database) == {"DELIVERED"})
    [page] = phone.arrived
    assert [item["id"] for item in page.body["incidents"]] == opened
    assert len(page.body["attempts"]) == 10
    assert page.body["attempt"] == page.body["attempts"][0]
    assert page.headers["idempotency-key"] not in {row["idempotency_key"] for row in rows(database, opened[0])}


def state_of_all(database: Database) -> set[str]:
    """Every status a page has."""
    return {row[0] for row in factories.run(database, "select status from notification_attempt where kind = 'PAGE'")}


def test_a_storm_is_two_messages_to_a_phone_and_one_tap_acknowledges_it(
    database: Database, phone: Receiver, clock: MovedClock
) -> None:
    alice = factories.user(database)
    factories.contact(database, alice, f"{phone.url}/alices-phone", "ntfy")
    service = factories.service(database, factories.policy(database, (300, [("user", alice)])))
    with running_engine(database.url, database.doorbell):
        first = factories.open_incident(database, service, "first")
        settled(database, first.id)
        rest = [factories.open_incident(database, service, f"k{n}").id for n in range(9)]
        wait_for(lambda: not database.doorbell.event.is_set())
        assert state_of_all(database) == {"DELIVERED", "PENDING"}
        clock.pass_(seconds=11)
        database.doorbell.ring()
        wait_for(lambda: state_of_all(database) == {"DELIVERED"})
    assert len(phone.arrived) == 2
    assert acknowledged_by_link(phone.arrived[1]) == tuple(rest)


def acknowledged_by_link(arrived: Arrived) -> tuple[int, ...]:
    """The incidents that the message's button acknowledges."""
    [url] = {match for match in re.findall(r"http://127\.0\.0\.1:8000/a/[^\"'\s]+", str(arrived.body))}
    return SIGNER.read(url.rpartition("/")[2]).incident_ids


def test_the_low_lane_is_not_kept_waiting_by_the_high_one(database: Database, phone: Receiver) -> None:
    high = factories.ladder(database, phone.url)
    policy = factories.run(database, "select policy_id from service")[0][0]
    low = factories.service(database, policy, "batch", urgency="low")
    go = threading.Event()
    phone.answer = lambda arrived: 200 if arrived.body["incidents"][0]["service"] == "batch" or go.wait(5) else 500
    for number in range(8):
        factories.open_incident(database, high, f"k{number}")
    calm = factories.open_incident(database, low, "calm")
    # Another host for the low lane: the gate of one destination leaves room of its own.
    factories.run(database, "update notification_attempt set destination = 'other' where incident_id = %s", calm.id)
    with running_engine(database.url):
        settled(database, calm.id)
        assert state(database, calm.id).status == "TRIGGERED"
        go.set()


def test_a_server_that_lets_in_and_does_no_work_is_asked_less_and_less_often(clean_url: str) -> None:
    standby = f"{clean_url}&options=-c%20default_transaction_read_only%3Don"
    with running_engine(standby) as engine:
        wait_for(lambda: engine.wait > 1, 10, "a longer pause")
        assert engine.away
