"""Random verbs from many connections, then a drain: nothing is lost, nothing is stuck, no invariant breaks.

INTERLEAVINGS_SECONDS says for how long (8 unless given), INTERLEAVINGS_SEED with which dice.
"""

import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from escalade import attempts, climbing, fanout, ladder
from escalade.db import Database, connect
from escalade.ladder import Target
from tests import factories
from tests.clock import MovedClock
from tests.interleavings.hammer import Hammer, StepRaises, Worker, late_pages, twice
from tests.interleavings.invariants import LOG_RULES, violations, watched

SECONDS = float(os.environ.get("INTERLEAVINGS_SECONDS", "8"))


def scene(database: Database) -> tuple[int, list[Target]]:
    """Three people, one of them by two rules, one with a pace; three steps, twice; every deadline there is."""
    people = [factories.user(database, name) for name in ("alice", "bob", "charlie")]
    methods = [factories.contact(database, person, f"http://127.0.0.1:9/{person}", updates=True) for person in people]
    paced = factories.contact(database, people[0], "http://127.0.0.1:9/second", number=2, pace_seconds=1, updates=True)
    factories.rule(database, people[0], methods[0])
    factories.rule(database, people[0], paced, after=1)
    steps = [(1, [("user", people[2])]), (1, [("user", people[0]), ("user", people[1])]), (1, [("user", people[1])])]
    policy = factories.policy(database, *steps, repeat=1)
    service = factories.service(database, policy, ack_timeout_seconds=1, auto_resolve_seconds=4)
    factories.fallback(database, "user", people[1], "bob@example.com")
    names = ["alice", "bob", "charlie"]
    return service, [Target("user", person, f"{name}@example.com") for person, name in zip(people, names, strict=True)]


@contextmanager
def some_steps_raise(rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One look-up of people in thirty raises."""
    real = fanout.reach

    def reach(*args):
        if rng.random() < 0.03:
            raise StepRaises("nobody knows who this is")
        return real(*args)

    with monkeypatch.context() as patch:
        patch.setattr(fanout, "reach", reach)
        yield


def drain(hammer: Hammer, clock: MovedClock) -> None:
    """Every send works and time flies, until nothing waits any more."""
    hammer.draining.set()
    worker = Worker(hammer, random.Random(1))
    end = time.monotonic() + 30
    while True:
        tx = worker.session().single()
        due = attempts.whats_due(tx)
        attempts.reap(tx)
        climbing.escalate_early(worker.begin)
        climbing.escalate_due(worker.begin)
        climbing.wake_due(worker.begin)
        for lane in ("high", "low"):
            rows = attempts.claim(worker.session().single(), lane, worker.owner, 20, 50, _everything())
            hammer.record.claims += [(row.id, row.claim_seq) for row in rows]
            worker.send(rows, time.monotonic())
        worker.air = [(0.0, outcome) for _, outcome in worker.air]
        worker.settle()
        if not due.anything and due.next_at is None and not worker.air:
            break
        assert time.monotonic() < end, f"the queue does not drain: {due}"
        if not due.anything:
            clock.pass_(seconds=1)
    worker.close()


def _everything() -> attempts.Room:
    return attempts.Room((), (), {}, 1000)


def test_the_hammer_breaks_no_invariant_and_the_queue_drains(
    database: Database, clock: MovedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed = int(os.environ.get("INTERLEAVINGS_SEED", str(random.randrange(10_000))))
    service, targets = scene(database)
    hammer = Hammer(database.url, service, targets, seed)
    monkeypatch.setattr(climbing, "PUT_OFF_SECONDS", 0.2)
    wait_after = ladder.wait_after
    monkeypatch.setattr(ladder, "wait_after", lambda *args: wait_after(*args) / 5)
    with watched(database.url):
        with some_steps_raise(random.Random(seed), monkeypatch):
            hammer.run(SECONDS)
        record = hammer.record
        print(f"seed {seed}: {dict(record.verbs)}")
        assert not record.faults, f"seed {seed}: {record.faults[:5]}"
        drain(hammer, clock)
        with connect(database.url) as conn:
            assert violations(conn) == []
            assert violations(conn, LOG_RULES) == []
        assert late_pages(record, database.url) == []
    nothing_was_lost(database, hammer)
    assert hammer.missing() == []


def nothing_was_lost(database: Database, hammer: Hammer) -> None:
    """Every alert is on an incident, every row has ended, every success that was recorded stands."""
    record = hammer.record
    open_rows = "select id, kind, status from notification_attempt where status in ('PENDING', 'IN_FLIGHT')"
    assert factories.run(database, open_rows) == []
    assert factories.run(database, "select id, status from incident where wake_at is not null") == []
    [[counted]] = factories.run(database, "select sum(count) from incident")
    assert len(record.accepted) <= counted <= len(record.accepted) + record.unknown_alerts
    known = {row[0] for row in factories.run(database, "select id from incident")}
    assert set(record.accepted) <= known
    delivered = {
        row[0] for row in factories.run(database, "select id from notification_attempt where status = 'DELIVERED'")
    }
    replayed = {row[0] for row in factories.run(database, "select id from notification_attempt where replays > 0")}
    assert set(record.recorded) - replayed <= delivered
    assert twice(record.claims) == []
    assert twice([(start.id, start.seq) for start in record.starts]) == []
    keys = dict(record.messages)
    assert all(keys[members] == key for members, key in record.messages)
    assert len(set(keys.values())) == len(keys)
