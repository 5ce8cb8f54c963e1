"""A receiver that hangs: everybody else is paged on time, it is tried one page at a time, and each page says why it
waits."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace

import pytest

from escalade import overview, shown
from escalade.db import Database, connect
from escalade.dispatch import Settings
from escalade.doorbell import Doorbell
from tests import factories
from tests.acting import rows
from tests.clock import MovedClock
from tests.engines import NETWORK, running_engine
from tests.receiver import Arrived, Receiver, receiver, wait_for

QUICK = Settings(lease=9, deadline=3, poll=0.2)
HTTP_HEAD = b"HTTP/1.1 200 OK\r\nX-Long: "


@pytest.fixture
def phone() -> Iterator[Receiver]:
    """Where the healthy ones' webhooks lead."""
    with receiver() as found:
        yield found


@contextmanager
def hanging(act: Callable[[socket.socket, threading.Event], None]) -> Iterator[int]:
    """A port that accepts everybody and then does this to them."""
    stop = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)

    def one(connection: socket.socket) -> None:
        with closing(connection), suppress(OSError):
            act(connection, stop)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=one, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield int(listener.getsockname()[1])
    finally:
        stop.set()
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def silent(connection: socket.socket, stop: threading.Event) -> None:
    """Accept, and say nothing."""
    stop.wait(30)


def drips(connection: socket.socket, stop: threading.Event) -> None:
    """A header that comes a byte at a time and has no end."""
    connection.sendall(HTTP_HEAD)
    while not stop.wait(0.2):
        connection.sendall(b"x")


HANGS = {"silent": ("http", silent), "dripped headers": ("http", drips), "TLS handshake": ("https", silent)}


@pytest.mark.parametrize("case", HANGS)
def test_while_the_receiver_of_step_one_hangs_step_two_leaves_on_time(
    database: Database, phone: Receiver, case: str
) -> None:
    scheme, act = HANGS[case]
    with hanging(act) as port, running_engine(database.url, database.doorbell, settings=QUICK):
        first = factories.channel(database, f"{scheme}://127.0.0.1:{port}/first", name="first")
        second = factories.channel(database, f"{phone.url}/second", name="second")
        steps = [(1, [("channel", first)]), (60, [("channel", second)])]
        incident = factories.open_incident(database, factories.service(database, factories.policy(database, *steps)))
        phone.wait(1, "/second")
        wait_for(lambda: rows(database, incident.id)[1]["status"] == "DELIVERED")
        wait_for(lambda: rows(database, incident.id)[0]["status"] == "PENDING")
    hung, sent = rows(database, incident.id)
    assert (sent["claimed_at"] - sent["first_due_at"]).total_seconds() < 1
    assert (sent["first_due_at"] - hung["first_due_at"]).total_seconds() < 1.5
    assert hung["tries"] == 1 and f"127.0.0.1:{port}" in hung["last_error"]


BACKLOG = """
insert into notification_attempt (incident_id, kind, event, status, lane, round, step, recipient, channel_id,
    transport, destination, pace_seconds, due_at, first_due_at, tries, max_tries, replays, claim_seq,
    cancel_requested, recheck, idempotency_key, summary)
select %s, 'PAGE', 'triggered', 'PENDING', 'high', n, 1, 'backlog', %s, 'webhook', %s, 0,
    now() - interval '1 hour', now() - interval '1 hour', 0, 8, 0, 0, false, false, 'backlog' || n, ''
from generate_series(1, %s) n"""


def backlog(database: Database, count: int, port: int) -> None:
    """So many due pages for one receiver, all older than any other."""
    address = f"http://127.0.0.1:{port}/hung"
    hung = factories.channel(database, address, name="hung")
    policy = factories.policy(database, (3600, [("channel", hung)]), name="hung")
    incident = factories.open_incident(database, factories.service(database, policy, "hung"))
    destination = rows(database, incident.id)[0]["destination"]
    factories.run(database, BACKLOG, incident.id, hung, destination, count)


