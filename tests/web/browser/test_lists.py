"""The queue and the rota in a real browser: what stays through a refresh, and what works without JavaScript."""

import re

import pytest
from playwright.sync_api import Page, expect

from escalade import incidents
from tests import factories
from tests.web.browser import test_axe
from tests.web.browser.conftest import Reader, Site
from tests.web.browser.test_plain import TARGETS
from tests.web.screens import fail


@pytest.fixture
def failed(site: Site) -> list[int]:
    """Three pages that failed."""
    return [fail(site.db, factories.open_incident(site.db, site.service, key).id, f"error {key}") for key in "abc"]


def press(page: Page, name: str) -> None:
    page.locator("main").get_by_role("button", name=name, exact=True).first.click()


def test_k087_a_refresh_keeps_what_is_chosen_and_typed(site: Site, reader: Reader, failed: list[int]) -> None:
    page = reader.page
    page.goto("/attempts?status=FAILED&transport=webhook")
    page.locator(f"#tick-{failed[0]}").check()
    page.locator(f"#tick-{failed[2]}").check()
    page.locator("#filter-from").fill("2026-01-31T20:00")
    page.locator("#filter-service").select_option("api")
    new = fail(site.db, factories.open_incident(site.db, site.service, "new").id, "error new")
    expect(page.locator(f"#attempt-{new}")).to_be_visible()
    expect(page.locator(f"#tick-{new}")).not_to_be_checked()
    expect(page.locator(f"#tick-{failed[1]}")).not_to_be_checked()
    for number in (failed[0], failed[2]):
        expect(page.locator(f"#tick-{number}")).to_be_checked()
    expect(page.locator("#filter-from")).to_have_value("2026-01-31T20:00")
    expect(page.locator("#filter-service")).to_have_value("api")
    press(page, "Replay chosen")
    expect(page.locator("h1")).to_have_text("Send 2 pages again?")
    press(page, "Replay")
    expect(page.locator("#said")).to_have_text("2 pages sent again.")
    assert re.search(r"status=FAILED.*transport=webhook|transport=webhook.*status=FAILED", page.url)
    expect(page.locator("#attempts-list > li")).to_have_count(2)


def test_chosen_pages_are_replayed_without_javascript(site: Site, plain: Reader, failed: list[int]) -> None:
    page = plain.page
    page.goto("/attempts")
    page.locator(f"#tick-{failed[0]}").check()
    page.locator(f"#tick-{failed[1]}").check()
    press(page, "Replay chosen")
    expect(page.locator("#told")).to_contain_text("Alice")
    with site.db.begin() as tx:
        row = tx.one(dict, "attempt_incident", id=failed[0])
        incidents.resolve(tx, row["incident_id"], "bob@example.com")
    press(page, "Replay")
    expect(page.locator("#said")).to_have_text(
        "1 page sent again. 1 page skipped: changed meanwhile, or nobody needs to be paged for it any more."
    )


def test_k092_an_override_takes_two_taps_without_javascript(site: Site, plain: Reader) -> None:
    page = plain.page
    factories.run(site.db, "update rotation set participants = array[participants[2], participants[1]]")
    page.goto("/oncall")
    expect(page.locator("h3").first).to_have_text("Bob")
    page.get_by_text("Take it for me").click()
    page.locator(".take button").first.click()
    expect(page.locator("#said")).to_contain_text("Alice takes primary from")
    expect(page.locator("h3").first).to_have_text("Alice")
    press(page, "Remove the override of Alice on primary")
    expect(page.locator("#said")).to_have_text("Override removed.")
    page.get_by_role("link", name="Another override").click()
    page.locator("#override-kind").select_option("remove")
    page.locator("#override-user").select_option("bob@example.com")
    page.locator("#override-end").fill("2026-01-01T00:00")
    press(page, "Save override")
    expect(page.locator("#fault-end")).to_have_text("end must come after start.")
    expect(page.locator("#override-kind")).to_have_value("remove")
    expect(page.locator("#override-user")).to_have_value("bob@example.com")


def test_the_jumps_of_an_incident_open_what_they_lead_to(site: Site, reader: Reader) -> None:
    incident = factories.open_incident(site.db, site.service, "k").id
    page = reader.page
    page.goto(f"/incidents/{incident}")
    page.get_by_role("link", name="Snooze", exact=True).click()
    expect(page.locator("#snooze-for")).to_be_in_viewport()
    page.locator("#snooze-for").fill("2h")
    press(page, "Snooze")
    expect(page.locator("#incident-state")).to_contain_text("Snoozed")


@pytest.mark.parametrize("width", [320, 1280])
def test_targets_are_large_and_nothing_is_cut_off_on_them(
    site: Site, reader: Reader, failed: list[int], width: int
) -> None:
    factories.run(site.db, "update incident set title = %s", "W" * 200)
    factories.run(site.db, "update app_user set name = %s", "N" * 60)
    number = factories.run(site.db, "select id from schedule")[0][0]
    page = reader.page
    page.set_viewport_size({"width": width, "height": 844})
    for path in (
        "/attempts?transport=webhook&service=api",
        f"/attempts/{failed[0]}",
        "/attempts/replay?all=on&status=FAILED",
        "/oncall?service=api",
        f"/oncall/{number}/override",
        "/incidents?status=TRIGGERED",
    ):
        page.goto(path)
        assert page.evaluate(TARGETS) == [], path
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path


@pytest.mark.parametrize(
    "path",
    [
        "/attempts?from=never&who=user:x",
        "/attempts/replay?all=on",
        "/oncall?service=api&week=2026-01-08",
        "/oncall?service=x",
    ],
)
def test_axe_finds_nothing_with_a_filter_a_plan_or_a_rehearsal(
    site: Site, reader: Reader, failed: list[int], path: str
) -> None:
    page = reader.page
    page.add_init_script(path=test_axe.AXE)
    page.goto(path)
    page.locator("[data-pause]").evaluate_all("found => found.forEach((button) => button.click())")
    assert test_axe.faults(page) == []
    if "never" in path:
        reader.expect_refusal()
