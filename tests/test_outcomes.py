"""The queue on one connection: what a settle makes of each outcome, reap, replay, the idle poll and the archive."""

from datetime import timedelta
from typing import Any

import pytest

from escalade import attempts, incidents
from escalade.db import Database
from escalade.errors import Conflict, NotFound
from tests import factories
from tests.clock import MovedClock
from tests.interleavings.hands import claim, outcomes, settle
from tests.interleavings.scenes import all_failed, attempt, crowd, opened, status
from tests.rows import bare_incident, rows, take

ALICE = "alice@example.com"


@pytest.mark.parametrize(
    ("outcome", "tries", "became", "left"),
    [
        ("DELIVERED", 1, "DELIVERED", 1),
        ("RETRY", 1, "PENDING", 1),
        ("RETRY", 3, "FAILED", 3),
        ("UNKNOWN", 1, "PENDING", 1),
        ("UNKNOWN", 3, "FAILED", 3),
        ("LIMITED", 1, "PENDING", 0),
        ("LIMITED", 3, "PENDING", 2),
        ("FAILED", 1, "FAILED", 1),
        ("CANCELLED", 1, "CANCELLED", 1),
        ("RELEASE", 1, "PENDING", 0),
        ("RELEASE", 3, "PENDING", 2),
    ],
)
def test_what_a_settle_makes_of_an_outcome(
    database: Database, outcome: str, tries: int, became: str, left: int
) -> None:
    [made] = rows(database, 1, tries=tries - 1)
    with database.read() as tx:
        taken = claim(tx)
        [settled] = settle(tx, taken, outcome)
    found = attempt(database, made)
    assert (settled.was, settled.status, settled.lost) == ("IN_FLIGHT", became, False)
    assert (found["status"], found["tries"]) == (became, left)
    assert found["recheck"] == (became == "FAILED")
    assert (found["delivered_at"] is not None) == (became == "DELIVERED")


@pytest.mark.parametrize(("outcome", "word"), [("RETRY", "cancelled"), ("UNKNOWN", "unknown"), ("RELEASE", None)])
def test_a_flagged_page_that_did_not_arrive_is_cancelled(database: Database, outcome: str, word: str | None) -> None:
    incident = opened(database, people=1)
    with database.read() as tx:
        taken = claim(tx)
    with database.begin() as tx:
        incidents.acknowledge(tx, incident.id, ALICE)
    with database.read() as tx:
        assert settle(tx, taken, outcome)[0].status == "CANCELLED"
    assert factories.run(database, "select outcome from attempt_try") == ([(word,)] if word else [])


def test_a_limited_send_is_given_up_after_a_day(database: Database, clock: MovedClock) -> None:
    [made] = rows(database, 1)
    clock.pass_(hours=23)
    with database.read() as tx:
        assert settle(tx, claim(tx), "LIMITED")[0].status == "PENDING"
    clock.pass_(hours=2)
    with database.read() as tx:
        assert settle(tx, claim(tx), "LIMITED")[0].status == "FAILED"
    assert status(database, made) == "FAILED"


def test_a_retry_is_due_after_its_delay(database: Database, clock: MovedClock) -> None:
    rows(database, 1)
    with database.read() as tx:
        attempts.settle(tx, "one", outcomes(claim(tx), "RETRY", delay=30))
        assert claim(tx) == []
    clock.pass_(seconds=31)
    assert len(take(database)) == 1


def test_every_try_is_recorded_and_a_release_is_none(database: Database, clock: MovedClock) -> None:
    [made] = rows(database, 1)
    for outcome in ("RELEASE", "UNKNOWN", "RETRY", "DELIVERED"):
        with database.read() as tx:
            settle(tx, claim(tx), outcome)
    found = factories.run(database, "select attempt_id, try, outcome from attempt_try order by claim_seq")
    assert found == [(made, 1, "unknown"), (made, 2, "retry"), (made, 3, "delivered")]


def test_a_lease_that_ran_out_for_the_last_time_fails_and_marks(database: Database, clock: MovedClock) -> None:
    [made] = rows(database, 1, tries=2)
    take(database)
    clock.pass_(seconds=21)
    with database.read() as tx:
        assert attempts.reap(tx) == 1
    found = attempt(database, made)
    assert (found["status"], found["recheck"]) == ("FAILED", True)
    assert factories.run(database, "select outcome from attempt_try") == [("unknown",)]


def test_a_lease_that_runs_is_left_alone(database: Database, clock: MovedClock) -> None:
    rows(database, 1)
    take(database)
    clock.pass_(seconds=19)
    with database.read() as tx:
        assert attempts.reap(tx) == 0


def test_a_replay_sends_again_under_a_new_key_with_new_tries(database: Database) -> None:
    incident = opened(database)
    failed = all_failed(database, incident)
    before = attempt(database, failed[0])
    with database.begin() as tx:
        attempts.replay_one(tx, failed[0], ALICE)
    after = attempt(database, failed[0])
    assert after["status"] == "PENDING" and after["idempotency_key"] != before["idempotency_key"]
    assert after["max_tries"] == before["tries"] + 8 and after["replays"] == 1
    assert after["lease_owner"] is None and not after["recheck"]
    assert status(database, failed[1]) == "FAILED"
    assert factories.events(database, incident.id)[-1] == "replayed"


