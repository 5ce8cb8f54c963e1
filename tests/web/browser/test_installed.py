"""On the home screen: what Chromium asks of an app, and a service worker that keeps files and never a page."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from escalade import incidents
from tests import factories
from tests.web.browser.conftest import PHONE, Site

KEPT = """async () => {
  const found = [];
  for (const name of await caches.keys())
    for (const request of await (await caches.open(name)).keys()) found.push(new URL(request.url).pathname);
  return found;
}"""
CONTROLLED = "async () => { await navigator.serviceWorker.ready; return Boolean(navigator.serviceWorker.controller); }"


@pytest.fixture
def page(browser: Browser, site: Site) -> Iterator[Page]:
    """Alice's phone, after the service worker has come."""
    context = browser.new_context(viewport=PHONE, base_url=site.url)
    site.log_in(context)
    page = context.new_page()
    page.goto("/")
    page.wait_for_function(CONTROLLED)
    page.reload(wait_until="load")
    yield page
    context.close()


def test_chromium_finds_nothing_that_keeps_it_from_being_installed(page: Page) -> None:
    wire = page.context.new_cdp_session(page)
    manifest = wire.send("Page.getAppManifest")
    assert manifest["errors"] == [] and manifest["url"].endswith("/manifest.webmanifest")
    # A window that is private, as those of tests are, is the one thing it may not like.
    found = [fault["errorId"] for fault in wire.send("Page.getInstallabilityErrors")["installabilityErrors"]]
    assert set(found) <= {"in-incognito"}


def test_only_files_are_kept_and_no_page(site: Site, page: Page) -> None:
    incident = factories.open_incident(site.db, site.service, "k").id
    for path in ("/attempts", f"/incidents/{incident}", "/oncall", "/"):
        page.goto(path, wait_until="load")
    kept = page.evaluate(KEPT)
    assert {"/static/app.js", "/static/app.css", "/static/away.html"} <= set(kept)
    assert all(path.startswith("/static/") for path in kept)


def test_a_page_after_a_change_never_comes_from_a_cache(site: Site, page: Page) -> None:
    incident = factories.open_incident(site.db, site.service, "k").id
    page.goto(f"/incidents/{incident}")
    expect(page.locator("#incident-state")).to_contain_text("Triggered")
    with site.db.begin() as tx:
        incidents.acknowledge(tx, incident, "bob@example.com")
    page.goto("/oncall")
    for go in (page.go_back, page.reload, lambda: page.goto(f"/incidents/{incident}")):
        go()
        assert "Acknowledged" in page.locator("#incident-state").inner_text()


def test_without_a_connection_a_page_says_so_and_shows_nothing_old(site: Site, page: Page) -> None:
    factories.open_incident(site.db, site.service, "k")
    page.reload()
    expect(page.locator("main")).to_contain_text("Disk full")
    page.context.set_offline(True)
    page.goto("/attempts")
    expect(page.get_by_role("heading", name="No connection to Escalade")).to_be_visible()
    assert page.evaluate("getComputedStyle(document.querySelector('main')).display") == "grid", "its style was kept too"
    page.goto("/")
    expect(page.locator("main")).not_to_contain_text("Disk full")
    page.context.set_offline(False)
    page.get_by_role("link", name="Try again").click()
    expect(page.locator("main")).to_contain_text("Disk full")


def test_a_file_is_kept_in_one_version(page: Page) -> None:
    page.evaluate("() => fetch('/static/app.css?v=another')")
    page.evaluate("() => fetch('/static/app.css?v=and-another')")
    assert page.evaluate(KEPT).count("/static/app.css") == 1


def test_actions_work_with_the_service_worker_in_between(site: Site, page: Page) -> None:
    incident = factories.open_incident(site.db, site.service, "k").id
    page.get_by_role("button", name="Acknowledge", exact=True).click()
    expect(page.locator(f"#incident-{incident}")).to_contain_text("alice@example.com is on it")
