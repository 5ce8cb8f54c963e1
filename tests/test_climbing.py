"""What time does to an incident: steps, rounds, the end of the ladder, snoozes, timeouts, and what goes wrong."""

import logging
import threading
from collections.abc import Callable
from contextlib import closing

import psycopg
import pytest

from escalade import climbing, fanout, incidents
from escalade.db import Database, Session, Tx
from escalade.incident import Incident
from tests import factories
from tests.acting import ALICE, claim, climb, do, entries, rows, send, shape, state
from tests.clock import MovedClock

NOWHERE = "http://127.0.0.1:1"
Raise = Callable[[int | None], None]


@pytest.fixture
def incident(database: Database, clock: MovedClock) -> Incident:
    """Alice is being paged, Bob is next in five minutes; one repeat."""
    return factories.open_incident(database, factories.ladder(database, NOWHERE, repeat=1), "disk")


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Raise:
    """Makes the ladder of one incident raise; None mends it."""
    whole = fanout.fan_out
    bad: list[int | None] = [None]

    def fan_out(tx: Tx, incident: Incident, step: int) -> Incident:
        if incident.id == bad[0]:
            raise ZeroDivisionError("this ladder is broken")
        return whole(tx, incident, step)

    monkeypatch.setattr(fanout, "fan_out", fan_out)
    caplog.set_level(logging.CRITICAL, "escalade.climbing")

    def choose(incident_id: int | None) -> None:
        bad[0] = incident_id

    return choose


def test_each_step_is_taken_at_its_time_and_not_before(
    database: Database, incident: Incident, clock: MovedClock
) -> None:
    clock.pass_(seconds=299)
    assert climb(database) == 0
    clock.pass_(seconds=2)
    assert climb(database) == 1
    assert [row["target"] for row in rows(database, incident.id)] == ["schedule:primary", "user:bob@example.com"]
    assert state(database, incident.id).step == 2


def test_k106_nobody_answers_the_ladder_repeats_and_then_is_exhausted_and_the_fallback_told(
    database: Database, incident: Incident, clock: MovedClock
) -> None:
    factories.fallback(database, "channel", factories.channel(database, f"{NOWHERE}/ops"), "ops")
    seen = []
    for _ in range(4):
        clock.pass_(minutes=5, seconds=1)
        climb(database)
        now = state(database, incident.id)
        seen.append((now.round, now.step, now.repeats_left, now.exhausted_at is not None))
    assert seen == [(1, 2, 1, False), (2, 1, 0, False), (2, 2, 0, False), (2, 2, 0, True)]
    assert entries(database, incident.id, "repeated") == [{"round": 2}]
    assert entries(database, incident.id, "fallback_told") == [{"people": "channel:ops"}]
    last = rows(database, incident.id)[-1]
    assert (last["event"], last["target"], last["status"]) == ("exhausted", "channel:ops", "PENDING")
    assert all(row["status"] != "PENDING" for row in rows(database, incident.id, "STEP"))
    clock.pass_(days=1)
    assert climb(database) == 0


@pytest.mark.parametrize("gone", [True, False])
def test_without_a_fallback_that_can_be_told_the_timeline_says_so(
    database: Database, incident: Incident, clock: MovedClock, gone: bool
) -> None:
    if gone:
        factories.fallback(database, "channel", 404, "ops")
    for _ in range(4):
        clock.pass_(minutes=5, seconds=1)
        climb(database)
    assert state(database, incident.id).exhausted_at is not None
    assert len(entries(database, incident.id, "fallback_missing")) == 1
    assert [entry["target"] for entry in entries(database, incident.id, "target_skipped")] == ["channel:ops"] * gone


def test_an_exhausted_incident_can_be_acknowledged_and_resolved(
    database: Database, incident: Incident, clock: MovedClock
) -> None:
    for _ in range(4):
        do(database, incidents.escalate, incident.id, ALICE)
    assert state(database, incident.id).exhausted_at is not None
    do(database, incidents.acknowledge, incident.id, ALICE)
    assert state(database, incident.id).exhausted_at is None
    do(database, incidents.resolve, incident.id, ALICE)
    assert state(database, incident.id).status == "RESOLVED"


def test_k021_a_running_incident_keeps_its_ladder_and_the_next_one_has_the_new(
    database: Database, incident: Incident, clock: MovedClock
) -> None:
    factories.run(database, "delete from escalation_step where position = 2")
    factories.run(database, "update escalation_step set wait_seconds = 60")
    assert incident.service_id is not None
    later = factories.open_incident(database, incident.service_id, "later")
    clock.pass_(seconds=61)
    climb(database)
    assert state(database, later.id).round == 2, "its ladder of one step begins again"
    assert state(database, incident.id).step == 1
    clock.pass_(minutes=5)
    climb(database)
    assert [row["target"] for row in rows(database, incident.id)][-1] == "user:bob@example.com"


