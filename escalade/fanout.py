"""A step of the ladder becomes pages: who is on call now, how each wants to be reached, and what comes next.

Everybody here holds the incident's row. People are looked up before anything is written, so a target that
raises costs the others nothing.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import psycopg

from escalade import ladder, oncall, schedules, settings, timeline
from escalade.db import Tx
from escalade.incident import Incident
from escalade.ladder import Contact, Reach, Target
from escalade.schedules import Stored

log = logging.getLogger("escalade.fanout")


@dataclass(slots=True)
class Reached:
    """What a list of targets comes to: the pages, and the targets that lead to nobody, with the reason."""

    pages: list[Reach] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Next:
    """The step to come: seconds until then where this one tells somebody, and where it tells nobody."""

    step: int | None
    wait: float
    untold: float


NO_NEXT = Next(None, 0.0, 0.0)


def fan_out(tx: Tx, incident: Incident, step: int) -> Incident:
    """Tell everybody this step names and put the next step into the queue. Past the last step: the next round, or
    exhausted. The incident as it is afterwards."""
    policy = ladder.read(incident.policy)
    if step > len(policy.steps):
        return end_round(tx, incident, policy)
    reached = reach(tx, policy.steps[step - 1].targets, incident.urgency)
    record_skipped(tx, incident, reached)
    wait, untold = (ladder.wait_after(policy, step, incident.repeats_left, told) for told in (True, False))
    insert_pages(tx, incident, step, "triggered", reached.pages, Next(step + 1, wait, untold))
    return replace(incident, step=step)


def end_round(tx: Tx, incident: Incident, policy: ladder.Policy) -> Incident:
    """Nobody answered in this round: the next one begins, or the incident is exhausted and the fallback is told."""
    if incident.repeats_left > 0 and policy.steps:
        again = tx.one(Incident, "next_round", id=incident.id)
        timeline.record(tx, incident.id, "repeated", round=again.round)
        return fan_out(tx, again, 1)
    return exhaust(tx, incident, len(policy.steps) + 1)


def exhaust(tx: Tx, incident: Incident, step: int) -> Incident:
    """Nothing is left to climb: people see it, and the fallback is told. `step` is the one past the last."""
    tx.run("exhaust", id=incident.id, now=tx.now)
    timeline.record(tx, incident.id, "exhausted", round=incident.round)
    reached = _fallback(tx, incident)
    told = insert_pages(tx, incident, step, "exhausted", reached.pages, NO_NEXT)
    record_skipped(tx, incident, reached)
    if told:
        timeline.record(tx, incident.id, "fallback_told", people=_people(reached.pages))
    else:
        timeline.record(tx, incident.id, "fallback_missing", why="none is set, or none of it can be reached")
    return tx.one(Incident, "incident_by_id", id=incident.id)


def _fallback(tx: Tx, incident: Incident) -> Reached:
    # An incident must come to its end even where the fallback cannot be worked out.
    try:
        return reach(tx, settings.fallback(tx), incident.urgency)
    except psycopg.Error:
        raise
    except Exception as error:
        log.exception("the fallback could not be worked out")
        return Reached(skipped=[("fallback", f"it could not be worked out: {error}")])


def insert_step(tx: Tx, incident: Incident, step: int, wait: float) -> None:
    """Put a step into the queue, due `wait` seconds from now."""
    if wait <= 0:
        tx.ring()
    tx.run(
        "insert_step",
        incident_id=incident.id,
        round=incident.round,
        step=step,
        due_at=tx.now + timedelta(seconds=wait),
    )


def insert_pages(
    tx: Tx, incident: Incident, step: int, event: str, pages: Sequence[Reach], following: Next
) -> list[int]:
    """Write the pages of one step and the step that follows; the ids of the pages."""
    tx.ring()
    return tx.values(
        "insert_pages",
        incident_id=incident.id,
        event=event,
        lane="high" if incident.urgency == "high" else "low",
        round=incident.round,
        step=step,
        now=tx.now,
        max_tries=tx.limits.max_tries,
        recipients=[page.recipient for page in pages],
        targets=[page.target for page in pages],
        methods=[page.method_id for page in pages],
        channels=[page.channel_id for page in pages],
        afters=[page.after for page in pages],
        people=_people(pages),
        next=following.step,
        wait=float(following.wait),
        wait_untold=float(following.untold),
    )


def record_skipped(tx: Tx, incident: Incident, reached: Reached) -> None:
    """Say in the timeline which targets the step could not tell."""
    for target, why in reached.skipped:
        timeline.record(tx, incident.id, "target_skipped", target=target, why=why)


def _people(pages: Iterable[Reach]) -> str:
    return ", ".join(dict.fromkeys(page.target for page in pages))


def reach(tx: Tx, targets: Iterable[Target], urgency: str, at: datetime | None = None) -> Reached:
    """Who these targets are now, or at another time, and how each wants to be reached. Writes nothing."""
    wanted = list(targets)
    found = Reached()
    schedule_ids = [target.id for target in wanted if target.kind == "schedule"]
    stored = schedules.stored(tx, schedule_ids, people=True) if schedule_ids else {}
    users = _users(at or tx.now, wanted, stored, found) if wanted else {}
    contacts = _contacts(tx, stored, {user_id for pairs in users.values() for user_id in pairs})
    channel_ids = [target.id for target in wanted if target.kind == "channel"]
    channels = set(tx.values("channels_to_page", ids=channel_ids)) if channel_ids else set()
    for target in wanted:
        if target.kind == "channel":
            _channel(target, channels, found)
        for user_id in users.get(target, []):
            _person(target, contacts.get(user_id, []), urgency, found)
    found.pages = ladder.once_each(found.pages)
    return found


def _contacts(tx: Tx, stored: Mapping[int, Stored], wanted: set[int]) -> dict[int, list[Contact]]:
    """How these people can be reached: as the schedules brought it, and the rest looked up."""
    contacts: dict[int, list[Contact]] = {}
    for schedule in stored.values():
        contacts |= _by_person(Contact(*item) for item in schedule.people or ())
    if missing := wanted - contacts.keys():
        contacts |= _by_person(tx.many(Contact, "people_to_page", ids=list(missing)))
    return contacts


def _by_person(contacts: Iterable[Contact]) -> dict[int, list[Contact]]:
    found: dict[int, list[Contact]] = defaultdict(list)
    for contact in contacts:
        found[contact.user_id].append(contact)
    return found


def _users(
    at: datetime, targets: list[Target], stored: Mapping[int, Stored], found: Reached
) -> dict[Target, list[int]]:
    users: dict[Target, list[int]] = {target: [target.id] for target in targets if target.kind == "user"}
    for target in targets:
        if target.kind != "schedule":
            continue
        # A schedule that raises (a zone that this machine does not know, say) must not cost the others their page.
        try:
            users[target] = _on_call(at, target, stored, found)
        except psycopg.Error:
            raise
        except Exception as error:
            log.exception("%s could not be worked out", target.label)
            found.skipped.append((target.label, f"who is on call could not be worked out: {error}"))
    return users


def _on_call(at: datetime, target: Target, stored: Mapping[int, Stored], found: Reached) -> list[int]:
    if target.id not in stored:
        found.skipped.append((target.label, "it no longer exists"))
        return []
    users = oncall.who(stored[target.id].read(), at)
    if not users:
        found.skipped.append((target.label, "nobody is on call"))
    return users


def _channel(target: Target, channels: set[int], found: Reached) -> None:
    if target.id in channels:
        found.pages.append(Reach(f"channel:{target.id}", target.label, 0.0, channel_id=target.id))
    else:
        found.skipped.append((target.label, "it no longer exists"))


def _person(target: Target, contacts: list[Contact], urgency: str, found: Reached) -> None:
    if not contacts:
        found.skipped.append((target.label, "that person no longer exists"))
    elif contacts[0].role == "viewer":
        found.skipped.append((target.label, f"{contacts[0].email} is a viewer"))
    elif pages := ladder.pages_for(contacts, urgency, target.label):
        found.pages.extend(pages)
    else:
        found.skipped.append((target.label, f"{contacts[0].email} has no contact method"))
