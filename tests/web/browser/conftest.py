"""A real browser, at the size of a phone, on a real server and a real database."""

import logging
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from werkzeug.serving import make_server

from escalade.config import Config
from escalade.db import Database
from tests import factories
from tests.web.screens import Screens, engine_ran, make_screens

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
    --disable-component-update --disable-sync""".split()
RECEIVER = "http://127.0.0.1:9/hook"
PHONE = {"width": 390, "height": 844}
WATCH = """addEventListener('securitypolicyviolation',
    (event) => console.error(`CSP: ${event.violatedDirective} ${event.blockedURI}`))"""


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium; without it these tests are skipped."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("chromium is not installed (apt-get install chromium)")
    expect.set_options(timeout=10_000)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield chromium
        chromium.close()


@dataclass
class Site:
    """The application as it is served, where, and a service: alice is on call, bob is next."""

    screens: Screens
    url: str
    service: int

    @property
    def db(self) -> Database:
        """The database behind it."""
        return self.screens.db

    def log_in(self, context: BrowserContext, name: str = "alice", role: str = "responder") -> None:
        """Give a browser a session of this person."""
        value = self.screens.session(name, role)
        context.add_cookies([{"name": "escalade", "value": value, "url": self.url}])


@pytest.fixture
def bare(database: Database) -> Iterator[Site]:
    """A server on this machine, in a thread, on an empty database: nobody is there yet, and no engine has run."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    screens = make_screens(database, Config.read({}))
    server = make_server("127.0.0.1", 0, screens.app, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield Site(screens, f"http://127.0.0.1:{server.server_port}", 0)
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def site(bare: Site) -> Site:
    """That server, with people, a service and an engine that runs."""
    engine_ran(bare.db)
    return replace(bare, service=factories.ladder(bare.db, RECEIVER))


@dataclass
class Reader:
    """A page that somebody reads, and what went wrong on it."""

    page: Page
    faults: list[str]

    def expect_refusal(self) -> None:
        """The browser and htmx report answers of 4xx, and none, on the console; nothing else may be there."""
        reports = ("Failed to load resource", "htmx: htmx:error")
        assert all(fault.startswith(reports) for fault in self.faults), self.faults
        self.faults.clear()


def read(context: BrowserContext) -> Reader:
    """A page that notes every error, dialog and breach of the content security policy."""
    page, faults = context.new_page(), list[str]()
    page.add_init_script(WATCH)
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("dialog", lambda dialog: (faults.append(f"dialog {dialog.message}"), dialog.dismiss()))
    return Reader(page, faults)


@pytest.fixture
def reader(browser: Browser, site: Site) -> Iterator[Reader]:
    """Alice's phone. At the end nothing may have gone wrong on it."""
    # Playwright sees no request that a service worker answers; test_installed.py lets it work.
    context = browser.new_context(viewport=PHONE, base_url=site.url, service_workers="block")
    site.log_in(context)
    found = read(context)
    yield found
    assert found.faults == []
    context.close()


@pytest.fixture
def plain(browser: Browser, site: Site) -> Iterator[Reader]:
    """Alice's phone with JavaScript switched off."""
    context = browser.new_context(viewport=PHONE, base_url=site.url, java_script_enabled=False)
    site.log_in(context)
    yield Reader(context.new_page(), [])
    context.close()
