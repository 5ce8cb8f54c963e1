"""Acknowledge and resolve against a claim, a settle, a replay, a step and an alert, held open at each boundary."""

import pytest

from escalade import attempts, climbing, incidents
from escalade.db import Database
from escalade.errors import Conflict
from tests import factories
from tests.clock import MovedClock
from tests.interleavings.hands import Hands, claim, outcomes, settle
from tests.interleavings.invariants import check
from tests.interleavings.scenes import all_failed, attempt, opened, status

ALICE = "alice@example.com"


def test_no_claim_takes_a_page_between_the_two_statements_of_an_acknowledgement(
    database: Database, hands: Hands
) -> None:
    incident = opened(database, people=3)
    ack = hands.call(incidents.acknowledge, incident.id, ALICE, before="stop_attempts").stopped()
    with database.read() as tx:
        assert claim(tx) == []
    answer = ack.done()
    assert answer.cancelled == 4 and answer.in_flight == ()
    with database.read() as tx:
        assert claim(tx) == []
    assert {status for _, status in factories.statuses(database, incident.id)} == {"CANCELLED"}
    assert check(database.url) == []


def test_an_acknowledgement_names_the_page_of_a_claim_that_commits_while_it_waits(
    database: Database, hands: Hands
) -> None:
    incident = opened(database, people=3)
    taking = hands.call(claim, "one", 2, before="commit").stopped()
    ack = hands.call(incidents.acknowledge, incident.id, ALICE).blocked()
    taken = taking.done()
    answer = ack.done()
    assert [page.attempt_id for page in answer.in_flight] == [row.id for row in taken]
    assert answer.cancelled == 2
    assert all(attempt(database, row.id)["cancel_requested"] for row in taken)
    assert check(database.url) == []


def test_a_page_that_goes_back_to_the_queue_while_the_acknowledgement_waits_is_cancelled(
    database: Database, hands: Hands
) -> None:
    incident = opened(database, people=2)
    with database.read() as tx:
        rows = claim(tx)
    settling = hands.call(settle, rows[:1], "RETRY", before="commit").stopped()
    ack = hands.call(incidents.acknowledge, incident.id, ALICE).blocked()
    [settled] = settling.done()
    answer = ack.done()
    assert settled.status == "PENDING"
    assert status(database, rows[0].id) == "CANCELLED"
    assert [page.attempt_id for page in answer.in_flight] == [rows[1].id]
    assert check(database.url) == []


def test_a_page_that_fails_after_the_acknowledgement_is_cancelled_and_not_tried_again(
    database: Database, hands: Hands
) -> None:
    incident = opened(database, people=2)
    with database.read() as tx:
        rows = claim(tx)
    ack = hands.call(incidents.acknowledge, incident.id, ALICE, before="commit").stopped()
    settling = hands.call(settle, rows, "RETRY").blocked()
    ack.done()
    assert [row.status for row in settling.done()] == ["CANCELLED", "CANCELLED"]
    assert check(database.url) == []


def test_a_page_that_arrives_after_the_acknowledgement_is_recorded_as_delivered(database: Database) -> None:
    incident = opened(database, people=1)
    with database.read() as tx:
        rows = claim(tx)
    with database.begin() as tx:
        answer = incidents.acknowledge(tx, incident.id, ALICE)
        again = incidents.acknowledge(tx, incident.id, "bob@example.com")
    assert [page.user for page in answer.in_flight] == ["person0@example.com"]
    assert not again.changed and again.in_flight == answer.in_flight
    assert again.incident.acknowledged_by == ALICE
    with database.read() as tx:
        assert [row.status for row in settle(tx, rows, "DELIVERED")] == ["DELIVERED"]


def test_of_two_acknowledgements_at_once_one_is_first(database: Database, hands: Hands) -> None:
    incident = opened(database)
    first = hands.call(incidents.acknowledge, incident.id, ALICE, before="commit").stopped()
    second = hands.call(incidents.acknowledge, incident.id, "bob@example.com").blocked()
    assert first.done().changed
    answer = second.done()
    assert not answer.changed and answer.incident.acknowledged_by == ALICE
    assert factories.events(database, incident.id).count("acknowledged") == 1


def test_an_acknowledgement_that_waited_for_a_resolve_is_refused(database: Database, hands: Hands) -> None:
    incident = opened(database)
    resolve = hands.call(incidents.resolve, incident.id, ALICE, before="commit").stopped()
    ack = hands.call(incidents.acknowledge, incident.id, "bob@example.com").blocked()
    assert resolve.done().changed
    with pytest.raises(Conflict, match="resolved already"):
        ack.done()


