"""The fault campaign in small, and its checker: each kind of fault in a made-up record is found."""

import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bench.chaos import disk
from bench.chaos.check import Verdict, check
from bench.chaos.evidence import who
from bench.chaos.plan import FULL, SHORT, Size, plan
from bench.chaos.record import Answer, Attempt, Fault, Move, Record, Request
from bench.chaos.size import missing
from bench.chaos.stage import App

ROOT = Path(__file__).resolve().parent.parent
LEASE = 7.0
RAN_OUT = "the lease ran out: may have been delivered"
ONE, TWO = 11, 12


def claim(seq: int, at: float, pid: int = ONE, before: str = "PENDING", lease: float = LEASE) -> Move:
    return Move(7, seq, pid, before, "IN_FLIGHT", at, at + lease, pid)


def settled(seq: int, at: float, pid: int = ONE, after: str = "DELIVERED") -> Move:
    return Move(7, seq, pid, "IN_FLIGHT", after, at, at + 1.0, pid)


def reaped(seq: int, at: float, pid: int = ONE, by: int = TWO) -> Move:
    return Move(7, seq, pid, "IN_FLIGHT", "PENDING", at, at - 0.1, by, RAN_OUT)


def kill(at: float, pid: int = ONE) -> Fault:
    return Fault("kill", at, at + 3.0, hit=frozenset({pid}), done=True)


def cut(began: float, mended: float, *pids: int) -> Fault:
    return Fault("cut_one", began, mended + 1.0, hit=frozenset(pids), mended=mended, done=True)


def away(began: float, until: float) -> Fault:
    return Fault("restart_fast", began, until + 1.0, away_until=until, mended=until, done=True)


def sound() -> Record:
    """One alert, one page, in good order."""
    return Record(
        processes=2,
        accepted={1},
        requests=[Request(7, 1, "key", 4000, 100.1, 100.2)],
        attempts=[Attempt(7, 1, "key", "DELIVERED", 100.0, {1: "delivered"})],
        moves=[claim(1, 100.05), settled(1, 100.25)],
    )


def doubtful() -> Record:
    """A page whose sender was killed when the receiver had just answered; another sent it again after the lease."""
    record = sound()
    record.requests.append(Request(7, 1, "key", 4001, 107.3, 107.4))
    record.attempts = [Attempt(7, 1, "key", "DELIVERED", 100.0, {1: "unknown", 2: "delivered"})]
    record.moves = [claim(1, 100.05), reaped(1, 107.1), claim(2, 107.2, TWO), settled(2, 107.5, TWO)]
    record.faults = [kill(100.22)]
    return record


def first_came(at: float, *holds: tuple[int, float, float], faults: tuple[Fault, ...] = ()) -> Record:
    """A page that came first at this time; each hold but the last, by whom, from when to when, sent nothing."""
    record = sound()
    record.requests = [Request(7, 1, "key", 4000, at, at + 0.05)]
    record.faults = list(faults)
    record.moves = []
    tries = {}
    for seq, (pid, claimed, ended) in enumerate(holds, 1):
        last = seq == len(holds)
        end = settled(seq, ended, pid) if last else replace(reaped(seq, ended, pid), lease_until=claimed + LEASE)
        record.moves += [claim(seq, claimed, pid), end]
        tries[seq] = "delivered" if last else "unknown"
    record.attempts = [Attempt(7, 1, "key", "DELIVERED", 100.0, tries)]
    return record


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


def test_a_page_said_to_be_delivered_that_never_came_is_lost() -> None:
    record = sound()
    record.requests.clear()
    assert check(record, LEASE).lost == ["attempt 7 is said to be delivered, and never arrived"]


def test_a_page_that_came_and_is_not_in_the_database_is_lost() -> None:
    record = sound()
    record.attempts.clear()
    assert "attempt 7 is unknown to the database at the end" in check(record, LEASE).lost


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


def test_a_page_never_sent_may_only_be_cancelled_by_what_was_recorded_while_there_was_time_to_send_it() -> None:
    record = sound()
    record.requests, record.moves = [], []
    record.attempts = [Attempt(7, 1, "key", "CANCELLED", 100.0)]
    record.answers = [Answer(1, 130.1, frozenset())]
    assert check(record, LEASE).lost == ["attempt 7 never left in the inf s before its incident was stopped"]
    record.stopped = {1: 130.0}
    assert check(record, LEASE).lost == ["attempt 7 never left in the 30.0 s before its incident was stopped"]
    record.stopped = {1: 109.1}
    assert check(record, LEASE).lost
    record.stopped = {1: 108.9}
    assert check(record, LEASE).faults == []


