"""On call: the week, its gaps, overrides by hand, and who would be paged."""

import re
from datetime import UTC, date, datetime, time, timedelta
from html import unescape
from zoneinfo import ZoneInfo

import pytest
from psycopg.types.json import Jsonb
from werkzeug.test import TestResponse

from escalade import rehearsal
from escalade.rota import Turn
from escalade.web.pages import week
from tests import factories
from tests.web.screens import Person, Screens

RECEIVER = "http://127.0.0.1:9/hook"


@pytest.fixture
def service(screens: Screens) -> int:
    return factories.ladder(screens.db, RECEIVER)


@pytest.fixture
def alice(screens: Screens, service: int) -> Person:
    return screens.client()


@pytest.fixture
def schedule(screens: Screens, service: int) -> int:
    return int(factories.run(screens.db, "select id from schedule")[0][0])


def card(text: str, schedule: int) -> str:
    return text.split(f'id="schedule-{schedule}"')[1].split("</section>")[0]


def now_on_call(text: str, schedule: int) -> str:
    return re.findall(r"<small>Now</small><h3[^>]*>([^<]*)</h3>", card(text, schedule))[0]


def after(person: Person, answer: TestResponse) -> str:
    assert answer.status_code == 303, answer.text
    return person.get(answer.headers["Location"]).text


def hourly(screens: Screens) -> None:
    """Alice and Bob hand over each day at 09:00 in Berlin; nobody is on call at the weekend."""
    factories.run(screens.db, "update schedule set timezone = 'Europe/Berlin'")
    factories.run(
        screens.db,
        "update rotation set unit = 'day', length = 1, restrictions = %s",
        Jsonb([{"days": ["mon", "tue", "wed", "thu", "fri"], "from": "00:00", "to": "00:00"}]),
    )


def test_k088_the_week_is_in_the_readers_zone_and_hand_offs_in_both(
    screens: Screens, alice: Person, schedule: int
) -> None:
    hourly(screens)
    factories.run(screens.db, "update app_user set timezone = 'Asia/Tokyo' where email = 'alice@example.com'")
    text = alice.get("/oncall?week=2026-03-05").text
    assert "2 Mar to 8 Mar 2026" in text and "in your zone, Asia/Tokyo" in text
    assert '<time datetime="2026-03-03T08:00:00Z">Tue 3 Mar 17:00 JST</time>' in text
    assert "(Tue 3 Mar 09:00 CET in Europe/Berlin)" in text
    assert re.findall(r"<li>(\w+)<br>(\d+)</li>", card(text, schedule))[0] == ("Mon", "2")


def test_gaps_are_red_and_say_so(screens: Screens, alice: Person, schedule: int) -> None:
    hourly(screens)
    text = card(alice.get("/oncall?week=2026-03-05").text, schedule)
    assert text.count('class="gap"') == 1 and "Gap: nobody" in text
    assert '<time datetime="2026-03-06T23:00:00Z">Fri 6 Mar 23:00 UTC</time>' in text
    factories.run(screens.db, "update rotation set restrictions = '[]'")
    text = card(alice.get("/oncall?week=2026-03-05").text, schedule)
    assert 'class="gap"' not in text and "Gap" not in text


def test_weeks_lead_to_each_other(screens: Screens, alice: Person) -> None:
    text = alice.get("/oncall?week=2026-03-05").text
    links = re.findall(r'href="/oncall\?week=([\d-]+)" rel="(\w+)"', text)
    assert links == [("2026-02-23", "prev"), ("2026-03-09", "next")]
    for week_ in ("nonsense", "0001-01-01", "9999-12-31", ""):
        assert alice.get(f"/oncall?week={week_}").status_code == 200


