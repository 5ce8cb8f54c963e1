"""The fault campaign in small, and its checker: each kind of fault in a made-up record is found."""

import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bench.chaos.check import check
from bench.chaos.plan import FULL, SHORT, plan
from bench.chaos.record import Answer, Attempt, Claim, Fault, Record, Request

ROOT = Path(__file__).resolve().parent.parent
LEASE = 7.0


def sound() -> Record:
    """One alert, one page, in good order."""
    return Record(
        accepted={1},
        requests=[Request(7, 1, "key", 4000, 100.1, 100.2)],
        attempts=[Attempt(7, 1, "key", "DELIVERED", 100.0, ("delivered",))],
        claims=[Claim(7, 1, "one", "PENDING")],
    )


def again(key: str = "key") -> Request:
    return Request(7, 1, key, 4001, 108.0, 108.1)


def doubtful() -> Attempt:
    return Attempt(7, 1, "key", "DELIVERED", 100.0, ("unknown", "delivered"))


def test_a_record_in_good_order_has_no_fault() -> None:
    verdict = check(sound(), LEASE)
    assert (verdict.sent, verdict.unknown, verdict.faults) == (1, 0, [])


def test_an_alert_without_a_page_is_lost() -> None:
    record = sound()
    record.accepted.add(2)
    assert check(record, LEASE).lost == ["incident 2 has 0 pages for 1 people"]


def test_an_alert_that_paged_one_of_two_people_is_lost() -> None:
    record = sound()
    record.people = 2
    assert check(record, LEASE).lost == ["incident 1 has 1 pages for 2 people"]


def test_one_fault_after_the_other_excuses_no_long_wait() -> None:
    record = sound()
    record.requests = [Request(7, 1, "key", 4000, 160.0, 160.1)]
    record.faults = [Fault("kill", 100.0 + 8 * number, 107.0 + 8 * number) for number in range(1, 8)]
    assert check(record, LEASE).late == ["attempt 7 came 52.0 s late; tries: delivered"]


def test_a_page_said_to_be_delivered_that_never_came_is_lost() -> None:
    record = sound()
    record.requests.clear()
    assert check(record, LEASE).lost == ["attempt 7 is said to be delivered, and never arrived"]


@pytest.mark.parametrize("status", ["PENDING", "IN_FLIGHT", "FAILED"])
def test_a_page_that_came_to_no_good_end_is_lost(status: str) -> None:
    record = sound()
    record.attempts = [replace(record.attempts[0], status=status)]
    assert check(record, LEASE).lost == [f"attempt 7 is {status} at the end"]


def test_a_page_cancelled_for_no_reason_is_lost() -> None:
    record = sound()
    record.attempts = [replace(record.attempts[0], status="CANCELLED")]
    assert check(record, LEASE).lost == ["attempt 7 was cancelled, and nobody had stopped it"]
    record.answers = [Answer(1, 100.3, frozenset())]
    assert check(record, LEASE).faults == []


def test_a_claim_of_what_is_in_flight_is_a_double_one() -> None:
    record = sound()
    record.claims.append(Claim(7, 2, "two", "IN_FLIGHT"))
    assert check(record, LEASE).double_claims == ["attempt 7 was claimed by two while it was in flight"]


def test_a_number_claimed_twice_is_a_double_one() -> None:
    record = sound()
    record.claims.append(Claim(7, 1, "two", "PENDING"))
    assert check(record, LEASE).double_claims == ["claim 1 of attempt 7 was made 2 times"]


def test_a_second_arrival_is_only_right_where_something_broke_and_the_first_was_in_doubt() -> None:
    record = sound()
    record.requests.append(again())
    record.attempts = [doubtful()]
    assert "nothing had broken" in check(record, LEASE).known[0]
    record.faults = [Fault("kill", 100.15, 101.0)]
    verdict = check(record, LEASE)
    assert (verdict.unknown, verdict.faults) == (1, [])
    record.attempts = [replace(doubtful(), tries=("delivered",))]
    assert "in doubt" in check(record, LEASE).known[0]


def test_a_second_arrival_under_another_key_is_never_right() -> None:
    record = sound()
    record.requests.append(again("other"))
    record.attempts = [doubtful()]
    record.faults = [Fault("kill", 100.15, 101.0)]
    assert "under two keys" in check(record, LEASE).known[0]


def test_a_fault_that_ended_before_the_first_arrival_excuses_nothing() -> None:
    record = sound()
    record.requests.append(again())
    record.attempts = [doubtful()]
    record.faults = [Fault("kill", 99.0, 100.0)]
    assert "nothing had broken" in check(record, LEASE).known[0]


def test_a_page_is_late_after_its_lease_and_two_seconds_but_for_the_time_nobody_reached_the_database() -> None:
    record = sound()
    record.requests = [Request(7, 1, "key", 4000, 112.0, 112.1)]
    assert "came 12.0 s late" in check(record, LEASE).late[0]
    record.faults = [Fault("kill", 100.0, 111.0)]
    assert check(record, LEASE).late
    record.faults = [Fault("kill", 102.9, 111.0)]
    assert "came 9.1 s late" in check(record, LEASE).late[0]
    record.faults = [Fault("kill", 103.1, 111.0)]
    assert check(record, LEASE).late == []
    record.faults = [Fault("kill", 109.5, 111.0)]
    assert check(record, LEASE).late
    record.faults = [Fault("restart", 101.0, 115.0, 105.0), Fault("cut", 104.0, 115.0, 106.0)]
    assert check(record, LEASE).late == []


def test_a_fault_after_the_page_was_recorded_excuses_no_second_one() -> None:
    record = sound()
    record.requests.append(again())
    record.attempts = [doubtful()]
    record.faults = [Fault("kill", 104.0, 107.0)]
    assert "nothing had broken" in check(record, LEASE).known[0]


def test_a_page_in_doubt_is_late_where_it_is_not_sent_again_within_its_lease_and_two_seconds() -> None:
    record = sound()
    record.requests.append(Request(7, 1, "key", 4001, 111.0, 111.1))
    record.attempts = [doubtful()]
    record.faults = [Fault("kill_in_send", 100.15, 112.0)]
    assert check(record, LEASE).late == ["attempt 7 was sent again only after 10.8 s"]
    record.faults.append(Fault("restart", 102.0, 112.0, 106.0))
    assert check(record, LEASE).late == []


def test_a_page_after_the_acknowledgement_is_only_right_where_the_answer_named_it() -> None:
    record = sound()
    record.answers = [Answer(1, 100.0, frozenset())]
    assert check(record, LEASE).after_acknowledge
    record.answers = [Answer(1, 100.0, frozenset({7}))]
    assert check(record, LEASE).faults == []


def test_a_seed_stands_for_a_plan() -> None:
    one, same, other = (plan(FULL, random.Random(seed)) for seed in (3, 3, 4))
    assert one == same != other
    assert one.count("kill_in_send") * 2 >= FULL.kills >= 20 and "failover" in one


def test_in_a_short_campaign_nothing_is_lost_claimed_twice_or_late() -> None:
    command = [sys.executable, "-m", "bench.chaos", "--short", "--seed", os.environ.get("CHAOS_SEED", "1")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240)
    print(done.stdout, done.stderr)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "alerts accepted                      100" in done.stdout
    assert SHORT.pages == 200
