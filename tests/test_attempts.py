"""What people do to the queue by hand: send failed pages again, one or many, and what is refused."""

import pytest

from escalade import attempts, incidents, replays
from escalade.attempts import Claimed
from escalade.db import Database
from escalade.errors import Conflict, NotFound
from escalade.incident import Incident
from tests import factories
from tests.acting import ALICE, claim, do, entries, picture, rows, send
from tests.clock import MovedClock

NOWHERE = "http://127.0.0.1:1"


@pytest.fixture
def incident(database: Database) -> Incident:
    """Alice was paged, which failed for good."""
    found = factories.open_incident(database, factories.ladder(database, NOWHERE), "disk")
    send(database, "FAILED")
    return found


def page(database: Database, incident: Incident) -> dict[str, object]:
    """Alice's page."""
    return rows(database, incident.id)[0]


def test_q58_a_replay_is_the_same_attempt_with_a_new_key_and_more_tries(database: Database, incident: Incident) -> None:
    before = page(database, incident)
    do(database, attempts.replay_one, before["id"], ALICE)
    after = page(database, incident)
    assert (after["id"], after["status"], after["replays"]) == (before["id"], "PENDING", 1)
    assert after["idempotency_key"] != before["idempotency_key"]
    assert (after["tries"], after["max_tries"]) == (1, 1 + 8)
    assert (after["lease_owner"], after["last_error"], after["recheck"]) == (None, None, False)
    assert entries(database, incident.id, "replayed") == [{"attempt": before["id"]}]
    assert [row.tries for row in claim(database)] == [2]


def test_a_replay_that_fails_again_has_all_its_tries(database: Database, incident: Incident, clock: MovedClock) -> None:
    do(database, attempts.replay_one, page(database, incident)["id"], ALICE)
    for _ in range(8):
        assert page(database, incident)["status"] == "PENDING"
        clock.pass_(minutes=5)
        send(database, "RETRY")
    assert page(database, incident)["status"] == "FAILED"


@pytest.mark.parametrize("act", ["acknowledge", "resolve", "snooze"])
def test_k033_a_replay_is_refused_where_nobody_needs_to_be_paged(
    database: Database, incident: Incident, act: str
) -> None:
    do(database, getattr(incidents, act), incident.id, *([3600] if act == "snooze" else []), ALICE)
    unchanged = picture(database, incident.id)
    with pytest.raises(Conflict):
        do(database, attempts.replay_one, page(database, incident)["id"], ALICE)
    assert picture(database, incident.id) == unchanged


def test_k033_what_was_sent_to_somebody_who_is_gone_is_not_sent_again(database: Database, incident: Incident) -> None:
    failed = page(database, incident)
    factories.run(database, "delete from notification_rule")
    factories.run(database, "delete from contact_method")
    with pytest.raises(Conflict, match="no longer exists; escalate"):
        do(database, attempts.replay_one, failed["id"], ALICE)
    assert replays.replay_failed(database.begin, ALICE) == replays.Replayed(0, 1)
    assert page(database, incident)["status"] == "FAILED"


@pytest.mark.parametrize("outcome", [None, "DELIVERED"])
def test_k033_only_what_has_failed_is_sent_again(database: Database, outcome: str | None) -> None:
    incident = factories.open_incident(database, factories.ladder(database, NOWHERE))
    if outcome:
        send(database, outcome)
    unchanged = picture(database, incident.id)
    with pytest.raises(Conflict, match="has not failed"):
        do(database, attempts.replay_one, page(database, incident)["id"], ALICE)
    assert picture(database, incident.id) == unchanged


def test_a_step_and_an_unknown_attempt_are_not_sent_again(database: Database, incident: Incident) -> None:
    [step] = rows(database, incident.id, "STEP")
    with pytest.raises(Conflict, match="is no page"):
        do(database, attempts.replay_one, step["id"], ALICE)
    with pytest.raises(NotFound):
        do(database, attempts.replay_one, 404, ALICE)


def test_many_are_found_by_incident_and_filtered(database: Database, incident: Incident) -> None:
    assert incident.service_id is not None
    other = factories.open_incident(database, incident.service_id, "other")
    send(database, "FAILED")
    first, second = page(database, incident)["id"], page(database, other)["id"]
    assert do(database, attempts.failed_by_incident) == {incident.id: [first], other.id: [second]}
    assert do(database, attempts.failed_by_incident, "slack") == {}
    assert do(database, attempts.failed_by_incident, "webhook", [second]) == {other.id: [second]}


def test_a_notice_is_not_sent_again(database: Database) -> None:
    service = factories.ladder(database, NOWHERE)
    factories.run(database, "update contact_method set updates = true")
    incident = factories.open_incident(database, service)
    send(database)
    do(database, incidents.resolve, incident.id, ALICE)
    send(database, "FAILED")
    [notice] = rows(database, incident.id, "NOTICE")
    assert notice["status"] == "FAILED"
    with pytest.raises(Conflict, match="is no page"):
        do(database, attempts.replay_one, notice["id"], ALICE)
    assert do(database, attempts.failed_by_incident) == {}


def test_k054_being_asked_to_wait_uses_no_try_and_ends_after_a_day(database: Database, clock: MovedClock) -> None:
    incident = factories.open_incident(database, factories.ladder(database, NOWHERE))
    for _ in range(20):
        claimed: list[Claimed] = send(database, "LIMITED")
        assert [row.tries for row in claimed] == [1]
        clock.pass_(hours=1)
    assert (page(database, incident)["status"], page(database, incident)["tries"]) == ("PENDING", 0)
    clock.pass_(hours=5)
    send(database, "LIMITED")
    assert page(database, incident)["status"] == "FAILED"
