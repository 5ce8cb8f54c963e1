"""The live pages in a real browser."""

import pytest
from playwright.sync_api import Page, Route, expect

from escalade import incidents
from tests import factories
from tests.web.browser.conftest import Reader, Site
from tests.web.screens import fail


@pytest.fixture
def service(site: Site) -> int:
    return site.service


def press(page: Page, name: str, within: str = "main") -> None:
    page.locator(within).get_by_role("button", name=name, exact=True).click()


def test_an_incident_arrives_and_is_acknowledged_without_a_reload(site: Site, reader: Reader, service: int) -> None:
    page = reader.page
    page.goto("/")
    expect(page.get_by_text("All quiet")).to_be_visible()
    page.evaluate("window.loaded = 'once'")
    incident = factories.open_incident(site.db, service, "k")
    row = page.locator(f"#incident-{incident.id}")
    expect(row).to_contain_text("Disk full")
    expect(row.locator("time[data-countdown]")).to_contain_text("in 4:")
    expect(page.locator("#spoken")).to_contain_text("1 incident open, 1 not acknowledged")
    assert page.title().startswith("(1)")
    press(page, "Acknowledge")
    expect(row).to_contain_text("alice@example.com is on it")
    expect(page.locator("#pending")).to_contain_text("Nothing is waiting.")
    expect(page.locator("#said")).to_contain_text("2 pending pages and escalations cancelled")
    press(page, "Resolve")
    expect(page.get_by_text("All quiet")).to_be_visible()
    assert page.evaluate("window.loaded") == "once"


def test_escalating_and_replaying(site: Site, reader: Reader, service: int) -> None:
    ids = [factories.open_incident(site.db, service, key).id for key in "abc"]
    for number in ids:
        fail(site.db, number, f"error {number}")
    page = reader.page
    page.goto("/")
    expect(page.locator("#failed")).to_contain_text(f"error {ids[0]}")
    press(page, "Escalate now", f"#incident-{ids[0]}")
    expect(page.locator("#said")).to_contain_text("Escalated by alice@example.com")
    page.locator("#failed").get_by_role("button", name="Replay", exact=True).first.click()
    expect(page.locator("#said")).to_contain_text("1 page sent again.")
    press(page, "Replay all shown")
    press(page, "Replay")
    expect(page.locator("#failed")).to_contain_text("Nothing has failed.")
    expect(page.locator("#said")).to_contain_text("2 pages sent again.")


def test_k087_a_refresh_keeps_text_caret_scroll_and_what_is_open(site: Site, reader: Reader, service: int) -> None:
    for number in range(8):
        factories.open_incident(site.db, service, f"k{number}")
    page = reader.page
    page.goto("/")
    page.get_by_text("Open an incident by hand").click()
    page.locator("#open-for").select_option("user:bob@example.com")
    field = page.locator("#open-incident-title")
    field.fill("half a sentence")
    field.evaluate("field => field.setSelectionRange(5, 9)")
    page.evaluate("window.node = document.activeElement")
    top = page.evaluate("document.getElementById('open-incident-title').getBoundingClientRect().top")
    new = factories.open_incident(site.db, service, "new", "The newest")
    expect(page.locator(f"#incident-{new.id}")).to_be_visible()
    expect(field).to_be_visible()
    expect(field).to_have_value("half a sentence")
    expect(page.locator("#open-for")).to_have_value("user:bob@example.com")
    kept = "[node === document.activeElement, node.isConnected, node.selectionStart, node.selectionEnd]"
    assert page.evaluate(kept) == [True, True, 5, 9]
    after = page.evaluate("document.getElementById('open-incident-title').getBoundingClientRect().top")
    # A new row above may push the form down by its own height; the page itself must not jump to its top.
    assert page.evaluate("scrollY") > 0 and abs(after - top) < 400
    press(page, "Open incident")
    expect(page.locator("#open-list")).to_contain_text("half a sentence")
    expect(field).to_have_value("")


def test_what_was_resolved_stays_open_through_refreshes(site: Site, reader: Reader, service: int) -> None:
    first, second = (factories.open_incident(site.db, service, key).id for key in "ab")
    page = reader.page
    page.goto("/")
    page.get_by_text("Resolved lately").click()
    press(page, "Resolve", f"#incident-{first}")
    expect(page.locator(f"#past-{first}")).to_be_visible()
    press(page, "Resolve", f"#incident-{second}")
    expect(page.locator(f"#past-{second}")).to_be_visible()
    page.locator(f"#past-{first} a").click()
    press(page, "Reopen")
    expect(page.locator("#incident-state")).to_contain_text("Triggered")


