"""The rules 1 to 6 of the queue: how an acknowledgement stops what is under way, and what each lock is for."""

import re
from contextlib import contextmanager

import pytest
from psycopg import sql

from escalade import attempts, climbing, db, incidents
from escalade.db import Database, Tx
from tests import factories
from tests.clock import MovedClock
from tests.interleavings.hands import Hands, Stepped, claim, settle
from tests.interleavings.invariants import check
from tests.interleavings.scenes import opened
from tests.interleavings.wrong import Code, Play, Query, Whole
from tests.receiver import wait_for

ALICE = "alice@example.com"
LIVE = "incident_id = %(incident_id)s and kind in ('PAGE', 'STEP')"
# An acknowledgement that locks and stops in the statement of its own change, and one that stops in two updates.
AT_ONCE = (
    Query("lock_incident", " for no key update"),
    Query(
        "acknowledge",
        "update incident\n",
        """with held as materialized (
            select id from incident where id = %(id)s and status = 'TRIGGERED' for no key update
        ), stopped as (
            update notification_attempt a
            set status = case status when 'PENDING' then 'CANCELLED' else status end,
                finished_at = case status when 'PENDING' then %(now)s::timestamptz end,
                cancel_requested = status = 'IN_FLIGHT'
            from held
            where a.incident_id = held.id and a.kind in ('PAGE', 'STEP') and a.status in ('PENDING', 'IN_FLIGHT')
        )
        update incident\n""",
    ),
    Query("lock_live_attempts", "where ", "where false and "),
    Query("stop_attempts", "where ", "where false and "),
)
CANCEL = f"""update notification_attempt set status = 'CANCELLED', finished_at = clock_timestamp()
    where {LIVE} and status = 'PENDING' returning id, kind, status"""
FLAG = f"""update notification_attempt set cancel_requested = true
    where {LIVE} and status = 'IN_FLIGHT' returning id, kind, status"""
MIXED = f"""with l as materialized (
        select id, status from notification_attempt
        where {LIVE} and status in ('PENDING', 'IN_FLIGHT') order by id for no key update
    )
    update notification_attempt t
    set status = case l.status when 'PENDING' then 'CANCELLED' else l.status end,
        finished_at = case l.status when 'PENDING' then %(now)s::timestamptz end,
        cancel_requested = t.status = 'IN_FLIGHT'
    from l where t.id = l.id returning t.id, t.kind, t.status"""


def ended_or_waiting(verb: Stepped) -> None:
    """The verb has come to its end, or to a lock of somebody else."""
    wait_for(lambda: verb.waits() or not verb.thread.is_alive(), what="end, or wait for a lock")