def test_k023_the_end_of_a_snooze_begins_one_new_round_at_step_one(
    database: Database, incident: Incident, clock: MovedClock
) -> None:
    do(database, incidents.snooze, incident.id, 3600, ALICE)
    clock.pass_(minutes=59)
    assert climb(database) == 0
    clock.pass_(minutes=2)
    assert climb(database) == 1
    assert entries(database, incident.id, "snooze_ended") == [{"round": 2}]
    assert shape(database, incident.id)[2:] == [("PAGE", 2, 1, "PENDING"), ("STEP", 2, 2, "PENDING")]
    assert state(database, incident.id).repeats_left == 1


def test_k027_the_acknowledgement_timeout_starts_it_again_and_says_why(database: Database, clock: MovedClock) -> None:
    service = factories.ladder(database, NOWHERE)
    factories.run(database, "update service set ack_timeout_seconds = 1800")
    incident = factories.open_incident(database, service)
    do(database, incidents.acknowledge, incident.id, ALICE)
    clock.pass_(minutes=29)
    assert climb(database) == 0
    clock.pass_(minutes=2)
    assert climb(database) == 1
    now = state(database, incident.id)
    assert (now.status, now.round, now.step, now.acknowledged_by) == ("TRIGGERED", 2, 1, None)
    assert entries(database, incident.id, "ack_timed_out") == [{"after": "30m"}]
    assert shape(database, incident.id)[2:] == [("PAGE", 2, 1, "PENDING"), ("STEP", 2, 2, "PENDING")]


def test_a_resolve_ends_the_acknowledgement_timeout(database: Database, clock: MovedClock) -> None:
    service = factories.ladder(database, NOWHERE)
    factories.run(database, "update service set ack_timeout_seconds = 1800")
    incident = factories.open_incident(database, service)
    do(database, incidents.acknowledge, incident.id, ALICE)
    do(database, incidents.resolve, incident.id, ALICE)
    clock.pass_(minutes=31)
    assert climb(database) == 0


def test_k104_a_ladder_that_raises_is_put_off_then_skipped_and_stops_no_other(
    database: Database, incident: Incident, clock: MovedClock, broken: Raise
) -> None:
    assert incident.service_id is not None
    other = factories.open_incident(database, incident.service_id, "other")
    broken(incident.id)
    clock.pass_(minutes=5, seconds=1)
    climb(database)
    assert state(database, other.id).step == 2
    assert state(database, incident.id).step == 1
    for _ in range(2):
        assert climb(database) == 0, "put off for five seconds"
        clock.pass_(seconds=6)
        climb(database)
    where = {"round": 1, "step": 2}
    why = "this ladder is broken"
    assert entries(database, incident.id, "step_failed")[:2] == [{"error": why, **where}] * 2
    assert entries(database, incident.id, "step_skipped") == [{"why": why, **where}]
    broken(None)
    clock.pass_(seconds=6)
    climb(database)
    assert state(database, incident.id).round == 2, "the ladder went on with what comes after the step"


def test_k104_a_ladder_that_raises_to_its_end_is_exhausted(
    database: Database, clock: MovedClock, broken: Raise
) -> None:
    incident = factories.open_incident(database, factories.ladder(database, NOWHERE))
    broken(incident.id)
    clock.pass_(minutes=5)
    for _ in range(6):
        clock.pass_(seconds=6)
        climb(database)
    assert state(database, incident.id).exhausted_at is not None
    assert climb(database) == 0


def test_k104_a_deadline_that_raises_comes_again_and_stops_no_other(
    database: Database, incident: Incident, clock: MovedClock, broken: Raise
) -> None:
    assert incident.service_id is not None
    other = factories.open_incident(database, incident.service_id, "other")
    for each in (incident, other):
        do(database, incidents.snooze, each.id, 60, ALICE)
    broken(incident.id)
    clock.pass_(seconds=61)
    climb(database)
    assert (state(database, other.id).round, state(database, incident.id).round) == (2, 1)
    broken(None)
    assert climb(database) == 0
    clock.pass_(seconds=61)
    climb(database)
    assert state(database, incident.id).round == 2


def test_the_engine_passes_by_an_incident_that_somebody_holds(
    database: Database, incident: Incident, clock: MovedClock
) -> None:
    clock.pass_(minutes=5)
    with database.begin() as tx:
        incidents.lock(tx, incident.id)
        assert climbing.escalate_due(database.begin) == 0


def test_a_late_step_waits_for_a_busy_row(database: Database, incident: Incident, clock: MovedClock) -> None:
    clock.pass_(minutes=5, seconds=2)
    held, free = threading.Event(), threading.Event()

    def hold() -> None:
        with database.begin() as tx:
            incidents.lock(tx, incident.id)
            held.set()
            free.wait(0.1)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(5)
    assert climbing.escalate_due(database.begin) == 1
    holder.join()
    assert state(database, incident.id).step == 2


def test_a_late_step_waits_no_longer_than_a_moment(database: Database, incident: Incident, clock: MovedClock) -> None:
    clock.pass_(minutes=5, seconds=2)
    with closing(Session(database.url)) as session:
        with database.begin() as tx:
            incidents.lock(tx, incident.id)
            assert climbing.escalate_due(session.begin) == 0
        assert entries(database, incident.id, "step_failed") == []
        assert climbing.escalate_due(session.begin) == 1


