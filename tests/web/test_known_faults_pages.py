"""K085 to K092: what lists and pages of comparable tools have got wrong."""

import re
from html import unescape

import pytest

from escalade import incidents, listing
from tests import factories
from tests.web.screens import Person, Screens, fail

RECEIVER = "http://127.0.0.1:9/hook"


@pytest.fixture
def service(screens: Screens) -> int:
    return factories.ladder(screens.db, RECEIVER)


@pytest.fixture
def alice(screens: Screens, service: int) -> Person:
    return screens.client()


def failures(screens: Screens, service: int, n: int) -> list[int]:
    """So many incidents, each with a page that failed, the first the longest ago; the ids of the pages."""
    found = [fail(screens.db, factories.open_incident(screens.db, service, str(number)).id) for number in range(n)]
    factories.run(
        screens.db,
        "update notification_attempt set finished_at = now() - make_interval(mins => 1000 - id::int)"
        " where status = 'FAILED'",
    )
    return found


def listed(text: str) -> list[int]:
    return [int(number) for number in re.findall(r'<li id="attempt-(\d+)"', text)]


def follow(person: Person, text: str, words: str) -> str:
    """The page behind a link."""
    found = re.search(rf'<a href="([^"]+)"[^>]*>{words}</a>', text)
    assert found, words
    return person.get(unescape(found[1])).text


def hidden(text: str, name: str) -> str:
    """The value of a hidden field."""
    found = re.search(rf'name="{name}" value="([^"]*)"', text)
    assert found, name
    return unescape(found[1])


def status_of(screens: Screens, attempt_id: int) -> str:
    return str(factories.run(screens.db, "select status from notification_attempt where id = %s", attempt_id)[0][0])


@pytest.mark.parametrize("live", [False, True])
def test_k085_the_answer_to_an_action_shows_every_row_as_it_is_now(
    screens: Screens, service: int, alice: Person, live: bool
) -> None:
    first, second = failures(screens, service, 2)
    answer = alice.post(f"/attempts/{first}/replay", live=live, back="attempts", status="FAILED")
    text = answer.text if live else alice.get(answer.headers["Location"]).text
    assert listed(text) == [second]
    ids = [factories.run(screens.db, "select id from incident order by id")[n][0] for n in (0, 1)]
    answer = alice.post(f"/incidents/{ids[0]}/acknowledge", live=live, back="now")
    text = answer.text if live else alice.get(answer.headers["Location"]).text
    row = text.split(f'id="incident-{ids[0]}"')[1].split("</li>")[0]
    assert "Acknowledged</span>" in row and ">Acknowledge</button>" not in row
    assert f'id="attempt-{first}"' not in text and ">Acknowledge</button>" in text


def test_k086_a_status_lists_exactly_what_has_it(screens: Screens, service: int, alice: Person) -> None:
    failures(screens, service, 3)
    ids = [row[0] for row in factories.run(screens.db, "select id from incident order by id")]
    with screens.db.begin() as tx:
        incidents.resolve(tx, ids[0], "bob@example.com")
    with screens.db.begin() as tx:
        incidents.acknowledge(tx, ids[1], "bob@example.com")
    for status in ("TRIGGERED", "ACKNOWLEDGED", "RESOLVED"):
        shown = re.findall(r'<li id="past-(\d+)"', alice.get(f"/incidents?status={status}").text)
        rows = factories.run(screens.db, "select id from incident where status = %s order by id desc", status)
        assert [int(number) for number in shown] == [row[0] for row in rows] and len(rows) == 1
    for status in ("PENDING", "IN_FLIGHT", "FAILED", "DELIVERED", "CANCELLED"):
        rows = factories.run(screens.db, "select id from notification_attempt where status = %s", status)
        assert sorted(listed(alice.get(f"/attempts?status={status}").text)) == sorted(row[0] for row in rows)