def test_a_day_on_which_clocks_change_is_as_wide_as_any(screens: Screens) -> None:
    seen = week.of(date(2026, 3, 29), ZoneInfo("Europe/Berlin"))
    assert seen.monday == date(2026, 3, 23) and seen.end - seen.start == timedelta(hours=167)
    noon = datetime(2026, 3, 29, 12, tzinfo=ZoneInfo("Europe/Berlin"))
    assert seen.place(seen.start) == 0 and seen.place(seen.end) == 100
    assert seen.place(seen.starts[6]) == pytest.approx(600 / 7)
    assert seen.place(noon.astimezone(UTC)) == pytest.approx(100 / 7 * (6 + 11 / 23))
    [bar] = week.bars(seen, [Turn(seen.start, seen.end, ())])
    assert bar.gap and (bar.x, bar.width, bar.begins, bar.ends) == ("0.000%", "100.000%", False, False)


def test_k092_two_taps_take_it_and_the_generated_shifts_change(screens: Screens, alice: Person, schedule: int) -> None:
    bob = screens.client("bob")
    text = alice.get("/oncall").text
    assert now_on_call(text, schedule) == "Alice" and f'<details id="take-{schedule}">' in text
    until = re.findall(r'name="until" value="([^"]+)">until', card(text, schedule))
    assert len(until) == 4 and datetime.fromisoformat(until[1]) - datetime.fromisoformat(until[0]) == timedelta(hours=3)
    seen = re.findall(r'name="seen" value="(\d+)"', text)[0]
    changed = after(bob, bob.post(f"/oncall/{schedule}/take", until=until[1], seen=seen))
    assert now_on_call(changed, schedule) == "Bob"
    said = changed.split('id="said"')[1].split("</p>")[0]
    assert "Bob takes primary from <time" in said and f'until <time datetime="{until[1]}"' in said
    assert ">Bob</text>" in card(changed, schedule) and "in effect" in card(changed, schedule)
    [(number, source, by)] = factories.run(screens.db, "select id, source, created_by from override")
    assert (source, by) == ("person", "bob@example.com")
    back = after(alice, alice.post(f"/oncall/{schedule}/overrides/{number}/remove"))
    assert "Override removed." in back and now_on_call(back, schedule) == "Alice"
    again = after(bob, bob.post(f"/oncall/{schedule}/overrides/{number}/remove"))
    assert "That override had been removed already." in again


@pytest.mark.parametrize(
    ("until", "words"),
    [
        ("2026-01-01T00:00:00Z", "That time has passed meanwhile"),
        ("9000-01-01T00:00:00Z", "Choose until when"),
        ("2999-01-01T00:00:00Z", "lasts at most 90 days"),
        ("tomorrow", "Choose until when"),
        ("2026-01-01T00:00:00", "Choose until when"),
    ],
)
def test_k092_a_take_that_cannot_be_says_why(
    screens: Screens, alice: Person, schedule: int, until: str, words: str
) -> None:
    answer = alice.post(f"/oncall/{schedule}/take", until=until)
    assert answer.status_code == 422 and words in answer.text
    assert factories.run(screens.db, "select count(*) from override") == [(0,)]


def test_somebody_else_who_changed_it_meanwhile_is_told_of(screens: Screens, alice: Person, schedule: int) -> None:
    text = alice.get("/oncall").text
    seen = re.findall(r'name="seen" value="(\d+)"', text)[0]
    until = re.findall(r'name="until" value="([^"]+)"', text)[0]
    bob = screens.client("bob")
    assert "meanwhile" not in after(bob, bob.post(f"/oncall/{schedule}/take", until=until, seen=seen))
    warned = after(alice, alice.post(f"/oncall/{schedule}/take", until=until, seen=seen))
    assert "Somebody else had changed this schedule meanwhile" in warned and 'class="said warn"' in warned
    assert now_on_call(warned, schedule) == "Alice" and "Bob" in card(warned, schedule)


def local(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M}"