def test_when_every_page_of_a_step_has_failed_the_next_step_is_due_at_once(
    database: Database, incident: Incident
) -> None:
    send(database, "FAILED")
    assert climb(database) == 2
    assert state(database, incident.id).step == 2
    assert factories.events(database, incident.id)[-3:] == ["failed", "step_hurried", "step_reached"]


def test_a_step_with_one_page_that_may_still_arrive_is_waited_out(
    database: Database, incident: Incident, clock: MovedClock
) -> None:
    alice = factories.run(database, "select id from app_user where email = %s", ALICE)[0][0]
    second = factories.contact(database, alice, f"{NOWHERE}/second", number=2)
    factories.rule(database, alice, second, after=60)
    do(database, incidents.acknowledge, incident.id, ALICE)
    do(database, incidents.unacknowledge, incident.id, ALICE)
    send(database, "FAILED")
    assert climbing.escalate_early(database.begin) == 0
    clock.pass_(seconds=61)
    send(database, "FAILED")
    assert climbing.escalate_early(database.begin) == 1


def test_a_dead_contact_does_not_burn_the_rounds(database: Database, incident: Incident, clock: MovedClock) -> None:
    send(database, "FAILED")
    climb(database)
    send(database, "FAILED")
    assert climb(database) == 0, "the round that repeats is waited out"
    assert state(database, incident.id).round == 1
    clock.pass_(minutes=5, seconds=1)
    climb(database)
    for _ in range(2):
        send(database, "FAILED")
        climb(database)
    assert state(database, incident.id).exhausted_at is not None, "the last round's end is not waited out"


@pytest.mark.parametrize("act", ["acknowledge", "resolve"])
def test_a_failed_page_hurries_nothing_once_somebody_acted(database: Database, incident: Incident, act: str) -> None:
    claimed = send(database, "FAILED")
    do(database, getattr(incidents, act), incident.id, ALICE)
    assert len(claimed) == 1
    assert climb(database) == 0
    assert factories.run(database, "select count(*) from notification_attempt where recheck") == [(0,)]


def test_a_step_of_an_incident_that_is_gone_stops_nothing(
    database: Database, incident: Incident, clock: MovedClock
) -> None:
    assert incident.service_id is not None
    other = factories.open_incident(database, incident.service_id, "other")
    factories.run(database, "delete from incident where id = %s", incident.id)
    clock.pass_(minutes=6)
    assert climb(database) == 1
    assert climb(database) == 0
    assert state(database, other.id).step == 2


@pytest.mark.parametrize("silent", ["status = 'RESOLVED', resolved_at = now()", "snoozed_until = '2100-01-01'"])
def test_k028_a_step_left_on_an_incident_that_wants_none_is_not_taken(
    database: Database, incident: Incident, clock: MovedClock, silent: str
) -> None:
    factories.run(database, f"update incident set {silent}")
    clock.pass_(minutes=6)
    assert climb(database) == 0, "and the engine does not believe that it did something"
    assert len(rows(database, incident.id)) == 1


def test_steps_overdue_after_a_long_stop_come_one_at_a_time(
    database: Database, incident: Incident, clock: MovedClock
) -> None:
    clock.pass_(days=2)
    assert climb(database) == 1
    assert climb(database) == 0
    assert state(database, incident.id).step == 2


def test_k066_after_a_long_stop_only_open_incidents_page(
    database: Database, incident: Incident, clock: MovedClock
) -> None:
    assert incident.service_id is not None
    acknowledged = factories.open_incident(database, incident.service_id, "acknowledged")
    resolved = factories.open_incident(database, incident.service_id, "resolved")
    do(database, incidents.acknowledge, acknowledged.id, ALICE)
    do(database, incidents.resolve, resolved.id, ALICE)
    clock.pass_(days=2)
    claimed = {row.id for row in claim(database)}
    assert claimed == {row["id"] for row in rows(database, incident.id)}


def test_away_tells_a_lost_database_from_a_busy_row() -> None:
    assert climbing.away(psycopg.OperationalError("gone"))
    assert not climbing.away(psycopg.errors.LockNotAvailable("busy"))
    assert not climbing.away(ValueError("a fault of ours"))
    assert not climbing.away(psycopg.errors.UniqueViolation("twice"))


def test_a_ladder_that_raises_to_its_end_still_tells_the_fallback(database: Database, clock: MovedClock) -> None:
    ops = factories.channel(database, "http://127.0.0.1:1/ops")
    factories.fallback(database, "channel", ops, "ops")
    incident = factories.open_incident(database, factories.ladder(database, "http://127.0.0.1:1"))
    step = incidents.Step(0, 1, 3, 2)
    with database.begin() as tx:
        climbing.skip_step(tx, incidents.lock(tx, incident.id), step, "it raises")
    assert "fallback_told" in factories.events(database, incident.id)
    [(exhausted,)] = factories.run(database, "select exhausted_at from incident where id = %s", incident.id)
    assert exhausted is not None
