"""Setup's forms in a real browser: by keyboard alone, without JavaScript, and whatever state they are in."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.factories import run
from tests.transfer.example import FULL, applied
from tests.web.browser.conftest import Reader, Site, read
from tests.web.browser.test_axe import faults, page

__all__ = ["page"]


@pytest.fixture(params=[True, False], ids=["with JavaScript", "without"])
def admin(request: pytest.FixtureRequest, browser: Browser, bare: Site) -> Iterator[Reader]:
    """Ada the admin, at the full example on a narrow phone."""
    applied(bare.db, FULL)
    context = browser.new_context(
        viewport={"width": 320, "height": 700},
        base_url=bare.url,
        service_workers="block",
        java_script_enabled=request.param,
    )
    bare.log_in(context, "ada", "admin")
    found = read(context) if request.param else Reader(context.new_page(), [])
    yield found
    assert found.faults == []
    context.close()


def chosen(page: Page, label: str, text: str, nth: int = 0) -> None:
    """Choose in a select by its label, as the keys of a keyboard would."""
    page.get_by_label(label, exact=True).nth(nth).focus()
    page.keyboard.type(text)


def press(page: Page, name: str) -> None:
    """Press a button by keyboard."""
    page.get_by_role("button", name=name, exact=True).focus()
    page.keyboard.press("Enter")


def test_a_policy_is_made_by_keyboard_alone(admin: Reader, bare: Site) -> None:
    page = admin.page
    page.goto("/setup")
    page.get_by_role("link", name="New policy").focus()
    page.keyboard.press("Enter")
    page.get_by_label("Name").focus()
    page.keyboard.type("by hand")
    press(page, "Add step")
    # The new line is where typing goes on.
    expect(page.get_by_label("Target 1")).to_be_focused()
    chosen(page, "Target 1", "schedule primary")
    press(page, "Add target to Step 1")
    expect(page.get_by_label("Target 2")).to_be_focused()
    chosen(page, "Target 2", "channel ops")
    page.get_by_label("Then wait").focus()
    page.keyboard.type("5m")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Created.")).to_be_visible()
    targets = run(
        bare.db,
        "select t.schedule_id is not null, t.channel_id is not null from escalation_target t"
        " join escalation_step s on s.id = t.step_id join escalation_policy p on p.id = s.policy_id"
        " where p.name = 'by hand' order by t.position",
    )
    assert targets == [(True, False), (False, True)]


def test_a_fault_leads_to_its_field(admin: Reader, bare: Site) -> None:
    page = admin.page
    page.goto(f"/setup/services/{run(bare.db, 'select id from service')[0][0]}")
    page.get_by_label("Resolve without another alert").fill("soon")
    press(page, "Save")
    page.get_by_role("link", name="must be a duration").click()
    field = page.get_by_label("Resolve without another alert")
    expect(field).to_be_in_viewport()
    expect(field).to_have_value("soon")
    expect(field).to_have_attribute("aria-invalid", "true")
    admin.expect_refusal()


def test_axe_finds_nothing_on_forms_with_faults_conflicts_keys_and_uses(page: Page, bare: Site) -> None:
    applied(bare.db, FULL)
    service = f"/setup/services/{run(bare.db, 'select id from service')[0][0]}"
    found = []
    page.goto(service)
    page.get_by_label("Grace").first.fill("x")
    page.get_by_label("Interval").last.fill("y")
    press(page, "Save")
    expect(page.get_by_text("Nothing was saved.")).to_be_visible()
    found += faults(page)
    page.goto(service)
    run(bare.db, "update service set name = 'other'")
    press(page, "Save")
    expect(page.get_by_text("Somebody else changed this")).to_be_visible()
    found += faults(page)
    page.get_by_label("Make a new key").first.check()
    press(page, "Save")
    expect(page.get_by_text("Saved, with new keys")).to_be_visible()
    found += faults(page)
    page.goto(f"/setup/policies/{run(bare.db, 'select id from escalation_policy')[0][0]}/delete")
    found += faults(page)
    assert found == []