@pytest.mark.parametrize("count", [10_000, 100_000])
def test_q4_a_backlog_for_a_receiver_that_hangs_delays_no_page_to_another(
    database: Database, phone: Receiver, count: int
) -> None:
    with hanging(silent) as port:
        backlog(database, count, port)
        other = factories.channel(database, f"{phone.url}/ops", name="sound")
        policy = factories.policy(database, (3600, [("channel", other)]), name="sound")
        service = factories.service(database, policy, "sound")
        network = replace(NETWORK, read_timeout=1, deadline=1.5)
        with running_engine(database.url, database.doorbell, senders=16, network=network, settings=QUICK):
            wait_for(lambda: in_flight(database) >= 12, what="the hung receiver has its share")
            # Four seconds: while it is believed to be well, and when it is known to fail.
            for number in range(16):
                factories.open_incident(database, service, f"k{number}")
                time.sleep(0.25)
            phone.wait(16, "/ops")
    late = "select max(extract(epoch from claimed_at - first_due_at)) from notification_attempt where channel_id = %s"
    assert factories.run(database, late, other)[0][0] < 1
    [(failures,)] = factories.run(database, "select failures from destination")
    assert failures >= 12
    with connect(database.url) as conn:
        conn.execute("delete from notification_attempt")
        conn.execute("vacuum notification_attempt")


def in_flight(database: Database) -> int:
    """How many pages are in the air."""
    return int(factories.run(database, "select count(*) from notification_attempt where status = 'IN_FLIGHT'")[0][0])


def test_a_failing_receiver_is_tried_one_at_a_time_by_all_processes_until_it_recovers(
    database: Database, phone: Receiver, clock: MovedClock
) -> None:
    service = factories.ladder(database, phone.url)
    up, lock, now_in, most = threading.Event(), threading.Lock(), [0], [0]

    def answer(arrived: Arrived) -> int:
        with lock:
            now_in[0] += 1
            most[0] = max(most[0], now_in[0])
        time.sleep(0.05)
        with lock:
            now_in[0] -= 1
        return 200 if up.is_set() else 503

    phone.answer = answer
    for number in range(40):
        factories.open_incident(database, service, f"k{number}")
    [(name,)] = factories.run(database, "select distinct destination from notification_attempt where kind = 'PAGE'")
    factories.run(
        database, "insert into destination values (%s, 3, now() - interval '1 s', 'It is down.', now())", name
    )
    with ExitStack() as stack:
        bells = [Doorbell() for _ in range(4)]
        for bell in bells:
            stack.enter_context(running_engine(database.url, bell, settings=QUICK))
        phone.wait(12)
        assert most == [1], "four processes, one try at a time"
        up.set()
        wait_for(lambda: not factories.run(database, "select name from destination"), what="it has recovered")
        clock.pass_(seconds=6)
        for bell in bells:
            bell.ring()
        wait_for(lambda: most[0] > 4, what="all senders are back")
        wait_for(lambda: in_flight(database) == 0 and len(phone.arrived) >= 40)


def why(database: Database, incident_id: int) -> list[tuple[str | None, str | None]]:
    """What the API says of each page that waits: until when, and why."""
    with database.read() as tx:
        views = [shown.attempt(view) for view in overview.of_incident(tx, incident_id)]
    return [(view["held_until"], view["held_reason"]) for view in views if view["status"] == "PENDING"]


def test_each_page_that_is_late_says_why(database: Database, phone: Receiver) -> None:
    patient = {"network": replace(NETWORK, read_timeout=2, deadline=2), "settings": Settings(lease=9, deadline=2)}
    with hanging(silent) as port, running_engine(database.url, database.doorbell, senders=4, **patient):  # type: ignore[arg-type]
        backlog(database, 10, port)
        [(incident_id,)] = factories.run(database, "select id from incident")
        database.doorbell.ring()
        wait_for(lambda: in_flight(database) == 2)
        while_well = why(database, incident_id)
        wait_for(lambda: factories.run(database, "select name from destination where failures > 3"), what="it fails")
        wait_for(lambda: in_flight(database) == 1)
        failing = [reason for _, reason in why(database, incident_id) if reason]
    assert any(until and reason == "2 to the same receiver are in the air" for until, reason in while_well if reason)
    assert any("times in a row, so one at a time is tried" in reason and "gave no" in reason for reason in failing)
