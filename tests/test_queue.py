"""What docs/queue.md says of the queue as a whole, and no other test shows."""

import time
from typing import Any

import pytest

from escalade import attempts, opening
from escalade.db import Database
from escalade.inbound.base import Event
from tests import factories
from tests.clock import MovedClock
from tests.engines import running_engine
from tests.interleavings.scenes import all_failed, opened
from tests.receiver import Arrived, receiver, wait_for

PEOPLE = 30
OPEN_TRANSACTIONS = """
select pid, xact_start, query from pg_stat_activity
where datname = current_database() and state like 'idle in transaction%%'"""


def test_the_pages_of_an_alert_are_undone_with_its_transaction(database: Database) -> None:
    source = opening.Source(factories.ladder(database, "http://127.0.0.1:9"), "api", None, "integration:api/prom")
    with pytest.raises(RuntimeError), database.begin() as tx:
        opening.accept(tx, source, Event("trigger", "Disk full"))
        assert tx.conn.execute("select count(*) from notification_attempt where kind = 'PAGE'").fetchone() == (1,)
        raise RuntimeError("what belongs to it fails")
    assert factories.run(database, "select id from incident union all select id from notification_attempt") == []


def test_no_transaction_is_open_while_a_page_is_on_the_wire(database: Database) -> None:
    seen: list[Any] = []

    def look(arrived: Arrived) -> int:
        # The engine goes round meanwhile: what is still there after a while is what was open all the time.
        before = set(factories.run(database, OPEN_TRANSACTIONS))
        time.sleep(0.2)
        seen.append(before.intersection(factories.run(database, OPEN_TRANSACTIONS)))
        return 200

    with receiver() as phone, running_engine(database.url, database.doorbell):
        phone.answer = look
        incident = factories.open_incident(database, factories.ladder(database, phone.url))
        wait_for(lambda: ("PAGE", "DELIVERED") in factories.statuses(database, incident.id))
    assert seen == [set()]


def test_finished_rows_leave_in_batches_of_a_bounded_size(database: Database, clock: MovedClock) -> None:
    incident = opened(database, people=PEOPLE)
    all_failed(database, incident)
    factories.run(database, "update notification_attempt set status = 'CANCELLED', recheck = false where kind = 'PAGE'")
    factories.run(database, "update incident set status = 'RESOLVED', resolved_at = clock_timestamp()")
    clock.pass_(days=8)
    with database.begin() as tx:
        assert [attempts.archive(tx, 7, n=20) for _ in range(3)] == [20, PEOPLE - 20, 0]
