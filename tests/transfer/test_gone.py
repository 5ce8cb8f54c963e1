"""A rotation that still names people who are gone is exported without them, and nobody's turn moves."""

from datetime import UTC, date, datetime, time, timedelta

from hypothesis import given
from hypothesis import strategies as st

from escalade import oncall, schedules
from escalade.db import Database
from escalade.transfer import gone
from tests.factories import run, schedule, user
from tests.transfer.example import applied, exported

ZONES = ["UTC", "Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe", "Asia/Kolkata"]
NOW = st.datetimes(datetime(2018, 1, 1), datetime(2025, 1, 1), timezones=st.just(UTC))


@st.composite
def rotations(draw: st.DrawFn) -> tuple[oncall.Rotation[int], str, datetime, int]:
    """A rotation of four people, its zone, now, and one of them who was taken out before now and deleted."""
    now, left = draw(NOW), draw(st.integers(0, 3))
    people = tuple(draw(st.permutations(range(4))))
    others = tuple(one for one in people if one != left)
    at = now - timedelta(minutes=draw(st.integers(0, 60 * 24 * 20)))
    later = now + timedelta(minutes=draw(st.integers(1, 60 * 24 * 20)))
    changes = [oncall.RosterChange(at, others)]
    changes += [oncall.RosterChange(later, others[:2])] if draw(st.booleans()) else []
    start = now.date() - timedelta(days=draw(st.integers(-5, 400)))
    handoff = time(draw(st.integers(0, 23)), draw(st.sampled_from([0, 30])))
    unit, length = draw(st.sampled_from(["hour", "day", "week"])), draw(st.integers(1, 30))
    rotation = oncall.Rotation("r", people, unit, length, start, handoff, (), tuple(changes))
    return rotation, draw(st.sampled_from(ZONES)), now, left


@given(rotations())
def test_from_now_on_the_same_people_are_on_call(case: tuple[oncall.Rotation[int], str, datetime, int]) -> None:
    rotation, zone, now, left = case
    shorter = gone.without(rotation, zone, {left}, now)
    until = now + 12 * oncall.UNITS[rotation.unit] * rotation.length
    assert left not in shorter.participants
    assert all(change.at > now and left not in change.participants for change in shorter.roster_changes)
    assert timeline(shorter, zone, now, until) == timeline(rotation, zone, now, until)


def timeline(rotation: oncall.Rotation[int], zone: str, start: datetime, end: datetime) -> list[oncall.Shift[int]]:
    """Who is on call, and when."""
    return oncall.shifts(oncall.Schedule(zone, (rotation,)), start, end)


def test_somebody_named_twice_has_both_turns() -> None:
    changes = (oncall.RosterChange(datetime(2026, 1, 20, tzinfo=UTC), (1, 2, 1, 3)),)
    rotation = oncall.Rotation("r", (1, 9, 2, 1, 3), "day", 1, date(2026, 1, 5), time(9), (), changes)
    for day in range(5):
        now = datetime(2026, 1, 21 + day, 12, tzinfo=UTC)
        shorter = gone.without(rotation, "UTC", {9}, now)
        until = now + timedelta(days=12)
        assert timeline(shorter, "UTC", now, until) == timeline(rotation, "UTC", now, until)


def test_where_everybody_is_gone_nobody_is_left() -> None:
    rotation = oncall.Rotation("r", (1, 2), "day", 1, date(2026, 1, 5), time(9))
    assert gone.without(rotation, "UTC", {1, 2}, datetime(2026, 2, 1, tzinfo=UTC)).participants == ()


def test_turns_of_centuries_do_not_overflow() -> None:
    rotation = oncall.Rotation("r", tuple(range(50)), "week", 10_000, date(2026, 1, 5), time(9))
    assert gone.without(rotation, "UTC", {3}, datetime(2026, 2, 1, tzinfo=UTC)).participants[:4] == (0, 1, 2, 4)


def test_a_schedule_of_somebody_deleted_round_trips(database: Database) -> None:
    people = [user(database, name) for name in ("alice", "bob", "charlie")]
    schedule_id = schedule(database, people)
    with database.begin() as tx:
        schedules.drop_participant(tx, people[0])
    run(database, "delete from app_user where id = %s", people[0])
    with database.begin() as tx:
        before = oncall.who(schedules.load(tx, [schedule_id])[schedule_id], tx.now)
    text = exported(database)
    assert "alice" not in text
    assert applied(database, text) == []
    assert "rotation primary/weekly: length changed from 1000 to 999" in applied(
        database, text.replace("length: 1000", "length: 999")
    )
    assert run(database, "select participants from rotation") == [([people[1], people[2]],)]
    assert run(database, "select * from roster_change") == []
    with database.begin() as tx:
        assert oncall.who(schedules.load(tx, [schedule_id])[schedule_id], tx.now) == before == [people[1]]