def test_a_warning_stays_until_somebody_is_told(site: Site, reader: Reader, service: int) -> None:
    factories.user(site.db, "dave")
    page = reader.page
    page.goto("/")
    page.get_by_text("Open an incident by hand").click()
    page.locator("#open-for").select_option("user:dave@example.com")
    page.locator("#open-severity").select_option("critical")
    page.locator("#open-incident-title").fill("Help")
    press(page, "Open incident")
    expect(page.locator("#said.warn")).to_contain_text("nobody could be told")
    other = factories.open_incident(site.db, service, "k").id
    expect(page.locator(f"#incident-{other}")).to_be_visible()
    expect(page.locator("#said.warn")).to_contain_text("nobody could be told")
    number = factories.run(site.db, "select id from incident where title = 'Help'")[0][0]
    with site.db.begin() as tx:
        incidents.acknowledge(tx, number, "bob@example.com")
    expect(page.locator("#said.warn")).to_have_count(0)


def test_the_incident_page_is_live_and_keeps_a_note(site: Site, reader: Reader, service: int) -> None:
    incident = factories.open_incident(site.db, service, "k").id
    factories.run(site.db, "update incident set details = 'first line'")
    page = reader.page
    page.goto(f"/incidents/{incident}")
    page.get_by_text("Snooze or reassign").click()
    page.locator("#snooze-for").fill("45m")
    note = page.locator("#note-text")
    note.fill("I am looking")
    note.evaluate("field => field.setSelectionRange(2, 4)")
    page.locator("#incident-details summary").click()
    note.focus()
    with site.db.begin() as tx:
        incidents.note(tx, incident, "from somebody else", "bob@example.com")
    expect(page.locator("#timeline")).to_contain_text("from somebody else")
    expect(note).to_have_value("I am looking")
    expect(note).to_be_focused()
    assert note.evaluate("field => [field.selectionStart, field.selectionEnd]") == [2, 4]
    expect(page.locator("#snooze-for")).to_be_visible()
    expect(page.locator("#snooze-for")).to_have_value("45m")
    expect(page.locator("#incident-details pre")).to_be_hidden()
    press(page, "Add note")
    expect(page.locator("#timeline")).to_contain_text("I am looking")
    expect(note).to_have_value("")
    press(page, "Snooze")
    expect(page.locator("#incident-state")).to_contain_text("Snoozed")
    press(page, "Escalate now")
    expect(page.locator("#incident-state")).to_contain_text("Triggered")
    press(page, "Resolve")
    expect(page.locator("#incident-state")).to_contain_text("Resolved")
    press(page, "Reopen")
    expect(page.locator("#incident-state")).to_contain_text("Triggered")


def test_a_refusal_shows_its_reason_and_keeps_the_page(site: Site, reader: Reader, service: int) -> None:
    incident = factories.open_incident(site.db, service, "k").id
    page = reader.page
    page.goto(f"/incidents/{incident}")
    pause = page.locator("[data-pause]")
    expect(pause).to_have_accessible_name("Pause updates")
    pause.click()
    expect(pause).to_have_accessible_name("Resume updates")
    expect(pause).to_have_attribute("aria-pressed", "true")
    with site.db.begin() as tx:
        incidents.resolve(tx, incident, "bob@example.com")
    press(page, "Acknowledge")
    expect(page.get_by_role("alert")).to_contain_text("bob@example.com")
    expect(page.locator("#incident-state")).to_contain_text("Triggered")
    pause.click()
    expect(pause).to_have_accessible_name("Pause updates")
    expect(page.locator("#incident-state")).to_contain_text("Resolved")
    reader.expect_refusal()


def test_three_fast_clicks_are_one_request(site: Site, reader: Reader, service: int) -> None:
    incident = factories.open_incident(site.db, service, "k").id
    page, posts = reader.page, list[str]()
    page.on("request", lambda request: posts.append(request.url) if request.method == "POST" else None)
    page.goto("/")
    page.evaluate("for (let i = 0; i < 3; i++) document.querySelector('#open-list button').click()")
    expect(page.locator(f"#incident-{incident}")).to_contain_text("is on it")
    assert len(posts) == 1


def test_an_old_answer_does_not_undo_an_action(site: Site, reader: Reader, service: int) -> None:
    """A refresh that was asked for before the action and answers after it."""
    incident = factories.open_incident(site.db, service, "k").id
    page, held = reader.page, list[Route]()
    page.goto("/")
    old = page.locator("#now").evaluate("node => node.outerHTML")
    page.route("**/now?*", lambda route: held.append(route))
    with page.expect_request("**/now?*"):
        page.evaluate("dispatchEvent(new Event('online'))")
    with page.expect_response("**/acknowledge"):
        press(page, "Acknowledge")
    expect(page.locator(f"#incident-{incident}")).to_contain_text("is on it")
    page.evaluate(
        "new MutationObserver(() => { window.undone ||= document.body.innerText.includes('Triggered') })"
        ".observe(document.body, {subtree: true, childList: true, characterData: true})"
    )
    assert held
    for route in held:
        route.fulfill(status=200, content_type="text/html", body=old)
    page.unroute("**/now?*")
    with site.db.begin() as tx:
        incidents.resolve(tx, incident, "bob@example.com")
    expect(page.get_by_text("All quiet")).to_be_visible()
    assert not page.evaluate("window.undone")


