"""Steps, deadlines and the look after the last page has failed, against settles and people."""

import pytest

from escalade import climbing, incidents, strays, timeline
from escalade.db import Database, Tx
from tests import factories
from tests.clock import MovedClock
from tests.interleavings.hands import Hands, claim, settle
from tests.interleavings.invariants import check
from tests.interleavings.scenes import all_failed, opened

ALICE = "alice@example.com"


def next_step_due(database: Database, incident_id: int) -> bool:
    """Whether the incident's pending step is due now."""
    query = """select due_at <= %s from notification_attempt
        where incident_id = %s and kind = 'STEP' and status = 'PENDING'"""
    [[due]] = factories.run(database, query, factories.now(database), incident_id)
    return bool(due)


def test_two_settles_that_fail_the_last_two_pages_make_the_next_step_due(database: Database, hands: Hands) -> None:
    incident = opened(database, people=2)
    with database.read() as tx:
        one, other = claim(tx)
    first = hands.call(settle, [one], "FAILED", before="commit").stopped()
    second = hands.call(settle, [other], "FAILED", before="commit").stopped()
    assert climbing.escalate_early(database.begin) == 0
    first.done()
    assert climbing.escalate_early(database.begin) == 0
    assert not next_step_due(database, incident.id)
    second.done()
    assert climbing.escalate_early(database.begin) == 1
    assert next_step_due(database, incident.id)
    assert climbing.escalate_early(database.begin) == 0


def test_a_page_that_fails_during_the_look_marks_the_incident_again(database: Database, hands: Hands) -> None:
    incident = opened(database, people=2)
    with database.read() as tx:
        one, other = claim(tx)
        settle(tx, [one], "FAILED")
    look = hands.start(climbing.escalate_early, before="commit").stopped()
    with database.read() as tx:
        settle(tx, [other], "FAILED")
    assert look.done() == 0
    assert climbing.escalate_early(database.begin) == 1
    assert next_step_due(database, incident.id)


def test_the_look_does_not_wait_for_an_incident_that_somebody_holds(database: Database, hands: Hands) -> None:
    incident = opened(database)
    all_failed(database, incident)
    note = hands.call(incidents.note, incident.id, "looking", ALICE, before="commit").stopped()
    assert hands.start(climbing.escalate_early).done() == 0
    note.done()
    assert climbing.escalate_early(database.begin) == 1


def test_the_end_of_a_round_that_repeats_is_not_hurried(database: Database, clock: MovedClock) -> None:
    incident = opened(database, people=1, repeat=1)
    for _ in range(2):
        all_failed(database, incident)
        climbing.escalate_early(database.begin)
        climbing.escalate_due(database.begin)
    assert factories.events(database, incident.id).count("step_hurried") == 1
    assert not next_step_due(database, incident.id)
    assert check(database.url) == []


def test_an_acknowledgement_during_the_look_wins_over_the_hurried_step(database: Database, hands: Hands) -> None:
    incident = opened(database)
    all_failed(database, incident)
    look = hands.start(climbing.escalate_early, before="commit").stopped()
    ack = hands.call(incidents.acknowledge, incident.id, ALICE).blocked()
    assert look.done() == 1
    assert ack.done().cancelled == 1
    assert climbing.escalate_due(database.begin) == 0
    assert check(database.url) == []


def test_two_engines_climb_two_incidents_and_never_one_twice(
    database: Database, hands: Hands, clock: MovedClock
) -> None:
    incident = opened(database)
    other = factories.open_incident(database, incident.service_id or 0, key="cpu")
    clock.pass_(seconds=300.5)
    first = hands.start(climbing.escalate_due, before="insert_pages").stopped()
    assert hands.start(climbing.escalate_due).done() == 1
    assert first.done() == 1
    for one in (incident, other):
        assert factories.events(database, one.id).count("step_reached") == 2
    assert check(database.url) == []


