"""The primary dies, its standby takes over, and pages go on: real servers, and the real process on both."""

import json
import signal
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bench.chaos import phone
from bench.chaos.phone import Phone
from bench.chaos.stage import LEASE, App, Stage
from bench.process import KEY
from tests.receiver import wait_for

ALERTS = 20


@pytest.fixture
def receiver() -> Iterator[Phone]:
    """Where pages arrive."""
    with phone.running() as found:
        yield found


@pytest.fixture
def stage() -> Iterator[Stage]:
    """A primary with its standby, and one process that knows both."""
    with staged(1) as found:
        yield found


@contextmanager
def staged(processes: int) -> Iterator[Stage]:
    """A primary with its standby, and so many processes that know both."""
    with tempfile.TemporaryDirectory(prefix="escalade-failover-") as name:
        Path(name).chmod(0o755)
        stage = Stage(Path(name), processes, standby=True)
        try:
            yield stage
        finally:
            stage.close()


def alert(app: App, key: str) -> dict[str, Any] | None:
    """Send one alert; the answer, or None where there was none that accepts it."""
    body = json.dumps({"title": key, "severity": "critical", "dedup_key": key}).encode()
    request = urllib.request.Request(f"{app.url}/hooks/{KEY}", body, {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=3) as answer:
            found: dict[str, Any] = json.load(answer)
            return found
    except OSError:
        return None


def pages_of(receiver: Phone, incident: int) -> set[int]:
    """The attempts of an incident that have arrived and been answered."""
    return {request.attempt for request in list(receiver.requests) if request.incident == incident and request.answered}


def test_q24_after_a_failover_alerts_are_taken_again_and_the_pages_of_before_are_sent(
    stage: Stage, receiver: Phone
) -> None:
    stage.configure(receiver.url)
    stage.start()
    [app] = stage.apps
    first = wait_for(lambda: alert(app, "before"), 10, "answer")["incidents"][0]["id"]
    wait_for(lambda: len(pages_of(receiver, first)) == 2, 10, "page")
    # Its process and the primary die while the pages of another are in the air: nobody has recorded them.
    receiver.hold = 1.0
    waiting = wait_for(lambda: alert(app, "in the air"), 10, "answer")["incidents"][0]["id"]
    wait_for(lambda: receiver.under_way, 10, "send")
    app.end(signal.SIGKILL)
    stage.primary.kill()
    receiver.hold = 0.0
    stage.servers[1].promote()
    stage.primary = stage.servers[1]
    stage.launch(app)
    wait_for(app.ready, 30, "readiness")
    second = wait_for(lambda: alert(app, "after"), 20, "answer")["incidents"][0]["id"]
    wait_for(lambda: len(pages_of(receiver, second)) == 2, 20, "page")
    wait_for(lambda: _delivered(stage, waiting) == 2, 20, "delivery of what was in the air")


def test_q24_a_process_that_reaches_only_the_standby_says_so_and_works_once_it_is_the_primary(
    stage: Stage, receiver: Phone
) -> None:
    stage.configure(receiver.url)
    [app] = stage.apps
    stage.launch(app)
    stage.wait_ready(app)
    # The primary is out of reach, so that only the standby is left.
    app.wires[0].end()
    assert wait_for(lambda: not app.ready(), 20, "an end of readiness")
    assert alert(app, "refused") is None
    stage.primary.kill()
    stage.servers[1].promote()
    stage.primary = stage.servers[1]
    wait_for(app.ready, 30, "readiness")
    incident = wait_for(lambda: alert(app, "taken"), 20, "answer")["incidents"][0]["id"]
    wait_for(lambda: len(pages_of(receiver, incident)) == 2, 20, "page")


@pytest.mark.parametrize("processes", [1, 2])
def test_q24_processes_that_live_through_a_failover_send_what_waited_and_nothing_twice(
    receiver: Phone, processes: int
) -> None:
    with staged(processes) as stage:
        pages = 2 * ALERTS * processes
        stage.configure(receiver.url)
        stage.start()
        receiver.hold = 1.0
        for number in range(ALERTS * processes):
            app = stage.apps[number % processes]
            wait_for(lambda app=app, key=f"alert {number}": alert(app, key), 10, "answer")
        wait_for(lambda: _count(stage, "IN_FLIGHT") and _count(stage, "PENDING") and receiver.sending(), 10, "send")
        stage.primary.kill()
        assert receiver.sending(), "a page is in the air while the primary is gone"
        receiver.hold = 0.01
        wait_for(lambda: not any(app.ready() for app in stage.apps), 20, "an end of readiness")
        stage.primary = stage.servers[1]
        stage.primary.promote()
        promoted = time.monotonic()
        wait_for(lambda: _count(stage, "DELIVERED") == pages, LEASE + 2, "delivery of every page")
        print(f"\nall {pages} pages within {time.monotonic() - promoted:.1f} s of the promotion")
        assert all(len(app.lives) == 1 and app.process and app.process.poll() is None for app in stage.apps)
        arrived = Counter(request.attempt for request in receiver.requests)
        assert len(arrived) == pages
        assert {attempt for attempt, times in arrived.items() if times > 1} <= _unknown(stage)
        assert all(alert(app, f"after {app.port}") for app in stage.apps)


def _count(stage: Stage, status: str) -> int:
    """The pages in this state."""
    with stage.connect() as conn:
        query = "select count(*) from notification_attempt where kind = 'PAGE' and status = %s"
        [[found]] = conn.execute(query, [status]).fetchall()
        return int(str(found))


def _unknown(stage: Stage) -> set[object]:
    """The attempts of which the timeline says that nobody knows what became of a try."""
    with stage.connect() as conn:
        return {row[0] for row in conn.execute("select attempt_id from attempt_try where outcome = 'unknown'")}


def _delivered(stage: Stage, incident: int) -> int:
    with stage.connect() as conn:
        row = conn.execute(
            "select count(*) from notification_attempt where incident_id = %s and status = 'DELIVERED'", [incident]
        ).fetchone()
        assert row is not None
        return int(str(row[0]))
