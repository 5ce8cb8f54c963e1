"""Now: what it shows, how it refreshes, and its actions without JavaScript and with htmx."""

import re

import pytest

from escalade import incidents
from tests import factories
from tests.web.screens import Screens, engine_ran, fail

RECEIVER = "http://127.0.0.1:9/hook"


@pytest.fixture
def service(screens: Screens) -> int:
    return factories.ladder(screens.db, RECEIVER)


def mark(text: str) -> str:
    found = re.search(r'hx-get="/now\?v=([^"]+)"', text)
    assert found
    return found[1]


def test_it_needs_a_login(screens: Screens) -> None:
    anonymous = screens.app.test_client()
    answer = anonymous.get("/")
    assert answer.status_code == 303 and answer.headers["Location"] == "/login"
    live = anonymous.get("/now", headers={"HX-Request": "true"})
    assert live.status_code == 401 and live.headers["HX-Redirect"].startswith("/login")


def test_a_quiet_dashboard_says_so(screens: Screens) -> None:
    text = screens.client().get("/").text
    for words in (
        "Not live without JavaScript",
        "All quiet",
        "Nothing is waiting.",
        "Nothing is under way.",
        "Nothing has failed.",
    ):
        assert words in text


def test_an_open_incident_and_what_pages_next(screens: Screens, service: int) -> None:
    incident = factories.open_incident(screens.db, service, "k")
    text = screens.client().get("/").text
    assert f'id="incident-{incident.id}"' in text and "Disk full" in text and "Triggered" in text
    assert re.search(r"then <time datetime=\"[^\"]+Z\"[^>]*data-countdown>in [45]:\d\d</time>: Bob", text)
    assert "Step 2: Bob" in text and "Alice" in text
    for name in ("Acknowledge", "Resolve", "Escalate now"):
        assert f">{name}</button>" in text


def test_k106_exhausted_ones_stand_first_then_those_nobody_is_on(screens: Screens, service: int) -> None:
    first, second, third = (factories.open_incident(screens.db, service, key).id for key in "abc")
    with screens.db.begin() as tx:
        incidents.acknowledge(tx, first, "bob@example.com")
    factories.run(screens.db, "update incident set exhausted_at = now() where id = %s", third)
    text = screens.client().get("/").text
    places = [text.index(f'id="incident-{number}"') for number in (third, second, first)]
    assert places == sorted(places)
    assert "Exhausted" in text and "bob@example.com is on it" in text


def test_the_live_part_answers_only_what_changed(screens: Screens, service: int) -> None:
    alice = screens.client()
    seen = mark(alice.get("/").text)
    same = alice.get(f"/now?v={seen}")
    assert same.status_code == 204 and same.data == b"" and same.headers["Cache-Control"] == "no-store"
    factories.open_incident(screens.db, service, "k")
    changed = alice.get(f"/now?v={seen}")
    assert changed.status_code == 200 and 'id="now"' in changed.text and "<html" not in changed.text
    assert changed.headers["Cache-Control"] == "no-store" and "HX-Request" in changed.headers["Vary"]
    assert mark(changed.text) != seen


@pytest.mark.parametrize(
    ("ago", "words"),
    [(None, "Delivery has never run."), (3600, "Delivery has not run since"), (1, "Delivery is running")],
)
def test_it_says_whether_pages_go_out(screens: Screens, ago: float | None, words: str) -> None:
    if ago is not None:
        engine_ran(screens.db, ago)
    assert words in screens.client().get("/").text


def test_an_engine_that_stops_changes_the_watermark(screens: Screens) -> None:
    engine_ran(screens.db)
    alice = screens.client()
    seen = mark(alice.get("/").text)
    engine_ran(screens.db, 60)
    assert "Delivery has not run since" in alice.get(f"/now?v={seen}").text


def test_acknowledging_without_javascript_goes_back_to_now(screens: Screens, service: int) -> None:
    incident = factories.open_incident(screens.db, service, "k")
    alice = screens.client()
    answer = alice.post(f"/incidents/{incident.id}/acknowledge", back="now")
    assert answer.status_code == 303
    text = alice.get(answer.headers["Location"]).text
    assert f"#{incident.id}: Acknowledged by alice@example.com" in text
    assert "2 pending pages and escalations cancelled." in text


