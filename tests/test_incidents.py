"""Every transition of an incident: what it changes, what it stops, what it answers, and what it refuses."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from escalade import attempts, incidents
from escalade.db import Database
from escalade.errors import Conflict, Invalid, NotFound
from escalade.incident import Incident
from escalade.incidents import InFlight
from tests import factories
from tests.acting import ALICE, BOB, claim, climb, do, end, entries, person, picture, rows, send, shape, state
from tests.clock import MovedClock

NOWHERE = "http://127.0.0.1:1"
Act = Callable[[Database, int], Any]


def acknowledge(db: Database, incident_id: int, actor: str = ALICE) -> incidents.Answer:
    return do(db, incidents.acknowledge, incident_id, actor)


def resolve(db: Database, incident_id: int, actor: str = ALICE) -> incidents.Answer:
    return do(db, incidents.resolve, incident_id, actor)


def reassign(db: Database, incident_id: int) -> incidents.Answer:
    return do(db, incidents.reassign, incident_id, person(db, "bob"), ALICE)


def snooze(db: Database, incident_id: int) -> incidents.Answer:
    return do(db, incidents.snooze, incident_id, 3600, ALICE)


def unacknowledge(db: Database, incident_id: int) -> incidents.Answer:
    return do(db, incidents.unacknowledge, incident_id, ALICE)


def reopen(db: Database, incident_id: int) -> incidents.Answer:
    return do(db, incidents.reopen, incident_id, ALICE)


def escalate(db: Database, incident_id: int) -> incidents.Answer:
    return do(db, incidents.escalate, incident_id, ALICE)


@pytest.fixture
def incident(database: Database) -> Incident:
    """Alice is being paged, Bob is next in five minutes."""
    return factories.open_incident(database, factories.ladder(database, NOWHERE), "disk")


def test_acknowledge_cancels_what_waits_and_says_who(database: Database, incident: Incident) -> None:
    answer = acknowledge(database, incident.id)
    assert (answer.changed, answer.cancelled, answer.in_flight) == (True, 2, ())
    assert answer.incident == state(database, incident.id)
    assert (answer.incident.status, answer.incident.acknowledged_by) == ("ACKNOWLEDGED", ALICE)
    assert shape(database, incident.id) == [("PAGE", 1, 1, "CANCELLED"), ("STEP", 1, 2, "CANCELLED")]
    assert entries(database, incident.id, "acknowledged") == [{"cancelled": 2, "in_flight": []}]


def test_k031_a_second_acknowledge_changes_nothing_and_shows_the_first(database: Database, incident: Incident) -> None:
    first = acknowledge(database, incident.id, ALICE)
    before = picture(database, incident.id)
    answer = acknowledge(database, incident.id, BOB)
    assert (answer.changed, answer.cancelled) == (False, 0)
    assert answer.incident.acknowledged_by == ALICE
    assert answer.incident.acknowledged_at == first.incident.acknowledged_at
    assert picture(database, incident.id) == before


def test_k032_a_page_in_the_air_is_named_by_each_answer_and_not_tried_again(
    database: Database, incident: Incident
) -> None:
    in_air = claim(database)
    answer = acknowledge(database, incident.id)
    assert answer.in_flight == (InFlight(in_air[0].id, ALICE, None),)
    assert acknowledge(database, incident.id, BOB).in_flight == answer.in_flight
    assert entries(database, incident.id, "acknowledged") == [{"cancelled": 1, "in_flight": [ALICE]}]
    end(database, in_air, "RETRY")
    assert [row["status"] for row in rows(database, incident.id)] == ["CANCELLED"]
    assert claim(database) == []


def test_a_page_in_the_air_that_arrives_all_the_same_is_delivered(database: Database, incident: Incident) -> None:
    in_air = claim(database)
    resolve(database, incident.id)
    end(database, in_air, "DELIVERED")
    assert [row["status"] for row in rows(database, incident.id)] == ["DELIVERED"]


def test_k030_what_was_added_by_hand_is_cancelled_too(database: Database, incident: Incident) -> None:
    [failed] = send(database, "FAILED")
    climb(database)
    do(database, attempts.replay, incident.id, [failed.id], ALICE)
    escalate(database, incident.id)
    acknowledge(database, incident.id)
    assert {row[3] for row in shape(database, incident.id)} <= {"CANCELLED", "DELIVERED"}
    assert claim(database) == []


def test_k024_resolve_cancels_without_an_acknowledge(database: Database, incident: Incident) -> None:
    answer = resolve(database, incident.id, BOB)
    assert (answer.changed, answer.cancelled) == (True, 2)
    assert (answer.incident.status, answer.incident.resolved_by) == ("RESOLVED", BOB)
    assert {row[3] for row in shape(database, incident.id)} == {"CANCELLED"}
    before = picture(database, incident.id)
    assert resolve(database, incident.id, ALICE).changed is False
    assert picture(database, incident.id) == before


def test_unacknowledge_begins_a_new_round(database: Database, incident: Incident) -> None:
    acknowledge(database, incident.id)
    answer = unacknowledge(database, incident.id)
    assert answer.changed
    assert (answer.incident.status, answer.incident.round, answer.incident.step) == ("TRIGGERED", 2, 1)
    assert answer.incident.acknowledged_at is None
    assert shape(database, incident.id)[2:] == [("PAGE", 2, 1, "PENDING"), ("STEP", 2, 2, "PENDING")]


def test_reopen_begins_a_new_round(database: Database, incident: Incident) -> None:
    acknowledge(database, incident.id)
    resolve(database, incident.id)
    answer = reopen(database, incident.id)
    assert answer.changed
    assert (answer.incident.status, answer.incident.round, answer.incident.resolved_by) == ("TRIGGERED", 2, None)
    assert shape(database, incident.id)[-2:] == [("PAGE", 2, 1, "PENDING"), ("STEP", 2, 2, "PENDING")]


def test_escalate_takes_the_next_step_now(database: Database, incident: Incident) -> None:
    answer = escalate(database, incident.id)
    assert (answer.changed, answer.incident.step) == (True, 2)
    assert shape(database, incident.id)[1:] == [
        ("STEP", 1, 2, "DELIVERED"),
        ("PAGE", 1, 2, "PENDING"),
        ("STEP", 1, 3, "PENDING"),
    ]
    assert entries(database, incident.id, "escalated") == [{}]


def test_escalate_past_the_last_step_exhausts_and_then_starts_again(database: Database, incident: Incident) -> None:
    escalate(database, incident.id)
    assert escalate(database, incident.id).incident.exhausted_at is not None
    again = escalate(database, incident.id).incident
    assert (again.exhausted_at, again.round, again.step) == (None, 2, 1)


def test_escalate_ends_a_snooze(database: Database, incident: Incident) -> None:
    snooze(database, incident.id)
    again = escalate(database, incident.id).incident
    assert (again.snoozed_until, again.round, again.step) == (None, 2, 1)


@pytest.mark.parametrize("first", [None, acknowledge])
def test_snooze_silences_and_takes_back_an_acknowledge(
    database: Database, incident: Incident, first: Act | None
) -> None:
    if first:
        first(database, incident.id)
    answer = snooze(database, incident.id)
    assert answer.changed
    assert (answer.incident.status, answer.incident.acknowledged_by) == ("TRIGGERED", None)
    assert answer.incident.snoozed_until is not None
    assert answer.incident.snoozed_until - factories.now(database) > timedelta(minutes=59)
    assert {row[3] for row in shape(database, incident.id)} == {"CANCELLED"}


@pytest.mark.parametrize("first", [None, acknowledge, snooze])
def test_reassign_pages_the_new_target_at_once_and_nobody_after(
    database: Database, incident: Incident, first: Act | None
) -> None:
    if first:
        first(database, incident.id)
    answer = reassign(database, incident.id)
    assert answer.changed
    assert (answer.incident.status, answer.incident.round, answer.incident.snoozed_until) == ("TRIGGERED", 2, None)
    pending = [row for row in rows(database, incident.id) if row["status"] == "PENDING"]
    assert [row["target"] for row in pending] == ["user:bob@example.com"]
    escalate(database, incident.id)
    assert state(database, incident.id).exhausted_at is not None


def test_reassign_of_an_exhausted_incident_starts_it_again(database: Database, incident: Incident) -> None:
    for _ in range(2):
        escalate(database, incident.id)
    assert reassign(database, incident.id).incident.exhausted_at is None


def test_a_restart_is_always_a_new_round_so_the_same_contact_is_paged_again(
    database: Database, incident: Incident, clock: MovedClock
) -> None:
    for expected in (2, 3, 4):
        acknowledge(database, incident.id)
        assert unacknowledge(database, incident.id).incident.round == expected
    assert [row["round"] for row in rows(database, incident.id)] == [1, 2, 3, 4]


def test_a_note_is_written_in_any_state(database: Database, incident: Incident) -> None:
    do(database, incidents.note, incident.id, "  looking at it ", ALICE)
    resolve(database, incident.id)
    do(database, incidents.note, incident.id, "was the disk", ALICE)
    assert entries(database, incident.id, "note") == [{"text": "looking at it"}, {"text": "was the disk"}]


REFUSED: list[tuple[str, list[Act], Act, str]] = [
    ("acknowledge of a resolved one", [resolve], acknowledge, "resolved already, by alice@example.com"),
    ("unacknowledge of a resolved one", [resolve], unacknowledge, "reopen it first"),
    ("snooze of a resolved one", [resolve], snooze, "reopen it first"),
    ("reassign of a resolved one", [resolve], reassign, "reopen it first"),
    ("escalate of a resolved one", [resolve], escalate, "nothing to escalate"),
    ("escalate of an acknowledged one", [acknowledge], escalate, "nothing to escalate"),
]


@pytest.mark.parametrize(("before", "act", "why"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_k029_k033_a_refused_action_says_why_and_changes_nothing(
    database: Database, incident: Incident, before: list[Act], act: Act, why: str
) -> None:
    for first in before:
        first(database, incident.id)
    unchanged = picture(database, incident.id)
    with pytest.raises(Conflict, match=why):
        act(database, incident.id)
    assert picture(database, incident.id) == unchanged


def test_k033_reopen_is_refused_while_the_key_is_open_elsewhere(database: Database, incident: Incident) -> None:
    resolve(database, incident.id)
    assert incident.service_id is not None
    other = factories.open_incident(database, incident.service_id, "disk")
    unchanged = picture(database, incident.id), picture(database, other.id)
    with pytest.raises(Conflict, match=f"incident {other.id}"):
        reopen(database, incident.id)
    assert (picture(database, incident.id), picture(database, other.id)) == unchanged


SAME: list[tuple[str, list[Act], Act]] = [
    ("acknowledge twice", [acknowledge], acknowledge),
    ("resolve twice", [resolve], resolve),
    ("unacknowledge of a triggered one", [], unacknowledge),
    ("reopen of an open one", [], reopen),
    ("reopen of an acknowledged one", [acknowledge], reopen),
]


@pytest.mark.parametrize(("before", "act"), [case[1:] for case in SAME], ids=[case[0] for case in SAME])
def test_what_is_already_so_answers_unchanged(
    database: Database, incident: Incident, before: list[Act], act: Act
) -> None:
    for first in before:
        first(database, incident.id)
    unchanged = picture(database, incident.id)
    answer = act(database, incident.id)
    assert (answer.changed, answer.cancelled) == (False, 0)
    assert picture(database, incident.id) == unchanged


@pytest.mark.parametrize("act", [acknowledge, resolve, unacknowledge, reopen, escalate, snooze])
def test_an_unknown_incident_is_not_found(database: Database, act: Act) -> None:
    with pytest.raises(NotFound, match="no incident 404"):
        act(database, 404)


def test_an_empty_note_is_refused(database: Database, incident: Incident) -> None:
    unchanged = picture(database, incident.id)
    with pytest.raises(Invalid) as refused:
        do(database, incidents.note, incident.id, " \n", ALICE)
    assert refused.value.field == "text"
    assert picture(database, incident.id) == unchanged


def test_k028_a_step_that_is_due_when_the_resolve_is_recorded_is_not_taken(
    database: Database, incident: Incident, clock: MovedClock
) -> None:
    clock.pass_(minutes=6)
    resolve(database, incident.id)
    climb(database)
    assert [row["step"] for row in rows(database, incident.id)] == [1]


def test_k019_an_acknowledged_incident_stays_quiet_however_old(
    database: Database, incident: Incident, clock: MovedClock
) -> None:
    acknowledge(database, incident.id)
    clock.pass_(days=30)
    assert climb(database) == 0
    assert claim(database) == []
