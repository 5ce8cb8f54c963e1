"""The README's pictures: `make screenshots` starts the app on demo data and photographs it with headless Chromium.

The pictures are written to docs/images. They are of the real pages, so they differ a little from run to run.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from playwright.sync_api import Browser, Page, sync_playwright  # noqa: E402

from bench.process import ROOT, app, environment  # noqa: E402
from escalade import embedded, settings  # noqa: E402
from escalade.db import Database  # noqa: E402
from escalade.delivery import Links  # noqa: E402
from escalade.migrate import migrate  # noqa: E402
from escalade.tokens import Signer  # noqa: E402

FOLDER = ROOT / "docs" / "images"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ["--no-sandbox", "--disable-quic", "--disable-background-networking", "--hide-scrollbars"]
EMAIL, PASSWORD = "demo-alice@example.com", "only for the pictures"
LARGEST = 200_000
MORE = ("Queue of the mailer grows: 12,400 waiting", "Payments: p95 above 2 s for five minutes")


@dataclass(frozen=True)
class Screen:
    """What it is seen on."""

    width: int
    height: int
    scheme: str
    scale: int = 1


PHONE = Screen(390, 844, "dark", scale=2)
DESKTOP = Screen(1280, 800, "light")


def main() -> int:
    """Make all of them; 1 where there is no browser."""
    path = chromium()
    if path is None:
        print("screenshots: no Chromium here; on Debian and Ubuntu: apt-get install chromium", file=sys.stderr)
        return 1
    with served() as (base, incident, link), sync_playwright() as play:
        browser = play.chromium.launch(executable_path=path, args=FLAGS)
        take(browser, f"{base}/", "now-phone", PHONE)
        take(browser, f"{base}/", "now-desktop", DESKTOP)
        take(browser, f"{base}/incidents/{incident}", "incident", DESKTOP)
        take(browser, f"{base}/attempts?status=PENDING", "attempts", DESKTOP)
        take(browser, link, "acknowledge", PHONE, log_in=False)
        browser.close()
    return 0


def chromium() -> str | None:
    """Where the browser is, or None."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


@contextmanager
def served() -> Iterator[tuple[str, int, str]]:
    """The app on demo data: its address, the incident that climbs, and a link that acknowledges it."""
    with (
        tempfile.TemporaryDirectory(prefix="escalade-screenshots-") as folder,
        embedded.running(Path(folder), {}) as url,
    ):
        migrate(url)
        command(url, "demo")
        command(url, "user", "create", EMAIL, "--role", "admin", typed=PASSWORD)
        with app(url) as running:
            found = climbing(url, running.url)
            for title in MORE:
                command(url, "incident", "open", "demo-shop", title)
            tried(url, len(MORE))
            yield running.url, *found


def tried(url: str, pages: int) -> None:
    """Wait until so many pages have been tried, and wait for their next try."""
    db = Database(url, size=1)
    waiting = "select count(*) from notification_attempt where status = 'PENDING' and tries > 0"
    try:
        with db.connection() as conn:
            for _ in range(100):
                if (conn.execute(waiting).fetchone() or [0])[0] >= pages:
                    return
                time.sleep(0.1)
    finally:
        db.close()


def command(url: str, *words: str, typed: str = "") -> None:
    """Run a command of the app on this database. Raises CalledProcessError."""
    subprocess.run(
        [sys.executable, "app.py", *words],
        cwd=ROOT,
        env=environment(url, 8000),
        input=f"{typed}\n".encode(),
        stdout=subprocess.DEVNULL,
        check=True,
    )


def climbing(url: str, base: str) -> tuple[int, str]:
    """The newest incident, and the link in a message about it to Alice."""
    db = Database(url, size=2)
    try:
        with db.connection() as conn:
            [incident] = conn.execute("select max(id) from incident").fetchone() or [0]
            [user] = conn.execute("select id from app_user where email = %s", [EMAIL]).fetchone() or [0]
        with db.begin() as tx:
            links = Links(base, Signer([settings.secret_key(tx)]))
    finally:
        db.close()
    return incident, links.acknowledge(user, None, [incident])


def take(browser: Browser, address: str, name: str, screen: Screen, log_in: bool = True) -> None:
    """One picture. Raises RuntimeError where it is too large for a README."""
    context = browser.new_context(
        viewport={"width": screen.width, "height": screen.height},
        color_scheme="dark" if screen.scheme == "dark" else "light",
        device_scale_factor=screen.scale,
        reduced_motion="reduce",
    )
    page = context.new_page()
    if log_in:
        enter(page, address)
    page.goto(address, wait_until="load")
    path = FOLDER / f"{name}.png"
    page.screenshot(path=path)
    context.close()
    size = path.stat().st_size
    print(f"{path.relative_to(ROOT)}: {screen.width} x {screen.height}, {size // 1000} kB")
    if size > LARGEST:
        raise RuntimeError(f"{path.name} is larger than {LARGEST // 1000} kB")


def enter(page: Page, address: str) -> None:
    """Log in."""
    page.goto(f"{'/'.join(address.split('/')[:3])}/login")
    page.fill("[name=email]", EMAIL)
    page.fill("[name=password]", PASSWORD)
    page.press("[name=password]", "Enter")
    page.wait_for_selector("header.top")


if __name__ == "__main__":
    sys.exit(main())