def test_with_htmx_the_answer_shows_the_new_state_of_every_row(screens: Screens, service: int) -> None:
    incident = factories.open_incident(screens.db, service, "k")
    answer = screens.client().post(f"/incidents/{incident.id}/acknowledge", live=True, back="now")
    assert answer.status_code == 200 and "<html" not in answer.text
    assert "Acknowledged" in answer.text and "Nothing is waiting." in answer.text
    assert ">Acknowledge</button>" not in answer.text


def test_a_second_acknowledgement_says_who_was_first(screens: Screens, service: int) -> None:
    incident = factories.open_incident(screens.db, service, "k")
    with screens.db.begin() as tx:
        incidents.acknowledge(tx, incident.id, "bob@example.com")
    alice = screens.client()
    live = alice.post(f"/incidents/{incident.id}/acknowledge", live=True, back="now")
    assert live.status_code == 200
    assert f"#{incident.id} was already acknowledged by bob@example.com at" in live.text
    plain = alice.post(f"/incidents/{incident.id}/acknowledge", back="now")
    assert plain.status_code == 303
    assert "was already acknowledged by bob@example.com" in alice.get(plain.headers["Location"]).text


def test_a_refusal_says_why_and_changes_nothing(screens: Screens, service: int) -> None:
    incident = factories.open_incident(screens.db, service, "k")
    with screens.db.begin() as tx:
        incidents.resolve(tx, incident.id, "bob@example.com")
    alice = screens.client()
    live = alice.post(f"/incidents/{incident.id}/acknowledge", live=True, back="now")
    assert live.status_code == 409 and live.text.startswith("Incident") and "bob@example.com" in live.text
    plain = alice.post(f"/incidents/{incident.id}/acknowledge", back="now")
    assert plain.status_code == 409 and "bob@example.com" in plain.text
    assert f'href="/incidents/{incident.id}"' in plain.text


def test_opening_an_incident_by_hand(screens: Screens, service: int) -> None:
    alice = screens.client()
    answer = alice.post("/incidents", back="now", for_="service:api", title="By hand")
    assert "By hand" in alice.get(answer.headers["Location"]).text
    live = alice.post("/incidents", live=True, back="now", for_="user:bob@example.com", title="For Bob alone")
    assert live.status_code == 200 and "For Bob alone" in live.text
    rows = factories.run(screens.db, "select title, service_name, opened_by from incident order by id")
    assert rows == [
        ("By hand", "api", "alice@example.com"),
        ("For Bob alone", None, "alice@example.com"),
    ]


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"for_": "service:api", "title": "  "}, 422),
        ({"for_": "service:nowhere", "title": "x"}, 404),
        ({"for_": "user:nobody@example.com", "title": "x"}, 422),
        ({"for_": "", "title": "x"}, 422),
    ],
)
def test_opening_what_cannot_be(screens: Screens, service: int, fields: dict[str, str], status: int) -> None:
    assert screens.client().post("/incidents", **fields).status_code == status
    assert factories.run(screens.db, "select count(*) from incident") == [(0,)]


def test_a_failed_page_shows_its_error_and_is_replayed(screens: Screens, service: int) -> None:
    incident = factories.open_incident(screens.db, service, "k")
    attempt = fail(screens.db, incident.id, "no route to host")
    alice = screens.client()
    text = alice.get("/").text
    assert "no route to host" in text and ">Replay</button>" in text
    answer = alice.post(f"/attempts/{attempt}/replay", live=True, back="now")
    assert answer.status_code == 200 and "1 page sent again." in answer.text and "Nothing has failed." in answer.text


def test_all_shown_are_replayed_and_the_rest_is_counted(screens: Screens, service: int) -> None:
    ids = [factories.open_incident(screens.db, service, key).id for key in "abc"]
    failed = [fail(screens.db, number) for number in ids]
    with screens.db.begin() as tx:
        incidents.resolve(tx, ids[2], "bob@example.com")
    answer = screens.client().post("/attempts/replay", live=True, back="now", ids=",".join(map(str, failed)))
    assert "2 pages sent again. 1 page skipped" in answer.text
    assert screens.client().post("/attempts/replay", back="now", ids="1,x").status_code == 422


def test_a_viewer_sees_and_cannot_act(screens: Screens, service: int) -> None:
    incident = factories.open_incident(screens.db, service, "k")
    viewer = screens.client("vera", "viewer")
    text = viewer.get("/").text
    assert "Disk full" in text and ">Acknowledge</button>" not in text and "by hand" not in text
    assert viewer.post(f"/incidents/{incident.id}/acknowledge").status_code == 403


