"""Alerts and people open incidents: one per key while it is open, whatever arrives at once, and none is lost."""

import logging
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from escalade import fanout, incidents, opening, tokens
from escalade.db import Database, Tx, as_json
from escalade.errors import NotFound
from escalade.inbound.base import Event
from escalade.opening import Done, Source
from tests import factories
from tests.acting import ALICE, claim, climb, do, entries, person, rows, send, shape, state
from tests.clock import MovedClock

NOWHERE = "http://127.0.0.1:1"


@pytest.fixture
def source(database: Database) -> Source:
    """Alice is on call, Bob is next."""
    factories.integration(database, factories.ladder(database, NOWHERE))
    return do(database, opening.integration, tokens.digest(factories.KEY)).source


def alert(db: Database, source: Source, key: str | None = "disk", action: str = "trigger", **more: Any) -> Done:
    """One alert, as the hook takes it."""
    event = Event(action, more.pop("title", "Disk full"), dedup_key=key, **more)
    return do(db, opening.accept, source, event)


def opened(db: Database) -> list[int]:
    """Every incident there is."""
    return [row[0] for row in factories.run(db, "select id from incident order by id")]


def test_a_first_alert_opens_and_pages_the_first_step(database: Database, source: Source) -> None:
    done = alert(database, source, severity="critical", link="https://example.com/x", group={"instance": "db1"})
    assert done.action == "triggered"
    assert done.id is not None
    incident = state(database, done.id)
    assert (incident.title, incident.severity, incident.link) == ("Disk full", "critical", "https://example.com/x")
    assert (incident.alert_group, incident.opened_by) == ({"instance": "db1"}, "integration:api/prom")
    assert shape(database, done.id) == [("PAGE", 1, 1, "PENDING"), ("STEP", 1, 2, "PENDING")]


@pytest.mark.parametrize(
    ("service", "severity", "urgency", "lane"),
    [
        ("severity", "critical", "high", "high"),
        ("severity", "error", "high", "high"),
        ("severity", "warning", "low", "low"),
        ("severity", "info", "low", "low"),
        ("high", "info", "high", "high"),
        ("low", "critical", "low", "low"),
    ],
)
def test_the_urgency_is_the_services_or_the_severitys(
    database: Database, source: Source, service: str, severity: str, urgency: str, lane: str
) -> None:
    factories.run(database, "update service set urgency = %s", service)
    done = alert(database, source, severity=severity)
    assert done.id is not None
    assert state(database, done.id).urgency == urgency
    assert [row["lane"] for row in rows(database, done.id)] == [lane]


def test_k009_k011_repeats_count_on_the_open_incident_and_page_nobody(database: Database, source: Source) -> None:
    first = alert(database, source)
    assert first.id is not None
    before = shape(database, first.id)
    for title in ("Disk full", "Disk still full", "Another summary"):
        assert alert(database, source, title=title) == Done(first.id, "deduplicated")
    incident = state(database, first.id)
    assert (incident.count, incident.title) == (4, "Disk full")
    assert incident.last_alert_at > incident.opened_at
    assert shape(database, first.id) == before


def test_a_repeat_on_an_acknowledged_incident_pages_nobody(database: Database, source: Source) -> None:
    first = alert(database, source)
    assert first.id is not None
    do(database, incidents.acknowledge, first.id, ALICE)
    assert alert(database, source).action == "deduplicated"
    assert state(database, first.id).status == "ACKNOWLEDGED"
    assert claim(database) == []


def test_alerts_without_a_key_never_merge(database: Database, source: Source) -> None:
    assert {alert(database, source, None).action for _ in range(3)} == {"triggered"}
    assert len(opened(database)) == 3


def test_one_key_on_two_services_is_two_incidents(database: Database, source: Source) -> None:
    policy_id = factories.run(database, "select id from escalation_policy")[0][0]
    other = Source(factories.service(database, policy_id, "web"), "web", None, ALICE)
    assert alert(database, source).action == alert(database, other).action == "triggered"


