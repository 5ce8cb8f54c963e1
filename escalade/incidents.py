"""What people and tools do to an incident: one function per transition, one guarded statement in each.

Every transition locks the incident first, changes it, stops or starts its attempts, and writes its event, all in
the caller's transaction. `actor` is an e-mail, `token:NAME`, `channel:NAME` or `integration:SERVICE/NAME`.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import psycopg

from escalade import fanout, ladder, timeline
from escalade.db import Tx, as_json
from escalade.durations import words
from escalade.errors import Conflict, Invalid, NotFound
from escalade.incident import Incident
from escalade.ladder import Target

SINGLE_STEP_WAIT = 300


@dataclass(frozen=True, slots=True)
class InFlight:
    """A page that was already on its way; user is an e-mail, or channel a name."""

    attempt_id: int
    user: str | None
    channel: str | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What an action did: whether anything changed, how many attempts it cancelled, and what was in the air."""

    incident: Incident
    changed: bool
    cancelled: int = 0
    in_flight: tuple[InFlight, ...] = ()


def find(tx: Tx, incident_id: int) -> Incident:
    """One incident, without a lock. Raises NotFound."""
    return _known(tx.maybe(Incident, "incident_by_id", id=incident_id), incident_id)


def lock(tx: Tx, incident_id: int) -> Incident:
    """Hold the incident's row. Raises NotFound."""
    return _known(tx.maybe(Incident, "lock_incident", id=incident_id), incident_id)


def _known(incident: Incident | None, incident_id: int) -> Incident:
    if incident is None:
        raise NotFound(f"There is no incident {incident_id}.")
    return incident


def acknowledge(tx: Tx, incident_id: int, actor: str) -> Answer:
    """TRIGGERED -> ACKNOWLEDGED: nothing waiting is sent any more. A second one changes nothing. Raises Conflict
    when it is resolved."""
    incident = lock(tx, incident_id)
    if incident.status == "RESOLVED":
        raise Conflict(f"Incident {incident_id} is resolved already, by {incident.resolved_by}.")
    after = tx.maybe(Incident, "acknowledge", id=incident_id, now=tx.now, actor=actor)
    if after is None:
        return Answer(incident, changed=False, in_flight=in_flight(tx, incident_id))
    _end_silence(tx, incident)
    return _stopped(tx, after, "acknowledged", actor, notice=f"Acknowledged by {actor}")


def resolve(tx: Tx, incident_id: int, actor: str) -> Answer:
    """TRIGGERED or ACKNOWLEDGED -> RESOLVED. A second one changes nothing."""
    incident = lock(tx, incident_id)
    after = tx.maybe(Incident, "resolve", id=incident_id, now=tx.now, actor=actor)
    if after is None:
        return Answer(incident, changed=False, in_flight=in_flight(tx, incident_id))
    return _stopped(tx, after, "resolved", actor, notice=f"Resolved by {actor}")


def unacknowledge(tx: Tx, incident_id: int, actor: str) -> Answer:
    """ACKNOWLEDGED -> TRIGGERED, with a new round from step one. Raises Conflict when it is resolved."""
    incident = _unresolved(lock(tx, incident_id))
    after = tx.maybe(Incident, "unacknowledge", id=incident_id)
    if after is None:
        return Answer(incident, changed=False)
    timeline.record(tx, incident_id, "unacknowledged", actor)
    return Answer(restart(tx, after), changed=True)


def reopen(tx: Tx, incident_id: int, actor: str) -> Answer:
    """RESOLVED -> TRIGGERED, with a new round. Raises Conflict while its key is open elsewhere."""
    incident = lock(tx, incident_id)
    if incident.status != "RESOLVED":
        return Answer(incident, changed=False)
    holder = tx.value("open_with_same_key", id=incident_id)
    if holder is not None:
        raise Conflict(f"Its key is open in incident {holder}: work on that one.")
    try:
        after = tx.one(Incident, "reopen", id=incident_id, now=tx.now)
    except psycopg.errors.UniqueViolation:
        raise Conflict("Its key has just been opened by another incident: work on that one.") from None
    _end_silence(tx, incident)
    timeline.record(tx, incident_id, "reopened", actor)
    return Answer(restart(tx, after), changed=True)


def escalate(tx: Tx, incident_id: int, actor: str) -> Answer:
    """The next step now, without waiting; a snoozed or exhausted incident begins a new round. Raises Conflict
    unless it is TRIGGERED."""
    incident = lock(tx, incident_id)
    if incident.status != "TRIGGERED":
        raise Conflict(f"Incident {incident_id} is {incident.status.lower()}, so there is nothing to escalate.")
    timeline.record(tx, incident_id, "escalated", actor)
    _end_silence(tx, incident)
    if incident.snoozed_until is not None or incident.exhausted_at is not None:
        return Answer(restart(tx, incident), changed=True)
    step = tx.maybe(Step, "pending_step", incident_id=incident_id)
    if step is None:
        return Answer(restart(tx, incident), changed=True)
    return Answer(take_step(tx, incident, step), changed=True)


