"""Web Push in a real browser: the worker shows what was pushed, and its button acknowledges."""

import json
import os
import re
from collections.abc import Iterator
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from playwright.sync_api import Browser, BrowserContext, CDPSession, Page, expect

from escalade.transports import push
from escalade.transports.base import IncidentBrief, Message
from tests import factories
from tests.receiver import wait_for
from tests.transports.test_push import Browser as Subscriber
from tests.web.browser.conftest import PHONE, Site, read

SHOWN = """async () => (await (await navigator.serviceWorker.ready).getNotifications()).map((one) => ({
    title: one.title, body: one.body, data: one.data, tag: one.tag, actions: one.actions.map((a) => a.action)}))"""


# As the browser does it when somebody taps. An event of ours may not be waited for, which the browser reports once the
# handler has begun.
CLICK = """async ([action]) => {
    self.opened = [];
    Clients.prototype.openWindow = async (address) => { self.opened.push(address); };
    const [notification] = await self.registration.getNotifications();
    self.dispatchEvent(new NotificationEvent("notificationclick", { notification, action }));
}"""


NO_NETWORK = "() => { self.fetch = () => Promise.reject(new TypeError('no network')); }"


ACTIVE = "async () => (await navigator.serviceWorker.ready).active?.state === 'activated'"
# Twenty a second, as long as a busy machine may need.
LOOKS = 600


class Worker:
    """The service worker of a page, reached as the developer tools reach it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.tools: CDPSession = page.context.new_cdp_session(page)
        self.registration = ""
        self.tools.on("ServiceWorker.workerRegistrationUpdated", self._seen)
        self.tools.send("ServiceWorker.enable")

    def _seen(self, event: dict[str, Any]) -> None:
        for one in event["registrations"]:
            if not one["isDeleted"]:
                self.registration = one["registrationId"]

    def push(self, origin: str, data: str) -> None:
        """Deliver a push, as the browser's own push service would."""
        self.page.evaluate("navigator.serviceWorker.register('/sw.js').then(() => navigator.serviceWorker.ready)")
        self.page.wait_for_function(ACTIVE, timeout=30_000)
        for _ in range(LOOKS):
            if self.registration:
                break
            self.page.wait_for_timeout(50)
        self.tools.send(
            "ServiceWorker.deliverPushMessage",
            {"origin": origin, "registrationId": self.registration, "data": data},
        )

    def click(self, action: str) -> None:
        """Tap the notification, or its button."""
        self.page.context.service_workers[0].evaluate(CLICK, [action])

    def opened(self) -> list[str]:
        """The pages that the worker opened."""
        for _ in range(LOOKS):
            found: list[str] = self.page.context.service_workers[0].evaluate("self.opened")
            if found:
                return found
            self.page.wait_for_timeout(50)
        return []

    def shown(self) -> list[dict[str, Any]]:
        """The notifications that are on the screen."""
        for _ in range(LOOKS):
            found: list[dict[str, Any]] = self.page.evaluate(SHOWN)
            if found:
                return found
            self.page.wait_for_timeout(50)
        return []


@pytest.fixture
def context(browser: Browser, site: Site) -> Iterator[BrowserContext]:
    found = browser.new_context(viewport=PHONE, base_url=site.url, permissions=["notifications"])
    site.log_in(found)
    yield found
    found.close()


def message(site: Site, incident_id: int) -> str:
    """What the transport pushes about an incident, in clear."""
    alice = factories.run(site.db, "select id from app_user where email = 'alice@example.com'")[0][0]
    url = f"{site.url}/incidents/{incident_id}"
    brief = IncidentBrief(incident_id, "Disk full", "", "TRIGGERED", "critical", "api", None, url, None)
    link = site.url + site.screens.link(incident_id, user_id=alice)
    page = Message("page", "triggered", "k", "", None, "alice@example.com", "Alice", (), (brief,), link)
    return json.dumps(push.payload(page, f"{site.url}/")[0])