def test_a_replay_of_a_snoozed_incident_is_refused(database: Database) -> None:
    incident = opened(database)
    failed = all_failed(database, incident)
    with database.begin() as tx:
        incidents.snooze(tx, incident.id, 600, ALICE)
    with pytest.raises(Conflict, match="snoozed"), database.begin() as tx:
        attempts.replay(tx, incident.id, failed, ALICE)
    assert status(database, failed[0]) == "FAILED"


def test_only_what_failed_can_be_replayed(database: Database) -> None:
    incident = opened(database)
    [page, *_] = [row[0] for row in factories.run(database, "select id from notification_attempt order by id")]
    step = factories.run(database, "select id from notification_attempt where kind = 'STEP'")[0][0]
    with database.begin() as tx:
        with pytest.raises(Conflict, match="has not failed"):
            attempts.replay_one(tx, page, ALICE)
        with pytest.raises(Conflict, match="no page"):
            attempts.replay_one(tx, step, ALICE)
        with pytest.raises(NotFound):
            attempts.replay_one(tx, step + 1000, ALICE)
        assert attempts.replay(tx, incident.id, [page], ALICE) == []


def test_what_failed_is_found_by_incident_and_by_transport(database: Database) -> None:
    service = crowd(database, people=2)
    one, other = (factories.open_incident(database, service) for _ in range(2))
    failed = all_failed(database, one)
    with database.read() as tx:
        assert {key: sorted(value) for key, value in attempts.failed_by_incident(tx).items()} == {
            one.id: failed[:2],
            other.id: failed[2:],
        }
        assert attempts.failed_by_incident(tx, transport="email") == {}
        assert attempts.failed_by_incident(tx, ids=failed[:1]) == {one.id: failed[:1]}


def test_the_idle_poll_says_what_is_due_and_when_the_next_thing_comes(database: Database, clock: MovedClock) -> None:
    with database.read() as tx:
        idle = attempts.whats_due(tx)
    assert not idle.anything and idle.next_at is None
    now = factories.now(database)
    rows(database, 1, lane="low", due_at=now + timedelta(seconds=50))
    rows(database, 1, due_at=now + timedelta(seconds=100))
    with database.read() as tx:
        waiting = attempts.whats_due(tx)
    assert not waiting.anything and waiting.next_at == now + timedelta(seconds=50)
    clock.pass_(seconds=60)
    with database.read() as tx:
        due = attempts.whats_due(tx)
    assert (due.high, due.low, due.next_at) == (False, True, now + timedelta(seconds=100))


@pytest.mark.parametrize("what", ["high", "low", "step", "lease", "recheck", "wake", "beat"])
def test_the_idle_poll_names_each_thing_that_is_due(database: Database, clock: MovedClock, what: str) -> None:
    _make_due(database, what)
    clock.pass_(seconds=60)
    with database.read() as tx:
        due = attempts.whats_due(tx)
    assert [name for name in ("high", "low", "step", "lease", "recheck", "wake", "beat") if getattr(due, name)] == [
        what
    ]


def _make_due(database: Database, what: str) -> None:
    now = factories.now(database)
    lease = {"status": "IN_FLIGHT", "lease_until": now}
    mark = {"status": "FAILED", "finished_at": now, "recheck": True}
    columns: dict[str, dict[str, Any]] = {
        "high": {},
        "low": {"lane": "low"},
        "step": {"kind": "STEP"},
        "lease": lease,
        "recheck": mark,
    }
    if what in columns:
        rows(database, 1, **columns[what])
    elif what == "wake":
        factories.run(database, "update incident set snoozed_until = %s where id = %s", now, bare_incident(database))
    else:
        service = factories.service(database, factories.policy(database))
        factories.insert(
            database,
            "heartbeat",
            service_id=service,
            name="nightly",
            interval_seconds=60,
            grace_seconds=0,
            key_hash="x",
            key_prefix="x",
            late_at=now,
        )


def test_what_is_finished_leaves_with_its_resolved_incident_and_what_failed_stays(
    database: Database, clock: MovedClock
) -> None:
    incident = opened(database, people=2)
    with database.read() as tx:
        one, other = claim(tx)
        attempts.settle(tx, "one", [*outcomes([one], "DELIVERED"), *outcomes([other], "FAILED")])
    clock.pass_(days=8)
    with database.begin() as tx:
        assert attempts.archive(tx, 7) == 0
        incidents.resolve(tx, incident.id, ALICE)
    clock.pass_(days=8)
    with database.read() as tx:
        assert attempts.archive(tx, 7, n=1) == 1
        assert attempts.archive(tx, 7) == 1
    left = factories.run(database, "select id from notification_attempt where kind = 'PAGE'")
    gone = factories.run(database, "select id from notification_attempt_archive order by id")
    assert left == [(other.id,)] and gone[0] == (one.id,) and len(gone) == 2


@pytest.mark.parametrize(("waited", "said"), [(30, []), (90, [90])])
def test_a_page_that_went_out_late_says_so_in_the_timeline(
    database: Database, clock: MovedClock, waited: int, said: list[int]
) -> None:
    incident = opened(database, people=1)
    clock.pass_(seconds=waited)
    with database.read() as tx:
        settle(tx, claim(tx), "DELIVERED")
    late = factories.run(
        database, "select data -> 'seconds' from incident_event where incident_id = %s and event = 'late'", incident.id
    )
    assert [round(seconds) for (seconds,) in late] == said
