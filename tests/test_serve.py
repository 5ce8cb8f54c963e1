"""The real process: an alert in, a page out, one tap; and how it ends when it is told to."""

import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from escalade import api_tokens
from escalade.db import Database
from tests import factories
from tests.commands import ROOT, environment, free_port
from tests.receiver import Receiver, receiver, wait_for


@dataclass
class Process:
    """A running app.py."""

    running: subprocess.Popen[bytes]
    url: str

    def get(self, path: str) -> int:
        """The status of a GET; 0 where nobody answers."""
        return self.ask(urllib.request.Request(self.url + path))[0]

    def post(self, path: str, body: bytes = b"") -> tuple[int, str]:
        """Status and text of a POST."""
        return self.ask(urllib.request.Request(self.url + path, body, {"content-type": "application/json"}))

    def ask(self, request: urllib.request.Request) -> tuple[int, str]:
        """Status and text of the answer."""
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except (urllib.error.URLError, OSError):
            return 0, ""

    def alert(self, key: str) -> tuple[int, str]:
        """An alert on the service of `ladder`."""
        body = json.dumps({"title": f"Disk full on {key}", "severity": "critical", "dedup_key": key})
        return self.post(f"/hooks/{factories.KEY}", body.encode())


@contextmanager
def served(url: str, *words: str, **more: str) -> Iterator[Process]:
    """The process, ready; killed at the end where it still runs."""
    port = str(free_port())
    given = environment(DATABASE_URL=url, PORT=port, HOST="127.0.0.1", ESCALADE_ALLOW_PRIVATE_ADDRESSES="on", **more)
    running = subprocess.Popen(
        [sys.executable, "app.py", "serve", *words],
        cwd=ROOT,
        env=given,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    process = Process(running, f"http://127.0.0.1:{port}")
    try:
        wait_for(lambda: process.get("/readyz") == 200, 30, "readiness")
        yield process
    finally:
        running.kill()
        running.wait()


@pytest.fixture
def phone() -> Iterator[Receiver]:
    """Where Alice and Bob are paged."""
    with receiver() as found:
        yield found


def ladder(database: Database, phone: Receiver) -> None:
    """Alice, then Bob, on a service with a key."""
    factories.integration(database, factories.ladder(database, phone.url))


def slow(seconds: float) -> Callable[[object], int]:
    """A receiver that takes its time to answer."""

    def answer(_: object) -> int:
        time.sleep(seconds)
        return 200

    return answer


def test_an_alert_pages_and_one_tap_on_the_link_stops_it(database: Database, phone: Receiver) -> None:
    ladder(database, phone)
    with served(database.url) as process:
        status, text = process.alert("web1")
        assert status == 202
        [page] = phone.wait(1, "/alice")
        link = page.body["ack_url"].removeprefix(process.url)
        assert process.get(link) == 200
        incident_id = json.loads(text)["incidents"][0]["id"]
        assert "acknowledged" not in factories.events(database, incident_id)
        assert process.post(link)[0] == 200
        [row] = factories.run(database, "select status, acknowledged_by from incident where id = %s", incident_id)
        assert row == ("ACKNOWLEDGED", "alice@example.com")
        assert ("STEP", "CANCELLED") in factories.statuses(database, incident_id)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_told_to_stop_it_finishes_what_is_in_the_air_and_exits_0(
    database: Database, phone: Receiver, number: signal.Signals
) -> None:
    ladder(database, phone)
    phone.answer = slow(1.5)
    with served(database.url) as process:
        assert process.alert("web1")[0] == 202
        phone.wait(1)
        process.running.send_signal(number)
        wait_for(lambda: process.get("/readyz") in (503, 0), 5, "draining")
        assert process.running.wait(20) == 0
    assert factories.run(database, "select status from notification_attempt where kind = 'PAGE'") == [("DELIVERED",)]


def test_a_second_wish_to_stop_ends_it_at_once(database: Database, phone: Receiver) -> None:
    ladder(database, phone)
    phone.answer = slow(4)
    with served(database.url) as process:
        assert process.alert("web1")[0] == 202
        phone.wait(1)
        process.running.send_signal(signal.SIGTERM)
        process.running.send_signal(signal.SIGTERM)  # said twice at once is one wish
        time.sleep(1.2)  # the wish counts as a second one only after a second
        assert process.running.poll() is None
        process.running.send_signal(signal.SIGTERM)
        assert process.running.wait(3) == 1
    assert factories.run(database, "select status from notification_attempt where kind = 'PAGE'") == [("IN_FLIGHT",)]


def test_k067_an_alert_answered_202_is_paged_after_a_kill(database: Database, phone: Receiver) -> None:
    ladder(database, phone)
    with served(database.url, "--no-engine") as process:
        assert process.alert("web1")[0] == 202
        process.running.kill()
        process.running.wait()
    assert phone.arrived == []
    with served(database.url):
        phone.wait(1, "/alice")


def test_without_an_engine_the_web_serves_and_another_process_sends(database: Database, phone: Receiver) -> None:
    ladder(database, phone)
    with served(database.url, "--no-engine") as web, served(database.url, ESCALADE_POLL_SECONDS="30") as engine:
        wait_for(lambda: "escalade_listener_up 1.0" in metrics(engine, database), 10, "listener")
        assert web.alert("web1")[0] == 202
        phone.wait(1, "/alice", seconds=10)


def metrics(process: Process, database: Database) -> str:
    """The metrics of a process, with a token of our own."""
    factories.run(database, "delete from api_token")
    with database.begin() as tx:
        token = api_tokens.create(tx, "prometheus", "viewer")
    request = urllib.request.Request(f"{process.url}/metrics", headers={"authorization": f"Bearer {token}"})
    return process.ask(request)[1]
