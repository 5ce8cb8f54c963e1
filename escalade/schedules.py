"""Schedules as they are stored, turned into what the rules of `oncall` reason about; overrides."""

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


def by_id(tx: Tx, schedule_id: int) -> ScheduleRow:
    """One schedule. Raises NotFound."""
    found = tx.maybe(ScheduleRow, "schedule_by_id", id=schedule_id)
    if found is None:
        raise NotFound("There is no such schedule any more.", "schedule")
    return found


@dataclass(frozen=True, slots=True)
class Stored:
    """A schedule as it is stored, not yet looked into; `people` says how each of its people can be reached, where that
    was asked for: the fields of a `ladder.Contact` each."""

    id: int
    timezone: str
    rotations: list[dict[str, Any]]
    overrides: list[dict[str, Any]]
    people: list[list[Any]] | None

    def read(self) -> oncall.Schedule[int]:
        """As the rules take it. Raises ValueError where it holds what they refuse."""
        rotations = tuple(_rotation(item) for item in self.rotations)
        return oncall.Schedule(self.timezone, rotations, tuple(_override(item) for item in self.overrides))


def stored(tx: Tx, ids: Iterable[int], *, people: bool = False) -> dict[int, Stored]:
    """The schedules with these ids; those that are gone are left out, and so are overrides whose person is gone."""
    return {row.id: row for row in tx.many(Stored, "whole_schedules", ids=list(ids), people=people)}


def load(tx: Tx, ids: Iterable[int]) -> dict[int, oncall.Schedule[int]]:
    """The schedules with these ids, as the rules take them. Raises ValueError where one holds what the rules refuse."""
    return {row.id: row.read() for row in stored(tx, ids).values()}


def _rotation(row: dict[str, Any]) -> oncall.Rotation[int]:
    windows = tuple(
        oncall.Window(tuple(item["days"]), time.fromisoformat(item["from"]), time.fromisoformat(item["to"]))
        for item in row["restrictions"]
    )
    changes: list[oncall.RosterChange[int]] = [
        oncall.RosterChange(datetime.fromisoformat(item["at"]), tuple(item["participants"]))
        for item in row["roster_changes"]
    ]
    return oncall.Rotation(
        row["name"],
        tuple(row["participants"]),
        row["unit"],
        row["length"],
        date.fromisoformat(row["start_date"]),
        time.fromisoformat(row["handoff_time"]),
        windows,
        tuple(changes),
    )


def _override(row: dict[str, Any]) -> oncall.Override[int]:
    # -1 is nobody's id: a replacement for somebody who is gone never applies.
    replaces = (row["replaces_id"] if row["replaces_id"] is not None else -1) if row["kind"] == "replace" else None
    start, end = datetime.fromisoformat(row["start_at"]), datetime.fromisoformat(row["end_at"])
    return oncall.Override(row["kind"], row["user_id"], start, end, replaces)


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
