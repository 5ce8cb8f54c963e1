"""A step becomes pages: whom it tells, by which contact, when, and what it says of those it cannot tell."""

from datetime import timedelta
from typing import Any

import pytest

from escalade import fanout, incidents, oncall, schedules
from escalade.db import Database
from tests import factories
from tests.acting import ALICE, BOB, claim, climb, do, entries, rows, send, state
from tests.clock import MovedClock

NOWHERE = "http://127.0.0.1:1"
Targets = list[tuple[str, int]]


def reachable(db: Database, name: str, **more: Any) -> int:
    """A person with one webhook and no rule."""
    person = factories.user(db, name, **more)
    factories.contact(db, person, f"{NOWHERE}/{name}")
    return person


def opened(db: Database, *steps: Targets, urgency: str = "high") -> int:
    """An incident on a ladder of these steps, five minutes each; its id."""
    policy = factories.policy(db, *[(300, targets) for targets in steps])
    return factories.open_incident(db, factories.service(db, policy, urgency=urgency)).id


def paged(db: Database, incident_id: int) -> list[str]:
    """The targets of all pages, in order."""
    return [row["target"] for row in rows(db, incident_id)]


def skipped(db: Database, incident_id: int) -> list[tuple[str, str]]:
    """The targets that could not be told, with the reason."""
    return [(entry["target"], entry["why"]) for entry in entries(db, incident_id, "target_skipped")]


def delays(db: Database, incident_id: int) -> list[int]:
    """Seconds from the opening to each page."""
    at = state(db, incident_id).opened_at
    return [round((row["due_at"] - at).total_seconds()) for row in rows(db, incident_id)]


def test_users_schedules_and_channels_are_told_and_named(database: Database) -> None:
    alice, bob = reachable(database, "alice"), reachable(database, "bob")
    ops = factories.channel(database, f"{NOWHERE}/ops")
    incident = opened(database, [("schedule", factories.schedule(database, [alice])), ("user", bob), ("channel", ops)])
    assert paged(database, incident) == ["schedule:primary", "user:bob@example.com", "channel:ops"]
    page = rows(database, incident)[2]
    assert (page["user_id"], page["channel_id"], page["recipient"]) == (None, ops, f"channel:{ops}")
    [reached] = entries(database, incident, "step_reached")
    assert reached == {"people": "schedule:primary, user:bob@example.com, channel:ops", "round": 1, "step": 1}


def test_two_targets_that_lead_to_one_contact_page_it_once(database: Database) -> None:
    alice = reachable(database, "alice")
    incident = opened(database, [("schedule", factories.schedule(database, [alice])), ("user", alice)])
    assert paged(database, incident) == ["schedule:primary"]


def test_everybody_on_call_at_once_is_told(database: Database) -> None:
    alice, bob = reachable(database, "alice"), reachable(database, "bob")
    primary, secondary = factories.schedule(database, [alice]), factories.schedule(database, [bob], "secondary")
    incident = opened(database, [("schedule", primary), ("schedule", secondary)])
    assert len(rows(database, incident)) == 2


def test_without_rules_every_contact_method_is_used_at_once(database: Database) -> None:
    alice = reachable(database, "alice")
    factories.contact(database, alice, "alice@example.com", "email")
    incident = opened(database, [("user", alice)])
    assert sorted(row["transport"] for row in rows(database, incident)) == ["email", "webhook"]
    assert delays(database, incident) == [0, 0]


@pytest.mark.parametrize(("urgency", "expected"), [("high", [("webhook", 0), ("email", 120)]), ("low", [("log", 0)])])
def test_rules_choose_by_urgency_and_wait(database: Database, urgency: str, expected: list[tuple[str, int]]) -> None:
    alice = factories.user(database)
    hook = factories.contact(database, alice, f"{NOWHERE}/alice")
    mail = factories.contact(database, alice, "alice@example.com", "email")
    log = factories.contact(database, alice, "", "log")
    factories.rule(database, alice, hook, 0, "high")
    factories.rule(database, alice, mail, 120, "high")
    factories.rule(database, alice, log, 0, "low")
    incident = opened(database, [("user", alice)], urgency=urgency)
    transports = [row["transport"] for row in rows(database, incident)]
    assert list(zip(transports, delays(database, incident), strict=True)) == expected
    assert {row["lane"] for row in rows(database, incident)} == {urgency}


