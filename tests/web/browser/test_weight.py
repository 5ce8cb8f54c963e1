"""What the pages weigh on the wire, as Chromium counts it: headers, packed bodies, everything a first visit loads."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from escalade import incidents
from tests import factories
from tests.web.browser.conftest import PHONE, Site
from tests.web.screens import fail

# A busy night: more open incidents than a phone shows, each with its queue.
OPEN = 20


@dataclass
class Scales:
    """A page that is new to the site, and what came over the wire for it, in bytes."""

    page: Page
    received: list[int] = field(default_factory=list)

    def taken(self) -> int:
        """What has come since the last time."""
        weight = sum(self.received)
        self.received.clear()
        return weight


def weighed(context: BrowserContext) -> Scales:
    """A page whose traffic is counted."""
    scales = Scales(context.new_page())
    wire = context.new_cdp_session(scales.page)
    wire.send("Network.enable")
    wire.on("Network.loadingFinished", lambda event: scales.received.append(int(event["encodedDataLength"])))
    return scales


@pytest.fixture
def context(browser: Browser, site: Site) -> Iterator[BrowserContext]:
    found = browser.new_context(viewport=PHONE, base_url=site.url, service_workers="block")
    yield found
    found.close()


def busy(site: Site) -> list[int]:
    """Many open incidents, some failed pages, and the ids."""
    ids = [
        factories.open_incident(site.db, site.service, f"k{n}", f"Disk {n} is full on db-{n}").id for n in range(OPEN)
    ]
    for number in ids[:10]:
        fail(site.db, number, "the receiver answered 503 Service Unavailable")
    return ids


@pytest.mark.parametrize("number", [1, 20])
def test_the_acknowledge_page_weighs_at_most_15_kb_and_has_no_script(
    site: Site, context: BrowserContext, number: int
) -> None:
    ids = busy(site)[:number]
    alice = factories.run(site.db, "select id from app_user where email = 'alice@example.com'")[0][0]
    scales = weighed(context)
    scales.page.goto(site.screens.link(*ids, user_id=alice), wait_until="networkidle")
    assert scales.page.locator("script").count() == 0
    assert 1_000 < scales.taken() <= 15_000


def test_the_dashboard_weighs_at_most_60_kb_the_first_time(site: Site, context: BrowserContext) -> None:
    busy(site)
    site.log_in(context)
    scales = weighed(context)
    scales.page.goto("/", wait_until="load")
    expect(scales.page.locator("#freshness")).to_have_attribute("data-state", "fresh")
    assert 20_000 < scales.taken() <= 60_000


def test_files_are_loaded_once(site: Site, context: BrowserContext) -> None:
    site.log_in(context)
    scales = weighed(context)
    scales.page.goto("/attempts", wait_until="load")
    first = scales.taken()
    scales.page.goto("/incidents", wait_until="load")
    assert scales.taken() < first / 3


def test_a_poll_weighs_at_most_5_kb_and_next_to_nothing_while_all_stays(site: Site, context: BrowserContext) -> None:
    ids = busy(site)
    site.log_in(context)
    scales = weighed(context)
    page = scales.page
    page.goto("/", wait_until="load")
    with page.expect_response(lambda answer: "/now?" in answer.url and answer.status == 204):
        page.evaluate("dispatchEvent(new Event('online'))")
    page.wait_for_load_state("networkidle")
    scales.taken()
    with page.expect_response(lambda answer: "/now?" in answer.url and answer.status == 204):
        page.evaluate("dispatchEvent(new Event('online'))")
    assert scales.taken() <= 1_000
    with site.db.begin() as tx:
        incidents.acknowledge(tx, ids[3], "bob@example.com")
    expect(page.locator(f"#incident-{ids[3]}")).to_contain_text("bob@example.com is on it")
    assert max(scales.received) > 1_000
    assert max(scales.received) <= 5_000, "the poll that brought the news"
