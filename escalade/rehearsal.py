"""Who would be paged if a service fired now: the ladder climbed on paper, with the functions that climb it for real."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from escalade import fanout, ladder, settings
from escalade.db import Tx
from escalade.errors import NotFound
from escalade.fanout import Reached

# A policy may repeat for days; nobody reads further than this.
STAGES = 20


@dataclass(frozen=True, slots=True)
class Told:
    """Somebody who would be told: by which contact method, and when."""

    who: str
    kind: str
    name: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Stage:
    """One step as it would be taken at that time. `step` is None for the end, where the fallback is told; `skipped`
    says which targets lead to nobody, and why."""

    round: int
    step: int | None
    at: datetime
    told: Sequence[Told]
    skipped: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What would happen while nobody acknowledges; `more` where the ladder goes on after these stages."""

    policy: str
    urgency: str
    stages: Sequence[Stage]
    more: bool


def rehearse(tx: Tx, service: str, severity: str) -> Rehearsal:
    """Climb the ladder of this service on paper, from now on. Raises NotFound."""
    row = tx.maybe(dict, "ladder_of_service", name=service, severity=severity)
    if row is None:
        raise NotFound(f"There is no service {service!r}.", "service")
    policy, at, stages = ladder.read(row["policy"]), tx.now, list[Stage]()
    for turn in range(1, policy.repeat + 2):
        for number, step in enumerate(policy.steps, 1):
            if len(stages) >= STAGES:
                return Rehearsal(policy.name or "", row["urgency"], stages, True)
            reached = fanout.reach(tx, step.targets, row["urgency"], at)
            stages.append(Stage(turn, number, at, _told(tx, reached, at), reached.skipped))
            left = policy.repeat + 1 - turn
            at += timedelta(seconds=ladder.wait_after(policy, number, left, bool(reached.pages)))
    reached = fanout.reach(tx, settings.fallback(tx), row["urgency"], at)
    stages.append(Stage(policy.repeat + 1, None, at, _told(tx, reached, at), reached.skipped))
    return Rehearsal(policy.name or "", row["urgency"], stages, False)


def _told(tx: Tx, reached: Reached, at: datetime) -> list[Told]:
    methods = {row["id"]: row for row in tx.many(dict, "methods_by_ids", ids=_ids(reached, "method_id"))}
    channels = {row["id"]: row for row in tx.many(dict, "channels_by_ids", ids=_ids(reached, "channel_id"))}
    told = []
    for page in reached.pages:
        row = methods.get(page.method_id) or channels.get(page.channel_id)
        if row is not None:
            told.append(Told(row["who"], row["kind"], row["name"], at + timedelta(seconds=page.after)))
    return sorted(told, key=lambda one: one.at)


def _ids(reached: Reached, name: str) -> list[int]:
    return [found for page in reached.pages if (found := getattr(page, name)) is not None]
