"""Updates: who hears that an incident was acknowledged or resolved, once, in order, and never as a page."""

from typing import Any

import pytest

from escalade import delivery, incidents
from escalade.attempts import Claimed
from escalade.db import Database
from escalade.delivery import Content
from escalade.incident import Incident
from tests import factories
from tests.acting import ALICE, BOB, claim, climb, do, end, entries, person, rows, send, state
from tests.clock import MovedClock

NOWHERE = "http://127.0.0.1:1"


@pytest.fixture
def incident(database: Database, clock: MovedClock) -> Incident:
    """Alice is being paged, Bob is next; both asked for updates."""
    service = factories.ladder(database, NOWHERE, repeat=1)
    factories.run(database, "update contact_method set updates = true")
    return factories.open_incident(database, service, "disk")


def resolve(db: Database, incident: Incident) -> None:
    do(db, incidents.resolve, incident.id, BOB)


def notices(db: Database, incident: Incident) -> list[tuple[str, str]]:
    """Event and person of every notice, in order."""
    emails = dict(factories.run(db, "select id, email from app_user"))
    return [(row["event"], emails[row["user_id"]]) for row in rows(db, incident.id, "NOTICE")]


def verdicts(db: Database, claimed: list[Claimed]) -> list[str | None]:
    """What the engine decides of claimed rows before it sends: None is "send it"."""
    with db.read() as tx:
        contents = tx.many(Content, "messages_of", ids=[row.id for row in claimed])
    return [delivery.unneeded(content) for content in contents]


def test_k026_only_those_who_were_told_of_the_problem_hear_of_its_end(database: Database, incident: Incident) -> None:
    send(database)
    resolve(database, incident)
    assert notices(database, incident) == [("resolved", ALICE)]
    assert verdicts(database, claim(database)) == [None]


def test_k026_a_page_that_never_went_out_is_followed_by_nothing(database: Database, incident: Incident) -> None:
    resolve(database, incident)
    assert notices(database, incident) == []


@pytest.mark.parametrize("outcome", ["FAILED", "RETRY", "RELEASE"])
def test_k026_a_page_that_did_not_arrive_is_followed_by_nothing(
    database: Database, incident: Incident, outcome: str
) -> None:
    send(database, outcome)
    resolve(database, incident)
    assert notices(database, incident) == []


def test_a_page_that_may_have_arrived_is_followed_by_the_notice(database: Database, incident: Incident) -> None:
    send(database, "UNKNOWN")
    resolve(database, incident)
    assert notices(database, incident) == [("resolved", ALICE)]
    assert verdicts(database, claim(database)) == [None]


def test_only_those_who_asked_for_updates_hear(database: Database, incident: Incident) -> None:
    factories.run(database, "update contact_method set updates = false")
    send(database)
    resolve(database, incident)
    assert notices(database, incident) == []


def test_k025_each_contact_hears_once_however_often_it_was_paged_and_it_never_escalates(
    database: Database, incident: Incident, clock: MovedClock
) -> None:
    for _ in range(3):
        send(database)
        clock.pass_(minutes=5, seconds=1)
        climb(database)
    assert len(rows(database, incident.id)) == 4
    resolve(database, incident)
    assert sorted(notices(database, incident)) == [("resolved", ALICE), ("resolved", BOB)]
    send(database, "FAILED")
    assert climb(database) == 0
    assert state(database, incident.id).status == "RESOLVED"
    assert sorted(notices(database, incident)) == [("resolved", ALICE), ("resolved", BOB)]


def test_acknowledging_tells_those_who_were_paged_who_did_it(database: Database, incident: Incident) -> None:
    send(database)
    do(database, incidents.acknowledge, incident.id, BOB)
    [notice] = rows(database, incident.id, "NOTICE")
    assert (notice["event"], notice["lane"], notice["summary"]) == ("acknowledged", "low", f"Acknowledged by {BOB}")
    do(database, incidents.acknowledge, incident.id, ALICE)
    assert len(rows(database, incident.id, "NOTICE")) == 1


def test_k036_a_notice_waits_until_the_page_in_the_air_has_landed(
    database: Database, incident: Incident, clock: MovedClock
) -> None:
    in_air = claim(database, lease=20)
    resolve(database, incident)
    assert claim(database) == []
    end(database, in_air, "DELIVERED")
    clock.pass_(seconds=21)
    assert verdicts(database, claim(database)) == [None]


def test_k036_a_page_in_the_air_that_fails_is_not_tried_again_and_no_notice_follows(
    database: Database, incident: Incident, clock: MovedClock
) -> None:
    in_air = claim(database, lease=20)
    resolve(database, incident)
    end(database, in_air, "RETRY")
    clock.pass_(seconds=21)
    claimed = claim(database)
    assert [row.kind for row in claimed] == ["NOTICE"]
    assert verdicts(database, claimed) == ["CANCELLED"]


def test_k036_a_page_whose_sender_died_may_have_arrived_so_the_notice_goes_out(
    database: Database, incident: Incident, clock: MovedClock
) -> None:
    claim(database, lease=20)
    resolve(database, incident)
    clock.pass_(seconds=21)
    claimed = claim(database)
    assert [row.kind for row in claimed] == ["NOTICE"]
    assert verdicts(database, claimed) == [None], "also before anybody has reaped the page"


def test_k103_the_resolve_after_an_acknowledge_is_heard_by_those_who_were_paged(
    database: Database, incident: Incident
) -> None:
    send(database)
    do(database, incidents.acknowledge, incident.id, ALICE)
    resolve(database, incident)
    assert notices(database, incident) == [("acknowledged", ALICE), ("resolved", ALICE)]


def test_an_auto_resolve_is_heard_too(database: Database, clock: MovedClock) -> None:
    service = factories.ladder(database, NOWHERE)
    factories.run(database, "update contact_method set updates = true")
    factories.run(database, "update service set auto_resolve_seconds = 600")
    incident = factories.open_incident(database, service, "disk")
    send(database)
    clock.pass_(minutes=11)
    climb(database)
    [notice] = rows(database, incident.id, "NOTICE")
    assert (notice["event"], notice["summary"]) == ("resolved", "Resolved: no alert for 10m")
    assert entries(database, incident.id, "auto_resolved")[0]["quiet"] == "10m"


def test_a_channel_that_asked_for_updates_hears_too(database: Database) -> None:
    ops = factories.channel(database, f"{NOWHERE}/ops", updates=True)
    incident = factories.open_incident(
        database, factories.service(database, factories.policy(database, (300, [("channel", ops)])))
    )
    send(database)
    resolve(database, incident)
    assert [row["channel_id"] for row in rows(database, incident.id, "NOTICE")] == [ops]


@pytest.mark.parametrize("act", ["snooze", "unacknowledge", "reassign", "escalate"])
def test_what_is_neither_acknowledge_nor_resolve_sends_no_notice(
    database: Database, incident: Incident, act: str
) -> None:
    send(database)
    extra: list[Any] = {"snooze": [60], "reassign": [person(database, "bob")]}.get(act, [])
    do(database, getattr(incidents, act), incident.id, *extra, ALICE)
    assert notices(database, incident) == []
