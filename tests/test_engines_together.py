"""Several engines on one queue: each page is sent by one of them, and nobody waits for a lock for ever."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from escalade import attempts, incidents, opening
from escalade.db import Database
from escalade.dispatch import Settings
from escalade.doorbell import Doorbell
from escalade.errors import Conflict
from escalade.inbound.base import Event
from escalade.opening import Source
from tests import factories
from tests.acting import ALICE, claim, do
from tests.clock import MovedClock
from tests.engines import running_engine
from tests.receiver import Arrived, Receiver, receiver, wait_for

QUICK = Settings(lease=9, deadline=3, poll=0.2)


@pytest.fixture
def phone() -> Iterator[Receiver]:
    """Where everybody's webhooks lead."""
    with receiver() as found:
        yield found


def test_k060_k061_several_engines_and_a_receiver_that_comes_back_each_page_arrives_once(
    database: Database, phone: Receiver, clock: MovedClock
) -> None:
    service = factories.ladder(database, phone.url)
    taken: list[Arrived] = []
    up = threading.Event()

    def answer(arrived: Arrived) -> int:
        if up.is_set():
            taken.append(arrived)
        return 200 if up.is_set() else 503

    phone.answer = answer
    opened = [factories.open_incident(database, service, f"k{number}").id for number in range(20)]
    bells = [Doorbell() for _ in range(3)]
    with ExitStack() as stack:
        for bell in bells:
            stack.enter_context(running_engine(database.url, bell, settings=QUICK))
        wait_for(lambda: len(phone.arrived) >= 3)
        up.set()
        wait_for(lambda: _rung(clock, bells) and _all_delivered(database), 20, "all delivered")
    assert Counter(item.body["incidents"][0]["id"] for item in taken) == Counter(opened)
    assert len({item.headers["idempotency-key"] for item in taken}) == 20


def _rung(clock: MovedClock, bells: list[Doorbell]) -> bool:
    """Let the waits of the retries pass, a little at a time so that no lease of a send under way ends."""
    time.sleep(0.05)
    clock.pass_(seconds=1)
    for bell in bells:
        bell.ring()
    return True


def _all_delivered(database: Database) -> bool:
    return factories.run(
        database, "select count(*) from notification_attempt where kind = 'PAGE' and status <> 'DELIVERED'"
    ) == [(0,)]


def test_k061_every_due_page_is_claimed_by_one_of_several_engines(database: Database, phone: Receiver) -> None:
    service = factories.ladder(database, phone.url)
    for number in range(60):
        factories.open_incident(database, service, f"k{number}")
    with ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(running_engine(database.url, Doorbell(), settings=QUICK))
        wait_for(lambda: _all_delivered(database))
    assert len(phone.arrived) == 60
    claims = factories.run(database, "select distinct claim_seq, tries from notification_attempt where kind = 'PAGE'")
    assert claims == [(1, 1)]


def test_k102_several_reapers_return_each_lost_page_once(database: Database, clock: MovedClock) -> None:
    service = factories.ladder(database, "http://127.0.0.1:1")
    for number in range(20):
        factories.open_incident(database, service, f"k{number}")
    assert len(claim(database)) == 20
    clock.pass_(seconds=21)
    with ThreadPoolExecutor(6) as threads:
        reaped = list(threads.map(lambda _: do(database, attempts.reap), range(6)))
    assert sum(reaped) == 20
    states = "select distinct status, tries from notification_attempt where kind = 'PAGE'"
    assert factories.run(database, states) == [("PENDING", 1)]
    assert factories.run(database, "select count(*), min(outcome) from attempt_try") == [(20, "unknown")]
    assert {row.tries for row in claim(database)} == {2}


def test_k099_ingest_acknowledge_and_engines_on_one_incident_meet_no_deadlock(
    database: Database, phone: Receiver
) -> None:
    service = factories.ladder(database, phone.url, wait=1, repeat=50)
    source = Source(service, "api", None, "integration:api/prom")
    before = deadlocks(database)
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(running_engine(database.url, Doorbell(), settings=QUICK))
        with ThreadPoolExecutor(6) as threads:
            for done in [threads.submit(_worry, database, source, number) for number in range(6)]:
                done.result()
    assert deadlocks(database) == before
    assert factories.run(database, "select count(*) from incident where status <> 'RESOLVED'")[0][0] <= 1


def _worry(database: Database, source: Source, number: int) -> None:
    """Alert on one key again and again, and in half of the threads acknowledge, take back, escalate, resolve it."""
    acts = [incidents.acknowledge, incidents.unacknowledge, incidents.escalate, incidents.resolve]
    for turn in range(80):
        done = do(database, opening.accept, source, Event("trigger", "Disk full", dedup_key="disk"))
        assert done.id is not None
        if number % 2:
            try:
                do(database, acts[turn % 4 if number > 1 else 0], done.id, ALICE)
            except Conflict:
                pass


def deadlocks(database: Database) -> int:
    """How many deadlocks the server has broken in this database."""
    query = "select pg_stat_force_next_flush(), deadlocks from pg_stat_database where datname = current_database()"
    return int(factories.run(database, query)[0][1])
