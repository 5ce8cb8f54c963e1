"""Gates: how many sends a destination may have, not before when, and why."""

import random
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from escalade import attempts
from escalade.attempts import Claimed
from escalade.db import Database
from escalade.gates import Gates, Trouble
from escalade.transports import DeliveryError
from tests import factories
from tests import rows as queue
from tests.clock import MovedClock
from tests.interleavings.hands import outcomes

NOW = datetime(2026, 6, 1, tzinfo=UTC)
HOST = "webhook:example.com"
MOST = 14
EACH = 12


def fail(database: Database, gates: Gates, times: int = 1, **more: object) -> None:
    """So many sends fail."""
    with database.read() as tx:
        for _ in range(times):
            gates.record(tx, HOST, DeliveryError("It answered 503.", **more))  # type: ignore[arg-type]


def places(database: Database, gates: Gates) -> int:
    """What is free now."""
    with database.read() as tx:
        return gates.places(HOST, tx.now, EACH)


@pytest.mark.parametrize(("most", "each"), [(14, 12), (3, 2), (2, 1), (1, 1)])
def test_a_healthy_destination_may_have_all_but_two_of_a_lane(most: int, each: int) -> None:
    gates = Gates("one")
    assert gates.room(NOW, most).each == each
    gates.begin(HOST)
    assert dict(gates.room(NOW, most).free) == {HOST: each - 1}
    gates.end(HOST)
    assert dict(gates.room(NOW, most).free) == {}


def test_a_full_destination_is_closed_to_the_claim_and_says_its_free_places_otherwise() -> None:
    gates = Gates("one")
    assert gates.room(NOW, 4).closed == []
    gates.begin(HOST)
    gates.contacts = {"method:1": NOW + timedelta(seconds=1), "method:2": NOW}
    room = gates.room(NOW, 4)
    assert (room.closed, room.held, dict(room.free), room.each) == ([], ["method:1"], {HOST: 1}, 2)
    gates.begin(HOST)
    assert gates.room(NOW, 4).closed == [HOST]


