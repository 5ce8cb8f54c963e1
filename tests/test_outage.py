"""Times without delivery are told once by whoever goes round again, with the pages that were late for it."""

import logging
import threading
from collections.abc import Iterator

import pytest

from escalade import incidents, outage
from escalade.config import Config
from escalade.db import Database
from escalade.dispatch import Settings
from escalade.doorbell import Doorbell
from tests import factories
from tests.acting import ALICE, do
from tests.clock import MovedClock
from tests.engines import running_engine
from tests.receiver import Receiver, receiver, wait_for
from tests.rows import rows as insert_rows
from tests.web.screens import make_screens
from tests.web.serving import make_app, token

QUICK = Settings(lease=9, deadline=3, poll=0.2)


@pytest.fixture
def phone() -> Iterator[Receiver]:
    """Where everybody's webhooks lead."""
    with receiver() as found:
        yield found


def ran(database: Database, *, killed: bool) -> None:
    """An engine has gone round, and has ended: in good order, or killed."""
    with running_engine(database.url, Doorbell(), settings=QUICK):
        wait_for(lambda: factories.run(database, "select 1 from engine_instance"))
    if killed:
        factories.run(database, "insert into engine_instance values ('killed', now(), now())")
        factories.run(database, "update delivery set last_tick_at = null")


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was said of outages."""
    return [record.message for record in caplog.records if record.name == "escalade.outage"]


@pytest.mark.parametrize("killed", [False, True])
def test_a_boot_after_an_outage_says_how_long_it_was_and_what_was_late(
    database: Database,
    config: Config,
    clock: MovedClock,
    phone: Receiver,
    caplog: pytest.LogCaptureFixture,
    killed: bool,
) -> None:
    ran(database, killed=killed)
    incident = factories.open_incident(database, factories.ladder(database, phone.url))
    clock.pass_(minutes=12)
    with running_engine(database.url, Doorbell(), settings=QUICK):
        phone.wait(1, "/alice")
        wait_for(lambda: factories.run(database, "select 1 from outage"))
    [(began, ended, late, pages)] = factories.run(database, "select began_at, ended_at, late_pages, pages from outage")
    assert 720 <= (ended - began).total_seconds() < 760
    assert late == 2, "the page, and the next step, which was due after five minutes"
    assert [(page["kind"], page["incident"]) for page in pages] == [("PAGE", incident.id), ("STEP", incident.id)]
    [said] = told(caplog)
    assert said.startswith("delivery was down for 7") and "2 pages were late: attempt " in said
    assert f"of incident {incident.id}" in said
    page = make_screens(database, config).client("alice").get("/").text
    assert "Delivery was down for 12:" in page and "2 pages were late" in page
    assert f'<a href="/incidents/{incident.id}">#{incident.id}</a>' in page
    metrics = (
        make_app(database, config)
        .test_client()
        .get("/metrics", headers={"Authorization": f"Bearer {token(database, 'viewer')}"})
        .text
    )
    assert "escalade_last_outage_late_pages 2.0" in metrics and "escalade_outages_total" in metrics


def test_q55_what_was_due_during_an_outage_of_any_length_is_caught_up_with(
    database: Database, clock: MovedClock, phone: Receiver
) -> None:
    ran(database, killed=True)
    factories.open_incident(database, factories.ladder(database, phone.url))
    clock.pass_(days=40)
    with running_engine(database.url, Doorbell(), settings=QUICK):
        phone.wait(1, "/alice")
        phone.wait(1, "/bob")


def test_the_first_boot_of_all_and_a_quick_restart_report_nothing(
    database: Database, clock: MovedClock, caplog: pytest.LogCaptureFixture
) -> None:
    ran(database, killed=False)
    clock.pass_(seconds=20)
    ran(database, killed=True)
    assert told(caplog) == []
    assert factories.run(database, "select count(*) from outage") == [(0,)]


def test_while_another_instance_went_on_nothing_was_down(database: Database, clock: MovedClock) -> None:
    ran(database, killed=True)
    clock.pass_(hours=1)
    with database.begin() as tx:
        tx.run("engine_ticked", owner="another", now=tx.now)
    outage.report(database.begin)
    assert factories.run(database, "select count(*) from outage") == [(0,)]


def test_of_instances_that_boot_at_once_one_reports(database: Database, clock: MovedClock) -> None:
    ran(database, killed=True)
    clock.pass_(hours=1)
    gate = threading.Barrier(4)

    def boot() -> None:
        gate.wait(10)
        outage.report(database.begin)

    threads = [threading.Thread(target=boot) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert factories.run(database, "select count(*) from outage") == [(1,)]


def test_a_database_that_was_away_is_an_outage_too(
    database: Database, clock: MovedClock, caplog: pytest.LogCaptureFixture
) -> None:
    with running_engine(database.url, Doorbell(), settings=QUICK) as engine:
        wait_for(lambda: factories.run(database, "select 1 from engine_instance"))
        clock.pass_(minutes=3)
        factories.run(
            database,
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()",
        )
        wait_for(lambda: told(caplog))
        assert engine.health.away is None
    assert "no page was late" in told(caplog)[0]


def test_the_list_of_late_pages_is_bounded_and_their_number_is_not(
    database: Database, clock: MovedClock, caplog: pytest.LogCaptureFixture
) -> None:
    ran(database, killed=True)
    insert_rows(database, 150)
    clock.pass_(minutes=12)
    assert outage.report(database.begin) == 150
    [(late, pages)] = factories.run(database, "select late_pages, pages from outage")
    assert (late, len(pages)) == (150, outage.LISTED)
    assert told(caplog)[0].endswith("and 145 more")


def test_an_outage_is_shown_for_a_day(database: Database, config: Config, clock: MovedClock) -> None:
    ran(database, killed=True)
    clock.pass_(minutes=12)
    outage.report(database.begin)
    client = make_screens(database, config).client("alice")
    assert 'id="outage"' in client.get("/").text and "No page was late." in client.get("/").text
    clock.pass_(hours=25)
    with database.begin() as tx:
        assert outage.latest(tx) is None


def test_pages_that_nobody_needs_any_more_were_not_late(database: Database, clock: MovedClock, phone: Receiver) -> None:
    ran(database, killed=True)
    incident = factories.open_incident(database, factories.ladder(database, phone.url))
    do(database, incidents.resolve, incident.id, ALICE)
    clock.pass_(minutes=12)
    assert outage.report(database.begin) == 0


def test_an_engine_that_cannot_report_goes_on(
    database: Database, phone: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "escalade.engine")

    def report(begin: object) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr(outage, "report", report)
    factories.open_incident(database, factories.ladder(database, phone.url))
    with running_engine(database.url, Doorbell(), settings=QUICK):
        phone.wait(1, "/alice")
