"""Each guard of the queue is needed: with it a scene goes well, with it taken out of the SQL the same scene reports
what breaks. A guard whose scene goes well without it is one that no test would miss."""

from collections.abc import Callable

import pytest

from escalade import attempts, climbing, db, incidents
from escalade.db import Database, Tx
from tests import factories
from tests.clock import MovedClock
from tests.interleavings.hands import Hands, Stepped, claim, settle
from tests.interleavings.invariants import check
from tests.interleavings.scenes import all_failed, attempt, opened
from tests.receiver import wait_for

Scene = Callable[[Database, Hands, MovedClock], list[str]]
ALICE = "alice@example.com"


def two_claims(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """While one claim has not committed, another takes the rows that are left."""
    opened(database, people=4)
    first = hands.call(claim, "one", 2, before="commit").stopped()
    second = hands.call(claim, "two", 2)
    waited = outcome_or_wait(second)
    first.done()
    taken = second.done()
    return ["a claim waited for another claim"] * waited + ["due pages were left behind"] * (len(taken) != 2)


def outcome_or_wait(verb: Stepped) -> bool:
    """Whether the verb came to wait for somebody, rather than to its end."""
    wait_for(lambda: verb.waits() or not verb.thread.is_alive(), what="end, or wait for a lock")
    return verb.thread.is_alive()


def replay_and_acknowledge(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """A replay has looked at the incident, and then somebody acknowledges it."""
    incident = opened(database)
    failed = all_failed(database, incident)
    replay = hands.call(attempts.replay, incident.id, failed, ALICE, before="replay_attempts").stopped()
    ack = hands.call(incidents.acknowledge, incident.id, ALICE)
    outcome_or_wait(ack)
    replay.done()
    ack.done()
    return check(database.url)


def stale_settle(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """A result comes back after its lease ran out and the same process has claimed the row again."""
    opened(database, people=1)
    with database.read() as tx:
        stale = claim(tx)
    clock.pass_(seconds=30)
    with database.read() as tx:
        attempts.reap(tx)
        [fresh] = claim(tx)
        settle(tx, stale, "RETRY")
    return ["a stale result changed a row in flight"] * (attempt(database, fresh.id)["status"] != "IN_FLIGHT")


def acknowledged(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """Somebody acknowledges while one page is in flight and another waits."""
    incident = opened(database, people=2)
    with database.read() as tx:
        claim(tx, n=1)
    with database.begin() as tx:
        incidents.acknowledge(tx, incident.id, ALICE)
    return check(database.url)


def lock_order(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """Somebody holds the first page of an acknowledgement, whose plan meets that page last in the heap."""
    factories.run(database, "vacuum full notification_attempt")
    incident = opened(database, people=2)
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


def retry_and_acknowledge(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """A page that is flagged comes back with an error, or its lease runs out."""
    incident = opened(database, people=2)
    with database.read() as tx:
        rows = claim(tx)
    with database.begin() as tx:
        incidents.acknowledge(tx, incident.id, ALICE)
    clock.pass_(seconds=30)
    with database.read() as tx:
        try:
            settle(tx, rows[:1], "RETRY")
            attempts.reap(tx)
        except db.psycopg.errors.CheckViolation as error:
            return [f"refused by the schema: {error.diag.constraint_name}"]
    return check(database.url)


def step_and_restart(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """A late step is seen, its incident begins a new round, and then the engine holds it."""
    incident = opened(database, wait=300)
    clock.pass_(seconds=302)
    holding = hands.call(incidents.lock, incident.id, before="commit").stopped()
    step = hands.start(climbing.escalate_due, before="lock_incident").stopped()
    holding.done()
    with database.begin() as tx:
        incidents.acknowledge(tx, incident.id, ALICE)
        incidents.unacknowledge(tx, incident.id, ALICE)
    step.done()
    raised = "step_failed" in factories.events(database, incident.id)
    return ["a step that was cancelled was taken again, and raised"] * raised + check(database.url)


def last_two_fail(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """The last two pages of a step fail in two settles that do not see each other."""
    incident = opened(database, people=2)
    with database.read() as tx:
        one, other = claim(tx)
    first = hands.call(settle, [one], "FAILED", before="commit").stopped()
    second = hands.call(settle, [other], "FAILED", before="commit").stopped()
    first.done()
    climbing.escalate_early(database.begin)
    second.done()
    hurried = climbing.escalate_early(database.begin)
    return [f"nobody made the next step of incident {incident.id} due"] * (hurried == 0)


# What is taken out of which query, the scene that misses it, and a word of what the scene then reports.
MUTANTS: dict[str, tuple[Scene, str, str, str, str]] = {
    "claim without SKIP LOCKED": (two_claims, "claim", " skip locked", "", "waited for another claim"),
    "no lock on the incident": (replay_and_acknowledge, "lock_incident", " for no key update", "", "not TRIGGERED"),
    "settle without the claim's number": (stale_settle, "settle", "t.claim_seq = o.seq and ", "", "stale result"),
    "acknowledge cancels nothing": (
        acknowledged,
        "stop_attempts",
        "status in ('PENDING', 'IN_FLIGHT')",
        "status = 'IN_FLIGHT'",
        "not TRIGGERED",
    ),
    "acknowledge flags nothing": (
        acknowledged,
        "stop_attempts",
        "status in ('PENDING', 'IN_FLIGHT')",
        "status = 'PENDING'",
        "not flagged",
    ),
    "acknowledge locks in no order": (lock_order, "lock_live_attempts", "for no key update", "", "locked before"),
    "settle tries a flagged page again": (
        retry_and_acknowledge,
        "settle",
        "t.cancel_requested or o.outcome",
        "o.outcome",
        "not TRIGGERED",
    ),
    "reap tries a flagged page again": (
        retry_and_acknowledge,
        "reap",
        "when cancel_requested then 'CANCELLED' ",
        "",
        "refused by the schema",
    ),
    "the step does not look again": (step_and_restart, "due_step_of", "a.status = 'PENDING' and ", "", "raised"),
    "settle marks nothing": (
        last_two_fail,
        "settle",
        "recheck = l.kind = 'PAGE' and l.next = 'FAILED'",
        "recheck = false",
        "nobody made the next step",
    ),
}


@pytest.mark.parametrize("scene", dict.fromkeys(mutant[0] for mutant in MUTANTS.values()), ids=lambda s: s.__name__)
def test_every_scene_goes_well_as_the_queries_are(
    database: Database, hands: Hands, clock: MovedClock, scene: Scene
) -> None:
    assert scene(database, hands, clock) == []


@pytest.mark.parametrize("name", MUTANTS)
def test_the_scene_reports_what_breaks_without_the_guard(
    database: Database, hands: Hands, clock: MovedClock, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    scene, query, guard, instead, word = MUTANTS[name]
    real = clock.queries
    assert guard in real()[query], "the guard is no longer where this test takes it out"
    monkeypatch.setattr(db, "queries", lambda: {**real(), query: real()[query].replace(guard, instead)})
    found = scene(database, hands, clock)
    print(f"{name}: {found}")
    assert any(word in line for line in found), found
