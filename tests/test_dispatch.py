"""What a process has in its hands: claims become messages, results are recorded, and nothing falls out of it."""

import dataclasses
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import permutations

import psycopg
import pytest

from escalade import attempts, delivery, incidents
from escalade.db import Database, Session, Tx, connect
from escalade.dispatch import Dispatch, Settings
from escalade.transports import TRANSPORTS, DeliveryError, Message, Network, Receipt
from tests import factories
from tests.clock import MovedClock
from tests.engines import make_engine
from tests.interleavings.hands import claim, settle
from tests.interleavings.scenes import attempt, opened, status
from tests.receiver import wait_for

ALICE = "alice@example.com"


@dataclass
class Desk:
    """A dispatch with its senders, a connection, and a webhook transport that is told what to answer."""

    dispatch: Dispatch
    session: Session
    sent: list[Message] = field(default_factory=list)
    error: DeliveryError | None = None
    open: threading.Event = field(default_factory=threading.Event)

    def send(self, message: Message, network: Network) -> Receipt:
        """The transport."""
        self.sent.append(message)
        assert self.open.wait(10)
        if self.error is not None:
            raise self.error
        return Receipt("POST", "200")

    def claim(self) -> int:
        """Claim what is due."""
        tx = self.session.single()
        read_at = time.monotonic()
        return self.dispatch.claim(tx, attempts.whats_due(tx), read_at)

    def back(self, count: int = 1) -> None:
        """Wait until so many results are back."""
        wait_for(lambda: self.dispatch.senders.results.qsize() >= count, what=f"{count} results")

    def settle(self) -> int:
        """Record what is back."""
        return self.dispatch.settle(self.session.single())


@pytest.fixture
def desk(database: Database) -> Iterator[Desk]:
    """Four senders; sends go through at once unless the test closes the way."""
    found: list[Desk] = []
    webhook = dataclasses.replace(TRANSPORTS["webhook"], send=lambda message, network: found[0].send(message, network))
    settings = Settings(lease=9, deadline=3, poll=0.5)
    engine = make_engine(database.url, transports={"webhook": webhook}, settings=settings)
    engine.senders.start()
    found.append(Desk(engine.dispatch, Session(database.url)))
    found[0].open.set()
    yield found[0]
    found[0].open.set()
    engine.senders.stop()
    found[0].session.close()


def test_a_claim_becomes_a_message_and_its_result_is_recorded(database: Database, desk: Desk) -> None:
    opened(database, people=1)
    assert desk.claim() == 1
    desk.back()
    assert desk.settle() == 1
    [message] = desk.sent
    assert status(database, message.attempts[0].id) == "DELIVERED"
    assert not desk.dispatch.jobs and not desk.dispatch.unsettled and not list(desk.dispatch.known())


def test_no_transaction_is_open_while_bytes_are_on_the_wire(database: Database, desk: Desk) -> None:
    opened(database, people=1)
    desk.open.clear()
    desk.claim()
    wait_for(lambda: desk.sent)
    query = "select state, xact_start from pg_stat_activity where pid = %s"
    assert factories.run(database, query, desk.session.conn.info.backend_pid) == [("idle", None)]


def test_results_are_not_lost_with_a_connection_that_breaks_before_they_are_recorded(
    database: Database, desk: Desk
) -> None:
    opened(database, people=1)
    desk.claim()
    desk.back()
    with connect(database.url) as conn:
        conn.execute("select pg_terminate_backend(%s)", [desk.session.conn.info.backend_pid])
    with pytest.raises(psycopg.OperationalError):
        desk.settle()
    desk.session = Session(database.url)
    assert attempts.recover(desk.session.single(), desk.dispatch.owner, desk.dispatch.known()) == 0
    assert desk.settle() == 1
    assert status(database, desk.sent[0].attempts[0].id) == "DELIVERED"
    assert desk.dispatch.hands("high") == 3


