"""Gates: how many sends a destination may have, not before when, and why."""

from datetime import UTC, datetime, timedelta

import pytest

from escalade.db import Database
from escalade.gates import Gates
from escalade.transports import DeliveryError
from tests import factories
from tests.clock import MovedClock

NOW = datetime(2026, 6, 1, tzinfo=UTC)
HOST = "webhook:example.com"


def fail(database: Database, gates: Gates, times: int = 1, **more: object) -> None:
    """So many sends fail."""
    with database.read() as tx:
        for _ in range(times):
            gates.record(tx, HOST, DeliveryError("It answered 503.", **more))  # type: ignore[arg-type]


def places(database: Database, gates: Gates) -> int:
    """What is free now."""
    with database.read() as tx:
        return gates.places(HOST, tx.now)


@pytest.mark.parametrize(("senders", "each"), [(16, 14), (4, 2), (3, 1), (2, 1)])
def test_a_healthy_destination_may_have_all_senders_but_two(senders: int, each: int) -> None:
    gates = Gates(senders)
    assert gates.places(HOST, NOW) == each
    gates.begin(HOST)
    assert gates.places(HOST, NOW) == each - 1
    gates.end(HOST)
    assert gates.places(HOST, NOW) == each


def test_a_full_destination_is_closed_to_the_claim_and_says_its_free_places_otherwise() -> None:
    gates = Gates(4)
    assert gates.room(NOW, {}).closed == []
    gates.begin(HOST)
    room = gates.room(NOW, {"method:1": NOW})
    assert (room.closed, room.held, dict(room.free), room.each) == ([], ["method:1"], {HOST: 1}, 2)
    gates.begin(HOST)
    assert gates.room(NOW, {}).closed == [HOST]


def test_three_failures_in_a_row_leave_one_place(database: Database) -> None:
    gates = Gates(16)
    fail(database, gates, 2)
    assert places(database, gates) == 14
    fail(database, gates)
    assert places(database, gates) == 1
    gates.begin(HOST)
    assert places(database, gates) == 0


def test_one_success_opens_the_gate_again_for_every_instance(database: Database) -> None:
    gates, other = Gates(16), Gates(16)
    fail(database, gates, 5)
    with database.read() as tx:
        other.refresh(tx)
        assert other.places(HOST, tx.now) == 1
        other.record(tx, HOST, None)
        gates.refresh(tx)
        assert gates.places(HOST, tx.now) == 14
    assert factories.run(database, "select * from destination") == []


def test_failures_are_counted_across_instances(database: Database) -> None:
    one, other = Gates(16), Gates(16)
    fail(database, one, 2)
    fail(database, other)
    with database.read() as tx:
        one.refresh(tx)
        assert one.troubles[HOST].failures == 3


def test_a_wait_that_was_asked_for_closes_the_gate_until_then(database: Database, clock: MovedClock) -> None:
    gates = Gates(16)
    fail(database, gates, retry_after=30.0, limited=True)
    assert places(database, gates) == 0
    with database.read() as tx:
        opens = gates.opens_at(tx.now)
        assert opens is not None and timedelta(seconds=15) < opens - tx.now <= timedelta(seconds=30)
    clock.pass_(seconds=31)
    assert places(database, gates) == 14
    with database.read() as tx:
        assert gates.opens_at(tx.now) is None


def test_an_absurd_wait_is_cut_to_an_hour(database: Database, clock: MovedClock) -> None:
    gates = Gates(16)
    fail(database, gates, retry_after=10.0**9, limited=True)
    clock.pass_(seconds=3601)
    assert places(database, gates) == 14


def test_a_shorter_wait_does_not_shorten_a_longer_one(database: Database, clock: MovedClock) -> None:
    gates = Gates(16)
    fail(database, gates, retry_after=100.0, limited=True)
    fail(database, gates)
    with database.read() as tx:
        gates.refresh(tx)
    clock.pass_(seconds=50)
    assert places(database, gates) == 0


def test_a_failure_without_a_wait_does_not_open_the_gate_early_in_this_process(
    database: Database, clock: MovedClock
) -> None:
    gates = Gates(16)
    fail(database, gates, retry_after=100.0, limited=True)
    fail(database, gates)
    clock.pass_(seconds=50)
    assert places(database, gates) == 0


def test_a_refusal_for_good_of_one_message_says_nothing_of_the_destination(database: Database) -> None:
    gates = Gates(16)
    fail(database, gates, 5, permanent=True)
    assert places(database, gates) == 14
    assert factories.run(database, "select * from destination") == []


def test_the_reason_is_kept_for_people(database: Database) -> None:
    fail(database, Gates(16))
    assert factories.run(database, "select name, reason from destination") == [(HOST, "It answered 503.")]