def test_somebody_stands_in_for_somebody_else_at_times_of_the_readers_zone(
    screens: Screens, alice: Person, schedule: int
) -> None:
    factories.run(screens.db, "update app_user set timezone = 'Asia/Tokyo' where email = 'alice@example.com'")
    form = alice.get(f"/oncall/{schedule}/override").text
    assert "in your zone, Asia/Tokyo" in form and "<option selected>alice@example.com</option>" in form
    start = factories.now(screens.db).astimezone(ZoneInfo("Asia/Tokyo")).replace(second=0, microsecond=0)
    fields = {
        "kind": "replace",
        "user": "bob@example.com",
        "replaces": "alice@example.com",
        "start": local(start - timedelta(hours=1)),
        "end": local(start + timedelta(hours=2)),
        "week": "2026-03-02",
    }
    answer = alice.post(f"/oncall/{schedule}/override", **fields)
    assert "week=2026-03-02" in answer.headers["Location"]
    text = after(alice, answer)
    assert now_on_call(text, schedule) == "Bob" and "Bob stands in for Alice on primary" in text
    [(kind, starts)] = factories.run(screens.db, "select kind, start_at from override")
    assert kind == "replace" and starts == start - timedelta(hours=1)
    removed = after(alice, alice.post(f"/oncall/{schedule}/override", **(fields | {"kind": "remove"})))
    assert "Bob is taken off primary" in removed and now_on_call(removed, schedule) == "Nobody"


@pytest.mark.parametrize(
    ("changed", "field", "words"),
    [
        ({"kind": "steal"}, "kind", "kind must be"),
        ({"kind": "replace", "replaces": ""}, "replaces", "Choose who is replaced."),
        ({"kind": "replace", "replaces": "bob@example.com"}, "replaces", "Nobody stands in for themselves."),
        ({"user": ""}, "user", "Choose a person."),
        ({"user": "nobody@example.com"}, "user", "There is no user"),
        ({"user": "vera@example.com"}, "user", "viewers are not paged"),
        ({"start": "soon"}, "start", "must be a date and a time"),
        ({"end": "2026-01-01T00:00"}, "end", "end must come after start."),
    ],
)
def test_an_override_that_cannot_be_comes_back_as_typed(
    screens: Screens, alice: Person, schedule: int, changed: dict[str, str], field: str, words: str
) -> None:
    screens.client("vera", "viewer")
    fields = {"kind": "take", "user": "bob@example.com", "start": "2026-02-01T00:00", "end": "2026-02-02T00:00"}
    answer = alice.post(f"/oncall/{schedule}/override", **(fields | changed))
    text = unescape(answer.text)
    assert answer.status_code == 422 and words in text.split(f'id="fault-{field}">')[1].split("</span>")[0]
    assert f'value="{(fields | changed)["end"]}"' in text
    assert factories.run(screens.db, "select count(*) from override") == [(0,)]


def test_a_viewer_looks_and_changes_nothing(screens: Screens, schedule: int) -> None:
    vera = screens.client("vera", "viewer")
    text = vera.get("/oncall").text
    assert "Take it for me" not in text and "Another override" not in text
    for path in ("take", "override", "overrides/1/remove"):
        assert vera.post(f"/oncall/{schedule}/{path}").status_code == 403
    assert vera.get(f"/oncall/{schedule}/override").status_code == 403


def test_a_schedule_that_is_gone_is_not_found(alice: Person) -> None:
    for path in ("take", "override", "overrides/1/remove"):
        assert alice.post(f"/oncall/999/{path}", until="2030-01-01T00:00:00Z").status_code == 404


def test_an_override_of_somebody_who_is_gone_says_that_it_does_nothing(
    screens: Screens, alice: Person, schedule: int
) -> None:
    carl = factories.user(screens.db, "carl")
    now = factories.now(screens.db)
    factories.insert(
        screens.db,
        "override",
        schedule_id=schedule,
        kind="take",
        user_id=carl,
        start_at=now,
        end_at=now + timedelta(hours=1),
        source="yaml",
        created_by="a file",
    )
    factories.run(screens.db, "delete from app_user where id = %s", carl)
    text = card(alice.get("/oncall").text, schedule)
    assert "somebody who is gone" in text and "changes nothing: that person is gone" in text and "from YAML" in text