@pytest.mark.parametrize("look", ["lock_due_step", "lock_waking_incident"])
def test_a_time_read_before_the_lock_puts_no_timeline_out_of_order(
    database: Database, hands: Hands, clock: MovedClock, look: str
) -> None:
    incident = opened(database, ack_timeout_seconds=60)
    if look == "lock_waking_incident":
        with database.begin() as tx:
            incidents.snooze(tx, incident.id, 60, ALICE)
    clock.pass_(seconds=301)
    verb = climbing.escalate_due if look == "lock_due_step" else climbing.wake_due
    engine = hands.start(verb, before=look).stopped()
    with database.begin() as tx:
        incidents.note(tx, incident.id, "written after the engine read the time", ALICE)
    assert engine.done() == 1
    assert check(database.url) == []


def test_a_page_that_fails_beside_a_transition_is_shown_in_time_order(database: Database, hands: Hands) -> None:
    incident = opened(database, people=1)
    with database.read() as tx:
        rows = claim(tx)

    def late(tx: Tx) -> None:
        assert tx.now
        settle(tx, rows, "FAILED")

    settling = hands.call(late, before="settle").stopped()
    with database.begin() as tx:
        incidents.acknowledge(tx, incident.id, ALICE)
    settling.done()
    with database.read() as tx:
        shown = timeline.of_incident(tx, incident.id)
    assert [entry.at for entry in shown] == sorted(entry.at for entry in shown)
    assert {"acknowledged", "cancelled"} <= {entry.event for entry in shown}


def test_a_late_step_gets_its_turn_on_an_incident_whose_alert_repeats_all_the_time(
    database: Database, hands: Hands, clock: MovedClock
) -> None:
    incident = opened(database)
    clock.pass_(seconds=302)
    repeat = hands.call(incidents.lock, incident.id, before="commit").stopped()
    step = hands.start(climbing.escalate_due).blocked()
    repeat.done()
    assert step.done() == 1
    assert factories.events(database, incident.id).count("step_reached") == 2


def test_a_late_step_gives_up_waiting_and_others_go_on(database: Database, hands: Hands, clock: MovedClock) -> None:
    incident = opened(database)
    clock.pass_(seconds=302)
    holder = hands.call(incidents.lock, incident.id, before="commit").stopped()
    assert hands.start(climbing.escalate_due).done() == 0
    holder.done()
    assert climbing.escalate_due(database.begin) == 1


def test_a_snooze_that_ends_while_somebody_resolves_starts_nothing(
    database: Database, hands: Hands, clock: MovedClock
) -> None:
    incident = opened(database)
    with database.begin() as tx:
        incidents.snooze(tx, incident.id, 60, ALICE)
    clock.pass_(seconds=61)
    resolve = hands.call(incidents.resolve, incident.id, ALICE, before="commit").stopped()
    assert hands.start(climbing.wake_due).done() == 0
    resolve.done()
    assert climbing.wake_due(database.begin) == 0
    assert check(database.url) == []


def test_a_first_step_with_nobody_to_reach_wakes_the_engine_for_the_next(database: Database) -> None:
    zoe = factories.user(database, "zoe")
    factories.contact(database, zoe, "http://127.0.0.1:9/zoe")
    service = factories.service(database, factories.policy(database, (300, []), (300, [("user", zoe)])))
    incident = factories.open_incident(database, service)
    assert next_step_due(database, incident.id)
    assert database.doorbell.event.is_set()


def test_a_stray_is_reported_at_a_time_read_after_the_lock(database: Database, hands: Hands, clock: MovedClock) -> None:
    incident = opened(database)
    factories.run(database, "delete from notification_attempt where kind = 'STEP'")
    clock.pass_(seconds=61)
    report = hands.start(strays.report_strays, before="lock_strays").stopped()
    with database.begin() as tx:
        incidents.note(tx, incident.id, "written after the engine read the time", ALICE)
    assert report.done() == 1
    assert not [line for line in check(database.url) if "timeline" in line]