def test_a_claim_of_what_is_in_flight_is_a_double_one() -> None:
    record = sound()
    record.moves.insert(1, claim(2, 100.2, TWO, "IN_FLIGHT"))
    assert "attempt 7 was claimed by 12 while it was in flight" in check(record, LEASE).double_claims


def test_a_number_claimed_twice_is_a_double_one() -> None:
    record = sound()
    record.moves += [claim(1, 100.5, TWO), settled(1, 100.6, TWO)]
    assert check(record, LEASE).double_claims == ["claim 1 of attempt 7 was made 2 times"]


def test_a_lease_taken_back_before_its_end_with_both_senders_in_the_air_is_a_double_claim() -> None:
    record = sound()
    record.requests = [Request(7, 1, "key", 4000, 100.1, 101.9), Request(7, 1, "key", 4001, 101.3, 101.6)]
    record.attempts = [Attempt(7, 1, "key", "DELIVERED", 100.0, {1: "unknown", 2: "delivered"})]
    early = replace(reaped(1, 101.1), lease_until=107.05)
    record.moves = [claim(1, 100.05), early, claim(2, 101.2, TWO), settled(2, 101.7, TWO)]
    # Something was broken, and would excuse the second arrival.
    record.faults = [cut(100.15, 103.0, ONE)]
    verdict = check(record, LEASE)
    assert verdict.double_claims == [
        "claim 1 of attempt 7 was taken back 6.0 s before its lease ended",
        "attempt 7 was on the wire twice at once",
    ]
    assert not verdict.known


@pytest.mark.parametrize("by", [TWO, None])
def test_what_another_process_gives_back_before_the_lease_ends_is_a_double_claim(by: int | None) -> None:
    record = sound()
    record.moves[1] = Move(7, 1, ONE, "IN_FLIGHT", "PENDING", 100.3, 107.05, by)
    assert "taken back 6.8 s before its lease ended" in check(record, LEASE).double_claims[0]
    record.moves[1] = replace(record.moves[1], by=ONE)
    assert check(record, LEASE).double_claims == []
    record.moves[1] = replace(record.moves[1], by=ONE, error=RAN_OUT)
    assert "taken back 6.8 s before its lease ended" in check(record, LEASE).double_claims[0]


def test_a_lease_shorter_than_agreed_is_a_double_claim_in_the_making() -> None:
    record = sound()
    record.moves[0] = claim(1, 100.05, lease=1.0)
    assert check(record, LEASE).double_claims == ["claim 1 of attempt 7 had a lease of 1.0 s"]


def test_only_a_sender_that_stood_still_may_send_while_another_does() -> None:
    record = doubtful()
    record.requests = [Request(7, 1, "key", 4000, 107.35, 107.45), Request(7, 1, "key", 4001, 107.3, 107.4)]
    record.faults = [cut(100.1, 107.3, ONE)]
    assert check(record, LEASE).double_claims == ["attempt 7 was on the wire twice at once"]
    record.faults = [replace(cut(100.1, 107.3, ONE), kind="pause")]
    assert check(record, LEASE).faults == []


def test_a_page_that_came_without_a_claim_is_found() -> None:
    record = sound()
    record.moves.clear()
    assert check(record, LEASE).unclaimed == ["attempt 7 arrived and nobody had claimed it for that"]
    record = doubtful()
    record.requests.append(Request(7, 1, "key", 4002, 107.6, 107.7))
    assert check(record, LEASE).unclaimed == ["attempt 7 arrived and nobody had claimed it for that"]


def test_a_second_arrival_is_only_right_where_something_broke_and_the_first_was_in_doubt() -> None:
    record = doubtful()
    verdict = check(record, LEASE)
    assert (verdict.unknown, verdict.faults) == (1, [])
    record.faults.clear()
    assert "nothing had broken" in check(record, LEASE).known[0]
    record = doubtful()
    record.attempts = [replace(record.attempts[0], tries={1: "retry", 2: "delivered"})]
    assert "claim 1 is recorded as retry, and not in doubt" in check(record, LEASE).known[0]
    record.attempts = [replace(record.attempts[0], tries={2: "unknown"})]
    assert "claim 1 is recorded as None" in check(record, LEASE).known[0]