def test_all_failing_destinations_together_have_half_of_a_lane_and_each_its_turn() -> None:
    gates = Gates("one")
    names = [f"webhook:bad{number}.example.com" for number in range(30)]
    gates.troubles = {name: Trouble(name, 3, NOW, "It hangs.") for name in names}
    tried: set[str] = set()
    for _ in range(100):
        room = gates.room(NOW, MOST)
        open_now = [name for name in names if room.free[name] > 0]
        assert len(open_now) == MOST // 2 and set(room.closed) == set(names) - set(open_now)
        tried.update(open_now)
    assert tried == set(names)
    for name in names[: MOST // 2]:
        gates.begin(name)
    assert set(gates.room(NOW, MOST).closed) == set(names)


def test_three_failures_in_a_row_leave_one_place(database: Database) -> None:
    gates = Gates("one")
    fail(database, gates, 2)
    assert places(database, gates) == EACH
    fail(database, gates)
    assert places(database, gates) == 1
    gates.begin(HOST)
    assert places(database, gates) == 0


def test_one_success_opens_the_gate_again_for_every_instance(database: Database) -> None:
    gates, other = Gates("one"), Gates("other")
    fail(database, gates, 5)
    with database.read() as tx:
        other.refresh(tx)
        assert other.places(HOST, tx.now, EACH) == 1
        other.record(tx, HOST, None)
        gates.refresh(tx)
        assert gates.places(HOST, tx.now, EACH) == EACH
    assert factories.run(database, "select * from destination") == []


def test_failures_are_counted_across_instances(database: Database) -> None:
    one, other = Gates("one"), Gates("other")
    fail(database, one, 2)
    fail(database, other)
    with database.read() as tx:
        one.refresh(tx)
        assert one.troubles[HOST].failures == 3


def test_a_wait_that_was_asked_for_closes_the_gate_until_then(database: Database, clock: MovedClock) -> None:
    gates = Gates("one")
    fail(database, gates, retry_after=30.0, limited=True)
    assert places(database, gates) == 0
    with database.read() as tx:
        opens = gates.opens_at(tx.now)
        assert opens is not None and timedelta(seconds=15) < opens - tx.now <= timedelta(seconds=30)
    clock.pass_(seconds=31)
    assert places(database, gates) == EACH
    with database.read() as tx:
        assert gates.opens_at(tx.now) is None


def test_an_absurd_wait_is_cut_to_an_hour(database: Database, clock: MovedClock) -> None:
    gates = Gates("one")
    fail(database, gates, retry_after=10.0**9, limited=True)
    clock.pass_(seconds=3601)
    assert places(database, gates) == EACH


def test_a_shorter_wait_does_not_shorten_a_longer_one(database: Database, clock: MovedClock) -> None:
    gates = Gates("one")
    fail(database, gates, retry_after=100.0, limited=True)
    fail(database, gates)
    with database.read() as tx:
        gates.refresh(tx)
    clock.pass_(seconds=50)
    assert places(database, gates) == 0


def test_a_failure_without_a_wait_does_not_open_the_gate_early_in_this_process(
    database: Database, clock: MovedClock
) -> None:
    gates = Gates("one")
    fail(database, gates, retry_after=100.0, limited=True)
    fail(database, gates)
    clock.pass_(seconds=50)
    assert places(database, gates) == 0


def test_k054_a_success_that_was_under_way_does_not_end_a_wait_that_was_asked_for(
    database: Database, clock: MovedClock
) -> None:
    gates, other = Gates("one"), Gates("other")
    fail(database, gates, retry_after=30.0, limited=True)
    with database.read() as tx:
        other.refresh(tx)
        for one in (gates, other):
            one.record(tx, HOST, None)
            assert one.places(HOST, tx.now, EACH) == 0
        other.refresh(tx)
    assert places(database, other) == 0
    clock.pass_(seconds=31)
    with database.read() as tx:
        assert other.places(HOST, tx.now, EACH) == EACH
        other.record(tx, HOST, None)
    assert factories.run(database, "select * from destination") == []


def test_too_many_without_a_time_counts_as_a_failure(database: Database) -> None:
    gates = Gates("one")
    fail(database, gates, 3, limited=True)
    assert places(database, gates) == 1


def claim_one(database: Database, gates: Gates) -> list[Claimed]:
    """A claim of one process, by what it has read of the gates, however long ago."""
    with database.read() as tx:
        room = gates.room(tx.now, MOST)
        taken = attempts.claim(tx, "high", gates.owner, 20.0, 100, room)
        gates.took(taken, room)
        for row in taken:
            gates.begin(row.destination)
        return taken


def two_processes(database: Database) -> tuple[Gates, Gates]:
    """Two, each of which has seen that HOST failed and that nobody tries it."""
    found = Gates("one"), Gates("other")
    fail(database, found[0], 3)
    with database.read() as tx:
        for gates in found:
            gates.refresh(tx)
    return found


def test_of_several_processes_one_tries_a_failing_destination(database: Database, clock: MovedClock) -> None:
    queue.rows(database, 5, destination=HOST)
    one, other = two_processes(database)
    assert len(claim_one(database, one)) == 1
    assert claim_one(database, other) == [], "what it has read is older than the other's claim"
    with database.read() as tx:
        other.refresh(tx)
        assert other.room(tx.now, MOST).closed == [HOST]
    one.end(HOST)
    fail(database, one)
    with database.read() as tx:
        other.refresh(tx)
    assert len(claim_one(database, other)) == 1
    clock.pass_(seconds=21)
    with database.read() as tx:
        one.refresh(tx)
    assert len(claim_one(database, one)) == 1, "the other is gone, and its turn ended with its lease"


def test_claims_at_once_of_a_failing_destination_take_one_page(database: Database) -> None:
    queue.rows(database, 40, destination=HOST)
    one, _ = two_processes(database)
    crowd = [Gates(f"process {number}") for number in range(8)]
    for gates in crowd:
        gates.troubles = dict(one.troubles)
    with ThreadPoolExecutor(8) as threads:
        taken = list(threads.map(lambda gates: claim_one(database, gates), crowd))
    assert sum(map(len, taken)) == 1


def test_claims_at_once_of_a_paced_contact_make_one_message(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "BUNDLE_LIMIT", 5)
    queue.rows(database, 60, bundle="method:1", pace_seconds=10)
    crowd = [Gates(f"process {number}") for number in range(8)]
    with ThreadPoolExecutor(8) as threads:
        taken = list(threads.map(lambda gates: claim_one(database, gates), crowd))
    assert len({row.head for rows in taken for row in rows}) == 1
    assert claim_one(database, Gates("one that has read nothing yet")) == []
    with database.read() as tx:
        crowd[0].refresh(tx)
        assert crowd[0].room(tx.now, MOST).held == ["method:1"]


def test_who_does_not_get_both_turns_takes_neither(database: Database) -> None:
    """A paced contact behind a failing destination: a turn that nobody uses would be kept until the lease ends."""
    queue.rows(database, 2, destination=HOST, bundle="method:1", pace_seconds=10)
    one, other = two_processes(database)
    turns = "select count(*) from contact_turn where until > %s union all select count(turn_until) from destination"

    def taken() -> list[tuple[int]]:
        return factories.run(database, turns, factories.now(database))

    factories.run(database, "insert into contact_turn values ('method:1', 'x', now() + interval '1 minute')")
    assert claim_one(database, one) == [] and taken() == [(1,), (0,)]
    factories.run(database, "delete from contact_turn")
    factories.run(database, "update destination set turn_owner = 'x', turn_until = now() + interval '1 minute'")
    assert claim_one(database, other) == [] and taken() == [(0,), (1,)]
    factories.run(database, "update destination set turn_until = null")
    assert len(claim_one(database, other)) == 2 and taken() == [(1,), (1,)]


def test_k099_turns_meet_no_deadlock_and_nobody_has_the_turn_of_another(database: Database) -> None:
    """Six processes claim and record what eight contacts behind three destinations are to be told."""
    for number in range(8):
        queue.rows(database, 30, destination=f"webhook:{number % 3}", bundle=f"method:{number}", max_tries=10**6)
    failing = [f"webhook:{number}" for number in range(2)]
    for name in failing:
        factories.run(database, "insert into destination values (%s, 3, now(), 'It is down.', now())", name)
    end, shared = time.monotonic() + 2, []
    with ThreadPoolExecutor(6) as threads:
        done = [threads.submit(work, database, f"process {number}", end) for number in range(6)]
        while time.monotonic() < end:
            shared += factories.run(database, SHARED, failing)
            time.sleep(0.005)
        claims = sum(thread.result() for thread in done)
    assert shared == [] and claims > 20


# Contacts, and destinations that fail, to which two claims at once have sent.
SHARED = """select bundle from notification_attempt where status = 'IN_FLIGHT'
group by bundle having count(distinct (lease_owner, claimed_at)) > 1
union all select destination from notification_attempt where status = 'IN_FLIGHT' and destination = any(%s)
group by destination having count(distinct (lease_owner, claimed_at)) > 1"""


def work(database: Database, owner: str, end: float) -> int:
    """What a process does, with results by chance; how many claims took something. Raises what the database does."""
    gates, rng, claims = Gates(owner), random.Random(owner), 0
    while time.monotonic() < end:
        with database.read() as tx:
            gates.refresh(tx)
            room = gates.room(tx.now, MOST)
            rows = attempts.claim(tx, "high", owner, 20.0, 5, room)
            gates.took(rows, room)
            claims += bool(rows)
            if rows:
                attempts.settle(tx, owner, outcomes(rows, rng.choice(["RETRY", "UNKNOWN", "RELEASE"])))
                for name in {row.destination for row in rows}.intersection(room.failing):
                    gates.record(tx, name, DeliveryError("It answered 503."))
            gates.give_back(tx)
    return claims


@pytest.mark.parametrize("back", ["unsent", "refused for good", "delivered"])
def test_a_turn_ends_with_its_try_whatever_came_of_it(database: Database, back: str) -> None:
    queue.rows(database, 5, destination=HOST)
    one, other = two_processes(database)
    assert len(claim_one(database, one)) == 1
    with database.read() as tx:
        one.give_back(tx)
        other.refresh(tx)
        assert other.places(HOST, tx.now, EACH) == 0, "it is still in the air"
        one.end(HOST)
        if back != "unsent":
            one.record(tx, HOST, DeliveryError("404", permanent=True) if back != "delivered" else None)
        one.give_back(tx)
        other.refresh(tx)
        assert other.places(HOST, tx.now, EACH) == (EACH if back == "delivered" else 1)


def test_what_was_claimed_and_never_heard_of_gives_its_turns_back(database: Database) -> None:
    queue.rows(database, 2, destination=HOST, bundle="method:1", pace_seconds=10)
    one, other = two_processes(database)
    assert len(claim_one(database, one)) == 2
    with database.read() as tx:
        assert attempts.recover(tx, "one", []) == 2
        other.refresh(tx)
    assert len(claim_one(database, other)) == 2


def test_a_refusal_for_good_of_one_message_says_nothing_of_the_destination(database: Database) -> None:
    gates = Gates("one")
    fail(database, gates, 5, permanent=True)
    assert places(database, gates) == EACH
    assert factories.run(database, "select * from destination") == []


def test_the_reason_is_kept_for_people(database: Database) -> None:
    fail(database, Gates("one"))
    assert factories.run(database, "select name, reason from destination") == [(HOST, "It answered 503.")]
