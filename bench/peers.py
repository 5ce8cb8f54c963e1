"""Several processes on one queue: how fast it drains with nothing to send, and over real HTTP. As a program, one of
them: python -m bench.peers URL SENDERS."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from bench.delivered import CHANNEL as WEBHOOK
from bench.delivered import TO_WEBHOOK
from bench.drain import CHANNEL, LEFT, ROWS
from bench.sink import sink
from escalade.delivery import Links
from escalade.dispatch import Settings
from escalade.doorbell import Doorbell
from escalade.engine import Engine
from escalade.health import Health
from escalade.senders import Senders
from escalade.tokens import Signer
from escalade.transports import TRANSPORTS, Network, Receipt, Transport

ROOT = Path(__file__).resolve().parent.parent
NOTHING = Transport("nothing", "Nothing", lambda message, network: Receipt(), lambda a: None, str, 0, False, False)
POLL = 0.05


@dataclass(frozen=True)
class Shared:
    """What so many processes did together."""

    processes: int
    rows: int
    seconds: float
    tries: int
    connections: int

    @property
    def rate(self) -> float:
        """Attempts a second, all together."""
        return self.rows / self.seconds


def share(url: str, processes: int, rows: int = 20_000, senders: int = 16) -> Shared:
    """Fill the queue in one commit and let so many engines drain it. Raises AssertionError where one attempt was
    tried more than once."""
    with peers(url, processes, senders), psycopg.connect(url, autocommit=True) as conn:
        return _drained(conn, processes, rows, _number(conn, CHANNEL), ())


def delivered(url: str, processes: int, pages: int = 5_000, senders: int = 16, pause: float = 0.0) -> Shared:
    """The same over real HTTP: every page goes to a receiver that pauses before its answer."""
    with peers(url, processes, senders), sink(pause) as address, psycopg.connect(url, autocommit=True) as conn:
        channel = conn.execute(WEBHOOK, [address]).fetchone()
        assert channel is not None
        return _drained(conn, processes, pages, int(channel[0]), (TO_WEBHOOK,))


def _drained(
    conn: "psycopg.Connection[tuple[object, ...]]", processes: int, rows: int, channel: int, then: tuple[str, ...]
) -> Shared:
    """Fill the queue in one commit and wait until it is empty."""
    for table in ("notification_attempt", "attempt_try"):
        conn.execute(f"delete from {table}".encode())
    incident = _number(conn, "select max(id) from incident")
    with conn.transaction():
        conn.execute(ROWS, {"rows": rows, "incident": incident, "channel": channel})
        for statement in then:
            conn.execute(statement.encode())
    started = time.perf_counter()
    while _number(conn, LEFT):
        time.sleep(0.02)
    seconds = time.perf_counter() - started
    tries = _number(conn, "select count(*) from attempt_try where outcome = 'delivered'")
    connections = _number(conn, "select count(*) from pg_stat_activity where application_name = 'escalade'")
    assert tries == rows, f"{rows} attempts, {tries} tries"
    assert _number(conn, "select count(*) from attempt_try") == tries
    return Shared(processes, rows, seconds, tries, connections)


@contextmanager
def peers(url: str, processes: int, senders: int) -> Iterator[None]:
    """So many engines, each in a process of its own, all of them at work."""
    command = [sys.executable, "-m", "bench.peers", url, str(senders)]
    running = [subprocess.Popen(command, cwd=ROOT) for _ in range(processes)]
    try:
        with psycopg.connect(url, autocommit=True) as conn:
            while _number(conn, "select count(*) from engine_instance") < processes:
                time.sleep(0.05)
        yield
    finally:
        for peer in running:
            peer.kill()
            peer.wait()
        with psycopg.connect(url, autocommit=True) as conn:
            conn.execute("delete from engine_instance")


def main(url: str, senders: int) -> None:
    """One engine, with a transport that does nothing beside the real ones, until it is killed."""
    bell = Doorbell()
    hands = Senders(senders, Network(allow_private=True), {**TRANSPORTS, "nothing": NOTHING}, bell.nudge)
    Engine(url, Settings(poll=POLL), hands, Links("http://127.0.0.1", Signer(["bench"])), bell, Health()).start()
    threading.Event().wait()


def _number(conn: "psycopg.Connection[tuple[object, ...]]", statement: str) -> int:
    row = conn.execute(statement.encode()).fetchone()
    return int(str(row[0])) if row else 0


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
