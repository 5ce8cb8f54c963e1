"""The queue at a glance: counts, the hour in slots, transports, and the last test."""

from datetime import timedelta

import pytest

from escalade import attempts, pulse
from escalade.db import Database
from escalade.pulse import Pulse
from tests import factories

MANY = """insert into notification_attempt (incident_id, kind, event, status, lane, round, step, recipient, transport,
    destination, pace_seconds, due_at, first_due_at, tries, max_tries, replays, claim_seq, cancel_requested, recheck,
    idempotency_key, summary, delivered_at, finished_at)
select nullif(%s, 0), 'NOTICE', %s, %s, 'low', n, 1, 'n' || n, %s, 'h', 0, at, at, 1, 8, 0, 1, false, false,
    n::text, '', case when %s = 'DELIVERED' then at end, case when %s <> 'PENDING' then at end
from (select n, now() + make_interval(secs => %s) as at from generate_series(1, %s) n) rows"""


def put(
    db: Database,
    status: str,
    seconds: float,
    n: int = 1,
    transport: str = "webhook",
    event: str = "resolved",
    incident: int = 1,
) -> None:
    """So many attempts that ended, or are due, so many seconds from now."""
    factories.run(db, MANY, incident, event, status, transport, status, status, seconds, n)


def read(db: Database) -> Pulse:
    with db.read() as tx:
        return pulse.read(tx)


def test_an_empty_queue_has_a_flat_hour(database: Database) -> None:
    seen = read(database)
    assert (seen.pending, seen.in_flight, seen.failed_count) == ("0", "0", "0")
    assert seen.due == seen.delivered == seen.failed == [0] * pulse.SLOTS
    assert seen.reached == [] and seen.whole_since is None and seen.last_test is None


def test_each_slot_counts_what_ended_or_is_due_in_its_two_minutes(database: Database) -> None:
    put(database, "DELIVERED", -60, 3)
    put(database, "DELIVERED", -59 * 60, 2)
    put(database, "DELIVERED", -61 * 60, 5)
    put(database, "FAILED", -5 * 60)
    put(database, "CANCELLED", -60)
    put(database, "PENDING", -600, 2)
    put(database, "PENDING", 30 * 60 + 30)
    put(database, "PENDING", 7200)
    seen = read(database)
    assert (seen.delivered[-1], seen.delivered[0], sum(seen.delivered)) == (3, 2, 5)
    assert seen.failed[-3] == 1 == sum(seen.failed)
    assert (seen.due[0], seen.due[15], sum(seen.due)) == (2, 1, 3)
    assert (seen.pending, seen.failed_count) == ("4", "1")


def test_each_transport_says_when_it_last_delivered_and_whether_it_fails(database: Database) -> None:
    put(database, "DELIVERED", -300)
    put(database, "FAILED", -600)
    put(database, "DELIVERED", -300, transport="slack")
    put(database, "FAILED", -30, transport="slack")
    put(database, "FAILED", -30, transport="ntfy")
    put(database, "PENDING", 30, transport="email")
    seen = {one.transport: one for one in read(database).reached}
    assert {name: one.failing for name, one in seen.items()} == {"webhook": False, "slack": True, "ntfy": True}
    now = factories.now(database)
    assert seen["slack"].delivered_at is not None and seen["ntfy"].delivered_at is None
    assert timedelta(seconds=299) < now - seen["slack"].delivered_at < timedelta(seconds=400)


def test_what_is_counted_is_bounded_and_said(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulse, "LOOKED_AT", 10)
    monkeypatch.setattr(pulse, "COUNTED", 10)
    put(database, "FAILED", -120, 8)
    assert read(database).whole_since is None and read(database).failed_count == "8"
    put(database, "FAILED", -240, 8)
    seen = read(database)
    assert seen.whole_since is not None and sum(seen.failed) == 10 and seen.failed_count == "10+"


def test_the_last_test_is_found_also_in_the_archive(database: Database) -> None:
    put(database, "FAILED", -10, event="test", incident=0)
    put(database, "DELIVERED", -10, event="test", incident=1)
    assert read(database).last_test is None
    put(database, "DELIVERED", -3600, event="test", incident=0)
    first = read(database).last_test
    assert first is not None
    with database.begin() as tx:
        assert attempts.archive(tx, 0) == 2
    assert read(database).last_test == first


def test_what_is_due_says_since_when(database: Database) -> None:
    def since() -> float | None:
        with database.read() as tx:
            found = pulse.overdue_since(tx)
            return None if found is None else (tx.now - found).total_seconds()

    put(database, "PENDING", 60)
    assert since() is None
    put(database, "PENDING", -90)
    late = since()
    assert late is not None and 90 <= late < 200
