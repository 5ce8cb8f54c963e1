"""Claims, settles and reaps against each other: one live lease an attempt, and stale results change nothing."""

import pytest

from escalade import attempts, incidents
from escalade.db import Database
from tests import factories
from tests.clock import MovedClock
from tests.interleavings.hands import Hands, claim, outcomes, settle
from tests.interleavings.invariants import check
from tests.interleavings.scenes import attempt, crowd, opened, status


def test_a_claim_takes_what_another_has_not_locked_and_waits_for_nothing(database: Database, hands: Hands) -> None:
    opened(database, people=4)
    first = hands.call(claim, "one", 2, before="commit").stopped()
    second = hands.call(claim, "two")
    taken = second.done()
    assert len(taken) == 2
    assert {row.id for row in taken}.isdisjoint(row.id for row in first.done())
    assert check(database.url) == []


def test_a_success_after_the_reap_counts_while_nobody_has_claimed_the_row_again(
    database: Database, clock: MovedClock
) -> None:
    incident = opened(database, people=1)
    with database.read() as tx:
        rows = claim(tx)
    clock.pass_(seconds=30)
    with database.read() as tx:
        assert attempts.reap(tx) == 1
        [settled] = settle(tx, rows, "DELIVERED")
    assert (settled.was, settled.status, settled.lost) == ("PENDING", "DELIVERED", False)
    with database.read() as tx:
        assert claim(tx) == []
    assert [row[0] for row in factories.run(database, "select outcome from attempt_try")] == ["delivered"]
    assert factories.events(database, incident.id)[-2:] == ["lease_expired", "delivered"]


@pytest.mark.parametrize("owner", ["one", "two"])
@pytest.mark.parametrize("outcome", ["DELIVERED", "FAILED", "RETRY", "RELEASE", "UNKNOWN", "CANCELLED"])
def test_q2_a_result_after_the_row_was_claimed_again_changes_nothing(
    database: Database, clock: MovedClock, owner: str, outcome: str
) -> None:
    opened(database, people=1)
    with database.read() as tx:
        stale = claim(tx, "one")
    clock.pass_(seconds=30)
    with database.read() as tx:
        attempts.reap(tx)
        [row] = claim(tx, owner)
        before = attempt(database, row.id)
        [settled] = settle(tx, stale, outcome, "one")
    assert settled.lost and settled.status is None
    assert attempt(database, row.id) == before


def test_a_stale_result_beside_the_fresh_one_in_one_batch_is_told_apart(database: Database, clock: MovedClock) -> None:
    opened(database, people=1)
    with database.read() as tx:
        stale = claim(tx)
    clock.pass_(seconds=30)
    with database.read() as tx:
        attempts.reap(tx)
        fresh = claim(tx)
        answers = attempts.settle(tx, "one", outcomes(stale, "FAILED") + outcomes(fresh, "DELIVERED"))
    assert {(row.seq, row.status, row.lost) for row in answers} == {(1, None, True), (2, "DELIVERED", False)}


def test_a_result_that_is_not_a_success_is_refused_after_the_reap(database: Database, clock: MovedClock) -> None:
    opened(database, people=1)
    with database.read() as tx:
        rows = claim(tx)
    clock.pass_(seconds=30)
    with database.read() as tx:
        attempts.reap(tx)
        [settled] = settle(tx, rows, "FAILED")
    assert settled.status is None and not settled.lost
    assert status(database, rows[0].id) == "PENDING"


def test_settling_twice_changes_nothing_the_second_time(database: Database) -> None:
    incident = opened(database, people=3)
    with database.read() as tx:
        rows = claim(tx)
        batch = [*outcomes(rows[:1], "DELIVERED"), *outcomes(rows[1:2], "RETRY"), *outcomes(rows[2:], "FAILED")]
        assert sorted(str(row.status) for row in attempts.settle(tx, "one", batch)) == [
            "DELIVERED",
            "FAILED",
            "PENDING",
        ]
        before = [attempt(database, row.id) for row in rows]
        again = attempts.settle(tx, "one", batch)
    assert [row.status for row in again] == [None, None, None] and not any(row.lost for row in again)
    assert [attempt(database, row.id) for row in rows] == before
    assert len(factories.run(database, "select 1 from attempt_try")) == 3
    assert (
        len([word for word in factories.events(database, incident.id) if word in ("delivered", "retry", "failed")]) == 3
    )


def test_a_result_that_waited_for_the_reap_finds_the_row_claimed_again(
    database: Database, hands: Hands, clock: MovedClock
) -> None:
    opened(database, people=1)
    with database.read() as tx:
        rows = claim(tx)
    clock.pass_(seconds=30)
    reap = hands.call(attempts.reap, before="commit").stopped()
    late = hands.call(settle, rows, "RETRY").blocked()
    assert reap.done() == 1
    [settled] = late.done()
    assert settled.status is None
    assert status(database, rows[0].id) == "PENDING"
    assert check(database.url) == []


def test_q1_a_reap_leaves_alone_what_is_being_settled(database: Database, hands: Hands, clock: MovedClock) -> None:
    opened(database, people=1)
    with database.read() as tx:
        rows = claim(tx)
    clock.pass_(seconds=30)
    late = hands.call(settle, rows, "DELIVERED", before="commit").stopped()
    with database.read() as tx:
        assert attempts.reap(tx) == 0
    late.done()
    with database.read() as tx:
        assert attempts.reap(tx) == 0
    assert status(database, rows[0].id) == "DELIVERED"


