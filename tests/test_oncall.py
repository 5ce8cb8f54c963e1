"""On call: the schedule vectors, the known faults K037 to K053, and a slow walk that the arithmetic must equal."""

import json
import sys
import time as clock
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from escalade import oncall
from escalade.oncall import DAYS, Override, RosterChange, Rotation, Schedule, Window, handoffs, shifts, who

VECTORS = json.loads((Path(__file__).parent / "cases" / "schedules.json").read_text(encoding="utf-8"))["vectors"]
ZONES = (
    "America/New_York Europe/Berlin Australia/Lord_Howe America/Sao_Paulo Pacific/Apia Asia/Kathmandu "
    "Africa/Cairo America/St_Johns Pacific/Auckland UTC"
).split()
# Dates around which clocks change in at least one of the zones, a skipped date among them.
STARTS = [date(2006, 10, 20), date(2011, 12, 15), date(2018, 10, 25), date(2024, 2, 29), date(2024, 10, 22)]
TICK = timedelta.resolution
examples = settings(deadline=None, max_examples=150, database=None)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def rotation(*participants: str, **changed: Any) -> Rotation[str]:
    """Ana, Ben and Chi from Monday 4 March 2024 on, a day each from 09:00, but for what is `changed`."""
    defaults = {"unit": "day", "length": 1, "start_date": date(2024, 3, 4), "handoff_time": time(9)}
    return Rotation("primary", participants or ("ana", "ben", "chi"), **{**defaults, **changed})


def schedule(zone: str, *rotations: Rotation[str], overrides: tuple[Override[str], ...] = ()) -> Schedule[str]:
    return Schedule(zone, rotations, overrides)


def office(start: int = 9, end: int = 17) -> tuple[Window, ...]:
    return (Window(DAYS[:5], time(start), time(end)),)


# The vectors


def window_of(case: dict[str, Any]) -> Window:
    return Window(tuple(case["days"]), time.fromisoformat(case["from"]), time.fromisoformat(case["to"]))


def rotation_of(case: dict[str, Any]) -> Rotation[str]:
    return Rotation(
        case["name"],
        tuple(case["participants"]),
        case["unit"],
        case["length"],
        date.fromisoformat(case["start_date"]),
        time.fromisoformat(case["handoff_time"]),
        tuple(window_of(window) for window in case["restrictions"]),
        tuple(RosterChange(utc(change["at"]), tuple(change["participants"])) for change in case["roster_changes"]),
    )


def override_of(case: dict[str, Any]) -> Override[str]:
    return Override(case["kind"], case["user"], utc(case["start"]), utc(case["end"]), case.get("replaces"))


def schedule_of(vector: dict[str, Any]) -> Schedule[str]:
    return Schedule(
        vector["timezone"],
        tuple(rotation_of(case) for case in vector["rotations"]),
        tuple(override_of(case) for case in vector["overrides"]),
    )


each_vector = pytest.mark.parametrize("vector", VECTORS, ids=[vector["id"] for vector in VECTORS])


@each_vector
def test_checks(vector: dict[str, Any]) -> None:
    found = {check["at"]: who(schedule_of(vector), utc(check["at"])) for check in vector["checks"]}
    assert found == {check["at"]: check["oncall"] for check in vector["checks"]}


@each_vector
def test_timeline(vector: dict[str, Any]) -> None:
    start, end = utc(vector["window"]["from"]), utc(vector["window"]["to"])
    found = shifts(schedule_of(vector), start, end)
    assert [(s.start, s.users) for s in found] == [(utc(e["from"]), e["oncall"]) for e in vector["timeline"]]
    assert [s.end for s in found] == [s.start for s in found[1:]] + [end]


@each_vector
def test_handoffs(vector: dict[str, Any]) -> None:
    start, end = utc(vector["window"]["from"]), utc(vector["window"]["to"])
    found = {r.name: handoffs(r, vector["timezone"], start, end) for r in schedule_of(vector).rotations}
    assert found == {name: [utc(at) for at in instants] for name, instants in vector["handoffs"].items()}


