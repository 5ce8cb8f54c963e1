"""The rules 7 to 11 and 17 of the queue: what the engine does to incidents as time passes."""

from unittest.mock import patch

import pytest

from escalade import attempts, climbing, fanout, incidents, opening
from escalade.db import Database
from tests import factories
from tests.clock import MovedClock
from tests.interleavings.hands import Hands, claim, settle
from tests.interleavings.invariants import check
from tests.interleavings.scenes import all_failed, opened
from tests.interleavings.test_rules_stopping import ended_or_waiting
from tests.interleavings.wrong import Code, Play, Query

ALICE = "alice@example.com"
MARK = "recheck = l.kind = 'PAGE' and l.next = 'FAILED'"
# A settle that looks by itself whether the next step is due.
BY_ITSELF = Code(
    attempts,
    "settle",
    "    if stale:",
    """    found = [tx.maybe(dict, "attempt_incident", id=outcome.id)["incident_id"] for outcome in outcomes]
    tx.values("hurry_failed_steps", ids=found, now=tx.now)
    if stale:""",
)


def last_two_fail(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """The last two pages of a step fail in two settles that do not see each other."""
    incident = opened(database)
    with database.read() as tx:
        one, other = claim(tx)
    first = hands.call(settle, [one], "FAILED", before="commit").stopped()
    second = hands.call(settle, [other], "FAILED", before="commit").stopped()
    first.done()
    climbing.escalate_early(database.begin)
    second.done()
    climbing.escalate_early(database.begin)
    due = "select 1 from notification_attempt where kind = 'STEP' and status = 'PENDING' and due_at <= %s"
    hurried = factories.run(database, due, factories.now(database))
    return [f"nobody made the next step of incident {incident.id} due"] * (not hurried)


@pytest.mark.parametrize(
    "wrong",
    [(Query("settle", MARK, "recheck = false"),), (Query("settle", MARK, "recheck = false"), BY_ITSELF)],
    ids=["nobody looks", "each settle looks"],
)
def test_rule_07_a_page_that_failed_for_good_is_marked_and_looked_at_afterwards(play: Play, wrong) -> None:
    play(last_two_fail, *wrong, reports="nobody made the next step")


def dead_channel(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """Every page of every step fails at once, on a ladder that repeats."""
    incident = opened(database, people=1, repeat=1)
    for _ in range(2):
        all_failed(database, incident)
        climbing.escalate_early(database.begin)
        climbing.escalate_due(database.begin)
    return ["a dead channel burned a round"] * (factories.events(database, incident.id).count("repeated") > 0)


def test_rule_07_the_end_of_a_round_that_repeats_is_never_hurried(play: Play) -> None:
    guard = "and (s.step <= jsonb_array_length(i.policy -> 'steps') or i.repeats_left = 0)"
    play(dead_channel, Query("hurry_failed_steps", guard), reports="burned a round")


def late_step(database: Database, hands: Hands, clock: MovedClock, restart: bool) -> list[str]:
    """A late step is seen, somebody acknowledges, and only then the engine holds the incident."""
    incident = opened(database, wait=300)
    clock.pass_(seconds=302)
    holding = hands.call(incidents.lock, incident.id, before="commit").stopped()
    step = hands.start(climbing.escalate_due, before="lock_incident").stopped()
    holding.done()
    with database.begin() as tx:
        incidents.acknowledge(tx, incident.id, ALICE)
        if restart:
            incidents.unacknowledge(tx, incident.id, ALICE)
    step.done()
    raised = "step_failed" in factories.events(database, incident.id)
    return ["a step that was cancelled was taken again, and raised"] * raised + check(database.url)


def test_rule_08_a_step_is_looked_at_again_under_the_lock(play: Play) -> None:
    wrong = Query("due_step_of", "a.status = 'PENDING' and ", "")
    play(lambda *stage: late_step(*stage, restart=True), wrong, reports="taken again, and raised")


def test_rule_08_an_incident_is_looked_at_again_under_the_lock(play: Play) -> None:
    wrong = (
        Query("due_step_of", "a.status = 'PENDING' and ", ""),
        Query("due_step_of", "and i.status = 'TRIGGERED' and i.snoozed_until is null", ""),
    )
    play(lambda *stage: late_step(*stage, restart=False), *wrong, reports="not TRIGGERED")


def restarted(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """An incident that was acknowledged climbs again, through its whole ladder and the repeat of it."""
    incident = opened(database, people=1, repeat=1)
    with database.begin() as tx:
        incidents.acknowledge(tx, incident.id, ALICE)
        incidents.unacknowledge(tx, incident.id, ALICE)
    for _ in range(4):
        clock.pass_(seconds=301)
        climbing.escalate_due(database.begin)
    pages = "select round, step from notification_attempt where kind = 'PAGE' and incident_id = %s order by 1, 2"
    found = factories.run(database, pages, incident.id)
    wanted = [(1, 1), (2, 1), (2, 2), (3, 1), (3, 2)]
    return [f"it paged in {found}"] * (found != wanted) + check(database.url)


@pytest.mark.parametrize(
    "wrong, reports",
    [
        (Query("restart", "set round = round + 1, ", "set "), "23505"),
        (Query("next_round", "set round = round + 1, ", "set "), "it paged in"),
        (Query("next_round", ", repeats_left = repeats_left - 1", ""), "it paged in"),
    ],
    ids=["a restart", "a repeat", "no count"],
)
def test_rule_09_every_new_start_of_a_ladder_has_a_new_round(play: Play, wrong: Query, reports: str) -> None:
    def scene(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
        found = restarted(database, hands, clock)
        clock.pass_(seconds=301)
        climbing.escalate_due(database.begin)
        [[end]] = factories.run(database, "select exhausted_at is not null from incident")
        return found + ["it paged in one round after the other without an end"] * (not end)

    play(scene, wrong, reports=reports)


def bad_step(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """The step that has been due longest raises; another incident is behind it."""
    bad = opened(database)
    other = factories.open_incident(database, bad.service_id or 0, key="cpu")
    never = "update incident set policy = jsonb_set(policy, '{steps,1,wait}', '\"never\"') where id = %s"
    factories.run(database, never, bad.id)
    found = []
    for _ in range(4):
        clock.pass_(seconds=302)
        try:
            climbing.escalate_due(database.begin)
        except Exception as error:
            found.append(f"the whole round raised {type(error).__name__}")
    waits = factories.events(database, other.id).count("step_reached") < 2
    skipped = "step_skipped" in factories.events(database, bad.id)
    return found + ["another incident waited"] * waits + ["the bad step was never skipped"] * (not skipped)


@pytest.mark.parametrize(
    "wrong, reports",
    [
        (Code(climbing, "_escalate_next", "put_off(begin, incident_id, error)", "raise"), "another incident waited"),
        (Code(climbing, "put_off", "step.tries + 1 < GIVE_UP_AFTER", "True"), "never skipped"),
    ],
    ids=["it is not put off", "it is put off for ever"],
)
def test_rule_10_one_bad_step_stops_no_other_and_is_skipped_in_the_end(
    play: Play, wrong: Code, reports: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("CRITICAL", "escalade.climbing")
    play(bad_step, wrong, reports=reports)


def bad_first_step(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """The first step raises while an alert opens its incident."""
    with patch.object(fanout, "fan_out", side_effect=ZeroDivisionError("this ladder is broken")):
        try:
            incident = opened(database)
        except ZeroDivisionError:
            return ["the alert was lost"] * (factories.run(database, "select id from incident") == [])
    waiting = factories.statuses(database, incident.id) == [("STEP", "PENDING")]
    return ["nothing comes after it"] * (not waiting) + check(database.url)


def test_rule_10_an_alert_whose_first_step_raises_is_never_lost(play: Play, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL", "escalade.opening")
    play(bad_first_step, Code(opening, "begin", "    except Exception", "    except KeyError"), reports="was lost")


def busy_incident(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """Whenever a late step is looked for, a repeat of the alert holds the incident."""
    incident = opened(database)
    clock.pass_(seconds=302)
    repeat = hands.call(incidents.lock, incident.id, before="commit").stopped()
    step = hands.start(climbing.escalate_due)
    ended_or_waiting(step)
    repeat.done()
    return ["the late step was passed by"] * (step.done() == 0)


def test_rule_11_a_late_step_waits_for_its_busy_incident(play: Play) -> None:
    wrong = Code(climbing, "_escalate_late", "    return sum(", "    return 0 and sum(")
    play(busy_incident, wrong, reports="passed by")


def held_incident(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """Somebody holds the incident of a late step, and does not let go."""
    incident = opened(database)
    clock.pass_(seconds=302)
    holder = hands.call(incidents.lock, incident.id, before="commit").stopped()
    step = hands.start(climbing.escalate_due)
    step.thread.join(2.0)
    waits = step.thread.is_alive()
    holder.done()
    step.done()
    return ["the engine waited for one incident for seconds"] * waits


def test_rule_11_a_late_step_waits_a_moment_only(play: Play) -> None:
    play(held_incident, Query("wait_at_most", "%(lock_ms)s", "%(lock_ms)s || '000'"), reports="for seconds")


def snoozed(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """An incident is snoozed for a minute; nothing else waits."""
    incident = opened(database)
    with database.begin() as tx:
        incidents.snooze(tx, incident.id, 60, ALICE)
    with database.read() as tx:
        due = attempts.whats_due(tx)
        soon = due.next_at is not None and (due.next_at - tx.now).total_seconds() <= 60
    found = check(database.url) + ["the engine would sleep past the end of the snooze"] * (not soon)
    clock.pass_(seconds=61)
    ended = climbing.wake_due(database.begin)
    again = factories.statuses(database, incident.id).count(("PAGE", "PENDING")) == 2
    return found + ["the snooze did not end"] * (not ended or not again) + check(database.url)


WAKE = "(select min(wake_at) from incident where wake_at is not null and wake_at > %(now)s),"
SNOOZED = 'return _stopped(tx, after, "snoozed", actor, until=until.isoformat(timespec="seconds"))'


@pytest.mark.parametrize(
    "wrong, reports",
    [
        (Query("whats_due", WAKE), "sleep past the end"),
        (Code(climbing, "wake_due", "while done < limit", "while False"), "did not end"),
        (
            Code(
                incidents,
                "snooze",
                SNOOZED,
                SNOOZED.replace("return", "answer =") + "; fanout.insert_step(tx, after, 1, seconds); return answer",
            ),
            "is snoozed",
        ),
    ],
    ids=["the sleep", "nobody looks", "a pending step"],
)
def test_rule_17_deadlines_are_a_column_of_the_incident_and_no_pending_steps(play: Play, wrong, reports: str) -> None:
    play(snoozed, wrong, reports=reports)
