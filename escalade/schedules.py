"""Schedules as they are stored, turned into what the rules of `oncall` reason about; overrides."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Any

from escalade import oncall
from escalade.db import Tx
from escalade.errors import NotFound


@dataclass(frozen=True, slots=True)
class ScheduleRow:
    """A schedule's name and IANA time zone."""

    id: int
    name: str
    timezone: str


@dataclass(frozen=True, slots=True)
class RotationRow:
    """A rotation as stored; participants are user ids."""

    id: int
    schedule_id: int
    name: str
    participants: list[int]
    unit: str
    length: int
    start_date: date
    handoff_time: time
    restrictions: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class RosterRow:
    """From `at` on a rotation has these participants."""

    rotation_id: int
    at: datetime
    participants: list[int]


@dataclass(frozen=True, slots=True)
class OverrideRow:
    """An override as stored; user_id is None once that person is gone."""

    id: int
    schedule_id: int
    kind: str
    user_id: int | None
    replaces_id: int | None
    start_at: datetime
    end_at: datetime
    source: str
    created_by: str


def find(tx: Tx, name: str) -> ScheduleRow:
    """One schedule. Raises NotFound."""
    found = tx.maybe(ScheduleRow, "schedule_by_name", name=name)
    if found is None:
        raise NotFound(f"There is no schedule {name!r}.", "schedule")
    return found


def load(tx: Tx, ids: Iterable[int]) -> dict[int, oncall.Schedule[int]]:
    """The schedules with these ids, as the rules take them; those that are gone are left out."""
    wanted = list(ids)
    if not wanted:
        return {}
    rows = tx.many(ScheduleRow, "schedules_by_id", ids=wanted)
    rosters: dict[int, list[oncall.RosterChange[int]]] = defaultdict(list)
    for change in tx.many(RosterRow, "roster_changes_of", ids=wanted):
        rosters[change.rotation_id].append(oncall.RosterChange(change.at, tuple(change.participants)))
    rotations: dict[int, list[oncall.Rotation[int]]] = defaultdict(list)
    for row in tx.many(RotationRow, "rotations_of", ids=wanted):
        rotations[row.schedule_id].append(_rotation(row, rosters[row.id]))
    overrides: dict[int, list[oncall.Override[int]]] = defaultdict(list)
    for override in tx.many(OverrideRow, "overrides_of", ids=wanted):
        if override.user_id is not None:
            overrides[override.schedule_id].append(_override(override, override.user_id))
    return {row.id: oncall.Schedule(row.timezone, tuple(rotations[row.id]), tuple(overrides[row.id])) for row in rows}


def _rotation(row: RotationRow, roster: list[oncall.RosterChange[int]]) -> oncall.Rotation[int]:
    windows = tuple(
        oncall.Window(tuple(item["days"]), time.fromisoformat(item["from"]), time.fromisoformat(item["to"]))
        for item in row.restrictions
    )
    return oncall.Rotation(
        row.name,
        tuple(row.participants),
        row.unit,
        row.length,
        row.start_date,
        row.handoff_time,
        windows,
        tuple(roster),
    )


def _override(row: OverrideRow, user_id: int) -> oncall.Override[int]:
    # -1 is nobody's id: a replacement for somebody who is gone never applies.
    replaces = (row.replaces_id if row.replaces_id is not None else -1) if row.kind == "replace" else None
    return oncall.Override(row.kind, user_id, row.start_at, row.end_at, replaces)


def drop_participant(tx: Tx, user_id: int) -> None:
    """Take a person out of every rotation from now on. The turns of the others do not move."""
    for row in tx.many(dict, "rotations_with_participant", user_id=user_id):
        rotation_id = row["id"]
        [stored] = [
            item for item in tx.many(RotationRow, "rotations_of", ids=[row["schedule_id"]]) if item.id == rotation_id
        ]
        changes = tx.many(RosterRow, "roster_changes_of", ids=[row["schedule_id"]])
        past = [change for change in changes if change.rotation_id == rotation_id and change.at <= tx.now]
        current = past[-1].participants if past else stored.participants
        if user_id in current:
            left = [participant for participant in current if participant != user_id]
            tx.run("append_roster_change", rotation_id=rotation_id, at=tx.now, participants=left)
        tx.run("trim_later_rosters", rotation_id=rotation_id, at=tx.now, user_id=user_id)