def test_k086_so_does_every_other_filter_alone_and_with_others(screens: Screens, service: int, alice: Person) -> None:
    a, b, c = failures(screens, service, 3)
    other = factories.service(screens.db, factories.policy(screens.db, (60, []), name="p2"), name="other")
    factories.run(
        screens.db,
        "update incident set service_id = %s, service_name = 'other' where id ="
        " (select incident_id from notification_attempt where id = %s)",
        other,
        a,
    )
    factories.run(screens.db, "update notification_attempt set transport = 'slack' where id = %s", b)
    factories.run(
        screens.db,
        "update notification_attempt set user_id = (select id from app_user where name = 'Bob') where id = %s",
        c,
    )
    factories.run(
        screens.db, "update notification_attempt set finished_at = '2026-01-10T10:00Z' where id in (%s, %s)", a, c
    )
    for query, expected in {
        "service=other": [a],
        "service=api": [b, c],
        "transport=slack": [b],
        "transport=webhook": [a, c],
        "who=user:bob@example.com": [c],
        "who=user:alice@example.com&transport=webhook": [a],
        "until=2026-01-10T10:00": [],
        "until=2026-01-10T10:01": [a, c],
        "from=2026-01-10T10:00&until=2026-01-10T10:01&service=other": [a],
        "from=2026-01-10T10:01": [b],
    }.items():
        assert sorted(listed(alice.get(f"/attempts?status=FAILED&{query}").text)) == sorted(expected), query


@pytest.mark.parametrize(
    ("query", "field", "words"),
    [
        ("from=yesterday", "from", "must be a date and a time"),
        ("from=2026-01-02T00:00&until=2026-01-01T00:00", "until", "Until must come after from."),
        ("who=user:nobody@example.com", "who", "There is nobody"),
        ("who=channel:nowhere", "who", "There is no channel"),
        ("page=nonsense", "page", "begin at its first"),
    ],
)
def test_a_filter_that_cannot_be_read_is_said_at_its_field(alice: Person, query: str, field: str, words: str) -> None:
    answer = alice.get(f"/attempts?{query}")
    assert answer.status_code == 422 and listed(answer.text) == []
    assert words in unescape(answer.text).split(f'id="fault-{field}">')[1].split("</span>")[0]


def test_k087_filter_and_page_stay_through_links_refreshes_and_actions(
    screens: Screens, service: int, alice: Person
) -> None:
    found = failures(screens, service, 120)
    path = "/attempts?status=FAILED&transport=webhook&service=api"
    first = alice.get(path).text
    second = follow(alice, first, "Next page")
    assert listed(first) == found[:-51:-1] and listed(second) == found[-51:-101:-1]
    live = re.search(r'hx-get="(/attempts/live[^"]+)"', second)
    assert live
    refreshed = alice.get(re.sub(r"v=[^&]+", "v=old", unescape(live[1]))).text
    assert listed(refreshed) == listed(second)
    kept = {name: hidden(second, name) for name in ("status", "transport", "service", "page")}
    answer = alice.post(f"/attempts/{found[-60]}/replay", back="attempts", **kept)
    after = alice.get(answer.headers["Location"]).text
    assert listed(after) == [number for number in found[:-50][::-1] if number != found[-60]][:50]
    assert "<option selected>webhook</option>" in after and 'id="filter" open' in after
    third = follow(alice, follow(alice, first, "Next page"), "Next page")
    assert listed(third) == found[:19][::-1] and ">Next page</a>" not in third
    assert listed(follow(alice, third, "First page")) == found[:-51:-1]
    for name in ("Pending", "Delivered"):
        assert "<option selected>webhook</option>" in follow(alice, third, name)


def test_k088_every_time_on_every_page_is_a_time_with_its_zone(screens: Screens, service: int, alice: Person) -> None:
    attempt = failures(screens, service, 2)[0]
    factories.run(screens.db, "update app_user set timezone = 'Asia/Tokyo' where email = 'alice@example.com'")
    [(incident,)] = factories.run(screens.db, "select min(id) from incident")
    for path in (
        "/",
        "/incidents",
        f"/incidents/{incident}",
        "/attempts",
        f"/attempts/{attempt}",
        "/oncall?service=api",
        f"/attempts/replay?id={attempt}",
    ):
        text = alice.get(path).text
        times = re.findall(r"<time ([^>]*)>([^<]*)</time>", text)
        assert times, path
        for marks, words in times:
            assert re.search(r'datetime="\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"', marks), (path, marks)
            named = "JST" in words or "JST" in marks or "data-" in marks
            assert named or "times in Asia/Tokyo" in text, (path, marks, words)


