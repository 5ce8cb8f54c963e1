"""Who is on call: one answer for the API, the pages and the read model of the queue."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from escalade import oncall, schedules, users
from escalade.db import Tx
from escalade.schedules import ScheduleRow, Stored
from escalade.users import User

log = logging.getLogger("escalade.rota")


@dataclass(frozen=True, slots=True)
class OnCall:
    """A schedule and the people on call at the time asked for. `fault` says why it could not be worked out."""

    schedule: ScheduleRow
    people: tuple[User, ...]
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """Between two UTC instants these people are on call."""

    start: datetime
    end: datetime
    people: tuple[User, ...]


def on_call(tx: Tx, at: datetime, name: str | None = None) -> list[OnCall]:
    """Who is on call at that instant, by schedule; one schedule where it is named. Raises NotFound or, for an instant
    outside the years 1900 to 9000, ValueError."""
    rows = tx.many(ScheduleRow, "all_schedules") if name is None else [schedules.find(tx, name)]
    loaded = schedules.load(tx, [row.id for row in rows])
    found = [(row, *_who(row, loaded.get(row.id), at)) for row in rows]
    people = users.by_ids(tx, (user_id for _, ids, _ in found for user_id in ids))
    return [OnCall(row, _known(people, ids), fault) for row, ids, fault in found]


def _who(row: ScheduleRow, schedule: oncall.Schedule[int] | None, at: datetime) -> tuple[list[int], str | None]:
    if schedule is None:
        return [], "it has just been deleted"
    try:
        return oncall.who(schedule, at), None
    except (ValueError, TypeError) as error:
        # One schedule with, say, a zone this machine does not know must not hide the others.
        log.warning("schedule %s could not be worked out: %s", row.name, error)
        return [], str(error)


@dataclass(frozen=True, slots=True)
class Watch:
    """A schedule, who is on call at a time, and who from `changes_at` on (None: nothing changes soon)."""

    schedule: ScheduleRow
    people: tuple[User, ...] = ()
    changes_at: datetime | None = None
    following: tuple[User, ...] = ()
    fault: str | None = None


def watches(tx: Tx, at: datetime, horizon: timedelta) -> list[Watch]:
    """Every schedule with who is on call and who comes next. One that cannot be worked out hides no other."""
    rows = tx.many(ScheduleRow, "all_schedules")
    loaded = schedules.stored(tx, [row.id for row in rows])
    found = [(row, *_turn_of(row, loaded.get(row.id), at, horizon)) for row in rows]
    people = users.by_ids(tx, (i for _, now, _, following, _ in found for i in (*now, *following)))
    return [
        Watch(row, _known(people, now), changes_at, _known(people, following), fault)
        for row, now, changes_at, following, fault in found
    ]


def _turn_of(
    row: ScheduleRow, stored: Stored | None, at: datetime, horizon: timedelta
) -> tuple[list[int], datetime | None, list[int], str | None]:
    if stored is None:
        return [], None, [], "it has just been deleted"
    try:
        schedule = stored.read()
        changes_at = oncall.next_change(schedule, at, at + horizon)
        return oncall.who(schedule, at), changes_at, oncall.who(schedule, changes_at) if changes_at else [], None
    except (ValueError, TypeError, KeyError) as error:
        log.warning("schedule %s could not be worked out: %s", row.name, error)
        return [], None, [], str(error)


@dataclass(frozen=True, slots=True)
class Span:
    """The turns of a schedule between two times, without gaps: nobody on call is a turn too."""

    schedule: ScheduleRow
    turns: tuple[Turn, ...] = ()
    fault: str | None = None


def spans(tx: Tx, start: datetime, end: datetime) -> dict[int, Span]:
    """The turns of every schedule between two instants, by schedule. One that raises hides no other."""
    rows = tx.many(ScheduleRow, "all_schedules")
    loaded = schedules.stored(tx, [row.id for row in rows])
    found = {row: _shifts(row, loaded.get(row.id), start, end) for row in rows}
    people = users.by_ids(tx, (i for turns, _ in found.values() for turn in turns for i in turn.users))
    return {
        row.id: Span(row, tuple(Turn(one.start, one.end, _known(people, one.users)) for one in turns), fault)
        for row, (turns, fault) in found.items()
    }


def _shifts(
    row: ScheduleRow, stored: Stored | None, start: datetime, end: datetime
) -> tuple[list[oncall.Shift[int]], str | None]:
    try:
        return ([], "it has just been deleted") if stored is None else (oncall.shifts(stored.read(), start, end), None)
    except (ValueError, TypeError, KeyError) as error:
        log.warning("schedule %s could not be worked out: %s", row.name, error)
        return [], str(error)


def shifts(tx: Tx, name: str, start: datetime, end: datetime) -> list[Turn]:
    """The turns of one schedule between two instants, without gaps. Raises NotFound or ValueError."""
    row = schedules.find(tx, name)
    found = oncall.shifts(schedules.load(tx, [row.id])[row.id], start, end)
    people = users.by_ids(tx, (user_id for shift in found for user_id in shift.users))
    return [Turn(shift.start, shift.end, _known(people, shift.users)) for shift in found]


def _known(people: dict[int, User], ids: Iterable[int]) -> tuple[User, ...]:
    """People who are gone are left out: nobody can page them."""
    return tuple(people[user_id] for user_id in ids if user_id in people)
