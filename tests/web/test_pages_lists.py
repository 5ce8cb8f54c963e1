"""Who is on call, and what is configured."""

from escalade.oncall import zone
from tests import factories
from tests.web.screens import Screens


def test_who_is_on_call_now_and_next(screens: Screens) -> None:
    alice, bob = factories.user(screens.db, "alice"), factories.user(screens.db, "bob")
    schedule = factories.schedule(screens.db, [alice, bob])
    factories.run(screens.db, "update rotation set length = 1, start_date = current_date - 3")
    factories.insert(screens.db, "schedule", name="empty", timezone="Europe/Berlin")
    text = screens.client().get("/oncall").text
    card = text.split(f'id="schedule-{schedule}"')[1].split("</section>")[0]
    assert "<h3>Alice</h3>" in card and "<p>Bob</p>" in card and "From <time datetime=" in card
    assert '<h3 class="error">Nobody</h3>' in text


def test_a_schedule_that_cannot_be_worked_out_hides_no_other(screens: Screens) -> None:
    alice = factories.user(screens.db, "alice")
    factories.schedule(screens.db, [alice])
    factories.schedule(screens.db, [alice], name="broken", timezone="Mars/Olympus")
    zone.cache_clear()
    text = screens.client().get("/oncall").text
    assert "<h3>Alice</h3>" in text and "cannot be worked out" in text


def test_setup_lists_what_is_there_and_no_secret(screens: Screens) -> None:
    service = factories.ladder(screens.db, "http://127.0.0.1:9/secret-path")
    factories.integration(screens.db, service)
    factories.channel(screens.db, "https://hooks.slack.com/services/T0/B0/secret", "slack")
    factories.user(screens.db, "vera", "viewer")
    text = screens.client().get("/setup").text
    for words in ("api", "default", "schedule:primary", "then waits 5m", "ops", "alice@example.com", factories.KEY[:6]):
        assert words in text
    assert "cannot be reached: no contact method" in text
    assert "secret" not in text and factories.KEY not in text


def test_they_say_what_is_missing(screens: Screens) -> None:
    assert "No schedules yet." in screens.client().get("/oncall").text
    text = screens.client().get("/setup").text
    assert "No services yet." in text and "No policies yet." in text