def test_more_than_is_shown_is_said(screens: Screens, service: int) -> None:
    for number in range(30):
        factories.open_incident(screens.db, service, str(number))
    text = screens.client().get("/").text
    assert "25+" in text and 'href="/attempts?status=PENDING"' in text


@pytest.mark.parametrize("said", ["acknowledged", "already", "replayed-1-0", "nonsense", "<b>x</b>", ""])
def test_an_address_cannot_make_the_page_say_something_untrue(screens: Screens, said: str) -> None:
    answer = screens.client().get("/", query_string={"said": said, "about": 999})
    assert answer.status_code == 200 and "<b>x" not in answer.text and "#999" not in answer.text


def test_what_was_resolved_lately_is_found_again(screens: Screens, service: int) -> None:
    alice = screens.client()
    assert "Nothing yet." in alice.get("/").text
    ids = [factories.open_incident(screens.db, service, str(number)).id for number in range(22)]
    for number in ids:
        with screens.db.begin() as tx:
            incidents.resolve(tx, number, "bob@example.com")
    shown = re.findall(r'<li id="past-(\d+)"', alice.get("/").text)
    assert shown == [str(number) for number in reversed(ids[2:])]
    text = alice.get("/").text
    assert f'href="/incidents/{ids[-1]}"' in text and 'href="/incidents?status=RESOLVED"' in text
    assert '<details id="resolved-lately"><summary>' in text


@pytest.fixture
def unreachable(screens: Screens, service: int) -> str:
    dave = factories.user(screens.db, "dave")
    for name, people in (("lonely", [dave]), ("empty", [])):
        factories.schedule(screens.db, people, name=name)
    return "dave@example.com"


@pytest.mark.parametrize("path", ["/", "/incidents/{}"])
def test_forms_mark_who_cannot_be_reached(screens: Screens, service: int, unreachable: str, path: str) -> None:
    incident = factories.open_incident(screens.db, service, "k").id
    text = screens.client().get(path.format(incident)).text
    for words in (
        "dave@example.com (user, no contact method)",
        "lonely (schedule, nobody to reach is on call)",
        "empty (schedule, nobody is on call)",
        "bob@example.com (user)",
        "primary (schedule)",
    ):
        assert f">{words}</option>" in text


def test_the_severity_is_chosen(screens: Screens, service: int) -> None:
    alice = screens.client()
    assert "<option selected>error</option>" in alice.get("/").text
    assert alice.post("/incidents", for_="service:api", title="a", severity="info").status_code == 303
    assert alice.post("/incidents", for_="service:api", title="b", severity="awful").status_code == 422
    assert factories.run(screens.db, "select severity from incident") == [("info",)]


@pytest.mark.parametrize("live", [False, True])
def test_an_opening_that_reaches_nobody_is_a_warning(screens: Screens, unreachable: str, live: bool) -> None:
    alice = screens.client()
    answer = alice.post("/incidents", live=live, back="now", for_=f"user:{unreachable}", title="Help")
    if not live:
        answer = alice.get(answer.headers["Location"])
    said = answer.text.split('<p class="said warn" id="said"')[1].split("</p>")[0]
    assert "Opened by alice@example.com, but nobody could be told: user:dave@example.com" in said
    assert "(dave@example.com has no contact method)" in said
    path = re.search(r'hx-get="(/now\?[^"]+)"', answer.text)
    assert path and "said=triggered" in path[1]
    kept = path[1].replace("&amp;", "&")
    [(number,)] = factories.run(screens.db, "select id from incident")
    factories.run(screens.db, "update incident set title = 'Changed', count = 2")
    assert 'class="said warn"' in alice.get(kept).text
    alice.post(f"/incidents/{number}/acknowledge")
    after = alice.get(kept).text
    assert 'class="said"' in after and "said=triggered" not in after


@pytest.mark.parametrize(
    ("action", "fields", "words"),
    [
        ("reassign", {"target": "user:dave@example.com"}, "nobody could be told: user:dave@example.com"),
        ("reassign", {"target": "schedule:empty"}, "nobody could be told: schedule:empty (nobody is on call)."),
        ("escalate", {}, "nobody could be told: user:bob@example.com (bob@example.com has no contact method)."),
    ],
)
def test_so_is_any_action_that_reaches_nobody(
    screens: Screens, service: int, unreachable: str, action: str, fields: dict[str, str], words: str
) -> None:
    incident = factories.open_incident(screens.db, service, "k").id
    factories.run(
        screens.db,
        "delete from contact_method where user_id = (select id from app_user where email = 'bob@example.com')",
    )
    answer = screens.client().post(f"/incidents/{incident}/{action}", live=True, **fields)
    assert words in answer.text.split('<p class="said warn"')[1].split("</p>")[0]
    assert f"said={action}" in answer.text