def test_k012_k013_fifty_identical_alerts_at_once_are_one_incident_with_one_set_of_pages(
    database: Database, source: Source
) -> None:
    with ThreadPoolExecutor(50) as threads:
        done = list(threads.map(lambda _: alert(database, source), range(50)))
    assert sorted(item.action for item in done) == ["deduplicated"] * 49 + ["triggered"]
    [incident_id] = opened(database)
    assert {item.id for item in done} == {incident_id}
    assert state(database, incident_id).count == 50
    assert shape(database, incident_id) == [("PAGE", 1, 1, "PENDING"), ("STEP", 1, 2, "PENDING")]
    assert factories.events(database, incident_id).count("triggered") == 1


def test_k012_alerts_and_resolves_at_once_lose_no_alert(database: Database, source: Source) -> None:
    actions = ["trigger", "resolve"] * 25
    with ThreadPoolExecutor(16) as threads:
        done = list(threads.map(lambda action: alert(database, source, action=action), actions))
    triggered = [item for item in done if item.action == "triggered"]
    counted = [item for item in done if item.action == "deduplicated"]
    assert len(triggered) + len(counted) == 25
    assert len(opened(database)) == len(triggered)
    assert sum(state(database, item).count for item in opened(database)) == 25
    assert sum(state(database, item).status != "RESOLVED" for item in opened(database)) <= 1


@pytest.mark.parametrize("updates", [True, False])
def test_k015_a_key_that_fires_again_after_its_resolve_pages_again(
    database: Database, source: Source, updates: bool
) -> None:
    factories.run(database, "update contact_method set updates = %s", updates)
    first = alert(database, source)
    send(database)
    assert alert(database, source, action="resolve") == Done(first.id, "resolved")
    again = alert(database, source)
    assert again.action == "triggered" and again.id not in (None, first.id)
    assert "PAGE" in {row.kind for row in claim(database)}


def test_k005_a_resolve_or_acknowledge_without_an_open_incident_does_nothing(
    database: Database, source: Source
) -> None:
    for action in ("resolve", "acknowledge", "ignore"):
        assert alert(database, source, action=action) == Done(None, "ignored")
    assert opened(database) == []
    assert factories.run(database, "select count(*) from notification_attempt") == [(0,)]


def test_k006_k014_a_resolve_needs_nothing_but_the_key(database: Database, source: Source) -> None:
    first = alert(database, source, severity="critical", details="sda1")
    assert alert(database, source, action="resolve", title="OK", severity="info") == Done(first.id, "resolved")
    assert len(opened(database)) == 1


def test_an_alert_may_acknowledge(database: Database, source: Source) -> None:
    first = alert(database, source)
    assert first.id is not None
    assert alert(database, source, action="acknowledge") == Done(first.id, "acknowledged")
    assert state(database, first.id).acknowledged_by == "integration:api/prom"


def test_k034_fired_and_resolved_before_the_first_send_tells_nobody(database: Database, source: Source) -> None:
    factories.run(database, "update contact_method set updates = true")
    alert(database, source)
    alert(database, source, action="resolve")
    assert claim(database) == []


def test_k007_a_repeat_starts_the_auto_resolve_time_anew(database: Database, source: Source, clock: MovedClock) -> None:
    factories.run(database, "update service set auto_resolve_seconds = 600")
    first = alert(database, source)
    assert first.id is not None
    for _ in range(5):
        clock.pass_(minutes=9)
        climb(database)
        assert alert(database, source) == Done(first.id, "deduplicated")
    clock.pass_(minutes=11)
    climb(database)
    incident = state(database, first.id)
    assert (incident.status, incident.resolved_by) == ("RESOLVED", "auto-resolve")
    assert entries(database, first.id, "auto_resolved")[0]["quiet"] == "10m"


def test_k007_also_while_it_is_acknowledged(database: Database, source: Source, clock: MovedClock) -> None:
    factories.run(database, "update service set auto_resolve_seconds = 600")
    first = alert(database, source)
    assert first.id is not None
    do(database, incidents.acknowledge, first.id, ALICE)
    clock.pass_(minutes=9)
    alert(database, source)
    clock.pass_(minutes=9)
    climb(database)
    assert state(database, first.id).status == "ACKNOWLEDGED"
    clock.pass_(minutes=2)
    climb(database)
    assert state(database, first.id).status == "RESOLVED"