def test_results_are_not_lost_with_a_settle_that_fails(
    database: Database, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(database, people=2)
    desk.claim()
    desk.back(2)

    def fails(*args: object) -> None:
        raise psycopg.errors.SerializationFailure("once")

    with monkeypatch.context() as patch:
        patch.setattr(attempts, "settle", fails)
        with pytest.raises(psycopg.errors.SerializationFailure):
            desk.settle()
    assert len(list(desk.dispatch.known())) == 2 and desk.dispatch.waiting()
    assert desk.settle() == 2
    assert {status(database, message.attempts[0].id) for message in desk.sent} == {"DELIVERED"}


def test_what_was_claimed_and_never_heard_of_is_given_back(
    database: Database, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(database, people=1)
    real = Tx.many

    def lost(self: Tx, row: type, name: str, /, **params: object) -> list[object]:
        found = real(self, row, name, **params)
        if name == "claim":
            raise psycopg.OperationalError("the answer to the claim was lost")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Tx, "many", lost)
        with pytest.raises(psycopg.OperationalError):
            desk.claim()
    assert attempts.recover(desk.session.single(), desk.dispatch.owner, desk.dispatch.known()) == 1
    assert desk.claim() == 1
    desk.back()
    assert desk.settle() == 1
    assert desk.sent[0].attempts[0].try_ == 1


def test_a_contact_with_a_pace_is_told_one_thing_at_a_time_whatever_its_lane(database: Database, desk: Desk) -> None:
    alice = factories.user(database)
    factories.contact(database, alice, "http://127.0.0.1:9/a", pace_seconds=10, updates=True)
    service = factories.service(database, factories.policy(database, (300, [("user", alice)])))
    known = factories.open_incident(database, service, "known")
    factories.run(database, "update notification_attempt set tries = 1, status = 'DELIVERED', delivered_at = %s, "
        "finished_at = %s where kind = 'PAGE'", *[factories.now(database)] * 2)  # fmt: skip
    with database.begin() as tx:
        incidents.acknowledge(tx, known.id, ALICE)
    factories.open_incident(database, service, "new")
    assert desk.claim() == 1
    desk.back()
    desk.settle()
    assert [message.type for message in desk.sent] == ["page"]


def test_a_message_that_cannot_be_written_stops_no_other_and_uses_up_its_tries(
    database: Database, desk: Desk, monkeypatch: pytest.MonkeyPatch, clock: MovedClock
) -> None:
    incident = opened(database, people=3)
    real = delivery.compose
    poison = factories.run(database, "select id from notification_attempt where kind = 'PAGE' order by id")[0][0]

    def compose(rows, contents, links):
        if rows[0].id == poison:
            raise ValueError("this one cannot be written")
        return real(rows, contents, links)

    monkeypatch.setattr(delivery, "compose", compose)
    for _ in range(8):
        desk.claim()
        wait_for(lambda: len(desk.dispatch.jobs) == desk.dispatch.senders.results.qsize())
        desk.settle()
        clock.pass_(seconds=40)
    assert len(desk.sent) == 2
    found = attempt(database, poison)
    assert (found["status"], found["tries"]) == ("FAILED", 8) and "could not be written" in found["last_error"]
    assert factories.events(database, incident.id).count("retry") == 7


def test_a_contact_that_is_gone_fails_at_once_and_says_so(database: Database, desk: Desk) -> None:
    opened(database, people=1)
    factories.run(database, "delete from contact_method")
    assert desk.claim() == 1
    assert desk.settle() == 1
    [[found, error]] = factories.run(
        database, "select status, last_error from notification_attempt where kind = 'PAGE'"
    )
    assert found == "FAILED" and "no longer exists" in error
    assert desk.sent == []


def test_a_transport_this_process_does_not_have_is_left_to_others(database: Database, desk: Desk) -> None:
    opened(database, people=1)
    factories.run(database, "update notification_attempt set transport = 'pigeon' where kind = 'PAGE'")
    assert desk.claim() == 1
    desk.settle()
    [[found, tries]] = factories.run(database, "select status, tries from notification_attempt where kind = 'PAGE'")
    assert (found, tries) == ("PENDING", 0)
    assert desk.claim() == 0


def test_a_page_that_was_flagged_between_claim_and_send_is_not_sent(
    database: Database, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    incident = opened(database, people=1)
    real = attempts.claim

    def claim(*args):
        found = real(*args)
        with database.begin() as tx:
            answer = incidents.acknowledge(tx, incident.id, ALICE)
        assert len(answer.in_flight) == 1
        return found

    monkeypatch.setattr(attempts, "claim", claim)
    assert desk.claim() == 1
    assert desk.settle() == 1
    assert desk.sent == []
    assert {state for _, state in factories.statuses(database, incident.id)} == {"CANCELLED"}


def test_what_no_sender_has_begun_can_be_given_back(database: Database, desk: Desk) -> None:
    opened(database, people=6)
    desk.open.clear()
    while desk.claim():
        pass
    wait_for(lambda: len(desk.sent) == 2)
    factories.run(database, "update notification_attempt set destination = 'webhook:other' where status = 'PENDING'")
    assert desk.claim() == 1
    wait_for(lambda: len(desk.sent) == 3)
    desk.dispatch.give_back()
    assert len(desk.dispatch.jobs) == 3 and not desk.dispatch.unsettled


def test_a_send_that_could_outlive_its_lease_is_given_back_and_uses_no_try(database: Database, desk: Desk) -> None:
    opened(database, people=1)
    tx = desk.session.single()
    due = attempts.whats_due(tx)
    assert desk.dispatch.claim(tx, due, time.monotonic() - 7) == 1
    desk.back()
    desk.settle()
    assert desk.sent == []
    [[found, tries]] = factories.run(database, "select status, tries from notification_attempt where kind = 'PAGE'")
    assert (found, tries) == ("PENDING", 0)


@pytest.mark.parametrize(
    ("error", "became", "known"),
    [
        (DeliveryError("It answered 503."), "PENDING", 1),
        (DeliveryError("It said no.", permanent=True), "FAILED", 0),
        (DeliveryError("Too many.", limited=True, retry_after=60.0), "PENDING", 1),
        (DeliveryError("No answer.", unknown=True), "PENDING", 1),
    ],
)
def test_what_a_transport_raises_is_recorded_on_the_attempt_and_at_the_gate(
    database: Database, desk: Desk, error: DeliveryError, became: str, known: int
) -> None:
    opened(database, people=1)
    desk.error = error
    desk.claim()
    desk.back()
    desk.settle()
    assert status(database, desk.sent[0].attempts[0].id) == became
    assert len(factories.run(database, "select 1 from destination")) == known


def test_one_sender_in_eight_is_kept_for_the_low_lane_and_a_quarter_for_the_high(database: Database) -> None:
    for senders, high, low in ((4, 3, 3), (16, 14, 12), (64, 56, 48)):
        dispatch = make_engine(database.url, senders=senders).dispatch
        assert (dispatch.hands("high"), dispatch.hands("low")) == (high, low)


def test_a_process_owns_nothing_of_its_earlier_life(database: Database) -> None:
    assert make_engine(database.url).dispatch.owner != make_engine(database.url).dispatch.owner


@pytest.mark.parametrize("order", list(permutations(("late failure", "late success", "success", "success again"))))
def test_k063_results_in_any_order_or_twice_end_in_the_same_state(
    database: Database, clock: MovedClock, order: tuple[str, ...]
) -> None:
    """One process lost its lease and another sent the page again; what each says comes whenever it comes."""
    opened(database, people=1)
    with database.read() as tx:
        [first] = claim(tx, "one")
        clock.pass_(seconds=21)
    with database.read() as tx:
        assert attempts.reap(tx) == 1
        [second] = claim(tx, "two")
        for word in order:
            owner, row = ("one", first) if word.startswith("late") else ("two", second)
            settle(tx, [row], "RETRY" if word == "late failure" else "DELIVERED", owner)
    assert (status(database, first.id), attempt(database, first.id)["tries"]) == ("DELIVERED", 2)
    kept = factories.run(database, "select try, outcome from attempt_try order by claim_seq")
    assert kept == [(1, "unknown"), (2, "delivered")]
