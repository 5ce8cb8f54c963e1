"""What the engine does to incidents as time passes: due steps, steps whose pages all failed, and deadlines.

Each incident is its own transaction, so one that raises stops no other. Nothing here waits for an incident that
somebody else holds, except for a step that is already late.
"""

import logging
from datetime import timedelta

import psycopg

from escalade import fanout, incidents, timeline
from escalade.db import AWAY, Begin, Tx
from escalade.incident import Incident
from escalade.incidents import Step

log = logging.getLogger("escalade.climbing")

PUT_OFF_SECONDS = 5
GIVE_UP_AFTER = 3
LATE_LOCK_MS = 250


def escalate_due(begin: Begin, limit: int = 20) -> int:
    """Fan out the steps that are due, at most `limit` of them; how many were. Raises psycopg.OperationalError when
    the database is away."""
    done = 0
    while done < limit and _escalate_next(begin):
        done += 1
    if done == 0:
        done = _escalate_late(begin)
    return done


def _escalate_next(begin: Begin) -> bool:
    incident_id = None
    try:
        with begin() as tx:
            incident_id = tx.value("lock_due_step", now=tx.now)
            if incident_id is not None:
                tx.reread_clock()
                _climb(tx, incident_id)
    except Exception as error:
        if incident_id is None or away(error):
            raise
        put_off(begin, incident_id, error)
    return incident_id is not None


def _escalate_late(begin: Begin) -> int:
    """Steps more than a second late, whose incident is busy with repeats: SKIP LOCKED would starve them."""
    with begin() as tx:
        late = tx.values("late_steps", now=tx.now, n=5)
    return sum(_escalate_waiting(begin, incident_id) for incident_id in late)


def _escalate_waiting(begin: Begin, incident_id: int) -> bool:
    try:
        with begin() as tx:
            tx.run("wait_at_most", lock_ms=f"{LATE_LOCK_MS}ms")
            incidents.lock(tx, incident_id)
            _climb(tx, incident_id)
        return True
    except psycopg.errors.LockNotAvailable:
        return False
    except Exception as error:
        if away(error):
            raise
        put_off(begin, incident_id, error)
        return True


def _climb(tx: Tx, incident_id: int) -> None:
    """With the incident held: look again, and take the step if it is still there to take."""
    step = tx.maybe(Step, "due_step_of", incident_id=incident_id, now=tx.now)
    if step is not None:
        incidents.take_step(tx, incidents.find(tx, incident_id), step)


def put_off(begin: Begin, incident_id: int, error: Exception) -> None:
    """A step that raised is tried again a little later, and skipped after three times: the ladder goes on."""
    log.error("a step of incident %s raised", incident_id, exc_info=error)
    why = str(error).strip() or type(error).__name__
    with begin() as tx:
        incident = incidents.lock(tx, incident_id)
        step = tx.maybe(Step, "due_step_of", incident_id=incident_id, now=tx.now)
        if step is None:
            return
        where = {"round": step.round, "step": step.step}
        if step.tries + 1 < GIVE_UP_AFTER:
            tx.run("put_off_step", id=step.id, now=tx.now, delay=PUT_OFF_SECONDS, error=why)
            timeline.record(tx, incident_id, "step_failed", None, error=why, **where)
        else:
            skip_step(tx, incident, step, why)


def skip_step(tx: Tx, incident: Incident, step: Step, why: str) -> None:
    """The ladder goes on without this step; past its end the incident is exhausted."""
    tx.run("finish_step", id=step.id, now=tx.now)
    timeline.record(tx, incident.id, "step_skipped", None, why=why, round=step.round, step=step.step)
    if step.step <= len(incident.policy.get("steps", [])):
        fanout.insert_step(tx, incident, step.step + 1, 0)
    else:
        fanout.exhaust(tx, incident, step.step)


def escalate_early(begin: Begin) -> int:
    """Where every page of a step has failed for good, the next step is due now; how many were hurried."""
    with begin() as tx:
        ids = tx.values("lock_marked_incidents")
        if not ids:
            return 0
        tx.run("clear_marks", ids=ids)
        hurried = tx.values("hurry_failed_steps", ids=ids, now=tx.now)
        for incident_id in hurried:
            timeline.record(tx, incident_id, "step_hurried")
        return len(hurried)


def wake_due(begin: Begin, limit: int = 20) -> int:
    """End the snoozes, acknowledgement timeouts and auto-resolve times that have passed; how many incidents."""
    done = 0
    while done < limit and _wake_next(begin):
        done += 1
    return done


def _wake_next(begin: Begin) -> bool:
    incident = None
    try:
        with begin() as tx:
            incident = tx.maybe(Incident, "lock_waking_incident", now=tx.now)
            if incident is not None:
                tx.reread_clock()
                wake(tx, incident)
    except Exception as error:
        if incident is None or away(error):
            raise
        log.error("waking incident %s raised", incident.id, exc_info=error)
        with begin() as tx:
            until = tx.now + timedelta(minutes=1)
            tx.run("put_off_deadlines", id=incident.id, now=tx.now, until=until)
    return incident is not None


def wake(tx: Tx, incident: Incident) -> Incident:
    """Do what the passed deadline of this incident asks for; the caller holds it."""
    if incident.auto_resolve_at is not None and incident.auto_resolve_at <= tx.now:
        return incidents.auto_resolve(tx, incident)
    if incident.snoozed_until is not None and incident.snoozed_until <= tx.now:
        return incidents.snooze_ended(tx, incident)
    return incidents.ack_timed_out(tx, incident)


def away(error: BaseException) -> bool:
    """Whether the database itself is the trouble: nothing was wrong with the incident then."""
    return isinstance(error, AWAY) and not isinstance(error, psycopg.errors.LockNotAvailable)
