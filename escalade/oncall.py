"""Who is on call: rotations, restrictions and overrides turned into people, for any instant, by arithmetic.

A rotation has boundaries 0, 1, 2, ...; each gives the turn to the next participant. Day and week boundaries
are local dates at a wall-clock time, every one converted to UTC on its own; hour boundaries count elapsed
hours. Restrictions only hide a turn. Overrides then change the result, in list order. Every interval includes
its start and excludes its end. The complete rules, R1 to R12, stand in `tests/cases/schedules.json`.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from typing import Generic, TypeVar
from zoneinfo import ZoneInfo

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
UNITS = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(weeks=1)}
KINDS = ("take", "replace", "remove")
FIRST_YEAR, LAST_YEAR = 1900, 9000  # leaves room to add days and offsets at both ends of the calendar

_NEVER = datetime.max.replace(tzinfo=UTC)
_ALWAYS = datetime.min.replace(tzinfo=UTC)
_TICK = timedelta.resolution

U = TypeVar("U", int, str)  # what stands for a user: an id, or a name in test vectors


@dataclass(frozen=True, slots=True)
class Window:
    """A restriction: on each of `days` ("mon" ...) from `start` to `end`, wall clock of the schedule's zone.

    Where `end` is not after `start`, the window ends on the next date. ValueError for an unknown day or a
    time that carries an offset.
    """

    days: tuple[str, ...]
    start: time
    end: time

    def __post_init__(self) -> None:
        if unknown := [day for day in self.days if day not in DAYS]:
            raise ValueError(f"{unknown[0]!r} is not a day; days are {', '.join(DAYS)}")
        _refuse_offset(self.start, self.end)


@dataclass(frozen=True, slots=True)
class RosterChange(Generic[U]):
    """From the instant `at` (aware, kept in UTC) on, the rotation has these participants."""

    at: datetime
    participants: tuple[U, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "at", _utc(self.at))


@dataclass(frozen=True, slots=True)
class Rotation(Generic[U]):
    """People who take turns of `length` units. `start_date` and `handoff_time` are local and give boundary 0.

    Day and week rotations keep that wall-clock time at every boundary. ValueError for an unknown unit, a
    length below 1, a start outside the years 1900 to 9000, or a time that carries an offset.
    """

    name: str
    participants: tuple[U, ...]
    unit: str
    length: int
    start_date: date
    handoff_time: time
    restrictions: tuple[Window, ...] = ()
    roster_changes: tuple[RosterChange[U], ...] = ()

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise ValueError(f"{self.unit!r} is not a unit; units are {', '.join(UNITS)}")
        if self.length < 1:
            raise ValueError(f"a turn lasts at least 1 {self.unit}, not {self.length}")
        if not FIRST_YEAR <= self.start_date.year <= LAST_YEAR:
            raise ValueError(f"{self.start_date} lies outside the years {FIRST_YEAR} to {LAST_YEAR}")
        _refuse_offset(self.handoff_time)


@dataclass(frozen=True, slots=True)
class Override(Generic[U]):
    """A change of the result between two instants (aware, kept in UTC).

    `take`: only `user` is on call. `replace`: `user` stands in while `replaces` is on call, and only then.
    `remove`: `user` is taken out. ValueError for an unknown kind, or where `replaces` does not fit the kind.
    """

    kind: str
    user: U
    start: datetime
    end: datetime
    replaces: U | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"{self.kind!r} is not a kind of override; kinds are {', '.join(KINDS)}")
        if (self.kind == "replace") != (self.replaces is not None):
            raise ValueError("an override says whom it replaces if and only if its kind is replace")
        object.__setattr__(self, "start", _utc(self.start))
        object.__setattr__(self, "end", _utc(self.end))


@dataclass(frozen=True, slots=True)
class Schedule(Generic[U]):
    """Rotations, each with at most one person at a time, and the overrides of their union, in order."""

    timezone: str
    rotations: tuple[Rotation[U], ...] = ()
    overrides: tuple[Override[U], ...] = ()


@dataclass(frozen=True, slots=True)
class Shift(Generic[U]):
    """Between two UTC instants these users, sorted, are on call; nobody where the list is empty."""

    start: datetime
    end: datetime
    users: list[U]


@dataclass(frozen=True, slots=True)
class _Era(Generic[U]):
    """From `since` on: the roster, the boundaries `passed` before, and whose turn it is (-1: not begun)."""

    since: datetime
    passed: int
    participants: tuple[U, ...]
    position: int


def who(schedule: Schedule[U], at: datetime) -> list[U]:
    """The users on call at the aware instant `at`, sorted, each once; an empty list means nobody.

    ValueError for an unknown time zone, or an instant without a zone or outside the years 1900 to 9000.
    """
    at, tz = _utc(at), zone(schedule.timezone)
    return _final(schedule, tz, [_eras(rotation, tz, at) for rotation in schedule.rotations], at)


def shifts(schedule: Schedule[U], start: datetime, end: datetime) -> list[Shift[U]]:
    """The final timeline from `start` to `end` (aware instants), without gaps: nobody on call is a shift too.

    Neighbours have different users. Each user list is that of `who`, so ranges that overlap agree. The time
    taken grows with the range: limit what a stranger may ask for. Errors as for `who`; an empty range is [].
    """
    start, end, tz = _utc(start), _utc(end), zone(schedule.timezone)
    if start >= end:
        return []
    eras = [_eras(rotation, tz, end) for rotation in schedule.rotations]
    edges: list[datetime] = sorted({at for at in _edges(schedule, tz, start, end) if start < at < end})
    found: list[Shift[U]] = []
    for begin, until in zip([start, *edges], [*edges, end], strict=True):
        users = _final(schedule, tz, eras, begin)
        if found and found[-1].users == users:
            found[-1] = Shift(found[-1].start, until, users)
        else:
            found.append(Shift(begin, until, users))
    return found


def next_change(schedule: Schedule[U], after: datetime, before: datetime) -> datetime | None:
    """The first UTC instant after `after` and before `before` at which other users are on call, or None.

    It looks at a day, then at twice as much, and so on: what is near is found fast. Errors as for `who`.
    """
    at, before, span, users = _utc(after), _utc(before), timedelta(days=1), who(schedule, after)
    while at < before:
        end = min(at + span, before)
        for shift in shifts(schedule, at, end):
            if shift.users != users:
                return shift.start
        at, span = end, min(span * 2, timedelta(days=366))
    return None


def handoffs(rotation: Rotation[U], timezone: str, start: datetime, end: datetime) -> list[datetime]:
    """Every boundary of one rotation from `start` to `end`, in UTC, before restrictions and overrides.

    Two boundaries at one instant are listed once. Errors as for `who`.
    """
    start, end, tz = _utc(start), _utc(end), zone(timezone)
    span = range(_passed(rotation, tz, start - _TICK), _passed(rotation, tz, end - _TICK))
    return sorted({_boundary(rotation, tz, k) for k in span})


def names_zone(name: str) -> bool:
    """Whether this is a name for people. Beside the zones, machines have files that are other things: the zone of the
    machine, none at all, and every zone once more, with and without leap seconds."""
    return name not in ("", "localtime", "posixrules", "Factory") and not name.startswith(("posix/", "right/"))


@cache
def zone(name: str) -> ZoneInfo:
    """The time zone of that IANA name; ValueError where there is none."""
    try:
        if not names_zone(name):
            raise ValueError(name)
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(f"there is no time zone {name!r}; a name looks like Europe/Berlin or UTC") from error


def instant(day: date, at: time, tz: ZoneInfo) -> datetime:
    """A local date and wall-clock time as a UTC instant.

    Of a time that occurs twice the first occurrence is meant; one that does not occur is moved forward by the
    size of the gap. Both are what `fold=0` means.
    """
    return datetime.combine(day, at, tzinfo=tz).astimezone(UTC)


def _final(schedule: Schedule[U], tz: ZoneInfo, eras: list[list[_Era[U]]], at: datetime) -> list[U]:
    users: set[U] = set()
    for rotation, its_eras in zip(schedule.rotations, eras, strict=True):
        user = _turn(rotation, tz, its_eras, at)
        if user is not None and _visible(rotation, tz, at):
            users.add(user)
    for override in schedule.overrides:
        if override.start <= at < override.end:
            users = _overridden(users, override)
    return sorted(users)


def _overridden(users: set[U], override: Override[U]) -> set[U]:
    if override.kind == "take":
        return {override.user}
    if override.kind == "remove":
        return users - {override.user}
    if override.replaces in users:
        return {override.user if user == override.replaces else user for user in users}
    return users


def _turn(rotation: Rotation[U], tz: ZoneInfo, eras: list[_Era[U]], at: datetime) -> U | None:
    era = eras[bisect_right(eras, at, key=lambda era: era.since) - 1]
    passed = _passed(rotation, tz, at)
    if passed == 0 or not era.participants:
        return None
    return era.participants[(era.position + passed - era.passed) % len(era.participants)]


def _eras(rotation: Rotation[U], tz: ZoneInfo, until: datetime) -> list[_Era[U]]:
    eras = [_Era(_ALWAYS, 0, rotation.participants, -1)]
    for change in sorted(rotation.roster_changes, key=lambda change: change.at):
        if change.at > until:
            break
        # A change at the instant of a boundary comes before that boundary, hence the tick.
        passed, last = _passed(rotation, tz, change.at - _TICK), eras[-1]
        if passed == 0:
            position = -1
        else:
            position = _carried(last.participants, last.position + passed - last.passed, change.participants)
        eras.append(_Era(change.at, passed, change.participants, position))
    return eras


def _carried(old: tuple[U, ...], position: int, new: tuple[U, ...]) -> int:
    """Whose turn it is in the new list: the same person's, else that of the next one who is still there."""
    for step in range(len(old)):
        index = (position + step) % len(old)
        places = [place for place, user in enumerate(new) if user == old[index]]
        if places:  # a list may name somebody twice: the second place stays the second
            return places[min(old[:index].count(old[index]), len(places) - 1)]
    return 0


