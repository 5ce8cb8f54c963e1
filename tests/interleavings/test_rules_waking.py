"""The rules 23 and 24 of the queue, and what SKIP LOCKED is for."""

from datetime import timedelta
from typing import Any

import pytest

from escalade import attempts, climbing, db, engine
from escalade.db import Database
from escalade.senders import Senders
from tests import factories
from tests.clock import MovedClock
from tests.engines import make_engine
from tests.interleavings.hands import Hands, claim
from tests.interleavings.scenes import all_failed, opened
from tests.interleavings.test_rules_stopping import ended_or_waiting
from tests.interleavings.wrong import Code, Play, Query
from tests.rows import rows

FUTURE = """insert into notification_attempt (incident_id, kind, event, status, lane, round, step, recipient, transport,
        destination, pace_seconds, due_at, first_due_at, tries, max_tries, replays, claim_seq, cancel_requested,
        recheck, idempotency_key, summary)
    select 1, 'PAGE', 'triggered', 'PENDING', 'high', 1, n, 'rule:1', 'log', 'log', 0,
        clock_timestamp() + interval '1 hour', clock_timestamp(), 0, 8, 0, 0, false, false, n::text, ''
    from generate_series(1, 5000) n"""
HIGH = """(select min(due_at) from notification_attempt
            where status = 'PENDING' and kind <> 'STEP' and lane = 'high' and due_at > %(now)s)"""


def many_future_rows(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """The idle poll on a queue in which 5,000 pages wait for their time."""
    factories.run(database, FUTURE)
    with database.connection() as conn:
        conn.execute("analyze notification_attempt")
        asked = "explain (analyze, format json) " + db.queries()["whats_due"]
        row = conn.execute(asked, {"now": factories.now(database)}).fetchone()
    assert row is not None
    read = rows_read(row[0][0]["Plan"])
    return [f"the idle poll read {read} rows"] * (read > 50)


def rows_read(plan: dict[str, Any]) -> int:
    """How many rows the scans of a plan handed on or threw away."""
    own = 0
    if "Scan" in plan["Node Type"]:
        own = int((plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)) * plan["Actual Loops"])
    return own + sum(rows_read(child) for child in plan.get("Plans", []))


def test_rule_23_the_idle_poll_looks_once_for_each_kind(play: Play) -> None:
    over_all = "(select min(due_at) from notification_attempt where status = 'PENDING' and due_at > %(now)s)"
    play(many_future_rows, Query("whats_due", HIGH, over_all), reports="the idle poll read 5")


def held_row(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """A page is due and cannot be taken; the next one is due in an hour."""
    now = factories.now(database)
    rows(database, 2, due_at=lambda n: now + timedelta(hours=n))
    with database.read() as tx:
        due = attempts.whats_due(tx)
        found = ["the engine would wake for what it cannot take"] * (due.next_at is None or due.next_at <= tx.now)
        sleep = make_engine(database.url).sleep_for(tx.now, due)
    return found + [f"it sleeps for {sleep:.3f} s"] * (sleep < engine.BUSY_SLEEP)


@pytest.mark.parametrize(
    "wrong, reports",
    [
        (Query("whats_due", HIGH, HIGH.replace(" and due_at > %(now)s", "")), "wake for what it cannot take"),
        (Code(engine.Engine, "sleep_for", "self._while_stuck(now, due)", "0.0"), "it sleeps for 0.001"),
    ],
    ids=["wakes in the past", "does not sleep"],
)
def test_rule_23_what_cannot_be_taken_does_not_keep_the_engine_awake(play: Play, wrong, reports: str) -> None:
    play(held_row, wrong, reports=reports)


def sender_back(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """All senders are busy, and then one comes back."""
    opened(database, people=1)
    made = make_engine(database.url, transports={"webhook": _Quick()})
    made.senders.start()
    session = db.Session(database.url)
    try:
        made.tick(session)
        woken = made.doorbell.event.wait(2)
    finally:
        session.close()
        made.senders.stop()
    return ["nobody woke the engine"] * (not woken)


class _Quick:
    def send(self, message, network):
        raise ValueError("whatever comes back")


def test_rule_23_a_sender_that_comes_free_wakes_the_engine(play: Play, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL", "escalade.senders")
    play(sender_back, Code(Senders, "_run", "self.wake()", "pass"), reports="nobody woke")


def archived_success(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """One page of a step was delivered long ago, the other fails today; the incident is still open."""
    incident = opened(database)
    with database.read() as tx:
        [one] = claim(tx, n=1)
        attempts.settle(tx, "one", [attempts.Outcome(one.id, one.claim_seq, "DELIVERED", tx.now, tx.now)])
    clock.pass_(days=8)
    factories.run(database, "update notification_attempt set due_at = %s where kind = 'STEP'", _later(database))
    with database.begin() as tx:
        attempts.archive(tx, 7)
    all_failed(database, incident)
    hurried = climbing.escalate_early(database.begin)
    return ["an archived success was forgotten"] * (hurried > 0)


def _later(database: Database) -> Any:
    return factories.now(database) + timedelta(hours=1)


def test_rule_24_only_attempts_of_resolved_incidents_leave_the_hot_table(play: Play) -> None:
    guard = "and i.status = 'RESOLVED' and i.resolved_at < %(before)s"
    play(archived_success, Query("archive_attempts", guard), reports="forgotten")


def two_claims(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """While one claim has not committed, another takes the rows that are left."""
    opened(database, people=4)
    first = hands.call(claim, "one", 2, before="commit").stopped()
    second = hands.call(claim, "two", 2)
    ended_or_waiting(second)
    waited = second.thread.is_alive()
    first.done()
    taken = second.done()
    return ["a claim waited for another claim"] * waited + ["due pages were left behind"] * (len(taken) != 2)


def test_a_claim_passes_by_what_another_claim_holds(play: Play) -> None:
    play(two_claims, Query("claim", " skip locked"), reports="waited for another claim")