def test_a_settle_locks_in_id_order_whatever_order_it_is_given(database: Database, hands: Hands) -> None:
    opened(database, people=3)
    with database.read() as tx:
        rows = claim(tx)
    holding = hands.call(_lock_attempt, rows[1].id, before="commit").stopped()
    late = hands.call(_settle_by_nested_loop, [rows[2], rows[1], rows[0]]).blocked()
    free = "select id from notification_attempt where kind = 'PAGE' order by id for no key update skip locked"
    assert [row[0] for row in factories.run(database, free)] == [rows[2].id]
    holding.done()
    assert len(late.done()) == 3


def _settle_by_nested_loop(tx, rows: list) -> list:
    # As on a big table: there the plan meets the rows in the order of the outcomes.
    tx.conn.execute("set local enable_hashjoin = off; set local enable_mergejoin = off; set local enable_seqscan = off")
    return settle(tx, rows, "DELIVERED")


def _lock_attempt(tx, attempt_id: int) -> None:
    tx.conn.execute("select 1 from notification_attempt where id = %s for no key update", [attempt_id])


def test_recover_gives_back_only_the_pairs_that_are_not_known(database: Database, clock: MovedClock) -> None:
    opened(database, people=3)
    with database.read() as tx:
        known, lost, other = claim(tx, "one", 1) + claim(tx, "one", 1) + claim(tx, "two", 1)
        # An old claim of the lost row is known: the pair counts, not the id.
        pairs = [(known.id, known.claim_seq), (lost.id, lost.claim_seq - 1)]
        assert attempts.recover(tx, "one", pairs) == 1
    assert [status(database, row.id) for row in (known, lost, other)] == ["IN_FLIGHT", "PENDING", "IN_FLIGHT"]
    assert attempt(database, lost.id)["tries"] == 0
    with database.read() as tx:
        [again] = claim(tx, "one")
    assert (again.id, again.claim_seq) == (lost.id, 2)


def test_recover_does_not_take_a_row_that_a_new_claim_of_ours_holds(
    database: Database, hands: Hands, clock: MovedClock
) -> None:
    opened(database, people=1)
    with database.read() as tx:
        [row] = claim(tx)
    clock.pass_(seconds=30)
    with database.read() as tx:
        attempts.reap(tx)
        [fresh] = claim(tx)
        assert attempts.recover(tx, "one", [(fresh.id, fresh.claim_seq)]) == 0
        assert attempts.recover(tx, "one", [(row.id, row.claim_seq)]) == 1


def test_a_recovered_row_that_was_flagged_is_cancelled(database: Database) -> None:
    incident = opened(database, people=1)
    with database.read() as tx:
        [row] = claim(tx)
    with database.begin() as tx:
        incidents.acknowledge(tx, incident.id, "alice@example.com")
    with database.read() as tx:
        assert attempts.recover(tx, "one", []) == 1
    assert status(database, row.id) == "CANCELLED"


def test_a_reaped_row_that_was_flagged_is_cancelled_and_says_it_may_have_arrived(
    database: Database, clock: MovedClock
) -> None:
    incident = opened(database, people=1)
    with database.read() as tx:
        [row] = claim(tx)
    with database.begin() as tx:
        incidents.acknowledge(tx, incident.id, "alice@example.com")
    clock.pass_(seconds=30)
    with database.read() as tx:
        assert attempts.reap(tx) == 1
    found = attempt(database, row.id)
    assert found["status"] == "CANCELLED" and "may have been delivered" in found["last_error"]
    assert factories.events(database, incident.id)[-1] == "lease_expired"
    with database.read() as tx:
        assert settle(tx, [row], "DELIVERED")[0].status == "DELIVERED"


def test_an_old_success_does_not_swallow_what_a_person_replays(database: Database, clock: MovedClock) -> None:
    incident = opened(database, people=1)
    factories.run(database, "update notification_attempt set max_tries = 1")
    with database.read() as tx:
        [row] = claim(tx)
    clock.pass_(seconds=30)
    with database.read() as tx:
        attempts.reap(tx)
    assert status(database, row.id) == "FAILED"
    old_key = attempt(database, row.id)["idempotency_key"]
    with database.begin() as tx:
        assert attempts.replay(tx, incident.id, [row.id], "alice@example.com") == [row.id]
    with database.read() as tx:
        assert settle(tx, [row], "DELIVERED")[0].lost
        [again] = claim(tx)
    assert again.idempotency_key != old_key


def test_a_crowd_of_claims_takes_every_row_once(database: Database, hands: Hands) -> None:
    service = crowd(database, people=20)
    for _ in range(5):
        factories.open_incident(database, service)
    verbs = [hands.start(lambda begin: _drain(begin)) for _ in range(6)]
    taken = [row for verb in verbs for row in verb.done()]
    assert len(taken) == 100
    assert len(set(taken)) == 100


def _drain(begin) -> list[int]:
    found: list[int] = []
    while True:
        with begin() as tx:
            rows = claim(tx, "one", 7)
        if not rows:
            return found
        found += [row.id for row in rows]