def test_an_acknowledgement_that_waits_for_a_replay_cancels_what_was_replayed(database: Database, hands: Hands) -> None:
    incident = opened(database)
    failed = all_failed(database, incident)
    replay = hands.call(attempts.replay, incident.id, failed, ALICE, before="replay_attempts").stopped()
    ack = hands.call(incidents.acknowledge, incident.id, ALICE).blocked()
    assert replay.done() == failed
    assert ack.done().cancelled == 3
    assert {status(database, attempt_id) for attempt_id in failed} == {"CANCELLED"}
    assert check(database.url) == []


def test_a_replay_that_waited_for_an_acknowledgement_is_refused(database: Database, hands: Hands) -> None:
    incident = opened(database)
    failed = all_failed(database, incident)
    ack = hands.call(incidents.acknowledge, incident.id, ALICE, before="commit").stopped()
    replay = hands.call(attempts.replay, incident.id, failed, ALICE).blocked()
    ack.done()
    with pytest.raises(Conflict, match="acknowledged"):
        replay.done()
    assert {status(database, attempt_id) for attempt_id in failed} == {"FAILED"}


def test_a_reap_while_the_acknowledgement_holds_its_pages_passes_them_by(
    database: Database, hands: Hands, clock: MovedClock
) -> None:
    incident = opened(database, people=1)
    with database.read() as tx:
        [row] = claim(tx)
    clock.pass_(seconds=30)
    ack = hands.call(incidents.acknowledge, incident.id, ALICE, before="stop_attempts").stopped()
    with database.read() as tx:
        assert attempts.reap(tx) == 0
    ack.done()
    with database.read() as tx:
        assert attempts.reap(tx) == 1
    assert status(database, row.id) == "CANCELLED"


def test_a_step_whose_incident_is_held_is_not_waited_for(database: Database, hands: Hands, clock: MovedClock) -> None:
    incident = opened(database, wait=300)
    clock.pass_(seconds=300.5)
    resolve = hands.call(incidents.resolve, incident.id, ALICE, before="commit").stopped()
    step = hands.start(climbing.escalate_due)
    assert step.done() == 0
    resolve.done()
    assert climbing.escalate_due(database.begin) == 0
    assert "PAGE" not in [kind for kind, status in factories.statuses(database, incident.id) if status == "PENDING"]
    assert check(database.url) == []


def test_a_late_step_looks_again_once_it_holds_the_incident(
    database: Database, hands: Hands, clock: MovedClock
) -> None:
    incident = opened(database, wait=300)
    clock.pass_(seconds=302)
    holding = hands.call(incidents.lock, incident.id, before="commit").stopped()
    step = hands.start(climbing.escalate_due, before="lock_incident").stopped()
    holding.done()
    with database.begin() as tx:
        incidents.resolve(tx, incident.id, ALICE)
    step.done()
    assert "step_reached" not in factories.events(database, incident.id)[2:]
    assert check(database.url) == []


def test_a_step_seen_before_a_resolve_committed_is_looked_at_again(
    database: Database, hands: Hands, clock: MovedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    incident = opened(database, wait=300)
    clock.pass_(seconds=300.5)
    # The statement has its snapshot, then waits for the advisory lock, and only then comes to the row.
    late = clock.queries()["lock_due_step"].replace("where ", "where (select pg_advisory_xact_lock(7)::text) = '' and ")
    monkeypatch.setattr("escalade.db.queries", lambda: {**clock.queries(), "lock_due_step": late})
    gate = hands.start(_hold_advisory, before="commit").stopped()
    step = hands.start(climbing.escalate_due).blocked()
    with database.begin() as tx:
        incidents.resolve(tx, incident.id, ALICE)
    gate.done()
    step.done()
    assert "step_reached" not in factories.events(database, incident.id)[2:]
    assert check(database.url) == []


def _hold_advisory(begin) -> None:
    with begin() as tx:
        tx.conn.execute("select pg_advisory_xact_lock(7)")


def test_a_snooze_while_a_claim_is_under_way_flags_what_it_took(database: Database, hands: Hands) -> None:
    incident = opened(database, people=2)
    taking = hands.call(claim, "one", 1, before="commit").stopped()
    snooze = hands.call(incidents.snooze, incident.id, 600, ALICE).blocked()
    [row] = taking.done()
    assert [page.attempt_id for page in snooze.done().in_flight] == [row.id]
    with database.read() as tx:
        assert attempts.settle(tx, "one", outcomes([row], "RELEASE"))[0].status == "CANCELLED"
    assert check(database.url) == []