def test_the_worker_shows_the_page_with_a_button(context: BrowserContext, site: Site) -> None:
    incident = factories.open_incident(site.db, site.service)
    page = context.new_page()
    page.goto("/account/push")
    worker = Worker(page)
    worker.push(site.url, message(site, incident.id))
    [shown] = worker.shown()
    assert shown["title"] == "[api] Disk full" and shown["actions"] == ["acknowledge"]
    assert shown["data"]["navigate"] == f"{site.url}/incidents/{incident.id}"


def test_a_push_that_cannot_be_read_still_shows_something(context: BrowserContext, site: Site) -> None:
    page = context.new_page()
    page.goto("/account/push")
    worker = Worker(page)
    worker.push(site.url, "no JSON")
    [shown] = worker.shown()
    assert shown["title"] == "Escalade" and shown["body"]


def pushed(context: BrowserContext, site: Site) -> tuple[Worker, int]:
    """An incident of which a notification is on the screen."""
    incident = factories.open_incident(site.db, site.service)
    page = context.new_page()
    page.goto("/account/push")
    worker = Worker(page)
    worker.push(site.url, message(site, incident.id))
    assert worker.shown()
    return worker, incident.id


def status(site: Site, incident_id: int) -> tuple[str, str | None]:
    [found] = factories.run(site.db, "select status, acknowledged_by from incident where id = %s", incident_id)
    return str(found[0]), found[1]


def test_the_button_acknowledges_in_the_name_of_whom_it_was_sent_to(context: BrowserContext, site: Site) -> None:
    worker, incident = pushed(context, site)
    worker.click("acknowledge")
    wait_for(lambda: status(site, incident) == ("ACKNOWLEDGED", "alice@example.com"))
    wait_for(lambda: [one["body"] for one in worker.shown()] == ["Acknowledged."])


def test_a_tap_opens_the_incident_and_changes_nothing(context: BrowserContext, site: Site) -> None:
    worker, incident = pushed(context, site)
    worker.click("")
    assert worker.opened() == [f"{site.url}/incidents/{incident}"]
    assert status(site, incident) == ("TRIGGERED", None)


def test_without_an_answer_the_page_with_the_button_opens_and_nothing_claims_success(
    context: BrowserContext, site: Site
) -> None:
    worker, incident = pushed(context, site)
    worker.page.context.service_workers[0].evaluate(NO_NETWORK)
    worker.click("acknowledge")
    [opened] = worker.opened()
    assert opened.startswith(f"{site.url}/a/")
    assert status(site, incident) == ("TRIGGERED", None)
    assert all(one["body"] != "Acknowledged." for one in worker.page.evaluate(SHOWN))


def test_a_browser_that_refuses_notifications_says_so_and_sends_nothing(browser: Browser, site: Site) -> None:
    context = browser.new_context(viewport=PHONE, base_url=site.url)
    site.log_in(context)
    reader = read(context)
    reader.page.add_init_script("Notification.requestPermission = async () => 'denied'")
    reader.page.goto("/account/push")
    reader.page.get_by_role("button", name="Switch push on in this browser").click()
    expect(reader.page.get_by_text("Notifications are not allowed here")).to_be_visible()
    assert reader.page.get_by_role("button", name="Switch push on in this browser").is_enabled()
    assert factories.run(site.db, "select count(*) from contact_method where kind = 'push'") == [(0,)]
    assert reader.faults == []
    context.close()


GIVEN = """(() => {
    const made = { options: {}, toJSON: () => (%s) };
    Notification.requestPermission = async () => "granted";
    PushManager.prototype.getSubscription = async () => null;
    PushManager.prototype.subscribe = async (wanted) => { self.wanted = wanted; return made; };
})()"""


def test_a_browser_that_subscribes_is_added(browser: Browser, site: Site) -> None:
    # There is no push service without the internet, so the browser's own answer is given here.
    told = Subscriber(ec.generate_private_key(ec.SECP256R1()), os.urandom(16)).subscription("https://push.example/1")
    context = browser.new_context(viewport=PHONE, base_url=site.url)
    site.log_in(context)
    reader = read(context)
    reader.page.add_init_script(GIVEN % told)
    reader.page.goto("/account/push")
    reader.page.get_by_role("button", name="Switch push on in this browser").click()
    expect(reader.page.get_by_role("button", name=re.compile("Send a test to push Chrome"))).to_be_visible()
    assert reader.faults == []
    context.close()
