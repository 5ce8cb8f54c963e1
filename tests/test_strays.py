"""An open incident that nothing will move again is reported, once a round."""

import logging
import threading

import pytest

from escalade import incidents, strays
from escalade.config import Config
from escalade.db import Database
from tests import factories
from tests.acting import do, entries
from tests.clock import MovedClock
from tests.web.screens import make_screens
from tests.web.serving import make_app, token


def lose_step(database: Database, incident_id: int) -> None:
    """What no transition does."""
    factories.run(database, "delete from notification_attempt where incident_id = %s and kind = 'STEP'", incident_id)


def test_k101_a_stray_is_reported_once(database: Database, clock: MovedClock, caplog: pytest.LogCaptureFixture) -> None:
    incident = factories.open_incident(database, factories.ladder(database, "http://127.0.0.1:1"))
    lose_step(database, incident.id)
    clock.pass_(minutes=2)
    with caplog.at_level(logging.WARNING, "escalade.strays"):
        assert strays.report_strays(database.begin) == 1
        assert strays.report_strays(database.begin) == 0
    assert entries(database, incident.id, "left_without_end") == [{"round": 1}]
    assert [record.message for record in caplog.records] == [
        f"open with no step to come and no end: incident {incident.id} (escalate or resolve)"
    ]


def test_k101_an_incident_just_opened_is_none(database: Database, clock: MovedClock) -> None:
    incident = factories.open_incident(database, factories.ladder(database, "http://127.0.0.1:1"))
    lose_step(database, incident.id)
    clock.pass_(seconds=50)
    assert strays.report_strays(database.begin) == 0


def test_k101_a_new_round_that_is_lost_too_is_reported_again(database: Database, clock: MovedClock) -> None:
    incident = factories.open_incident(database, factories.ladder(database, "http://127.0.0.1:1"))
    lose_step(database, incident.id)
    clock.pass_(minutes=2)
    strays.report_strays(database.begin)
    do(database, incidents.escalate, incident.id, "alice@example.com")
    assert strays.report_strays(database.begin) == 0, "its new step waits"
    lose_step(database, incident.id)
    assert strays.report_strays(database.begin) == 1
    assert entries(database, incident.id, "left_without_end") == [{"round": 1}, {"round": 2}]


def test_k101_waiting_acknowledged_snoozed_exhausted_and_resolved_ones_are_none(
    database: Database, clock: MovedClock
) -> None:
    service = factories.ladder(database, "http://127.0.0.1:1")
    waiting, acknowledged, snoozed, exhausted, resolved = (
        factories.open_incident(database, service, f"k{n}") for n in range(5)
    )
    do(database, incidents.acknowledge, acknowledged.id, "alice@example.com")
    do(database, incidents.snooze, snoozed.id, 3600, "alice@example.com")
    for _ in range(2):
        do(database, incidents.escalate, exhausted.id, "alice@example.com")
    do(database, incidents.resolve, resolved.id, "alice@example.com")
    assert do(database, incidents.find, exhausted.id).exhausted_at is not None
    clock.pass_(minutes=2)
    assert strays.report_strays(database.begin) == 0


def test_k101_an_incident_that_somebody_holds_is_left_for_later(database: Database, clock: MovedClock) -> None:
    incident = factories.open_incident(database, factories.ladder(database, "http://127.0.0.1:1"))
    lose_step(database, incident.id)
    clock.pass_(minutes=2)
    with database.begin() as tx:
        incidents.lock(tx, incident.id)
        assert strays.report_strays(database.begin) == 0
    assert strays.report_strays(database.begin) == 1


def test_q16_many_that_were_reported_hide_no_later_one(database: Database, clock: MovedClock) -> None:
    service = factories.ladder(database, "http://127.0.0.1:1")
    found = [factories.open_incident(database, service, f"k{number}") for number in range(102)]
    for incident in found:
        lose_step(database, incident.id)
    clock.pass_(minutes=2)
    assert [strays.report_strays(database.begin) for _ in range(3)] == [100, 2, 0]


def test_k101_instances_that_look_at_once_report_it_once(database: Database, clock: MovedClock) -> None:
    incident = factories.open_incident(database, factories.ladder(database, "http://127.0.0.1:1"))
    lose_step(database, incident.id)
    clock.pass_(minutes=2)
    gate = threading.Barrier(4)

    def look() -> None:
        gate.wait(10)
        strays.report_strays(database.begin)

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(entries(database, incident.id, "left_without_end")) == 1


def test_k101_the_dashboard_and_the_metrics_show_it(database: Database, config: Config, clock: MovedClock) -> None:
    incident = factories.open_incident(database, factories.ladder(database, "http://127.0.0.1:1"))
    client = make_screens(database, config).client("alice")
    words = "Nothing is pending and it has no end"
    clock.pass_(minutes=2)
    assert words not in client.get("/").text
    lose_step(database, incident.id)
    assert words in client.get("/").text
    headers = {"Authorization": f"Bearer {token(database, 'viewer')}"}
    assert "escalade_strays 1.0" in make_app(database, config).test_client().get("/metrics", headers=headers).text