def test_k089_acknowledge_all_takes_exactly_the_listed_incidents(screens: Screens, service: int, alice: Person) -> None:
    found = [factories.open_incident(screens.db, service, str(number)).id for number in range(60)]
    factories.run(screens.db, "update incident set service_name = 'other' where id = any(%s)", found[:5])
    text = alice.get("/incidents?status=TRIGGERED&service=api").text
    shown = [int(number) for number in re.findall(r'<li id="past-(\d+)"', text)]
    assert shown == found[:9:-1] and "Acknowledge all 50 on this page" in text
    with screens.db.begin() as tx:
        incidents.acknowledge(tx, shown[0], "bob@example.com")
    late = factories.open_incident(screens.db, service, "late").id
    answer = alice.post("/incidents/acknowledge", ids=hidden(text, "ids"), status="TRIGGERED", service="api")
    after = alice.get(answer.headers["Location"]).text
    assert "You are on 49 incidents. 1 incident skipped" in after
    left = [int(number) for number in re.findall(r'<li id="past-(\d+)"', after)]
    assert left == [late, *found[9:4:-1]]
    rows = factories.run(screens.db, "select acknowledged_by, count(*) from incident group by 1 order by 2")
    assert rows == [("bob@example.com", 1), (None, 11), ("alice@example.com", 49)]


def test_k089_replay_of_a_filter_takes_its_later_pages_and_nothing_else(
    screens: Screens, service: int, alice: Person
) -> None:
    found = failures(screens, service, 60)
    factories.run(screens.db, "update notification_attempt set transport = 'slack' where id = %s", found[7])
    plan = alice.get("/attempts/replay?status=FAILED&transport=webhook&all=on").text
    assert "Send 59 pages again?" in plan and "<strong>Alice</strong>" in plan and "59 pages</small>" in plan
    failed_since = fail(screens.db, factories.open_incident(screens.db, service, "since").id)
    answer = alice.post("/attempts/replay", back="attempts", ids=hidden(plan, "ids"), transport="webhook")
    assert "59 pages sent again." in alice.get(answer.headers["Location"]).text
    left = factories.run(screens.db, "select id from notification_attempt where status = 'FAILED' order by id")
    assert left == [(found[7],), (failed_since,)]


def test_a_confirmation_names_whom_it_pages_and_flags_what_nobody_needs(
    screens: Screens, service: int, alice: Person
) -> None:
    a, b, c, d = failures(screens, service, 4)
    ids = [row[0] for row in factories.run(screens.db, "select id from incident order by id")]
    with screens.db.begin() as tx:
        incidents.acknowledge(tx, ids[0], "bob@example.com")
    with screens.db.begin() as tx:
        incidents.snooze(tx, ids[1], 3600, "bob@example.com")
    plan = alice.get(f"/attempts/replay?id={a}&id={b}&id={c}").text
    assert "Send 1 page again?" in plan and "2 pages of these will be skipped" in plan
    assert "incident already acknowledged by bob@example.com" in plan and "incident is snoozed until <time" in plan
    assert f"attempt {d}" not in plan and hidden(plan, "ids") == f"{a},{b},{c}"
    with screens.db.begin() as tx:
        incidents.resolve(tx, ids[2], "bob@example.com")
    answer = alice.post("/attempts/replay", back="attempts", ids=hidden(plan, "ids"))
    assert "0 pages sent again. 3 pages skipped: changed meanwhile" in alice.get(answer.headers["Location"]).text
    assert {status_of(screens, one) for one in (a, b, c)} == {"FAILED"}


def test_choosing_nothing_or_nonsense_says_so(alice: Person) -> None:
    assert "Choose at least one page" in alice.get("/attempts/replay?status=FAILED").text
    for query in ("id=x", "ids=1,,2", "all=on&from=never"):
        assert alice.get(f"/attempts/replay?{query}").status_code == 422
    assert "Nobody: none of these" in alice.get("/attempts/replay?id=999").text


def test_a_viewer_plans_no_replay(screens: Screens, service: int) -> None:
    attempt = failures(screens, service, 1)[0]
    vera = screens.client("vera", "viewer")
    assert vera.get(f"/attempts/replay?id={attempt}").status_code == 403
    assert vera.post("/incidents/acknowledge", ids="1").status_code == 403
    assert "<form" not in vera.get(f"/attempts/{attempt}").text.split("<main>")[1].split("</main>")[0]
    assert ">Replay" not in vera.get("/attempts").text


@pytest.mark.parametrize("live", [False, True])
def test_k090_a_refused_action_changes_nothing_and_says_why(
    screens: Screens, service: int, alice: Person, live: bool
) -> None:
    attempt = failures(screens, service, 1)[0]
    [(incident,)] = factories.run(screens.db, "select id from incident")
    with screens.db.begin() as tx:
        incidents.resolve(tx, incident, "bob@example.com")
    before = factories.run(screens.db, "select * from notification_attempt order by id")
    refused = alice.post(f"/attempts/{attempt}/replay", live=live, back="attempts", status="FAILED")
    assert refused.status_code == 409 and "is resolved: nobody needs to be paged for it" in refused.text
    refused = alice.post(f"/incidents/{incident}/escalate", live=live, back="now")
    assert refused.status_code == 409 and "is resolved" in refused.text
    assert factories.run(screens.db, "select * from notification_attempt order by id") == before