def test_a_second_arrival_under_another_key_is_never_right() -> None:
    record = doubtful()
    record.requests[1].key = "other"
    assert "under two keys" in check(record, LEASE).known[0]


def test_a_third_arrival_needs_a_doubt_and_a_fault_of_its_own() -> None:
    record = doubtful()
    record.requests.append(Request(7, 1, "key", 4002, 114.4, 114.5))
    record.moves[3:] = [reaped(2, 114.25, TWO, ONE), claim(3, 114.3), settled(3, 114.6)]
    record.attempts = [replace(record.attempts[0], tries={1: "unknown", 2: "delivered", 3: "delivered"})]
    assert check(record, LEASE).known == [
        "attempt 7 was sent twice: its claim 2 is recorded as delivered, and not in doubt"
    ]
    record.attempts = [replace(record.attempts[0], tries={1: "unknown", 2: "unknown", 3: "delivered"})]
    assert check(record, LEASE).known == [
        "attempt 7 was sent twice: nothing had broken when its claim 2 was to be recorded"
    ]
    record.faults.append(kill(107.35, TWO))
    verdict = check(record, LEASE)
    assert (verdict.unknown, verdict.faults) == (2, [])


@pytest.mark.parametrize(
    "fault",
    [cut(95.0, 99.0, ONE), kill(103.0), kill(100.22, TWO), cut(107.2, 109.0, ONE)],
    ids=["over before", "after it must be recorded", "another process", "after it was taken back"],
)
def test_what_did_not_strike_the_sender_between_answer_and_record_excuses_no_second_arrival(fault: Fault) -> None:
    record = doubtful()
    record.faults = [fault]
    assert "nothing had broken" in check(record, LEASE).known[0]


def test_a_page_is_late_after_its_lease_and_two_seconds_but_for_the_time_nobody_reached_the_database() -> None:
    assert check(first_came(108.9, (ONE, 108.8, 109.0)), LEASE).late == []
    record = first_came(112.0, (ONE, 111.9, 112.1))
    assert check(record, LEASE).late[0].startswith("attempt 7 came late, after 12.0 s; held by 11 from 11.9 to 12.1")
    record.faults = [away(101.0, 103.5)]
    assert check(record, LEASE).late
    record.faults = [away(101.0, 103.5), away(103.0, 104.1)]
    assert check(record, LEASE).late == []


@pytest.mark.parametrize("at", [100.0, 104.0, 109.5])
def test_a_fault_that_struck_nobody_who_held_the_page_makes_it_no_less_late(at: float) -> None:
    record = first_came(112.0, (ONE, 111.9, 112.1), faults=(kill(at), kill(at, TWO), cut(at, at + 2.0, ONE)))
    assert check(record, LEASE).late


def test_each_holder_that_was_struck_begins_the_time_anew_from_its_claim() -> None:
    holds = ((ONE, 102.5, 109.6), (TWO, 109.7, 116.8), (ONE, 116.9, 117.1))
    record = first_came(117.0, *holds, faults=(kill(102.6),))
    assert check(record, LEASE).late
    record.faults.append(kill(110.0, 13))
    assert check(record, LEASE).late
    record.faults.append(kill(110.0, TWO))
    assert check(record, LEASE).faults == []


def test_a_holder_struck_after_it_let_go_of_the_page_begins_nothing_anew() -> None:
    record = first_came(110.0, (ONE, 102.5, 103.0), (TWO, 109.9, 110.1), faults=(kill(103.5),))
    assert check(record, LEASE).late


def test_a_holder_that_took_the_page_too_late_begins_nothing_anew() -> None:
    record = first_came(116.9, (ONE, 109.5, 116.6), (TWO, 116.8, 117.0), faults=(kill(109.6),))
    assert check(record, LEASE).late


def test_one_fault_after_the_other_excuses_no_long_wait() -> None:
    faults = tuple(kill(100.0 + 8 * number) for number in range(1, 8))
    assert "came late, after 60.0 s" in check(first_came(160.0, (ONE, 159.9, 160.1), faults=faults), LEASE).late[0]