def test_it_says_when_it_is_stale_and_comes_back(site: Site, reader: Reader, service: int) -> None:
    page = reader.page
    page.clock.install()
    page.goto("/")
    label = page.locator("#freshness")
    expect(label).to_have_attribute("data-state", "fresh")
    page.route("**/now?*", lambda route: route.abort())
    page.clock.run_for(12_000)
    expect(label).to_have_attribute("data-state", "old")
    page.clock.run_for(20_000)
    expect(label).to_have_attribute("data-state", "dead")
    expect(label).to_contain_text("not live")
    page.unroute("**/now?*")
    page.evaluate("dispatchEvent(new Event('online'))")
    page.clock.run_for(1_000)
    expect(label).to_have_attribute("data-state", "fresh")
    reader.expect_refusal()


def test_errors_are_followed_by_longer_pauses(site: Site, reader: Reader, service: int) -> None:
    page, asked = reader.page, list[str]()
    page.clock.install()
    page.goto("/")
    page.route("**/now?*", lambda route: (asked.append(route.request.url), route.fulfill(status=500, body="")))
    for _ in range(60):
        page.clock.run_for(1_000)
    assert 3 <= len(asked) <= 8
    reader.expect_refusal()


def test_a_hidden_page_asks_for_nothing(site: Site, reader: Reader, service: int) -> None:
    page, asked = reader.page, list[str]()
    page.clock.install()
    page.goto("/")
    page.on("request", lambda request: asked.append(request.url) if "/now" in request.url else None)
    page.evaluate("Object.defineProperty(document, 'hidden', {configurable: true, get: () => window.away})")
    page.evaluate("window.away = true")
    page.clock.run_for(20_000)
    assert asked == []
    incident = factories.open_incident(site.db, service, "k")
    page.evaluate("window.away = false; document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.locator(f"#incident-{incident.id}")).to_be_visible()
    again = factories.open_incident(site.db, service, "again")
    page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))")
    expect(page.locator(f"#incident-{again.id}")).to_be_visible()


def test_a_reader_who_is_signed_out_keeps_the_page(site: Site, reader: Reader, service: int) -> None:
    incident = factories.open_incident(site.db, service, "k")
    page = reader.page
    page.goto("/")
    factories.run(site.db, "delete from session")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("You are signed out")
    expect(alert.get_by_role("link")).to_have_attribute("href", "/login?next=%2F")
    expect(page.locator(f"#incident-{incident.id}")).to_be_visible()
    press(page, "Acknowledge")
    expect(page.get_by_label("Password")).to_be_visible()
    reader.expect_refusal()


def test_k081_nothing_hostile_runs(site: Site, reader: Reader, service: int) -> None:
    evil = (
        "\"'><script>alert(1)</script><img src=x onerror=alert(2)><svg onload=alert(3)><hx-partial hx-target='#now'>x"
    )
    incident = factories.open_incident(site.db, service, "k", evil).id
    for column in ("details", "dedup_key", "service_name", "opened_by", "link"):
        factories.run(site.db, f"update incident set {column} = %s", evil)
    factories.run(site.db, "update incident set alert_group = jsonb_build_object(%s::text, %s::text)", evil, evil)
    factories.run(
        site.db, "update incident_event set actor = %s, data = jsonb_build_object('people', %s::text)", evil, evil
    )
    factories.run(site.db, "update app_user set name = %s", evil)
    for table in ("service", "schedule", "channel", "escalation_policy", "rotation"):
        factories.run(site.db, f"update {table} set name = %s", evil)
    fail(site.db, incident, evil)
    page = reader.page
    for path in ("/", f"/incidents/{incident}", "/attempts", "/oncall", "/setup"):
        page.goto(path)
        expect(page.locator("main")).to_contain_text("<script>alert(1)</script>")
    page.goto("/")
    factories.open_incident(site.db, service, "k2", evil + "second")
    expect(page.locator("#open-list")).to_contain_text("second")
    press(page, "Replay")
    expect(page.locator("#failed")).to_contain_text("Nothing has failed.")
    user = site.screens.people["alice"]
    page.goto(site.screens.link(incident, user_id=user))
    expect(page.locator("main")).to_contain_text("<script>alert(1)</script>")