def test_k091_what_waits_is_retried_or_cancelled_says_when_and_why(
    screens: Screens, service: int, alice: Person
) -> None:
    incident = factories.open_incident(screens.db, service, "k").id
    [(page,)] = factories.run(screens.db, "select id from notification_attempt where kind = 'PAGE'")

    def row(path: str) -> str:
        return alice.get(path).text.split(f'<li id="attempt-{page}"')[1].split("</li>")[0]

    both = (f"/incidents/{incident}", "/attempts?status=PENDING")
    for path in both:
        assert "waits: for the next free sender" in row(path) and "due <time" in row(path)
        assert "waits: unless somebody acknowledges first" in alice.get(path).text
    factories.run(
        screens.db,
        "update notification_attempt set tries = 1, due_at = now() + interval '1 min',"
        " last_error = '503 busy' where id = %s",
        page,
    )
    for path in both:
        assert "waits: to be tried again" in row(path) and "503 busy" in row(path) and "try 1 of 8" in row(path)
    detail = alice.get(f"/attempts/{page}").text
    assert "<dt>Next try</dt>" in detail and "<dd>to be tried again</dd>" in detail and "<dd>1 of 8</dd>" in detail
    factories.run(
        screens.db,
        "insert into destination (name, failures, not_before, reason, changed_at)"
        " select destination, 1, now() + interval '5 min', '429 Slow down', now()"
        " from notification_attempt where id = %s",
        page,
    )
    for path in (*both, f"/attempts/{page}"):
        assert "429 Slow down, until <time" in alice.get(path).text
    with screens.db.begin() as tx:
        incidents.acknowledge(tx, incident, "bob@example.com")
    for path in (f"/incidents/{incident}", "/attempts?status=CANCELLED"):
        assert "nobody needed it any more" in row(path)


def test_k092_every_button_of_an_attempt_does_what_it_says_or_is_not_there(
    screens: Screens, service: int, alice: Person
) -> None:
    attempt = failures(screens, service, 1)[0]
    [(incident,)] = factories.run(screens.db, "select id from incident")
    for path in ("/", "/attempts", f"/attempts/{attempt}", f"/incidents/{incident}"):
        assert ">Replay</button>" in alice.get(path).text, path
    with screens.db.begin() as tx:
        incidents.acknowledge(tx, incident, "bob@example.com")
    for path in ("/", "/attempts", f"/attempts/{attempt}", f"/incidents/{incident}"):
        text = alice.get(path).text
        assert ">Replay</button>" not in text and "incident is acknowledged: nobody needs to be paged" in text, path


def test_k092_what_was_sent_to_somebody_who_is_gone_is_not_offered_and_is_said(
    screens: Screens, service: int, alice: Person
) -> None:
    first, second = failures(screens, service, 2)
    bob = "select id from contact_method where user_id = (select id from app_user where name = 'Bob')"
    factories.run(screens.db, f"update notification_attempt set contact_method_id = ({bob}) where id = %s", first)
    factories.run(screens.db, f"delete from contact_method where id in ({bob})")
    for path in ("/attempts", "/"):
        row = alice.get(path).text.split(f'<li id="attempt-{first}"')[1].split("</li>")[0]
        assert ">Replay</button>" not in row and "no longer exists" in row
    assert ">Replay</button>" not in alice.get(f"/attempts/{first}").text
    plan = alice.get("/attempts/replay?all=on").text
    assert "Send 1 page again?" in plan and "1 page of these will be skipped" in plan
    assert "what it was sent to no longer exists" in plan
    answer = alice.post("/attempts/replay", back="attempts", ids=hidden(plan, "ids"))
    assert "1 page sent again. 1 page skipped" in alice.get(answer.headers["Location"]).text
    assert (status_of(screens, first), status_of(screens, second)) == ("FAILED", "PENDING")


def test_a_filter_of_more_than_a_form_carries_says_so(
    screens: Screens, service: int, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = failures(screens, service, 4)
    monkeypatch.setattr(listing, "MOST_REPLAYED", 4)
    assert "there are more" not in alice.get("/attempts/replay?all=on").text
    monkeypatch.setattr(listing, "MOST_REPLAYED", 3)
    plan = alice.get("/attempts/replay?all=on").text
    assert "These are the latest 3; there are more" in plan and hidden(plan, "ids") == ",".join(map(str, found[:0:-1]))