def test_k035_a_silenced_key_stays_silent_through_resolve_and_refire(
    database: Database, source: Source, clock: MovedClock
) -> None:
    first = alert(database, source)
    assert first.id is not None
    do(database, incidents.snooze, first.id, 3600, ALICE)
    silence = state(database, first.id).snoozed_until
    alert(database, source, action="resolve")
    clock.pass_(minutes=30)
    again = alert(database, source)
    assert again.id is not None
    assert state(database, again.id).snoozed_until == silence
    assert "still_silent" in factories.events(database, again.id)
    assert claim(database) == []
    clock.pass_(minutes=31)
    climb(database)
    assert [row.id for row in claim(database)] == [row["id"] for row in rows(database, again.id)]


@pytest.mark.parametrize("act", ["acknowledge", "escalate", "reassign", "reopen"])
def test_who_ends_the_silence_of_a_key_ends_it_for_good(database: Database, source: Source, act: str) -> None:
    first = alert(database, source)
    assert first.id is not None
    do(database, incidents.snooze, first.id, 3600, ALICE)
    alert(database, source, action="resolve")
    again = alert(database, source)
    assert again.id is not None
    if act == "reopen":
        alert(database, source, action="resolve")
    extra = [person(database, "bob")] if act == "reassign" else []
    do(database, getattr(incidents, act), again.id, *extra, ALICE)
    alert(database, source, action="resolve")
    third = alert(database, source)
    assert third.id is not None
    assert state(database, third.id).snoozed_until is None
    assert [row["status"] for row in rows(database, third.id)] == ["PENDING"]


def test_the_latest_snooze_of_a_key_counts_also_where_it_is_the_shorter_one(
    database: Database, source: Source, clock: MovedClock
) -> None:
    first = alert(database, source)
    assert first.id is not None
    do(database, incidents.snooze, first.id, 8 * 3600, ALICE)
    alert(database, source, action="resolve")
    again = alert(database, source)
    assert again.id is not None
    do(database, incidents.snooze, again.id, 3600, ALICE)
    alert(database, source, action="resolve")
    clock.pass_(minutes=61)
    third = alert(database, source)
    assert third.id is not None
    assert state(database, third.id).snoozed_until is None


def test_after_the_silence_a_refire_pages_at_once(database: Database, source: Source, clock: MovedClock) -> None:
    first = alert(database, source)
    assert first.id is not None
    do(database, incidents.snooze, first.id, 3600, ALICE)
    alert(database, source, action="resolve")
    clock.pass_(minutes=61)
    alert(database, source)
    assert len(claim(database)) == 1