def test_a_page_in_doubt_is_late_where_it_is_not_sent_again_within_its_lease_and_two_seconds() -> None:
    record = doubtful()
    record.requests[1] = Request(7, 1, "key", 4001, 111.0, 111.1)
    record.moves[2:] = [claim(2, 110.9, TWO), settled(2, 111.2, TWO)]
    assert check(record, LEASE).late[0].startswith("attempt 7 was sent again only after 10.9 s")
    record.faults.append(away(102.0, 106.0))
    assert check(record, LEASE).late == []


def test_a_page_after_the_acknowledgement_is_only_right_where_the_answer_named_it() -> None:
    record = sound()
    record.answers = [Answer(1, 100.0, frozenset())]
    assert check(record, LEASE).after_acknowledge
    record.answers = [Answer(1, 100.0, frozenset({7}))]
    assert check(record, LEASE).faults == []


KINDS = {
    "kill_in_send": "kills during a send: 0 of 1",
    "kill": "kills: 1 of 2",
    "restart_fast": "database restarts: 0 of 1",
    "cut_all": "network cuts: 0 of 1",
    "terminate": "times all backends ended: 0 of 1",
    "pause": "pauses: 0 of 1",
    "full_disk": "full disks: 0 of 1",
    "failover": "failovers: 0 of 1",
}
ASKED = Size(2, 2, 2, 1, 1, 1, 1, 1, True)


def whole() -> Record:
    """A campaign in which all that ASKED asks for happened."""
    record = sound()
    record.accepted = {1, 2}
    record.faults = [Fault(kind, 100.0, done=True) for kind in KINDS]
    return record


def test_a_campaign_of_the_asked_size_lacks_nothing() -> None:
    assert list(missing(whole(), Verdict(sent=2), ASKED)) == []


@pytest.mark.parametrize(("kind", "line"), list(KINDS.items()))
def test_a_campaign_says_what_did_not_happen(kind: str, line: str) -> None:
    record = whole()
    record.faults = [fault for fault in record.faults if fault.kind != kind]
    assert line in list(missing(record, Verdict(sent=2), ASKED))
    record.faults.append(Fault(kind, 100.0, note="nothing was there"))
    found = list(missing(record, Verdict(sent=2), ASKED))
    assert line in found
    assert f"{kind} broke nothing that could be seen: nothing was there" in found


def test_a_campaign_says_that_pages_alerts_or_processes_were_too_few() -> None:
    record = whole()
    record.accepted, record.processes = {1}, 1
    assert list(missing(record, Verdict(sent=1), ASKED)) == [
        "processes: 1 of 2",
        "alerts accepted: 1 of 2",
        "pages sent: 1 of 2",
    ]


def test_who_changed_a_row_is_the_process_that_had_this_port_then() -> None:
    class Ends:
        reached = [(10.0, 4000), (20.0, 4000), (30.0, 4001)]

    app = App([Ends()], lives=[(5.0, ONE), (18.0, TWO)])  # type: ignore[list-item]
    assert [who([app], 4000, at) for at in (9.0, 11.0, 21.0)] == [None, ONE, TWO]
    assert who([app], None, 50.0) is None and who([app], 5000, 50.0) is None


def test_a_seed_stands_for_a_plan() -> None:
    one, same, other = (plan(FULL, random.Random(seed)) for seed in (3, 3, 4))
    assert one == same != other
    assert one.count("kill_in_send") * 2 >= FULL.kills >= 20 and "failover" in one


@pytest.fixture
def full_disks(tmp_path: Path) -> int:
    """How often the disk can be full here: a small one of its own must be mounted for that, which needs root."""
    with disk.mounted(tmp_path / "disk") as own:
        return SHORT.full_disks if own else 0


def test_in_a_short_campaign_nothing_is_lost_claimed_twice_or_late(full_disks: int) -> None:
    command = [sys.executable, "-m", "bench.chaos", "--short", "--full-disks", str(full_disks)]
    command += ["--seed", os.environ.get("CHAOS_SEED", "1")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240)
    print(done.stdout, done.stderr)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "alerts accepted                      100" in done.stdout
    assert SHORT.pages == 200
