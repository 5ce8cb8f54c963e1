"""The real process and a phone to page, both on loopback."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from tests.receiver import Receiver, receiver

ROOT = Path(__file__).resolve().parent.parent
KEY = "bench-key-of-more-than-twenty-characters"
YAML = """
users:
  - email: alice@example.com
    contact_methods: [{{name: hook, kind: webhook, address: "{url}/alice"}}]
schedules:
  - name: primary
    rotations:
      - {{name: weekly, participants: [alice@example.com], unit: week, start_date: 2026-01-05, handoff_time: "09:00"}}
policies: [{{name: default, steps: [{{targets: ["schedule:primary"], wait: 1h}}]}}]
services:
  - {{name: api, policy: default, urgency: high, integrations: [{{name: bench, kind: generic, key: {key}}}]}}
"""


@dataclass
class App:
    """The running process: where it serves, and how long it took to be ready, in seconds."""

    process: subprocess.Popen[bytes]
    url: str
    ready_after: float

    def resident_mb(self) -> float:
        """Resident memory of the process now, in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024


def environment(url: str, port: int) -> dict[str, str]:
    """Default settings, except for what loopback needs."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ESCALADE_")}
    return {
        **kept,
        "DATABASE_URL": url,
        "PORT": str(port),
        "HOST": "127.0.0.1",
        "ESCALADE_ALLOW_PRIVATE_ADDRESSES": "on",
    }


def configure(url: str, phone: str) -> None:
    """One person on call, reached by webhook."""
    text = YAML.format(url=phone, key=KEY)
    command = [sys.executable, "app.py", "apply", "-"]
    subprocess.run(
        command, input=text.encode(), cwd=ROOT, env=environment(url, 1), check=True, stdout=subprocess.DEVNULL
    )


@contextmanager
def phone() -> Iterator[Receiver]:
    """Where pages arrive."""
    with receiver() as found:
        yield found


def start(url: str, *more: str) -> App:
    """Start the process and wait until it is ready."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    started = time.perf_counter()
    running = subprocess.Popen(
        [sys.executable, "app.py", "serve", *more],
        cwd=ROOT,
        env=environment(url, port),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    base = f"http://127.0.0.1:{port}"
    wait_ready(running, f"{base}/readyz")
    return App(running, base, time.perf_counter() - started)


def stop(running: App) -> None:
    """End the process in good order."""
    running.process.send_signal(signal.SIGTERM)
    running.process.wait(30)


@contextmanager
def app(url: str, *more: str) -> Iterator[App]:
    """The process, from its start until it has ended in good order."""
    running = start(url, *more)
    try:
        yield running
    finally:
        stop(running)


def wait_ready(running: subprocess.Popen[bytes], url: str) -> None:
    """Wait until the process says that it is ready. Raises RuntimeError after 20 s."""
    end = time.monotonic() + 20
    while time.monotonic() < end and running.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=1):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.01)
    raise RuntimeError("the process did not become ready")


def quieten(url: str) -> None:
    """Take away the incidents of the latency run, so that nothing waits."""
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute("delete from notification_attempt where kind = 'STEP'")


def idle_statements(url: str, seconds: float) -> float:
    """Transactions a second in the database while nobody does anything; each statement of the engine is one."""
    with psycopg.connect(psycopg.conninfo.make_conninfo(url, dbname="postgres"), autocommit=True) as conn:
        name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
        time.sleep(12)  # what was done before is only counted when its session reports, at most ten seconds later
        before = _transactions(conn, str(name))
        time.sleep(seconds)
        return (_transactions(conn, str(name)) - before) / seconds


def _transactions(conn: psycopg.Connection[tuple[object, ...]], name: str) -> int:
    conn.execute("select pg_stat_clear_snapshot()")
    row = conn.execute("select xact_commit + xact_rollback from pg_stat_database where datname = %s", [name]).fetchone()
    assert row is not None
    return int(str(row[0]))