def test_who_is_paged_if_a_service_fires_now(screens: Screens, alice: Person) -> None:
    bob = factories.run(screens.db, "select id from app_user where name = 'Bob'")[0][0]
    mail = factories.contact(screens.db, bob, "bob@example.com", kind="email")
    factories.rule(screens.db, bob, mail, after=120)
    factories.fallback(screens.db, "channel", factories.channel(screens.db, RECEIVER), "ops")
    text = alice.get("/oncall?service=api").text.split('id="stages"')[1].split("</ol>")[0]
    first, second, end = text.split("<li>")[1:]
    assert "<b>Alice</b> by webhook" in first and "at once" in first and "Bob" not in first
    assert "<b>Bob</b> by webhook" in second and "<b>Bob</b> by email (email)</span><span>at <time" in second.replace(
        "\n", ""
    )
    assert "the fallback" in end and "<b>#ops</b> by webhook (ops)" in end
    assert factories.run(screens.db, "select count(*) from notification_attempt") == [(0,)]


def test_the_rehearsal_says_whom_a_real_incident_pages(screens: Screens, service: int) -> None:
    with screens.db.read() as tx:
        plan = rehearsal.rehearse(tx, "api", "critical")
    incident = factories.open_incident(screens.db, service)
    assert [one.who for one in plan.stages[0].told] == ["Alice"] and incident.urgency == plan.urgency
    rows = factories.run(
        screens.db,
        "select u.name, a.due_at from notification_attempt a join app_user u on u.id = a.user_id where kind = 'PAGE'",
    )
    assert [row[0] for row in rows] == [one.who for one in plan.stages[0].told]
    [(due,)] = factories.run(screens.db, "select due_at from notification_attempt where kind = 'STEP'")
    assert due - incident.opened_at == plan.stages[1].at - plan.stages[0].at


def test_a_rehearsal_climbs_every_round_for_the_time_it_comes(screens: Screens, service: int) -> None:
    factories.run(screens.db, "update escalation_policy set repeat = 1")
    factories.run(
        screens.db,
        "update rotation set unit = 'hour', length = 1, start_date = %s, handoff_time = %s",
        factories.now(screens.db).date() - timedelta(days=2),
        time(0),
    )
    factories.run(screens.db, "update escalation_step set wait_seconds = 3600 where position = 1")
    factories.run(screens.db, "update escalation_step set wait_seconds = 7200 where position = 2")
    with screens.db.read() as tx:
        plan = rehearsal.rehearse(tx, "api", "info")
    assert [(stage.round, stage.step) for stage in plan.stages] == [(1, 1), (1, 2), (2, 1), (2, 2), (2, None)]
    first, third = plan.stages[0].told[0].who, plan.stages[2].told[0].who
    assert {first, third} == {"Alice", "Bob"}
    factories.run(screens.db, "delete from contact_method")
    with screens.db.read() as tx:
        plan = rehearsal.rehearse(tx, "api", "info")
    assert all(not stage.told for stage in plan.stages) and "has no contact method" in plan.stages[0].skipped[0][1]
    assert plan.stages[1].at == plan.stages[0].at


def test_a_service_that_is_not_there_is_said(alice: Person) -> None:
    answer = alice.get("/oncall?service=nowhere")
    assert answer.status_code == 200 and "There is no service &#39;nowhere&#39;." in answer.text
    assert alice.get("/oncall?service=api&severity=awful").status_code == 200


@pytest.mark.parametrize(
    "said", ["override-9", "override-9-late", "override-x", "<b>x</b>", "override-999999999999999999"]
)
def test_an_address_cannot_make_it_say_something_untrue(alice: Person, said: str) -> None:
    answer = alice.client.get("/oncall", query_string={"said": said})
    assert answer.status_code == 200 and 'id="said"' not in answer.text and "<b>x" not in answer.text
