"""What the live pages must not do: show success before the server said so, or take away what somebody is at."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Route, expect

from escalade import incidents
from tests import factories
from tests.web.browser.conftest import PHONE, Reader, Site, read
from tests.web.screens import fail


@pytest.fixture
def incident(site: Site) -> int:
    return factories.open_incident(site.db, site.service, "k").id


@pytest.fixture
def bob(browser: Browser, site: Site) -> Iterator[Reader]:
    """Bob's phone beside Alice's."""
    context = browser.new_context(viewport=PHONE, base_url=site.url, service_workers="block")
    site.log_in(context, "bob")
    found = read(context)
    yield found
    assert found.faults == []
    context.close()


def status_of(site: Site, incident: int) -> str:
    return str(factories.run(site.db, "select status from incident where id = %s", incident)[0][0])


def test_nothing_changes_before_the_server_has_answered(site: Site, reader: Reader, incident: int) -> None:
    page, held = reader.page, list[Route]()
    page.goto(f"/incidents/{incident}")
    page.route("**/acknowledge", lambda route: held.append(route))
    with page.expect_request("**/acknowledge"):
        page.get_by_role("button", name="Acknowledge", exact=True).click()
    expect(page.locator("#incident-state")).to_contain_text("Triggered")
    expect(page.get_by_role("button", name="Acknowledge", exact=True)).to_be_disabled()
    expect(page.locator("#said")).to_have_count(0)
    held[0].continue_()
    expect(page.locator("#incident-state")).to_contain_text("Acknowledged")
    expect(page.locator("#said")).to_be_visible()


def test_a_button_pressed_offline_says_not_sent_and_works_later(site: Site, reader: Reader, incident: int) -> None:
    page = reader.page
    page.goto("/")
    page.context.set_offline(True)
    page.get_by_role("button", name="Acknowledge", exact=True).click()
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("Not sent: this device is offline.")
    unsent = page.locator("form[data-unsent] button")
    expect(unsent).to_have_accessible_name("Acknowledge – not sent")
    expect(unsent).to_be_enabled()
    expect(page.locator(f"#incident-{incident}")).to_contain_text("Triggered")
    assert status_of(site, incident) == "TRIGGERED"
    page.context.set_offline(False)
    with page.expect_response("**/now?*"):
        page.evaluate("dispatchEvent(new Event('online'))")
    expect(alert).to_contain_text("Not sent")  # the news came through, the acknowledgement did not
    assert status_of(site, incident) == "TRIGGERED"
    unsent.click()
    expect(page.locator(f"#incident-{incident}")).to_contain_text("alice@example.com is on it")
    expect(alert).to_be_empty()
    expect(page.locator("[data-unsent]")).to_have_count(0)
    reader.expect_refusal()


def test_what_was_typed_offline_stays(site: Site, reader: Reader, incident: int) -> None:
    page = reader.page
    page.goto(f"/incidents/{incident}")
    page.locator("#note-text").fill("it is the disk")
    page.context.set_offline(True)
    page.get_by_role("button", name="Add note").click()
    expect(page.get_by_role("alert")).to_contain_text("Not sent")
    expect(page.locator("#note-text")).to_have_value("it is the disk")
    page.context.set_offline(False)
    page.locator("#note-form button").click()
    expect(page.locator("#timeline")).to_contain_text("it is the disk")
    expect(page.locator("#note-text")).to_have_value("")
    reader.expect_refusal()


def test_not_sent_goes_once_somebody_else_has_done_it(site: Site, reader: Reader, incident: int) -> None:
    page = reader.page
    page.goto("/")
    page.context.set_offline(True)
    page.get_by_role("button", name="Acknowledge", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("Not sent")
    with site.db.begin() as tx:
        incidents.acknowledge(tx, incident, "bob@example.com")
    page.context.set_offline(False)
    page.evaluate("dispatchEvent(new Event('online'))")
    expect(page.locator(f"#incident-{incident}")).to_contain_text("bob@example.com is on it")
    expect(page.get_by_role("alert")).to_be_empty()
    reader.expect_refusal()


@pytest.mark.parametrize("status", [500, 502, 504])
def test_an_answer_that_says_nothing_is_called_a_doubt(site: Site, reader: Reader, incident: int, status: int) -> None:
    page = reader.page
    page.goto("/")
    page.route("**/acknowledge", lambda route: route.fulfill(status=status, body="<h1>gateway</h1>"))
    page.get_by_role("button", name="Acknowledge", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("it may not have been done")
    expect(page.locator("main")).not_to_contain_text("gateway")
    expect(page.locator(f"#incident-{incident}")).to_contain_text("Triggered")
    reader.expect_refusal()


def test_the_second_of_two_sees_who_was_first(site: Site, reader: Reader, bob: Reader, incident: int) -> None:
    for page in (reader.page, bob.page):
        page.goto(f"/incidents/{incident}")
    bob.page.get_by_role("button", name="Pause updates").click()  # his screen is a little behind
    reader.page.get_by_role("button", name="Acknowledge", exact=True).click()
    expect(reader.page.locator("#incident-state")).to_contain_text("Acknowledged")
    bob.page.get_by_role("button", name="Acknowledge", exact=True).click()
    expect(bob.page.locator("#said")).to_contain_text("alice@example.com")
    expect(bob.page.locator("#incident-facts")).to_contain_text("by alice@example.com")
    assert factories.events(site.db, incident).count("acknowledged") == 1


def test_what_somebody_else_did_arrives_by_itself(site: Site, reader: Reader, bob: Reader, incident: int) -> None:
    for page in (reader.page, bob.page):
        page.goto("/")
    reader.page.get_by_role("button", name="Acknowledge", exact=True).click()
    expect(bob.page.locator(f"#incident-{incident}")).to_contain_text("alice@example.com is on it")
    expect(bob.page.get_by_role("button", name="Acknowledge", exact=True)).to_have_count(0)
    expect(bob.page.locator("#spoken")).to_contain_text("0 not acknowledged")


def test_a_focused_button_never_becomes_another(site: Site, reader: Reader, incident: int) -> None:
    """Enter pressed a moment too late must not resolve what was to be acknowledged."""
    page = reader.page
    page.goto(f"/incidents/{incident}")
    page.get_by_role("button", name="Acknowledge", exact=True).focus()
    page.evaluate("window.held = document.activeElement")
    with site.db.begin() as tx:
        incidents.acknowledge(tx, incident, "bob@example.com")
    expect(page.locator("#incident-state")).to_contain_text("Acknowledged")
    assert page.evaluate("held.isConnected") is False
    page.keyboard.press("Enter")
    page.wait_for_timeout(300)
    assert status_of(site, incident) == "ACKNOWLEDGED"


def test_the_focus_stays_on_what_was_pressed_or_goes_to_what_came_of_it(
    site: Site, reader: Reader, incident: int
) -> None:
    page = reader.page
    page.goto(f"/incidents/{incident}")
    page.get_by_role("button", name="Escalate now", exact=True).press("Enter")
    expect(page.locator("#said")).to_be_visible()
    expect(page.get_by_role("button", name="Escalate now", exact=True)).to_be_focused()
    page.get_by_role("button", name="Acknowledge", exact=True).press("Enter")
    expect(page.locator("#incident-state")).to_contain_text("Acknowledged")
    expect(page.locator("#said")).to_be_focused()


def test_selected_text_and_scroll_stay(site: Site, reader: Reader, incident: int) -> None:
    factories.run(site.db, "update incident set details = %s", "\n".join(f"line {n}" for n in range(200)))
    page = reader.page
    page.goto(f"/incidents/{incident}")
    page.evaluate("getSelection().selectAllChildren(document.querySelector('#incident-card h1'))")
    page.locator("#incident-details pre").evaluate("node => node.scrollTop = 500")
    page.evaluate("scrollTo(0, 120)")
    with site.db.begin() as tx:
        incidents.note(tx, incident, "from somebody else", "bob@example.com")
    expect(page.locator("#timeline")).to_contain_text("from somebody else")
    assert page.evaluate("getSelection().toString()") == "Disk full"
    assert page.locator("#incident-details pre").evaluate("node => node.scrollTop") == 500
    assert page.evaluate("scrollY") == 120


def test_an_unchanged_page_is_not_touched(site: Site, reader: Reader, incident: int) -> None:
    fail(site.db, incident)
    page, statuses = reader.page, list[int]()
    page.goto("/")
    page.on("response", lambda response: statuses.append(response.status) if "/now?" in response.url else None)
    page.evaluate(
        "window.touched = 0; new MutationObserver((found) => { touched += found.filter((one) =>"
        " one.type === 'childList' && !one.target.closest('time, #freshness')).length })"
        ".observe(document.body, {subtree: true, childList: true})"
    )
    for _ in range(2):
        with page.expect_response("**/now?*"):
            page.evaluate("dispatchEvent(new Event('online'))")
    assert set(statuses) == {204} and page.evaluate("touched") == 0


def test_k087_what_is_ticked_stays_ticked(site: Site, reader: Reader, incident: int) -> None:
    ids = [fail(site.db, number) for number in (incident, factories.open_incident(site.db, site.service, "k2").id)]
    page = reader.page
    page.goto("/attempts?status=FAILED")
    page.locator(f"#tick-{ids[0]}").check()
    newest = fail(site.db, factories.open_incident(site.db, site.service, "k3").id)
    expect(page.locator(f"#tick-{newest}")).to_be_visible()
    assert [page.locator(f"#tick-{number}").is_checked() for number in (*ids, newest)] == [True, False, False]