def step_beside(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """A step is fanning out when somebody acknowledges."""
    incident = opened(database, wait=300)
    clock.pass_(seconds=300.5)
    step = hands.start(climbing.escalate_due, before="commit").stopped()
    ack = hands.call(incidents.acknowledge, incident.id, ALICE).blocked()
    step.done()
    ack.done()
    return check(database.url)


def settle_beside(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """A page in flight comes back with an error in the middle of an acknowledgement."""
    incident = opened(database)
    with database.read() as tx:
        rows = claim(tx)
    ack = hands.call(incidents.acknowledge, incident.id, ALICE, before="stop_attempts").stopped()
    settling = hands.call(settle, rows, "RETRY")
    ended_or_waiting(settling)
    ack.done()
    settling.done()
    return check(database.url)


def claim_beside(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """A claim takes what is due in the middle of an acknowledgement."""
    incident = opened(database)
    ack = hands.call(incidents.acknowledge, incident.id, ALICE, before="stop_attempts").stopped()
    with database.read() as tx:
        taken = [row.id for row in claim(tx)]
    named = [page.attempt_id for page in ack.done().in_flight]
    return check(database.url) + [f"{taken} are sent, and the answer names {named}"] * (taken != named)


def acknowledged(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """Somebody acknowledges while one page is in flight and another waits."""
    incident = opened(database)
    with database.read() as tx:
        claim(tx, n=1)
    with database.begin() as tx:
        incidents.acknowledge(tx, incident.id, ALICE)
    return check(database.url)


def lock_order(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """Somebody holds the first page of an acknowledgement, whose plan meets that page last in the heap."""
    factories.run(database, "vacuum full notification_attempt")
    incident = opened(database)
    with database.read() as tx:
        [first] = claim(tx, n=1)

    def acknowledge(tx: Tx) -> None:
        tx.conn.execute("set enable_indexscan = off; set enable_bitmapscan = off")
        incidents.acknowledge(tx, incident.id, ALICE)

    holder = hands.call(settle, [first], "DELIVERED", before="commit").stopped()
    ack = hands.call(acknowledge).blocked()
    free = factories.run(database, "select id from notification_attempt where id > %s for update skip locked", first.id)
    holder.done()
    ack.done()
    return ["a later page was locked before an earlier one"] * (len(free) < 2)


@pytest.mark.parametrize(
    "scene, wrong, reports",
    [
        (step_beside, AT_ONCE, "not TRIGGERED"),
        (settle_beside, (Whole("lock_live_attempts", CANCEL), Whole("stop_attempts", FLAG)), "not TRIGGERED"),
        (claim_beside, (Whole("lock_live_attempts", FLAG), Whole("stop_attempts", CANCEL)), "not flagged"),
        (acknowledged, (Query("stop_attempts", "in ('PENDING', 'IN_FLIGHT')", "= 'IN_FLIGHT'"),), "not TRIGGERED"),
        (acknowledged, (Query("stop_attempts", "in ('PENDING', 'IN_FLIGHT')", "= 'PENDING'"),), "not flagged"),
        (lock_order, (Query("lock_live_attempts", "for no key update"),), "locked before"),
    ],
    ids=["at once", "cancels, then flags", "flags, then cancels", "cancels nothing", "flags nothing", "in no order"],
)
def test_rule_01_an_acknowledgement_locks_its_incident_then_its_attempts_then_stops_them(
    play: Play, scene, wrong, reports: str
) -> None:
    play(scene, *wrong, reports=reports)


@contextmanager
def repeatable_read_by_default(database: Database):
    """A database that somebody has set up so."""
    [[name]] = factories.run(database, "select current_database()")
    setting = sql.SQL("alter database {} set default_transaction_isolation = 'repeatable read'")
    reset = sql.SQL("alter database {} reset default_transaction_isolation")
    with database.connection() as conn:
        conn.execute(setting.format(sql.Identifier(name)))
    try:
        yield
    finally:
        with database.connection() as conn:
            conn.execute(reset.format(sql.Identifier(name)))


def settle_alone(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """A result waits for the acknowledgement of its page, on such a database and in no transaction of its own."""
    incident = opened(database)
    with database.read() as tx:
        rows = claim(tx)
    with repeatable_read_by_default(database):
        ack = hands.call(incidents.acknowledge, incident.id, ALICE, before="commit").stopped()
        settling = hands.start(lambda begin: settle(Tx(begin.__self__.conn), rows, "RETRY")).blocked()
        ack.done()
        settling.done()
    return check(database.url)


PINNED = Query("prepare_session", "set_config('default_transaction_isolation', 'read committed', false),")
ATTRIBUTE = Code(
    db, "prepare_session", "Tx(conn)", "conn.isolation_level = psycopg.IsolationLevel.READ_COMMITTED; Tx(conn)"
)


@pytest.mark.parametrize("wrong", [(PINNED,), (PINNED, ATTRIBUTE)], ids=["nothing", "the attribute of psycopg"])
def test_rule_02_every_connection_pins_read_committed(play: Play, wrong) -> None:
    play(settle_alone, *wrong, reports="40001")


KEYS = """alter table incident_event drop constraint if exists by_key;
    alter table incident_event add constraint by_key foreign key (incident_id) references incident not valid"""


def key_to_the_incident(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """With a foreign key from events to incidents, a page comes back in the middle of an acknowledgement."""
    factories.run(database, KEYS)
    try:
        incident = opened(database)
        with database.read() as tx:
            rows = claim(tx)
        ack = hands.call(incidents.acknowledge, incident.id, ALICE, before="lock_live_attempts").stopped()
        settling = hands.call(settle, rows, "RETRY")
        ended_or_waiting(settling)
        ack.done()
        settling.done()
        return check(database.url)
    finally:
        hands.close()
        factories.run(database, "alter table incident_event drop constraint by_key")


def test_rule_03_the_incident_is_locked_no_stronger_than_its_update_does(play: Play) -> None:
    strong = Query("lock_incident", "for no key update", "for update")
    play(key_to_the_incident, strong, reports="40P01")


# Whoever stops, climbs or sends; a row that is deleted is locked for that by other queries.
NOUNS = ["attempts", "incidents", "climbing", "opening", "fanout", "strays"]
LOCK = re.compile(r"\bfor (?:no key update|update|key share|share)\b")


def too_strong(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """Every query of the queue as it is sent, and the locks that it says."""
    sources = [(db.ROOT / "sql" / "queries" / f"{noun}.sql").read_text(encoding="utf-8") for noun in NOUNS]
    names = [name for text in sources for name in re.findall(r"^-- name: (\w+)", text, re.M)]
    locks = {name: set(LOCK.findall(db.queries()[name])) for name in names}
    assert sum(map(bool, locks.values())) >= len(LOCKING)
    return [f"{name} locks {kinds}" for name, kinds in locks.items() if kinds - {"for no key update"}]


LOCKING = ["claim", "settle", "reap", "lock_incident", "lock_live_attempts", "lock_due_step", "replay_attempts"]


@pytest.mark.parametrize("name", LOCKING)
def test_rule_03_no_query_locks_more_strongly_than_an_update(play: Play, name: str) -> None:
    play(too_strong, Query(name, "for no key update", "for update"), reports=f"{name} locks")


def test_rule_03_neither_attempts_nor_events_refer_to_their_incident_by_a_key(database: Database) -> None:
    keys = """select conrelid::regclass::text from pg_constraint
        where contype = 'f' and confrelid = 'incident'::regclass"""
    assert not {"notification_attempt", "incident_event"} & {row[0] for row in factories.run(database, keys)}


def flagged_comes_back(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """A page that is flagged comes back with an error, and the lease of another runs out."""
    incident = opened(database)
    with database.read() as tx:
        rows = claim(tx)
    with database.begin() as tx:
        incidents.acknowledge(tx, incident.id, ALICE)
    clock.pass_(seconds=30)
    with database.read() as tx:
        settle(tx, rows[:1], "RETRY")
        attempts.reap(tx)
    return check(database.url)


@pytest.mark.parametrize(
    "wrong, reports",
    [
        (Query("reap", "when cancel_requested then 'CANCELLED' "), "23514"),
        (Query("settle", "t.cancel_requested or o.outcome", "o.outcome"), "not TRIGGERED"),
    ],
    ids=["reap", "settle"],
)
def test_rule_04_a_flagged_page_never_goes_back_to_the_queue(play: Play, wrong: Query, reports: str) -> None:
    play(flagged_comes_back, wrong, reports=reports)


MANY = """insert into notification_attempt (kind, event, status, lane, round, step, recipient, transport, destination,
        pace_seconds, due_at, first_due_at, tries, max_tries, replays, claim_seq, cancel_requested, recheck,
        idempotency_key, summary, finished_at, lease_owner)
    select 'NOTICE', 'resolved', 'CANCELLED', 'low', 1, 1, 'notice', 'log', 'log', 0, clock_timestamp(),
        clock_timestamp(), 0, 8, 0, 0, false, false, n::text, '', clock_timestamp(), 'one'
    from generate_series(1, 5000) n"""


def results_in_any_order(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """Results in falling order, as the plan of a big table meets them, while somebody holds the second row."""
    opened(database, people=3)
    factories.run(database, MANY)
    with database.read() as tx:
        # Whatever was known of the table before: it is a large one, and most of it had this owner.
        tx.conn.execute("analyze notification_attempt")
        first, second, third = sorted(claim(tx), key=lambda row: row.id)

    def settle_by_nested_loop(tx: Tx) -> None:
        for plan in ("hashjoin", "mergejoin", "seqscan", "bitmapscan"):
            tx.conn.execute(f"set local enable_{plan} = off")
        settle(tx, [third, second, first], "DELIVERED")

    holder = hands.call(settle, [second], "DELIVERED", before="commit").stopped()
    late = hands.call(settle_by_nested_loop).blocked()
    free = "select id from notification_attempt where kind = 'PAGE' for no key update skip locked"
    held = {first.id, second.id, third.id} - {row[0] for row in factories.run(database, free)}
    holder.done()
    late.done()
    return ["a later page was locked before an earlier one"] * (third.id in held)


def test_rule_05_a_settle_locks_in_id_order(play: Play) -> None:
    wrong = (
        Query("settle", "order by t.id\n    for no key update of t"),
        Query("settle", "t.id = any(array(select id from outcome)) and "),
    )
    play(results_in_any_order, *wrong, reports="locked before")


def claim_before(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """A claim commits while an acknowledgement waits for its rows."""
    incident = opened(database)
    taking = hands.call(claim, "one", 1, before="commit").stopped()
    ack = hands.call(incidents.acknowledge, incident.id, ALICE).blocked()
    taken = [row.id for row in taking.done()]
    named = [page.attempt_id for page in ack.done().in_flight]
    return check(database.url) + [f"{taken} are sent, and the answer names {named}"] * (taken != named)


def test_rule_06_what_a_check_ties_together_comes_from_one_version_of_the_row(play: Play) -> None:
    play(
        claim_before,
        Query("lock_live_attempts", "where ", "where false and "),
        Whole("stop_attempts", MIXED),
        reports="23514",
    )
