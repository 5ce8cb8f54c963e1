"""What docs/queue.md says of the queue as a whole, and no other test shows."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from escalade import attempts, db, opening
from escalade.db import Database, Tx
from escalade.inbound.base import Event
from tests import factories
from tests.acting import EVERYWHERE
from tests.clock import MovedClock
from tests.engines import running_engine
from tests.interleavings.scenes import all_failed, opened
from tests.receiver import Arrived, receiver, wait_for

PEOPLE = 30
# Without these a planner has nothing left but to run a subquery again for every row.
BETTER_PLANS = ("enable_hashjoin", "enable_hashagg", "enable_mergejoin", "enable_sort", "enable_material")
OFTEN_SHOWN = """
update notification_attempt set status = 'IN_FLIGHT', lease_until = now()
where id in (select id from notification_attempt where status = 'PENDING' and kind = 'PAGE'
    order by due_at, id limit 5 for update skip locked)"""
OPEN_TRANSACTIONS = """
select query from pg_stat_activity where datname = current_database() and state like 'idle in transaction%%'"""


@pytest.fixture
def poor_plans(database: Database) -> Iterator[psycopg.Connection[Any]]:
    """A connection that plans as badly as it can."""
    with db.connect(database.url) as conn:
        for setting in BETTER_PLANS:
            conn.execute(f"set {setting} = off")
        yield conn


def test_the_pages_of_an_alert_are_undone_with_its_transaction(database: Database) -> None:
    source = opening.Source(factories.ladder(database, "http://127.0.0.1:9"), "api", None, "integration:api/prom")
    with pytest.raises(RuntimeError), database.begin() as tx:
        opening.accept(tx, source, Event("trigger", "Disk full"))
        assert tx.conn.execute("select count(*) from notification_attempt where kind = 'PAGE'").fetchone() == (1,)
        raise RuntimeError("what belongs to it fails")
    assert factories.run(database, "select id from incident union all select id from notification_attempt") == []


def test_a_claim_takes_no_more_than_it_asked_for_however_it_is_planned(
    database: Database, poor_plans: psycopg.Connection[Any]
) -> None:
    opened(database, people=PEOPLE)
    assert len(attempts.claim(Tx(poor_plans), "high", "one", 20.0, 5, EVERYWHERE)) == 5


def test_the_form_of_a_claim_that_is_often_shown_takes_more(
    database: Database, poor_plans: psycopg.Connection[Any]
) -> None:
    opened(database, people=PEOPLE)
    assert poor_plans.execute(OFTEN_SHOWN).rowcount > 5


def test_no_transaction_is_open_while_a_page_is_on_the_wire(database: Database) -> None:
    seen: list[Any] = []

    def look(arrived: Arrived) -> int:
        seen.append(factories.run(database, OPEN_TRANSACTIONS))
        return 200

    with receiver() as phone, running_engine(database.url, database.doorbell):
        phone.answer = look
        incident = factories.open_incident(database, factories.ladder(database, phone.url))
        wait_for(lambda: ("PAGE", "DELIVERED") in factories.statuses(database, incident.id))
    assert seen == [[]]


def test_finished_rows_leave_in_batches_of_a_bounded_size(database: Database, clock: MovedClock) -> None:
    incident = opened(database, people=PEOPLE)
    all_failed(database, incident)
    factories.run(database, "update notification_attempt set status = 'CANCELLED', recheck = false where kind = 'PAGE'")
    factories.run(database, "update incident set status = 'RESOLVED', resolved_at = clock_timestamp()")
    clock.pass_(days=8)
    with database.begin() as tx:
        assert [attempts.archive(tx, 7, n=20) for _ in range(3)] == [20, PEOPLE - 20, 0]