@pytest.mark.parametrize("machine", ["UTC", "America/New_York", "Pacific/Apia"])
def test_answers_do_not_depend_on_the_zone_of_the_machine(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", machine)
        clock.tzset()
        for vector in VECTORS:
            test_checks(vector)
            test_timeline(vector)
    clock.tzset()


def test_answers_do_not_depend_on_the_zone_of_the_question() -> None:
    for vector in VECTORS:
        for check in vector["checks"]:
            asked = utc(check["at"]).astimezone(ZoneInfo("America/New_York"))
            assert who(schedule_of(vector), asked) == check["oncall"]


# A slow walk over every boundary and roster change, against which the arithmetic is held


def slow_instant(day: date, at: time, tz: ZoneInfo) -> datetime:
    wall = datetime.combine(day, at)
    around = [(wall + timedelta(days=days)).replace(tzinfo=tz).utcoffset() for days in (-2, 2)]
    fitting = [utc(str(wall - offset)) for offset in around if offset is not None]
    exact = [at for at in fitting if at.astimezone(tz).replace(tzinfo=None) == wall]
    return min(exact) if exact else fitting[0]


def slow_boundaries(r: Rotation[str], tz: ZoneInfo, until: datetime) -> Iterator[datetime]:
    at, k = slow_instant(r.start_date, r.handoff_time, tz), 0
    while at <= until:
        yield at
        k += r.length
        if r.unit == "hour":
            at += timedelta(hours=r.length)
        else:
            at = slow_instant(r.start_date + timedelta(days=k * (7 if r.unit == "week" else 1)), r.handoff_time, tz)


def slow_turn(r: Rotation[str], tz: ZoneInfo, at: datetime) -> str | None:
    changes = [(change.at, 0, change.participants) for change in r.roster_changes if change.at <= at]
    boundaries = [(boundary, 1, ()) for boundary in slow_boundaries(r, tz, at)]
    roster, current, begun = list(r.participants), None, False
    for _, is_boundary, participants in sorted([*changes, *boundaries], key=lambda event: event[:2]):
        if is_boundary:
            place = roster.index(current) + 1 if current is not None else 0
            current, begun = [*roster[place:], *roster, None][0], True
        else:
            old, roster = roster, list(participants)
            if begun and current not in roster:
                after = old[old.index(current) :] + old if current is not None else []
                current = [*(user for user in after if user in roster), *roster, None][0]
    return current


def slow_who(s: Schedule[str], at: datetime) -> list[str]:
    tz, users = ZoneInfo(s.timezone), set()
    for r in s.rotations:
        user, hidden = slow_turn(r, tz, at), bool(r.restrictions)
        for window in r.restrictions:
            for days in range(-4, 5):
                day = at.date() + timedelta(days=days)
                end = day + timedelta(days=window.end <= window.start)
                if slow_instant(day, window.start, tz) <= at < slow_instant(end, window.end, tz):
                    hidden = hidden and DAYS[day.weekday()] not in window.days
        if user is not None and not hidden:
            users.add(user)
    for o in s.overrides:
        if o.start <= at < o.end and (o.kind == "take" or o.user in users or o.replaces in users):
            if o.kind == "take":
                users = {o.user}
            elif o.kind == "remove":
                users.discard(o.user)
            elif o.replaces in users:
                users = users - {o.replaces} | {o.user}
    return sorted(users)


names = st.sampled_from(["ana", "ben", "chi", "dov"])
rosters = st.lists(names, unique=True, max_size=4).map(tuple)
minutes = st.times().map(lambda at: at.replace(minute=at.minute // 15 * 15, second=0, microsecond=0))
windows = st.builds(Window, st.sets(st.sampled_from(DAYS), min_size=1).map(tuple), minutes, minutes)


@st.composite
def rotations(draw: st.DrawFn, bare: bool = False) -> Rotation[str]:
    start = draw(st.sampled_from(STARTS)) + timedelta(days=draw(st.integers(-6, 6)))
    begins = datetime.combine(start, time(), tzinfo=UTC)
    hours = st.integers(-48, 24 * 30)
    changes = st.builds(RosterChange, hours.map(lambda h: begins + timedelta(hours=h)), rosters)
    return Rotation(
        "primary",
        draw(rosters.filter(bool) if bare else rosters),
        draw(st.sampled_from(list(oncall.UNITS))),
        draw(st.integers(1, 9)),
        start,
        draw(minutes),
        () if bare else tuple(draw(st.lists(windows, max_size=2))),
        () if bare else tuple(draw(st.lists(changes, max_size=3, unique_by=lambda change: change.at))),
    )


@st.composite
def overrides(draw: st.DrawFn, begins: datetime) -> Override[str]:
    kind, hours = draw(st.sampled_from(oncall.KINDS)), st.integers(0, 24 * 30)
    start, end = (begins + timedelta(hours=draw(hours)) for _ in range(2))
    return Override(kind, draw(names), start, end, draw(names) if kind == "replace" else None)


@st.composite
def schedules(draw: st.DrawFn) -> Schedule[str]:
    some = draw(st.lists(rotations(), min_size=1, max_size=2))
    begins = datetime.combine(some[0].start_date, time(), tzinfo=UTC)
    return Schedule(draw(st.sampled_from(ZONES)), tuple(some), tuple(draw(st.lists(overrides(begins), max_size=2))))


def range_of(s: Schedule[str], first: int, days: int) -> tuple[datetime, datetime]:
    begins = datetime.combine(s.rotations[0].start_date, time(5), tzinfo=UTC) + timedelta(days=first)
    return begins, begins + timedelta(days=days)


@examples
@given(schedules(), st.integers(-3, 25), st.data())
def test_the_arithmetic_equals_a_slow_walk(s: Schedule[str], first: int, data: st.DataObject) -> None:
    start, end = range_of(s, first, 6)
    edges = [at for shift in shifts(s, start, end) for at in (shift.start, shift.end)]
    asked = data.draw(st.sampled_from(edges)) + data.draw(st.sampled_from([-TICK, 0 * TICK, timedelta(hours=5)]))
    assert who(s, asked) == slow_who(s, asked)


@examples
@given(schedules(), st.integers(-3, 25), st.integers(0, 6 * 24 * 60 - 1))
def test_who_is_the_shift_that_contains_the_instant(s: Schedule[str], first: int, minute: int) -> None:
    start, end = range_of(s, first, 6)
    timeline, at = shifts(s, start, end), start + timedelta(minutes=minute)
    assert [who(s, at)] == [shift.users for shift in timeline if shift.start <= at < shift.end]
    assert all(who(s, shift.start) == who(s, shift.end - TICK) == shift.users for shift in timeline)
    assert all(
        one.end == two.start and one.users != two.users for one, two in zip(timeline, timeline[1:], strict=False)
    )


@examples
@given(schedules(), st.integers(-3, 25))
def test_next_change_is_where_the_next_shift_starts(s: Schedule[str], first: int) -> None:
    start, end = range_of(s, first, 9)
    starts = [shift.start for shift in shifts(s, start, end)[1:]]
    assert oncall.next_change(s, start, end) == (starts[0] if starts else None)


@examples
@given(schedules(), st.integers(-3, 20), st.integers(0, 100), st.integers(1, 100))
def test_k053_overlapping_ranges_agree(s: Schedule[str], first: int, offset: int, hours: int) -> None:
    start, end = range_of(s, first, 10)
    part_start = start + timedelta(hours=offset)
    part_end = part_start + timedelta(hours=hours)
    cut = [(max(x.start, part_start), min(x.end, part_end), x.users) for x in shifts(s, start, end)]
    part = [(x.start, x.end, x.users) for x in shifts(s, part_start, part_end)]
    assert part == [(begin, until, users) for begin, until, users in cut if begin < until]


@examples
@given(rotations(bare=True), st.sampled_from(ZONES), st.integers(0, 20 * 24 * 60))
def test_k038_exactly_one_is_on_call_at_every_instant(r: Rotation[str], zone: str, minute: int) -> None:
    s, begins = schedule(zone, r), slow_instant(r.start_date, r.handoff_time, ZoneInfo(zone))
    assert who(s, begins - TICK) == []
    assert len(who(s, begins + timedelta(minutes=minute))) == 1
    timeline = shifts(s, begins, begins + timedelta(days=20))
    assert all(len(shift.users) == 1 for shift in timeline)


# Known faults


def test_k037_handoffs_and_windows_keep_their_wall_clock_times() -> None:
    s = schedule("America/New_York", rotation(restrictions=office(9, 18)))
    year = [shift for shift in shifts(s, utc("2024-03-04"), utc("2025-03-04")) if shift.users]
    tz = ZoneInfo("America/New_York")
    assert {(x.start.astimezone(tz).time(), x.end.astimezone(tz).time()) for x in year} == {(time(9), time(18))}


def test_k038_the_shift_over_a_change_lasts_23_or_25_hours() -> None:
    def longest_and_shortest(start: str, end: str) -> set[timedelta]:
        found = shifts(schedule("Europe/Berlin", rotation()), utc(start), utc(end))[1:-1]
        return {shift.end - shift.start for shift in found}

    assert longest_and_shortest("2024-03-29", "2024-04-03") == {timedelta(hours=23), timedelta(hours=24)}
    assert longest_and_shortest("2024-10-25", "2024-10-30") == {timedelta(hours=25), timedelta(hours=24)}


def test_k039_a_boundary_takes_the_offset_of_its_own_date() -> None:
    found = handoffs(rotation(unit="week"), "America/New_York", utc("2024-03-04"), utc("2024-03-20"))
    assert found == [utc("2024-03-04T14:00"), utc("2024-03-11T13:00"), utc("2024-03-18T13:00")]


def test_k040_a_handoff_time_that_occurs_twice_means_the_first() -> None:
    twice = rotation(handoff_time=time(1, 30))
    found = handoffs(twice, "America/New_York", utc("2024-11-03"), utc("2024-11-05"))
    assert found == [utc("2024-11-03T05:30"), utc("2024-11-04T06:30")]


def test_k040_a_handoff_time_that_does_not_occur_moves_forward_by_the_gap() -> None:
    missing = rotation(handoff_time=time(2, 30))
    found = handoffs(missing, "America/New_York", utc("2024-03-09T12:00"), utc("2024-03-12"))
    assert found == [utc("2024-03-10T07:30"), utc("2024-03-11T06:30")]


def test_k040_midnight_that_comes_twice_hands_off_once() -> None:
    midnight = rotation(handoff_time=time(), start_date=date(2006, 10, 25))
    found = handoffs(midnight, "America/St_Johns", utc("2006-10-28T12:00"), utc("2006-10-30T12:00"))
    assert found == [utc("2006-10-29T02:30"), utc("2006-10-30T03:30")]
    s = schedule("America/St_Johns", midnight)
    again = utc("2006-10-29T03:00")  # 23:30 on the 28th for the second time: the 29th had begun before
    assert who(s, again) == who(s, utc("2006-10-29T12:00")) != who(s, utc("2006-10-29T02:00"))


@pytest.mark.parametrize(("start", "asked"), [(date(2024, 1, 15), "2024-07-15"), (date(2024, 7, 15), "2025-01-13")])
def test_k041_winter_and_summer_have_the_same_local_handoff(start: date, asked: str) -> None:
    r = rotation(unit="week", start_date=start)
    for at in handoffs(r, "Europe/Berlin", utc(asked), utc(asked) + timedelta(weeks=8)):
        assert at.astimezone(ZoneInfo("Europe/Berlin")).time() == time(9)


def test_k042_weekdays_are_those_of_the_zone_of_the_schedule() -> None:
    s = schedule("Pacific/Auckland", rotation(handoff_time=time(), restrictions=office()))
    assert who(s, utc("2024-03-10T20:30")) != []  # Monday 09:30 there, Sunday in UTC
    assert who(s, utc("2024-03-08T20:30")) == []  # Saturday 09:30 there, Friday in UTC


def test_k043_cover_keeps_each_shift_and_each_gap() -> None:
    plain = schedule("Europe/Berlin", rotation("ana", "ben", handoff_time=time(), restrictions=office()))
    cover = Override("replace", "dov", utc("2024-03-04"), utc("2024-04-15"), "ana")
    covered = schedule("Europe/Berlin", *plain.rotations, overrides=(cover,))
    before, after = (shifts(s, utc("2024-03-04"), utc("2024-04-15")) for s in (plain, covered))
    assert [(x.start, x.end) for x in before] == [(x.start, x.end) for x in after]
    assert [["dov"] if x.users == ["ana"] else x.users for x in before] == [x.users for x in after]


def test_k044_replacing_somebody_who_is_not_on_call_has_no_effect() -> None:
    idle = Override("replace", "dov", utc("2024-03-04T10:00"), utc("2024-03-04T12:00"), "ben")
    s = schedule("UTC", rotation(), overrides=(idle,))
    assert who(s, utc("2024-03-04T11:00")) == ["ana"]


@pytest.mark.parametrize("kind", oncall.KINDS)
def test_k045_who_and_the_timeline_agree_about_an_override(kind: str) -> None:
    user, replaces = ("ana", None) if kind == "remove" else ("dov", "ana" if kind == "replace" else None)
    override = Override(kind, user, utc("2024-03-04T10:00"), utc("2024-03-04T12:00"), replaces)
    s = schedule("UTC", rotation(), overrides=(override,))
    during = [] if kind == "remove" else ["dov"]
    timeline = [shift.users for shift in shifts(s, utc("2024-03-04T09:00"), utc("2024-03-04T13:00"))]
    assert timeline == [["ana"], during, ["ana"]]
    assert who(s, override.start) == who(s, override.end - TICK) == during
    assert who(s, override.start - TICK) == who(s, override.end) == ["ana"]


def test_k047_a_wall_clock_time_never_carries_an_offset() -> None:
    with pytest.raises(ValueError, match="carries no offset"):
        Window(("mon",), time(9, tzinfo=UTC), time(17))
    with pytest.raises(ValueError, match="carries no offset"):
        rotation(handoff_time=time(9, tzinfo=UTC))


def test_k048_removing_somebody_who_is_not_on_call_keeps_the_turn() -> None:
    change = RosterChange(utc("2024-03-05T12:00"), ("ben", "chi"))
    s = schedule("UTC", rotation(roster_changes=(change,)))
    timeline = [shift.users for shift in shifts(s, utc("2024-03-05T09:00"), utc("2024-03-08T09:00"))]
    assert timeline == [["ben"], ["chi"], ["ben"]]


def test_k049_the_next_takes_over_at_once_and_handoffs_stay() -> None:
    change = RosterChange(utc("2024-03-05T12:00"), ("ana", "chi"))
    s = schedule("UTC", rotation(roster_changes=(change,)))
    timeline = [(shift.start, shift.users) for shift in shifts(s, utc("2024-03-05T09:00"), utc("2024-03-07T09:00"))]
    assert timeline == [
        (utc("2024-03-05T09:00"), ["ben"]),
        (utc("2024-03-05T12:00"), ["chi"]),
        (utc("2024-03-06T09:00"), ["ana"]),
    ]


@pytest.mark.parametrize("gone", ["ana", "ben", "chi"])
def test_k050_somebody_removed_is_never_on_call_again(gone: str) -> None:
    left = tuple(user for user in ("ana", "ben", "chi") if user != gone)
    change = RosterChange(utc("2024-03-05T12:00"), left)
    s = schedule("UTC", rotation(roster_changes=(change,)))
    later = shifts(s, change.at, change.at + timedelta(days=60))
    assert {user for shift in later for user in shift.users} == set(left)


@pytest.mark.parametrize("days", [1, 2, 3, 10])
def test_k051_the_first_shift_begins_at_the_start_and_lasts_in_full(days: int) -> None:
    s = schedule("Asia/Kathmandu", rotation(length=days))
    begins = utc("2024-03-04T03:15")
    nobody, first, *_ = shifts(s, begins - timedelta(days=9), begins + timedelta(days=30))
    assert (nobody.users, first.users) == ([], ["ana"])
    assert (first.start, first.end) == (begins, begins + timedelta(days=days))


def test_k052_hidden_days_do_not_change_whose_turn_it_is() -> None:
    open_, hidden = schedule("UTC", rotation()), schedule("UTC", rotation(restrictions=office()))
    visible = [shift for shift in shifts(hidden, utc("2024-03-04"), utc("2024-06-04")) if shift.users]
    assert len(visible) > 60
    assert all(who(open_, shift.start) == shift.users for shift in visible)


# Rosters, in corners that the vectors leave out


def turns(r: Rotation[str], *instants: str) -> list[str]:
    return ["".join(who(schedule("UTC", r), utc(at))) for at in instants]


def test_a_roster_changed_before_the_start_begins_with_its_first() -> None:
    r = rotation(roster_changes=(RosterChange(utc("2024-03-01"), ("dov", "ana")),))
    assert turns(r, "2024-03-03", "2024-03-04T09:00", "2024-03-05T09:00") == ["", "dov", "ana"]


def test_a_roster_changed_at_a_boundary_counts_before_that_boundary() -> None:
    r = rotation(roster_changes=(RosterChange(utc("2024-03-05T09:00"), ("ana", "dov", "chi")),))
    assert turns(r, "2024-03-05T08:59", "2024-03-05T09:00", "2024-03-06T09:00") == ["ana", "dov", "chi"]


def test_an_emptied_roster_is_nobody_until_it_is_set_again() -> None:
    emptied: RosterChange[str] = RosterChange(utc("2024-03-05T12:00"), ())
    again = RosterChange(utc("2024-03-07T12:00"), ("dov", "eva"))
    r = rotation(roster_changes=(again, emptied))  # their order does not matter
    assert turns(r, "2024-03-05T12:00", "2024-03-07T11:59") == ["", ""]
    assert turns(r, "2024-03-07T12:00", "2024-03-08T09:00", "2024-03-09T09:00") == ["dov", "eva", "dov"]


def test_a_roster_replaced_as_a_whole_starts_with_its_first() -> None:
    r = rotation(roster_changes=(RosterChange(utc("2024-03-05T12:00"), ("dov", "eva")),))
    assert turns(r, "2024-03-05T12:00", "2024-03-06T09:00") == ["dov", "eva"]


def test_somebody_listed_twice_keeps_the_second_place() -> None:
    r = rotation(
        "ana", "ben", "ana", "chi", roster_changes=(RosterChange(utc("2024-03-06T12:00"), ("ana", "ana", "chi")),)
    )
    assert turns(r, "2024-03-06T09:00", "2024-03-06T12:00", "2024-03-07T09:00") == ["ana", "ana", "chi"]


# Windows and ranges at their edges


def test_a_night_that_ends_on_a_skipped_date_ends_on_the_next_one() -> None:
    night = Window(("thu", "fri"), time(22), time(6))  # Friday 30 December 2011 did not exist in Apia
    s = schedule("Pacific/Apia", rotation("ana", start_date=date(2011, 12, 1), restrictions=(night,)))
    found = [(shift.start, shift.end) for shift in shifts(s, utc("2011-12-29"), utc("2012-01-01")) if shift.users]
    assert found == [(utc("2011-12-30T08:00"), utc("2011-12-30T16:00"))]
    assert who(s, utc("2011-12-30T15:59")) == ["ana"]


def test_a_day_that_began_before_the_clocks_went_back_over_midnight_stays_begun() -> None:
    sunday = Window(("sun",), time(), time(12))
    s = schedule("America/St_Johns", rotation("ana", start_date=date(2006, 10, 1), restrictions=(sunday,)))
    found = [(shift.start, shift.end) for shift in shifts(s, utc("2006-10-28"), utc("2006-10-30")) if shift.users]
    assert found == [(utc("2006-10-29T02:30"), utc("2006-10-29T15:30"))]
    assert who(s, utc("2006-10-29T03:00")) == ["ana"]  # 23:30 on Saturday, for the second time


def test_a_range_of_handoffs_includes_its_start_and_excludes_its_end() -> None:
    start = utc("2024-03-05T09:00")
    assert handoffs(rotation(), "UTC", start, start + timedelta(days=2)) == [start, start + timedelta(days=1)]


# Errors and speed


NO_ZONES = ["Mars/Olympus", "", "America", "../etc/passwd", "a\0b", "x" * 999]
NO_ZONES += ["localtime", "Factory", "posixrules", "posix/Europe/Berlin", "right/Europe/Berlin"]


@pytest.mark.parametrize("name", NO_ZONES)
def test_a_bad_zone_name_is_a_clear_error(name: str) -> None:
    s, at = schedule(name, rotation()), utc("2024-03-05")
    for ask in (lambda: who(s, at), lambda: shifts(s, at, at), lambda: handoffs(rotation(), name, at, at)):
        with pytest.raises(ValueError, match="there is no time zone"):
            ask()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"unit": "month"}, "'month' is not a unit"),
        ({"length": 0}, "at least 1 day, not 0"),
        ({"start_date": date(1, 1, 1)}, "outside the years"),
    ],
)
def test_a_rotation_that_cannot_work_is_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rotation(**changed)


