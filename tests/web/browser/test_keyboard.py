"""The main ways by keyboard alone, and that what has the focus can be seen."""

import pytest
from playwright.sync_api import Browser, Page, expect

from escalade import passwords
from tests import factories
from tests.web.browser.conftest import Reader, Site
from tests.web.screens import fail

NAME = """() => {
  const node = document.activeElement;
  return node.matches('input, select, textarea') ? node.id : node.innerText.trim().slice(0, 40);
}"""
# Whether one sees it where it is: the middle of what is small, and some of what may be higher than the window.
SEEN = """() => {
  const node = document.activeElement, box = node.getBoundingClientRect();
  const seen = (part) => {
    const top = document.elementFromPoint(box.x + box.width / 2, box.y + box.height * part);
    return Boolean(top) && (node.contains(top) || top.contains(node) || Boolean(node.labels?.[0]?.contains(top)));
  };
  return box.height > 100 ? [.1, .3, .5, .7, .9].some(seen) : seen(.2) && seen(.8);
}"""
RING = "() => parseFloat(getComputedStyle(document.activeElement).outlineWidth) >= 2"


def tab_to(page: Page, name: str, limit: int = 60) -> None:
    """Press Tab until what is called so has the focus. Everything on the way must be visible, with a ring."""
    for _ in range(limit):
        page.keyboard.press("Tab")
        assert page.evaluate(SEEN), f"{page.evaluate(NAME)} has the focus, and is hidden"
        assert page.evaluate(RING), f"{page.evaluate(NAME)} has the focus, and shows no ring"
        if page.evaluate(NAME) == name:
            return
    raise AssertionError(f"Tab never came to {name}")


def test_from_the_login_to_a_resolved_incident(site: Site, browser: Browser) -> None:
    factories.user(site.db, "carol", password_hash=passwords.hashed("correct horse"))
    factories.open_incident(site.db, site.service, "k")
    page = browser.new_context(base_url=site.url, service_workers="block").new_page()
    page.goto("/")
    expect(page.get_by_label("E-mail")).to_be_focused()
    page.keyboard.type("carol@example.com")
    page.keyboard.press("Tab")
    page.keyboard.type("correct horse")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Now")).to_be_visible()
    tab_to(page, "Disk full")
    page.keyboard.press("Enter")
    expect(page.locator("#incident-state")).to_contain_text("Triggered")
    tab_to(page, "Acknowledge")
    page.keyboard.press("Enter")
    expect(page.locator("#incident-state")).to_contain_text("Acknowledged")
    tab_to(page, "note-text")
    page.keyboard.type("The disk is being emptied.")
    tab_to(page, "Add note")
    page.keyboard.press("Space")
    expect(page.locator("#timeline")).to_contain_text("The disk is being emptied.")
    page.reload()
    tab_to(page, "Resolve")
    page.keyboard.press("Enter")
    expect(page.locator("#incident-state")).to_contain_text("Resolved")
    page.context.close()


def test_snoozing_and_reassigning(site: Site, reader: Reader) -> None:
    incident = factories.open_incident(site.db, site.service, "k").id
    page = reader.page
    page.goto(f"/incidents/{incident}")
    tab_to(page, "Snooze or reassign")
    page.keyboard.press("Enter")
    tab_to(page, "snooze-for")
    page.keyboard.press("Enter")
    expect(page.locator("#incident-state")).to_contain_text("Snoozed")
    tab_to(page, "reassign-target")
    page.keyboard.type("Bob")
    tab_to(page, "Reassign")
    page.keyboard.press("Enter")
    expect(page.locator("#said")).to_contain_text("Reassigned to user:bob@example.com")


def test_replaying_and_pausing(site: Site, reader: Reader) -> None:
    incident = factories.open_incident(site.db, site.service, "k").id
    fail(site.db, incident)
    page = reader.page
    page.goto("/attempts")
    tab_to(page, "Pause updates")
    page.keyboard.press("Space")
    expect(page.locator("[data-pause]")).to_have_accessible_name("Resume updates")
    tab_to(page, "Replay")
    page.keyboard.press("Enter")
    expect(page.locator("#said")).to_contain_text("1 page sent again.")


@pytest.mark.parametrize("width", [320, 1280])
def test_nothing_sticky_hides_the_focus(site: Site, reader: Reader, width: int) -> None:
    incident = factories.open_incident(site.db, site.service, "k").id
    factories.run(site.db, "update incident set details = %s", "a line\n" * 80)
    for number in range(12):
        factories.open_incident(site.db, site.service, f"k{number}")
    page = reader.page
    page.set_viewport_size({"width": width, "height": 568})
    for path in (f"/incidents/{incident}", "/"):
        page.goto(path)
        tab_to(page, "Dark", 150)
        for _ in range(30):
            page.keyboard.press("Shift+Tab")
            assert page.evaluate(SEEN), f"{page.evaluate(NAME)} has the focus, and is hidden"


def test_the_link_of_a_message_by_keyboard(site: Site, browser: Browser) -> None:
    incident = factories.open_incident(site.db, site.service, "k").id
    alice = factories.run(site.db, "select id from app_user where email = 'alice@example.com'")[0][0]
    page = browser.new_context(base_url=site.url).new_page()
    page.goto(site.screens.link(incident, user_id=alice))
    tab_to(page, "Acknowledge")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="You are on it")).to_be_visible()
    page.context.close()


def test_a_theme_by_keyboard_and_without_a_script(site: Site, browser: Browser) -> None:
    context = browser.new_context(base_url=site.url, java_script_enabled=False, color_scheme="light")
    site.log_in(context)
    page = context.new_page()
    page.goto("/oncall")
    page.get_by_role("button", name="Dark").press("Enter")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page).to_have_url(f"{site.url}/oncall#theme")
    expect(page.locator("body")).to_have_css("background-color", "rgb(14, 17, 22)")
    page.get_by_role("button", name="Auto").press("Enter")
    expect(page.locator("body")).to_have_css("background-color", "rgb(246, 247, 249)")
    context.close()
