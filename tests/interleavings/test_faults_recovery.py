"""Faults of other queues about what a dead process leaves behind, numbered as in docs/faults.md: here none of them."""

import threading
import time
from datetime import timedelta

import pytest

from escalade import attempts
from escalade.config import Config, ConfigFaults
from escalade.db import Database, Session
from escalade.doorbell import Doorbell
from escalade.engine import Engine
from tests import factories
from tests.clock import MovedClock
from tests.engines import make_engine, running_engine
from tests.interleavings.hands import Hands, claim, settle
from tests.interleavings.scenes import attempt, opened, status
from tests.receiver import receiver, wait_for
from tests.rows import bare_incident, ids, rows, take

# So many pages in the air, the lease of each run out so many seconds ago.
LOST = """insert into notification_attempt (incident_id, kind, event, status, lane, round, step, recipient, transport,
        destination, pace_seconds, due_at, first_due_at, tries, max_tries, replays, claimed_at, lease_owner,
        lease_until, claim_seq, cancel_requested, recheck, idempotency_key, summary)
    select %s, 'PAGE', 'triggered', 'IN_FLIGHT', 'high', 1, n, 'rule:1', 'log', 'log', 0, clock_timestamp(),
        clock_timestamp(), 1, 8, 0, clock_timestamp(), 'gone', clock_timestamp() - n * interval '1 second', 1, false,
        false, n::text, ''
    from generate_series(1, %s) n"""


def reap(database: Database) -> int:
    """One look for leases that have run out; how many rows were taken back."""
    with database.read() as tx:
        return attempts.reap(tx)


def one_round(database: Database, engine: Engine) -> None:
    """One round of an engine that is not running."""
    session = Session(database.url)
    try:
        engine.tick(session)
    finally:
        session.close()


def test_q3_a_row_without_a_try_left_fails_alone_and_breaks_no_batch(database: Database, clock: MovedClock) -> None:
    made = rows(database, 3)
    factories.run(database, "update notification_attempt set tries = 8, max_tries = 3 where id = %s", made[1])
    with database.read() as tx:
        taken = claim(tx)
        assert [row.status for row in sorted(settle(tx, taken, "RETRY"), key=lambda row: row.id)] == [
            "PENDING",
            "FAILED",
            "PENDING",
        ]
    assert ids(take(database)) == [made[0], made[2]]
    clock.pass_(seconds=21)
    assert reap(database) == 2


def test_q5_a_lease_that_a_send_could_outlive_is_refused_at_the_start() -> None:
    environ = {"DATABASE_URL": "postgres://h/d", "ESCALADE_SEND_DEADLINE": "10", "ESCALADE_LEASE_SECONDS": "14"}
    with pytest.raises(ConfigFaults, match="ESCALADE_LEASE_SECONDS"):
        Config.read(environ)
    assert Config.read(environ | {"ESCALADE_LEASE_SECONDS": "15"}).lease_seconds == 15


def test_q6_lost_rows_are_taken_back_while_every_sender_is_busy_and_their_receiver_is_full(
    database: Database, clock: MovedClock
) -> None:
    opened(database, people=1)
    engine = make_engine(database.url, senders=2)
    one_round(database, engine)
    assert engine.dispatch.hands("high") == 0, "its one sender for pages has something to do"
    factories.run(database, LOST, bare_incident(database), 3)
    found = "select status, count(*) from notification_attempt where lease_owner = 'gone' group by status"

    def taken_back() -> bool:
        one_round(database, engine)
        return factories.run(database, found) == [("PENDING", 3)]

    wait_for(taken_back, 1, "the lost rows")


def test_q7_a_page_that_kills_whoever_takes_it_fails_after_its_tries(database: Database, clock: MovedClock) -> None:
    [made] = rows(database, 1)
    for _ in range(3):
        assert ids(take(database)) == [made]
        clock.pass_(seconds=21)
        assert reap(database) == 1
    assert take(database) == []
    assert (attempt(database, made)["status"], attempt(database, made)["tries"]) == ("FAILED", 3)


def test_q8_a_lost_row_is_taken_back_though_nothing_is_known_of_its_owner(
    database: Database, clock: MovedClock
) -> None:
    [made] = rows(database, 1)
    take(database)
    assert factories.run(database, "select owner from engine_instance") == []
    clock.pass_(seconds=21)
    assert reap(database) == 1 and status(database, made) == "PENDING"