def test_other_values_that_cannot_work_are_refused() -> None:
    at = utc("2024-03-05")
    with pytest.raises(ValueError, match="'monday' is not a day"):
        Window(("monday",), time(9), time(17))
    with pytest.raises(ValueError, match="'swap' is not a kind"):
        Override("swap", "ana", at, at)
    for kind, replaces in (("replace", None), ("take", "ben")):
        with pytest.raises(ValueError, match="whom it replaces"):
            Override(kind, "ana", at, at, replaces)


@pytest.mark.parametrize(
    "at", [datetime(2024, 3, 5), datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)]
)
def test_an_instant_without_a_zone_or_far_away_is_a_clear_error(at: datetime) -> None:
    for ask in (lambda: who(schedule("UTC", rotation()), at), lambda: RosterChange(at, ("ana",))):
        with pytest.raises(ValueError, match="has no time zone|outside the years"):
            ask()


@pytest.mark.parametrize("unit", list(oncall.UNITS))
def test_a_turn_longer_than_the_calendar_never_ends(unit: str) -> None:
    s = schedule("Pacific/Apia", rotation(unit=unit, length=10**12))
    assert who(s, utc("8999-12-31")) == ["ana"]
    assert oncall.next_change(s, utc("2024-03-05"), utc("2034-03-05")) is None


@pytest.mark.parametrize("unit", list(oncall.UNITS))
def test_who_takes_no_more_steps_after_ten_years(unit: str) -> None:
    def steps(begun: date) -> int:
        asked = schedule("Europe/Berlin", rotation(unit=unit, start_date=begun, restrictions=office()))
        return calls(lambda: who(asked, utc("2024-03-05T12:00")))

    steps(date(2024, 3, 4))  # what is read once, such as the zone
    assert steps(date(2014, 3, 4)) <= 1.5 * steps(date(2024, 3, 4))


def calls(work: Callable[[], object]) -> int:
    """How many functions are called in the course of it, built-in ones too."""
    seen = 0

    def note(frame: object, event: str, arg: object) -> None:
        nonlocal seen
        seen += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return seen


def test_an_empty_range_has_no_shifts() -> None:
    s, at = schedule("UTC", rotation()), utc("2024-03-05")
    assert shifts(s, at, at) == shifts(s, at, at - TICK) == []
    assert handoffs(s.rotations[0], "UTC", at, at - timedelta(days=9)) == []
    assert oncall.next_change(s, at, at) is None