def test_where_no_rule_fits_the_urgency_every_contact_method_is_used(database: Database) -> None:
    alice = reachable(database, "alice")
    mail = factories.contact(database, alice, "alice@example.com", "email")
    factories.rule(database, alice, mail, 600, "low")
    incident = opened(database, [("user", alice)], urgency="high")
    assert sorted(row["transport"] for row in rows(database, incident)) == ["email", "webhook"]
    assert delays(database, incident) == [0, 0]


def test_two_rules_on_one_contact_page_it_twice_at_their_times(database: Database, clock: MovedClock) -> None:
    alice = factories.user(database)
    hook = factories.contact(database, alice, f"{NOWHERE}/alice")
    for after in (0, 60):
        factories.rule(database, alice, hook, after)
    incident = opened(database, [("user", alice)])
    assert delays(database, incident) == [0, 60]
    assert len(claim(database)) == 1
    clock.pass_(seconds=61)
    assert len(claim(database)) == 1


def test_a_page_that_waits_for_its_rule_is_cancelled_by_an_acknowledge(database: Database) -> None:
    alice = factories.user(database)
    factories.rule(database, alice, factories.contact(database, alice, f"{NOWHERE}/alice"), 60)
    incident = opened(database, [("user", alice)])
    assert do(database, incidents.acknowledge, incident, ALICE).cancelled == 2


def test_an_unverified_contact_is_not_used(database: Database) -> None:
    alice, bob = factories.user(database), reachable(database, "bob")
    factories.contact(database, alice, f"{NOWHERE}/alice", verified=False)
    incident = opened(database, [("user", alice), ("user", bob)])
    assert paged(database, incident) == ["user:bob@example.com"]
    assert skipped(database, incident) == [("user:alice@example.com", "alice@example.com has no contact method")]


def test_a_viewer_is_not_paged(database: Database) -> None:
    charlie, bob = reachable(database, "charlie", role="viewer"), reachable(database, "bob")
    incident = opened(database, [("user", charlie), ("user", bob)])
    assert paged(database, incident) == ["user:bob@example.com"]
    assert skipped(database, incident) == [("user:charlie@example.com", "charlie@example.com is a viewer")]


def test_k020_a_step_whose_person_is_gone_is_skipped_at_once_and_said(database: Database) -> None:
    alice, bob = reachable(database, "alice"), reachable(database, "bob")
    first = opened(database, [("user", bob)], [("user", alice)], [("user", bob)])
    factories.run(database, "delete from app_user where id = %s", alice)
    do(database, incidents.escalate, first, BOB)
    assert skipped(database, first) == [("user:alice@example.com", "that person no longer exists")]
    assert entries(database, first, "step_skipped") == [{"why": "nobody can be reached", "round": 1, "step": 2}]
    climb(database)
    assert state(database, first).step == 3
    assert paged(database, first) == ["user:bob@example.com"] * 2


def test_k020_an_incident_opens_also_where_its_first_step_leads_nowhere(database: Database) -> None:
    alice, bob = reachable(database, "alice"), reachable(database, "bob")
    empty = factories.schedule(database, [alice])
    policy = factories.policy(database, (300, [("schedule", empty)]), (300, [("user", bob)]))
    service = factories.service(database, policy)
    factories.run(database, "delete from schedule")
    incident = factories.open_incident(database, service)
    assert "step_skipped" in factories.events(database, incident.id)
    climb(database)
    assert paged(database, incident.id) == ["user:bob@example.com"]


def test_a_schedule_with_nobody_on_call_is_skipped_at_once(database: Database) -> None:
    bob = reachable(database, "bob")
    incident = opened(database, [("schedule", factories.schedule(database, []))], [("user", bob)])
    assert skipped(database, incident) == [("schedule:primary", "nobody is on call")]
    climb(database)
    assert paged(database, incident) == ["user:bob@example.com"]