def _passed(rotation: Rotation[U], tz: ZoneInfo, at: datetime) -> int:
    """How many boundaries lie at or before `at`."""
    if rotation.unit == "hour":
        elapsed = at - instant(rotation.start_date, rotation.handoff_time, tz)
        return max(0, elapsed // UNITS["hour"] // rotation.length + 1)
    # Tomorrow's boundary may be past already where clocks go back over midnight, so the search begins there.
    days = (at.astimezone(tz).date() - rotation.start_date).days + 1
    k = days // (UNITS[rotation.unit].days * rotation.length)
    while k >= 0 and _boundary(rotation, tz, k) > at:
        k -= 1
    return max(0, k + 1)


def _boundary(rotation: Rotation[U], tz: ZoneInfo, k: int) -> datetime:
    try:
        step = UNITS[rotation.unit] * (rotation.length * k)
        if rotation.unit == "hour":
            return instant(rotation.start_date, rotation.handoff_time, tz) + step
        return instant(rotation.start_date + step, rotation.handoff_time, tz)
    except OverflowError:
        return _NEVER


def _visible(rotation: Rotation[U], tz: ZoneInfo, at: datetime) -> bool:
    if not rotation.restrictions:
        return True
    today = at.astimezone(tz).date()
    return any(start <= at < end for start, end in _windows(rotation, tz, today, today))


def _windows(rotation: Rotation[U], tz: ZoneInfo, first: date, last: date) -> Iterator[tuple[datetime, datetime]]:
    """Start and end of every window that may touch the local dates from `first` to `last`."""
    # Two days before, because a night that ends on a date the zone skipped reaches into the next one; one day
    # after, because tomorrow may have begun once before the clocks went back over midnight.
    for ordinal in range(first.toordinal() - 2, last.toordinal() + 2):
        day = date.fromordinal(ordinal)
        for window in rotation.restrictions:
            if DAYS[day.weekday()] in window.days:
                end_day = day if window.end > window.start else date.fromordinal(ordinal + 1)
                yield instant(day, window.start, tz), instant(end_day, window.end, tz)


def _edges(schedule: Schedule[U], tz: ZoneInfo, start: datetime, end: datetime) -> Iterator[datetime]:
    """Every instant between `start` and `end` at which the result may change, and some others."""
    for rotation in schedule.rotations:
        yield from handoffs(rotation, schedule.timezone, start, end)
        yield from (change.at for change in rotation.roster_changes)
        for window in _windows(rotation, tz, start.astimezone(tz).date(), end.astimezone(tz).date()):
            yield from window
    for override in schedule.overrides:
        yield from (override.start, override.end)


def _utc(at: datetime) -> datetime:
    """The same instant in UTC: two times of one other zone would be compared by their wall clocks."""
    if at.utcoffset() is None:
        raise ValueError(f"{at} has no time zone")
    if not FIRST_YEAR <= at.year <= LAST_YEAR:
        raise ValueError(f"{at} lies outside the years {FIRST_YEAR} to {LAST_YEAR}")
    return at.astimezone(UTC)


def _refuse_offset(*times: time) -> None:
    if any(at.tzinfo is not None for at in times):
        raise ValueError("a wall-clock time carries no offset; its zone is that of the schedule")