def test_k001_a_ladder_that_raises_keeps_the_alert_and_the_engine_takes_its_first_step(
    database: Database, source: Source, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real = fanout.insert_pages

    def raises(*args: Any) -> None:
        real(*args)
        raise ZeroDivisionError("the very last line of the ladder")

    monkeypatch.setattr(fanout, "insert_pages", raises)
    with caplog.at_level(logging.CRITICAL, "escalade.opening"):
        done = alert(database, source)
    monkeypatch.setattr(fanout, "insert_pages", real)
    assert done.action == "triggered" and done.id is not None
    assert shape(database, done.id) == [("STEP", 1, 1, "PENDING")], "nothing of the half-done step is left"
    assert entries(database, done.id, "step_failed")[0]["error"] == "the very last line of the ladder"
    climb(database)
    assert shape(database, done.id)[1:] == [("PAGE", 1, 1, "PENDING"), ("STEP", 1, 2, "PENDING")]


@pytest.mark.parametrize("alone", [True, False])
def test_k001_a_statement_of_the_ladder_that_fails_keeps_the_alert_and_what_its_transaction_did_before(
    database: Database, source: Source, monkeypatch: pytest.MonkeyPatch, alone: bool
) -> None:
    def fails(tx: Tx, *args: Any) -> None:
        tx.conn.execute("select 1 / 0")

    monkeypatch.setattr(fanout, "reach", fails)
    monkeypatch.setattr(opening.log, "exception", lambda *args: None)
    with database.begin() as tx:
        if not alone:
            tx.run("put_setting", name="before", value=as_json(1))
        incident, new = opening.trigger(tx, source, Event("trigger", "Disk full"), alone=alone)
    assert new and shape(database, incident.id) == [("STEP", 1, 1, "PENDING")]
    assert "step_failed" in factories.events(database, incident.id)
    kept = factories.run(database, "select value from setting where name = 'before'")
    assert kept == ([] if alone else [(1,)])


def test_k001_where_another_alert_opens_the_key_while_a_ladder_that_raised_is_undone_its_step_is_the_only_one(
    database: Database, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    undo = Tx.undo

    def overtaken(tx: Tx) -> None:
        undo(tx)
        monkeypatch.setattr(fanout, "fan_out", real)
        alert(database, source, "disk")

    def raises(*args: Any) -> None:
        raise ZeroDivisionError("a fault in the ladder")

    real = fanout.fan_out
    monkeypatch.setattr(fanout, "fan_out", raises)
    monkeypatch.setattr(Tx, "undo", overtaken)
    monkeypatch.setattr(opening.log, "exception", lambda *args: None)
    done = alert(database, source, "disk")
    assert done.id is not None
    assert shape(database, done.id) == [("PAGE", 1, 1, "PENDING"), ("STEP", 1, 2, "PENDING")]
    assert factories.run(database, "select count from incident") == [(2,)]


def test_a_repeat_on_an_exhausted_incident_pages_again_after_the_stated_pause(
    database: Database, source: Source, clock: MovedClock
) -> None:
    factories.run(database, "insert into setting (name, value) values ('repage_exhausted_after', '3600')")
    first = alert(database, source)
    assert first.id is not None
    for _ in range(2):
        do(database, incidents.escalate, first.id, ALICE)
    clock.pass_(minutes=59)
    alert(database, source)
    assert state(database, first.id).round == 1
    clock.pass_(minutes=2)
    assert alert(database, source) == Done(first.id, "deduplicated")
    incident = state(database, first.id)
    assert (incident.round, incident.step, incident.exhausted_at, incident.count) == (2, 1, None, 3)
    assert entries(database, first.id, "repaged") == [{"round": 2}]


def test_without_the_setting_an_exhausted_incident_only_counts(
    database: Database, source: Source, clock: MovedClock
) -> None:
    first = alert(database, source)
    assert first.id is not None
    for _ in range(2):
        do(database, incidents.escalate, first.id, ALICE)
    clock.pass_(days=3)
    alert(database, source)
    assert state(database, first.id).round == 1


def test_a_person_opens_an_incident_for_a_target(database: Database, source: Source) -> None:
    incident = do(database, opening.trigger_target, person(database, "bob"), Event("trigger", "Call me"), ALICE)
    assert (incident.service_id, incident.policy["name"], incident.urgency) == (None, None, "high")
    assert [row["target"] for row in rows(database, incident.id)] == ["user:bob@example.com"]
    do(database, incidents.escalate, incident.id, ALICE)
    assert state(database, incident.id).exhausted_at is not None


def test_unknown_keys_and_services_are_refused(database: Database, source: Source) -> None:
    with pytest.raises(NotFound, match="No integration"):
        do(database, opening.integration, tokens.digest("another key"))
    with pytest.raises(NotFound) as refused:
        do(database, opening.service, "nope", ALICE)
    assert refused.value.field == "service"
    assert do(database, opening.service, "api", ALICE).integration_id is None


def test_an_alert_for_a_service_just_deleted_is_refused(database: Database, source: Source) -> None:
    factories.run(database, "delete from service")
    with pytest.raises(NotFound, match="any more"):
        alert(database, source)


def test_the_time_of_the_last_alert_never_goes_back(database: Database, source: Source, clock: MovedClock) -> None:
    factories.run(database, "update service set auto_resolve_seconds = 600")
    clock.pass_(minutes=5)
    first = alert(database, source)
    assert first.id is not None
    newest = state(database, first.id)
    clock.pass_(minutes=-5)
    alert(database, source)
    incident = state(database, first.id)
    assert incident.last_alert_at == newest.last_alert_at
    assert incident.auto_resolve_at == newest.last_alert_at + timedelta(minutes=10)