def test_q9_a_process_that_comes_back_under_its_old_name_owns_nothing_of_before(database: Database) -> None:
    [made] = rows(database, 1)
    before, after = make_engine(database.url).dispatch.owner, make_engine(database.url).dispatch.owner
    with database.read() as tx:
        [row] = claim(tx, before)
        assert attempts.recover(tx, after, []) == 0
        assert [found.lost for found in settle(tx, [row], "DELIVERED", after)] == [True]
    assert before != after and status(database, made) == "IN_FLIGHT"


def test_q11_only_the_lease_that_runs_now_counts(database: Database, clock: MovedClock) -> None:
    [made] = rows(database, 1)
    take(database)
    clock.pass_(seconds=21)
    assert reap(database) == 1
    take(database)
    clock.pass_(seconds=19)
    assert reap(database) == 0, "its first claim is long ago, its second is not"
    assert attempt(database, made)["tries"] == 2


def test_q12_what_a_dead_process_held_is_sent_within_its_lease_and_two_seconds(database: Database) -> None:
    with receiver() as phone:
        incident = factories.open_incident(database, factories.ladder(database, phone.url))
        with database.read() as tx:
            claim(tx, "gone", lease=1.5)
        held_since = time.monotonic()
        with running_engine(database.url):
            wait_for(lambda: ("PAGE", "DELIVERED") in factories.statuses(database, incident.id))
        assert 1 < time.monotonic() - held_since < 1.5 + 2


def test_q13_a_page_of_a_dead_process_goes_back_to_the_queue(database: Database, clock: MovedClock) -> None:
    [made] = rows(database, 1)
    take(database)
    clock.pass_(seconds=21)
    assert reap(database) == 1
    assert status(database, made) == "PENDING" and ids(take(database)) == [made]


def test_q14_a_page_that_is_sent_while_its_process_stops_has_one_end(database: Database) -> None:
    go = threading.Event()
    with receiver() as phone:
        phone.answer = lambda arrived: 200 if go.wait(5) else 500
        incident = factories.open_incident(database, factories.ladder(database, phone.url))
        with running_engine(database.url, Doorbell()) as engine:
            phone.wait(1)
            stopping = threading.Thread(target=engine.stop, args=(10,))
            stopping.start()
            wait_for(engine.stopping.is_set)
            wait_for(lambda: not engine.doorbell.idle, what="engine that takes no more")
            assert reap(database) == 0, "it keeps its lease until the end"
            go.set()
            stopping.join(10)
    assert factories.statuses(database, incident.id)[0] == ("PAGE", "DELIVERED")
    assert factories.run(database, "select outcome from attempt_try") == [("delivered",)]


def test_q15_a_claim_of_a_process_that_has_signed_off_is_taken_back(
    database: Database, hands: Hands, clock: MovedClock
) -> None:
    [made] = rows(database, 1)
    with database.read() as tx:
        tx.run("engine_ticked", owner="one", now=tx.now)
    taking = hands.call(claim, "one", before="commit").stopped()
    with database.read() as tx:
        tx.run("engine_stopped", owner="one", now=tx.now)
    assert [row.id for row in taking.done()] == [made]
    clock.pass_(seconds=21)
    assert reap(database) == 1


def test_q16_a_reap_takes_only_rows_it_changes_and_passes_by_what_is_held(database: Database, hands: Hands) -> None:
    factories.run(database, LOST, bare_incident(database), 1002)
    oldest = "select id from notification_attempt order by lease_until limit 500 for no key update"
    holder = hands.call(lambda tx: tx.conn.execute(oldest), before="commit").stopped()
    assert [reap(database) for _ in range(3)] == [500, 2, 0]
    holder.done()
    assert [reap(database) for _ in range(2)] == [500, 0]


def test_q17_a_process_without_the_transport_of_a_page_leaves_it_to_others(
    database: Database, clock: MovedClock
) -> None:
    opened(database, people=2)
    take(database, 1)
    clock.pass_(seconds=30)
    engine = make_engine(database.url, transports={})
    for _ in range(2):
        one_round(database, engine)
    found = factories.run(database, "select status, tries from notification_attempt where kind = 'PAGE' order by id")
    assert found == [("PENDING", 1), ("PENDING", 0)]


def test_q50_a_page_that_waits_for_its_next_try_keeps_no_other_waiting(database: Database) -> None:
    incident_id, later = bare_incident(database), factories.now(database) + timedelta(hours=1)
    shared = {"incident_id": incident_id, "bundle": "method:1", "pace_seconds": 10}
    rows(database, 20, due_at=later, tries=1, **shared)
    [ready] = rows(database, 1, step=2, **shared)
    assert ids(take(database, 1)) == [ready]
