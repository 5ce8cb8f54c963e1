"""The fault campaign: `make chaos`. Processes are killed at random while alerts come in; then everything is counted.

Two processes serve one database. For a minute (CHAOS_SECONDS) one of them at a time is killed with SIGKILL and
started again, and backends of the database are terminated. At the end every alert that was answered 202 must have
reached the phone, and a page that came twice must have come under the same key.
"""

import os
import random
import signal
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import psycopg  # noqa: E402

from bench import process  # noqa: E402
from bench.run import new_database  # noqa: E402
from escalade import embedded  # noqa: E402
from tests.receiver import Receiver  # noqa: E402

SECONDS = float(os.environ.get("CHAOS_SECONDS", "60"))
RATE = 20
LEASE = 20


class Campaign:
    """What was accepted, what was broken, and who is running."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.accepted: set[str] = set()
        self.refused = 0
        self.kills = 0
        self.terminated = 0
        self.apps = [process.start(url), process.start(url)]
        self.over = threading.Event()

    def alert(self) -> None:
        """Send alerts at a steady rate, each until somebody accepts it."""
        number = 0
        while not self.over.is_set():
            title = f"alert {number}"
            if self._post(title, random.choice(self.apps).url):
                self.accepted.add(title)
            else:
                self.refused += 1
            number += 1
            self.over.wait(1 / RATE)

    def _post(self, title: str, base: str) -> bool:
        body = f'{{"title": "{title}", "severity": "critical", "dedup_key": "{title}"}}'.encode()
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(f"{base}/hooks/{process.KEY}", body, headers)
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                return bool(answer.status == 202)
        except (urllib.error.URLError, OSError):
            return False

    def break_something(self) -> None:
        """Kill a process, or cut the database's connections."""
        if random.random() < 0.6:
            victim = random.randrange(2)
            self.apps[victim].process.send_signal(signal.SIGKILL)
            self.apps[victim].process.wait()
            self.kills += 1
            self.apps[victim] = process.start(self.url)
        else:
            with psycopg.connect(psycopg.conninfo.make_conninfo(self.url, dbname="postgres"), autocommit=True) as conn:
                name = psycopg.conninfo.conninfo_to_dict(self.url)["dbname"]
                rows = conn.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", [name]
                ).fetchall()
                self.terminated += len(rows)

    def finish(self, phone: Receiver) -> bool:
        """Wait until everything accepted has arrived; whether it did, within two leases."""
        end = time.monotonic() + 2 * LEASE + 10
        while time.monotonic() < end:
            if self.accepted <= arrived(phone).keys():
                return True
            time.sleep(0.2)
        return False


def arrived(phone: Receiver) -> dict[str, set[str]]:
    """Each title that arrived, with the keys it came under."""
    keys: dict[str, set[str]] = defaultdict(set)
    for page in list(phone.arrived):
        for incident in page.body.get("incidents", []):
            keys[incident["title"]].add(page.headers["idempotency-key"])
    return keys


def main() -> int:
    """Run the campaign; 0 where nothing was lost."""
    with tempfile.TemporaryDirectory(prefix="escalade-chaos-") as name, embedded.running(Path(name), {}) as server:
        url = new_database(server, "chaos")
        with process.phone() as phone:
            process.configure(url, phone.url)
            campaign = Campaign(url)
            try:
                return run(campaign, phone)
            finally:
                for app in campaign.apps:
                    process.stop(app)


def run(campaign: Campaign, phone: Receiver) -> int:
    """Break things while alerts come in, then count."""
    sender = threading.Thread(target=campaign.alert)
    sender.start()
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        campaign.over.wait(random.uniform(0.5, 3))
        campaign.break_something()
    campaign.over.set()
    sender.join()
    complete = campaign.finish(phone)
    keys = arrived(phone)
    lost = campaign.accepted - keys.keys()
    pages = sum(len(page.body.get("incidents", [])) for page in phone.arrived)
    print(f"{len(campaign.accepted)} alerts accepted, {campaign.refused} refused or unanswered")
    print(f"{campaign.kills} processes killed, {campaign.terminated} connections cut")
    print(f"{pages} pages arrived, {pages - len(keys)} of them a second time")
    print(f"{sum(len(found) > 1 for found in keys.values())} pages came under two keys; {len(lost)} were lost")
    return 0 if complete and not lost and all(len(found) == 1 for found in keys.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
