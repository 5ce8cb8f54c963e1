"""Schedules as they are stored: what the rules get to see, and what a person who leaves changes."""

from datetime import datetime, timedelta

import pytest
from psycopg.types.json import Jsonb

from escalade import oncall, schedules
from escalade.db import Database
from escalade.errors import NotFound
from tests import factories
from tests.acting import ALICE, climb, do, rows
from tests.clock import MovedClock

NOWHERE = "http://127.0.0.1:1"
People = tuple[int, int, int]


@pytest.fixture
def people(database: Database) -> People:
    """Alice, Bob and Charlie, in turn."""
    alice, bob, charlie = (factories.user(database, name) for name in ("alice", "bob", "charlie"))
    return alice, bob, charlie


def weekly(database: Database, people: People) -> int:
    """They take weeks in turn, from Monday the 5th of January 2026."""
    schedule = factories.schedule(database, list(people))
    factories.run(database, "update rotation set length = 1")
    return schedule


def who(database: Database, schedule: int, at: datetime) -> list[int]:
    """Who is on call at a time."""
    return oncall.who(do(database, schedules.load, [schedule])[schedule], at)


def turns(database: Database, schedule: int, start: datetime, weeks: int = 6) -> list[tuple[datetime, list[int]]]:
    """The shifts of the next weeks: end and people."""
    found = oncall.shifts(do(database, schedules.load, [schedule])[schedule], start, start + timedelta(weeks=weeks))
    return [(shift.end, list(shift.users)) for shift in found]


def drop(database: Database, user: int) -> None:
    """As deleting the person does."""
    with database.begin() as tx:
        schedules.drop_participant(tx, user)
        tx.conn.execute("delete from app_user where id = %s", [user])


def test_what_is_stored_is_what_the_rules_see(database: Database, people: People) -> None:
    schedule = factories.schedule(database, [people[0]], timezone="Europe/Berlin")
    windows = [{"days": ["mon", "tue"], "from": "09:00", "to": "17:00"}]
    factories.run(database, "update rotation set restrictions = %s", Jsonb(windows))
    found = do(database, schedules.load, [schedule, 404])
    assert list(found) == [schedule]
    assert found[schedule].timezone == "Europe/Berlin"
    [rotation] = found[schedule].rotations
    assert (rotation.participants, rotation.unit, rotation.length) == ((people[0],), "week", 1000)
    assert len(rotation.restrictions) == 1
    assert do(database, schedules.load, []) == {}


def test_a_schedule_is_found_by_name(database: Database, people: People) -> None:
    schedule = weekly(database, people)
    assert do(database, schedules.find, "primary").id == schedule
    with pytest.raises(NotFound) as refused:
        do(database, schedules.find, "primry")
    assert refused.value.field == "schedule"


def test_k048_a_person_not_on_call_who_leaves_moves_nobodys_turn(database: Database, people: People) -> None:
    schedule = weekly(database, people)
    now = factories.now(database)
    current = who(database, schedule, now)
    before = turns(database, schedule, now)
    leaving = next(person for person in people if [person] != current)
    drop(database, leaving)
    assert who(database, schedule, factories.now(database)) == current
    after = turns(database, schedule, now)
    assert after[0] == before[0], "the current turn ends when it ended before"
    assert all(users != [leaving] for _, users in after)
    assert [end for end, _ in after] == [end for end, _ in before], "handoffs stay where they were"


def test_k049_the_next_one_takes_over_at_once_and_later_handoffs_stay(database: Database, people: People) -> None:
    schedule = weekly(database, people)
    now = factories.now(database)
    before = turns(database, schedule, now)
    [leaving] = who(database, schedule, now)
    following = before[1][1]
    drop(database, leaving)
    assert who(database, schedule, factories.now(database)) == following
    after = turns(database, schedule, factories.now(database))
    ends = [end for end, _ in before][:-1]
    assert [end for end, _ in after if end in ends] == ends
    assert leaving not in {user for _, users in after for user in users}


def test_k050_a_person_who_left_a_rotation_is_not_paged_any_more(
    database: Database, people: People, clock: MovedClock
) -> None:
    for person in people:
        factories.contact(database, person, f"{NOWHERE}/{person}")
    schedule = weekly(database, people)
    policy = factories.policy(database, (300, [("schedule", schedule)]), repeat=5)
    incident = factories.open_incident(database, factories.service(database, policy))
    [first] = {row["user_id"] for row in rows(database, incident.id)}
    do(database, schedules.drop_participant, first)
    for _ in range(5):
        clock.pass_(weeks=1)
        climb(database)
    assert len(rows(database, incident.id)) == 6
    assert first not in {row["user_id"] for row in rows(database, incident.id)[1:]}


def test_a_person_who_leaves_is_taken_out_of_roster_changes_to_come(database: Database, people: People) -> None:
    alice, bob, charlie = people
    schedule = weekly(database, (alice, bob, bob))
    factories.run(database, "update rotation set participants = %s", [alice, bob])
    rotation = factories.run(database, "select id from rotation")[0][0]
    now = factories.now(database)
    factories.insert(
        database, "roster_change", rotation_id=rotation, at=now + timedelta(days=30), participants=[charlie]
    )
    drop(database, charlie)
    assert who(database, schedule, now + timedelta(days=31)) == []
    changes = factories.run(database, "select participants from roster_change")
    assert changes == [([],)], "nothing was added for those who stay"


def test_a_person_who_left_long_ago_changes_nothing(database: Database, people: People) -> None:
    weekly(database, people)
    do(database, schedules.drop_participant, people[2])
    before = factories.run(database, "select at, participants from roster_change")
    do(database, schedules.drop_participant, people[2])
    assert factories.run(database, "select at, participants from roster_change") == before


def test_the_last_person_who_leaves_leaves_nobody_on_call(database: Database, people: People) -> None:
    schedule = factories.schedule(database, [people[0]])
    drop(database, people[0])
    assert who(database, schedule, factories.now(database)) == []


def override(database: Database, schedule: int, kind: str, user: int, replaces: int | None = None) -> None:
    """An override of the hour around now."""
    now = factories.now(database)
    factories.insert(
        database,
        "override",
        schedule_id=schedule,
        kind=kind,
        user_id=user,
        replaces_id=replaces,
        start_at=now - timedelta(hours=1),
        end_at=now + timedelta(hours=1),
        source="person",
        created_by=ALICE,
    )


def test_k044_a_replacement_of_somebody_who_is_not_on_call_does_nothing(database: Database, people: People) -> None:
    schedule = factories.schedule(database, [people[0]])
    override(database, schedule, "replace", people[1], people[2])
    assert who(database, schedule, factories.now(database)) == [people[0]]


def test_a_replacement_of_somebody_who_is_gone_does_nothing(database: Database, people: People) -> None:
    schedule = factories.schedule(database, [people[0]])
    override(database, schedule, "replace", people[1], people[2])
    factories.run(database, "delete from app_user where id = %s", people[2])
    assert who(database, schedule, factories.now(database)) == [people[0]]


def test_k046_an_override_whose_person_is_gone_gives_the_turn_back(database: Database, people: People) -> None:
    schedule = factories.schedule(database, [people[0]])
    override(database, schedule, "take", people[1])
    assert who(database, schedule, factories.now(database)) == [people[1]]
    drop(database, people[1])
    assert who(database, schedule, factories.now(database)) == [people[0]]
    assert factories.run(database, "select user_id from override") == [(None,)], "it is still there to be ended"