def test_past_the_last_step_it_names_the_fallback(screens: Screens, service: int) -> None:
    incident = factories.open_incident(screens.db, service, "k").id
    alice = screens.client()
    assert 'class="said"' in alice.post(f"/incidents/{incident}/escalate", live=True).text
    text = alice.post(f"/incidents/{incident}/escalate", live=True).text
    assert "but nobody is left to be told. No fallback could be told either." in text
    factories.fallback(screens.db, "channel", factories.channel(screens.db, RECEIVER), "ops")
    for _ in range(3):
        text = alice.post(f"/incidents/{incident}/escalate", live=True).text
    assert "but nobody is left to be told. The fallback is told: channel:ops." in text


def test_tiles_count_and_chart_the_queue(screens: Screens, service: int) -> None:
    for key in "ab":
        fail(screens.db, factories.open_incident(screens.db, service, key).id)
    factories.run(
        screens.db, "update notification_attempt set due_at = now() + interval '90 s' where status = 'PENDING'"
    )
    text = screens.client().get("/").text
    tile = {name: text.split(f'id="tile-{name}"')[1].split("</a>")[0] for name in ("pending", "in_flight", "failed")}
    assert "<strong>2</strong>" in tile["pending"] and "2 due in 60 min" in tile["pending"]
    assert 'd="M1 20v-20"' in tile["pending"] and 'd="M88 20v-20"' in tile["failed"]
    assert '<strong class="error">2</strong>' in tile["failed"] and "2 failed in 60 min" in tile["failed"]
    assert "<strong>0</strong>" in tile["in_flight"] and 'd=""' in tile["in_flight"]
    assert "style=" not in text


def test_the_health_line_names_each_transport_and_what_waits_too_long(screens: Screens, service: int) -> None:
    incident = factories.open_incident(screens.db, service, "k")
    alice = screens.client()
    text = alice.get("/").text
    assert "Nothing that is due waits for an engine." in text and "Nothing was sent lately." in text
    seen = mark(text)
    factories.run(screens.db, "update notification_attempt set due_at = now() - interval '1 min' where kind = 'PAGE'")
    late = alice.get(f"/now?v={seen}")
    assert late.status_code == 200 and "The first of what is due has waited <time" in late.text
    fail(screens.db, incident.id)
    assert "webhook: the latest failed <time" in alice.get("/").text
    factories.run(
        screens.db,
        "update notification_attempt set status = 'DELIVERED', delivered_at = now(), finished_at = now()"
        " where status = 'FAILED'",
    )
    assert "webhook: last success <time" in alice.get("/").text


def test_it_says_who_is_on_call_and_who_comes_next(screens: Screens, service: int) -> None:
    factories.run(screens.db, "update rotation set unit = 'day', length = 1")
    factories.insert(screens.db, "schedule", name="empty", timezone="UTC")
    text = screens.client().get("/").text
    rows = text.split('id="watch-list"')[1].split("</ul>")[0].split("<li ")[1:]
    empty, primary = rows
    assert '<strong class="error">Nobody</strong>' in empty
    now, after = ("Alice", "Bob") if "<strong>Alice</strong>" in primary else ("Bob", "Alice")
    assert f"<strong>{now}</strong>" in primary and f"</time>: {after}, from <time" in primary


def test_all_quiet_says_how_old_the_last_test_page_is(screens: Screens, service: int) -> None:
    alice = screens.client()
    assert "No test page has arrived yet." in alice.get("/").text
    fail(screens.db, factories.open_incident(screens.db, service, "k").id)
    factories.run(
        screens.db,
        "update notification_attempt set kind = 'NOTICE', event = 'test', incident_id = null, status = 'DELIVERED',"
        " delivered_at = finished_at where status = 'FAILED'",
    )
    factories.run(screens.db, "update incident set status = 'RESOLVED', resolved_at = now(), resolved_by = 'bob'")
    assert re.search(r"The last test page arrived <time [^>]*data-age>0:0\d</time> ago.", alice.get("/").text)
