"""`make lighthouse`: starts the app on demo data and prints what Lighthouse thinks of the dashboard and of the page
behind an acknowledge link, as on a phone on a slow line. 1 where a figure is below its target."""

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from playwright.sync_api import sync_playwright  # noqa: E402

from bench.screenshots import FLAGS, chromium, enter, served  # noqa: E402

LIGHTHOUSE = Path(".venv", "lighthouse", "node_modules", ".bin", "lighthouse")
TARGETS = {"performance": 95, "accessibility": 100, "best-practices": 100}
LOOKS = 3
CHROME = "--headless=new --no-sandbox --disable-quic --disable-background-networking"


def main() -> int:
    """Both pages; 1 where there is no browser, no Lighthouse, or a figure below its target."""
    browser = chromium()
    if browser is None or not LIGHTHOUSE.exists():
        print("lighthouse: it takes Chromium, node and npm; on Debian: apt-get install chromium npm", file=sys.stderr)
        return 1
    with served() as (base, _, link):
        cookie = session(browser, base)
        found = {"dashboard": median(browser, f"{base}/", cookie), "acknowledge page": median(browser, link)}
    for page, scores in found.items():
        print(f"{page}: " + ", ".join(f"{name} {score}" for name, score in scores.items()))
    return int(any(scores[name] < least for scores in found.values() for name, least in TARGETS.items()))


def session(browser: str, base: str) -> str:
    """The Cookie header of somebody who is logged in."""
    with sync_playwright() as play:
        opened = play.chromium.launch(executable_path=browser, args=FLAGS)
        context = opened.new_context()
        enter(context.new_page(), base)
        [cookie] = context.cookies()
        opened.close()
    return f"{cookie['name']}={cookie['value']}"


def median(browser: str, address: str, cookie: str = "") -> dict[str, int]:
    """The middle of several looks: how fast a page is depends on what else the machine does."""
    looks = [look(browser, address, cookie) for _ in range(LOOKS)]
    return {name: int(statistics.median(one[name] for one in looks)) for name in TARGETS}


def look(browser: str, address: str, cookie: str) -> dict[str, int]:
    """Lighthouse's scores of one page, and on standard error what it found wrong. Raises CalledProcessError, and
    RuntimeError where it was led to another page."""
    with tempfile.TemporaryDirectory(prefix="escalade-lighthouse-") as folder:
        headers, report = Path(folder, "headers.json"), Path(folder, "report.json")
        headers.write_text(json.dumps({"Cookie": cookie} if cookie else {}))
        command = [
            str(LIGHTHOUSE),
            address,
            "--quiet",
            f"--extra-headers={headers}",
            f"--only-categories={','.join(TARGETS)}",
            f"--chrome-flags={CHROME}",
            "--output=json",
            f"--output-path={report}",
        ]
        subprocess.run(command, check=True, env={"PATH": "/usr/bin:/bin", "HOME": folder, "CHROME_PATH": browser})
        read = json.loads(report.read_text())
    if read["finalDisplayedUrl"] != address:
        raise RuntimeError(f"Lighthouse looked at {read['finalDisplayedUrl']} instead")
    for name in TARGETS:
        for wrong in faults(read, name):
            print(f"  {address.split('?')[0][:60]} {wrong}", file=sys.stderr)
    return {name: round(100 * read["categories"][name]["score"]) for name in TARGETS}


def faults(read: dict[str, object], category: str) -> list[str]:
    """What cost points."""
    audits, weights = read["audits"], read["categories"][category]["auditRefs"]  # type: ignore[index]
    return [
        f"{category}: {audits[one['id']]['title']} {audits[one['id']].get('displayValue', '')}"
        for one in weights
        if one["weight"] and audits[one["id"]]["score"] is not None and audits[one["id"]]["score"] < 0.9
    ]


if __name__ == "__main__":
    sys.exit(main())
