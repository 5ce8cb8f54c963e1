"""From the printed link to a page that arrives, by clicking; and never again."""

import logging
import re
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Browser, Page, expect
from werkzeug.serving import make_server

from escalade import first_run
from escalade.config import Config
from escalade.db import Database
from escalade.web import create_app
from escalade.web.context import Context
from tests.engines import SIGNER, running_engine
from tests.receiver import Receiver, receiver
from tests.web.browser.conftest import PHONE, read
from tests.web.screens import Health

MOST_ACTIONS = 12


@dataclass
class Fresh:
    """A server on an empty database with its engine, and the link that it printed."""

    url: str
    link: str


@pytest.fixture
def fresh(database: Database) -> Iterator[Fresh]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = make_server("127.0.0.1", 0, lambda environ, start: served[0](environ, start), threaded=True)
    url = f"http://127.0.0.1:{server.server_port}"
    config = Config.read({"ESCALADE_BASE_URL": url, "ESCALADE_ALLOW_PRIVATE_ADDRESSES": "on"})
    served = [create_app(Context(config, database, SIGNER, Health(engine_expected=False)))]
    lines = first_run.prepare(database, config, with_demo=False)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    with running_engine(database.url, database.doorbell):
        yield Fresh(url, re.findall(r"http\S+/start/\S+", "\n".join(lines))[0])
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def phone() -> Iterator[Receiver]:
    with receiver() as found:
        yield found


@dataclass
class Hand:
    """Somebody at the browser; every action counts."""

    page: Page
    actions: list[str] = field(default_factory=list)

    def open(self, url: str) -> None:
        self.actions.append(f"open {url}")
        self.page.goto(url)

    def fill(self, label: str, text: str) -> None:
        self.actions.append(f"fill {label}")
        self.page.get_by_label(label).fill(text)

    def choose(self, label: str) -> None:
        self.actions.append(f"choose {label}")
        self.page.get_by_label(label).check()

    def press(self, name: str) -> None:
        self.actions.append(f"press {name}")
        self.page.get_by_role("button", name=name).click()


def to_the_alert(hand: Hand, fresh: Fresh, phone: Receiver) -> None:
    """From the link to the page with the command."""
    hand.open(fresh.link)
    hand.fill("E-mail", "root@example.com")
    hand.fill("Password", "correct horse battery")
    hand.press("Create and log in")
    hand.choose("Webhook")
    hand.fill("Its address", f"{phone.url}/root")
    hand.press("Reach me there")
    hand.press("Create it")


@pytest.mark.parametrize("scripts", [True, False])
def test_from_the_printed_link_to_a_page_that_arrives_in_at_most_twelve_actions(
    browser: Browser, fresh: Fresh, phone: Receiver, scripts: bool
) -> None:
    context = browser.new_context(viewport=PHONE, java_script_enabled=scripts)
    reader = read(context)
    hand = Hand(reader.page)
    to_the_alert(hand, fresh, phone)
    expect(hand.page.get_by_text("Waiting for your alert")).to_be_visible()
    command = hand.page.locator("#command").inner_text()
    # The command is pasted into a terminal as it stands.
    hand.actions.append("paste the command")
    answer = subprocess.run(
        ["sh", "-c", f"{command} --silent --show-error"], capture_output=True, text=True, check=True
    )
    assert '"action":"triggered"' in answer.stdout
    [page] = phone.wait(1, "/root")
    assert page.body["type"] == "page" and page.body["incidents"][0]["title"] == "My first alert"
    if not scripts:
        hand.press("Look again")
    expect(hand.page.get_by_text("Incident opened")).to_be_visible()
    expect(hand.page.get_by_text("Page delivered to you by webhook")).to_be_visible()
    assert hand.page.locator("#command").inner_text() == command
    assert len(hand.actions) <= MOST_ACTIONS, hand.actions
    assert hand.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"] if scripts else True
    hand.press("Done: to the dashboard")
    expect(hand.page.get_by_role("heading", name="Now")).to_be_visible()
    for path in ("/welcome", fresh.link.removeprefix(fresh.url)):
        found = hand.page.goto(fresh.url + path)
        assert found is not None and found.status == 404
    reader.expect_refusal()
    context.close()


def test_the_alert_can_be_sent_from_the_page(browser: Browser, fresh: Fresh, phone: Receiver) -> None:
    context = browser.new_context(viewport=PHONE)
    reader = read(context)
    hand = Hand(reader.page)
    to_the_alert(hand, fresh, phone)
    hand.press("Send the alert from here")
    phone.wait(1, "/root")
    expect(hand.page.get_by_text("Page delivered to you by webhook")).to_be_visible()
    assert reader.faults == []
    context.close()


def test_a_page_that_fails_says_why_and_what_to_do(browser: Browser, fresh: Fresh, phone: Receiver) -> None:
    phone.answer = lambda arrived: 404
    context = browser.new_context(viewport=PHONE)
    hand = Hand(read(context).page)
    to_the_alert(hand, fresh, phone)
    hand.press("Send the alert from here")
    expect(hand.page.get_by_text("The page by webhook failed")).to_be_visible()
    expect(hand.page.get_by_text("answered 404")).to_be_visible()
    expect(hand.page.get_by_role("link", name="Add another way to reach you")).to_be_visible()
    context.close()
