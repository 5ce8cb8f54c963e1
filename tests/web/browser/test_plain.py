"""The same actions with JavaScript switched off, and what a thumb needs."""

import pytest
from playwright.sync_api import Browser, expect

from escalade import passwords
from tests import factories
from tests.web.browser.conftest import PHONE, Reader, Site, read
from tests.web.screens import fail


@pytest.fixture
def incident(site: Site) -> int:
    return factories.open_incident(site.db, site.service, "k").id


def test_every_action_works(site: Site, plain: Reader, incident: int) -> None:
    page = plain.page

    def press(name: str, within: str = "main") -> None:
        page.locator(within).get_by_role("button", name=name, exact=True).first.click()

    fail(site.db, incident, "no route")
    page.goto("/")
    press("Replay", "#failed")
    expect(page.locator("#said")).to_contain_text("1 page sent again.")
    fail(site.db, incident, "no route")
    page.reload()
    press("Replay all shown", "#failed")
    expect(page.locator("#told")).to_contain_text("Alice")
    press("Replay")
    expect(page.locator("#failed")).to_contain_text("Nothing has failed.")
    press("Escalate now")
    expect(page.locator("#said")).to_contain_text("Escalated by alice@example.com")
    press("Acknowledge")
    expect(page.locator(f"#incident-{incident}")).to_contain_text("alice@example.com is on it")
    page.get_by_role("link", name="Disk full").first.click()
    press("Unacknowledge")
    expect(page.locator("#incident-state")).to_contain_text("Triggered")
    page.locator("#note-text").fill("a note")
    press("Add note")
    expect(page.locator("#timeline")).to_contain_text("a note")
    page.get_by_text("Snooze or reassign").click()
    press("Snooze")
    expect(page.locator("#incident-state")).to_contain_text("Snoozed")
    page.get_by_text("Snooze or reassign").click()
    page.locator("#reassign-target").select_option("user:bob@example.com")
    press("Reassign")
    expect(page.locator("#said")).to_contain_text("Reassigned to user:bob@example.com")
    press("Resolve")
    expect(page.locator("#incident-state")).to_contain_text("Resolved")
    press("Reopen")
    expect(page.locator("#incident-state")).to_contain_text("Triggered")
    page.goto("/")
    page.get_by_text("Open an incident by hand").click()
    page.locator("#open-incident-title").fill("By hand")
    press("Open incident")
    expect(page.locator("#open-list")).to_contain_text("By hand")


@pytest.mark.parametrize("scripts", [True, False])
def test_logging_in_and_out(site: Site, browser: Browser, scripts: bool) -> None:
    factories.user(site.db, "carol", password_hash=passwords.hashed("correct horse"))
    context = browser.new_context(viewport=PHONE, base_url=site.url, java_script_enabled=scripts)
    page = context.new_page()
    page.goto("/oncall")
    page.get_by_label("E-mail").fill("carol@example.com")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_text("E-mail or password is wrong.")).to_be_visible()
    page.get_by_label("Password").fill("correct horse")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="On call")).to_be_visible()
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_label("Password")).to_be_visible()
    context.close()


def test_the_link_of_a_message_is_one_page_and_one_button(site: Site, browser: Browser, incident: int) -> None:
    context = browser.new_context(viewport=PHONE, base_url=site.url)
    reader, weight = read(context), list[int]()
    page = reader.page
    page.on("response", lambda response: weight.append(len(response.body())))
    user = factories.run(site.db, "select id from app_user where email = 'alice@example.com'")[0][0]
    page.goto(site.screens.link(incident, user_id=user), wait_until="networkidle")
    assert sum(weight) < 15_000
    button = page.get_by_role("button", name="Acknowledge", exact=True)
    box = button.bounding_box()
    assert box is not None and box["height"] >= 56 and box["y"] > PHONE["height"] * 2 / 3
    assert box["y"] + box["height"] <= PHONE["height"]
    assert page.locator("script").count() == 0
    button.click()
    expect(page.get_by_role("heading", name="You are on it")).to_be_visible()
    assert context.cookies() == [] and reader.faults == []
    context.close()


TARGETS = """() => [...document.querySelectorAll('button, input:not([type=hidden]), select, textarea, summary, nav a')]
    .map((node) => [node, node.getBoundingClientRect()])
    .filter(([node, box]) => box.width && (box.height < 43.5 || box.width < 43.5))
    .map(([node]) => node.outerHTML)"""


CUT_TABS = """() => [...document.querySelectorAll('.tabs, .tabs a')]
    .filter((node) => node.scrollWidth > node.clientWidth)
    .map((node) => node.outerHTML)"""


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_targets_are_large_and_nothing_is_cut_off(site: Site, reader: Reader, incident: int, width: int) -> None:
    fail(site.db, incident, "x" * 300)
    factories.run(site.db, "update incident set title = %s", "W" * 200)
    page = reader.page
    page.set_viewport_size({"width": width, "height": 844})
    for path in ("/", f"/incidents/{incident}", "/incidents", "/attempts", "/oncall", "/setup", "/nowhere"):
        page.goto(path)
        assert page.evaluate(TARGETS) == [], path
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, path
        assert page.evaluate(CUT_TABS) == [], path
    page.goto("/")
    for name in ("Acknowledge", "Resolve", "Escalate now"):
        box = page.get_by_role("button", name=name, exact=True).first.bounding_box()
        assert box is not None and box["height"] >= (56 if width < 800 else 44)
    reader.expect_refusal()