def test_a_ladder_that_reaches_nobody_is_exhausted_at_once_not_in_a_loop(database: Database) -> None:
    policy = factories.policy(database, (300, [("schedule", factories.schedule(database, []))]), repeat=0)
    incident = factories.open_incident(database, factories.service(database, policy))
    climb(database)
    assert state(database, incident.id).exhausted_at is not None


def test_a_ladder_that_reaches_nobody_waits_before_it_repeats(database: Database, clock: MovedClock) -> None:
    policy = factories.policy(database, (300, [("schedule", factories.schedule(database, []))]), repeat=2)
    incident = factories.open_incident(database, factories.service(database, policy))
    assert climb(database) == 0
    clock.pass_(minutes=5, seconds=1)
    climb(database)
    assert state(database, incident.id).round == 2


def test_k022_k104_a_schedule_that_raises_costs_the_other_targets_nothing(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("CRITICAL", "escalade.fanout")
    alice, bob = reachable(database, "alice"), reachable(database, "bob")
    broken = factories.schedule(database, [alice], timezone="Mars/Olympus")
    sound = factories.schedule(database, [alice], "secondary")
    incident = opened(database, [("schedule", broken), ("user", bob), ("schedule", sound)])
    assert sorted(paged(database, incident)) == ["schedule:secondary", "user:bob@example.com"]
    [(target, why)] = skipped(database, incident)
    assert target == "schedule:primary"
    assert why.startswith("who is on call could not be worked out")


def test_who_is_on_call_is_asked_when_the_step_is_due(database: Database, clock: MovedClock) -> None:
    alice, bob, charlie = (reachable(database, name) for name in ("alice", "bob", "charlie"))
    schedule = factories.schedule(database, [alice])
    incident = opened(database, [("user", charlie)], [("schedule", schedule)])
    factories.run(database, "update rotation set participants = %s", [bob])
    clock.pass_(minutes=5)
    climb(database)
    assert [row["user_id"] for row in rows(database, incident)] == [charlie, bob]


@pytest.mark.parametrize("deleted", [False, True])
def test_k045_k046_an_override_pages_its_person_and_a_deleted_one_the_rotations(
    database: Database, deleted: bool
) -> None:
    alice, bob = reachable(database, "alice"), reachable(database, "bob")
    schedule = factories.schedule(database, [alice])
    at = factories.now(database)
    override = factories.insert(
        database,
        "override",
        schedule_id=schedule,
        kind="replace",
        user_id=bob,
        replaces_id=alice,
        start_at=at - timedelta(hours=1),
        end_at=at + timedelta(hours=1),
        source="person",
        created_by=ALICE,
    )
    if deleted:
        factories.run(database, "delete from app_user where id = %s", bob)
    incident = opened(database, [("schedule", schedule)])
    expected = alice if deleted else bob
    assert [row["user_id"] for row in rows(database, incident)] == [expected]
    loaded = do(database, schedules.load, [schedule])[schedule]
    assert oncall.who(loaded, factories.now(database)) == [expected], "what the screens show"
    if deleted:
        ended = factories.run(database, "delete from override where id = %s returning id", override)
        assert ended == [(override,)]


def test_a_contact_that_is_gone_by_the_time_it_is_due_fails_and_the_ladder_goes_on(
    database: Database, clock: MovedClock
) -> None:
    alice, bob = reachable(database, "alice"), reachable(database, "bob")
    incident = opened(database, [("user", alice)], [("user", bob)])
    factories.run(database, "delete from contact_method where user_id = %s", alice)
    send(database, "FAILED")
    climb(database)
    assert paged(database, incident) == ["user:alice@example.com", "user:bob@example.com"]


def test_a_fallback_that_cannot_be_worked_out_keeps_no_incident_from_its_end(database: Database) -> None:
    factories.run(database, """insert into setting (name, value) values ('fallback', '[{"kind": "channel"}]')""")
    incident = factories.open_incident(database, factories.ladder(database, "http://127.0.0.1:1"))
    with database.begin() as tx:
        after = fanout.exhaust(tx, incidents.lock(tx, incident.id), 3)
    assert after.exhausted_at is not None
    assert factories.events(database, incident.id)[-2:] == ["target_skipped", "fallback_missing"]