def snooze(tx: Tx, incident_id: int, seconds: int, actor: str) -> Answer:
    """An open incident is silent for so many seconds; then a new round begins. Raises Conflict when resolved."""
    _unresolved(lock(tx, incident_id))
    until = tx.now + timedelta(seconds=seconds)
    after = tx.one(Incident, "snooze", id=incident_id, until=until)
    # It may end before the engine would look again.
    tx.ring()
    _end_silence(tx, after)
    return _stopped(tx, after, "snoozed", actor, until=until.isoformat(timespec="seconds"))


def reassign(tx: Tx, incident_id: int, target: Target, actor: str) -> Answer:
    """From here on the incident climbs a ladder of one step that tells this target, at once. Raises Conflict when it
    is resolved."""
    _end_silence(tx, _unresolved(lock(tx, incident_id)))
    policy = as_json(ladder.single(target, SINGLE_STEP_WAIT))
    after = tx.one(Incident, "reassign", id=incident_id, policy=policy)
    answer = _stopped(tx, after, "reassigned", actor, target=target.label)
    return Answer(restart(tx, after), True, answer.cancelled, answer.in_flight)


def note(tx: Tx, incident_id: int, text: str, actor: str) -> Answer:
    """Write a line into the timeline, in any state. Raises Invalid where there is nothing to write."""
    incident = lock(tx, incident_id)
    if not text.strip():
        raise Invalid("A note needs some text.", "text")
    timeline.record(tx, incident_id, "note", actor, text=text.strip())
    return Answer(incident, changed=True)


def ack_timed_out(tx: Tx, incident: Incident) -> Incident:
    """ACKNOWLEDGED -> TRIGGERED because its acknowledgement timeout ended; the caller holds the incident."""
    after = tx.one(Incident, "unacknowledge", id=incident.id)
    timeline.record(tx, incident.id, "ack_timed_out", after=words(incident.ack_timeout_seconds or 0))
    return restart(tx, after)


def auto_resolve(tx: Tx, incident: Incident) -> Incident:
    """An open incident without an alert for its auto-resolve time -> RESOLVED; the caller holds the incident."""
    after = tx.one(Incident, "resolve", id=incident.id, now=tx.now, actor="auto-resolve")
    quiet = words(incident.auto_resolve_seconds or 0)
    return _stopped(tx, after, "auto_resolved", None, notice=f"Resolved: no alert for {quiet}", quiet=quiet).incident


def snooze_ended(tx: Tx, incident: Incident) -> Incident:
    """The silence is over: a new round from step one; the caller holds the incident."""
    return restart(tx, incident, "snooze_ended")


def restart(tx: Tx, incident: Incident, event: str | None = None) -> Incident:
    """A new round of a TRIGGERED incident, from step one, now. What was pending is cancelled."""
    stop(tx, incident.id)
    again = tx.one(Incident, "restart", id=incident.id)
    if event is not None:
        timeline.record(tx, incident.id, event, round=again.round)
    return fanout.fan_out(tx, again, 1)


@dataclass(frozen=True, slots=True)
class Step:
    """A pending step of the ladder; `tries` counts how often it raised."""

    id: int
    round: int
    step: int
    tries: int


def take_step(tx: Tx, incident: Incident, step: Step) -> Incident:
    """Fan out a pending step; the caller holds the incident. The row is closed first: one incident has one STEP."""
    tx.run("finish_step", id=step.id, now=tx.now)
    return fanout.fan_out(tx, incident, step.step)


def stop(tx: Tx, incident_id: int) -> int:
    """Cancel what waits and flag what is in the air; how many were cancelled.

    Two statements: the first waits for claims and settles that are under way, the second sees what they left.
    """
    tx.values("lock_live_attempts", incident_id=incident_id)
    stopped = tx.many(dict, "stop_attempts", incident_id=incident_id, now=tx.now)
    return sum(row["status"] == "CANCELLED" for row in stopped)


def in_flight(tx: Tx, incident_id: int) -> tuple[InFlight, ...]:
    """The pages of this incident that are in the air now."""
    return tuple(tx.many(InFlight, "pages_in_flight", incident_id=incident_id))


def _stopped(tx: Tx, after: Incident, event: str, actor: str | None, notice: str = "", **data: Any) -> Answer:
    cancelled = stop(tx, after.id)
    air = in_flight(tx, after.id)
    names = [page.user or page.channel for page in air]
    timeline.record(tx, after.id, event, actor, cancelled=cancelled, in_flight=names, **data)
    if notice:
        kind = "acknowledged" if event == "acknowledged" else "resolved"
        tx.run(
            "insert_notices",
            incident_id=after.id,
            event=kind,
            summary=notice,
            now=tx.now,
            max_tries=tx.limits.max_tries,
        )
        tx.ring()
    return Answer(after, True, cancelled, air)


def _end_silence(tx: Tx, incident: Incident) -> None:
    """A person has decided anew about a silent key: only that counts when it fires again."""
    if incident.snoozed_until is not None and incident.dedup_key is not None:
        tx.run(
            "end_silence",
            service_id=incident.service_id,
            dedup_key=incident.dedup_key,
            now=tx.now,
            id=incident.id,
        )


def _unresolved(incident: Incident) -> Incident:
    if incident.status == "RESOLVED":
        raise Conflict(f"Incident {incident.id} is resolved already, by {incident.resolved_by}: reopen it first.")
    return incident
