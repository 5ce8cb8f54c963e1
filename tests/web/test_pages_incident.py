"""The page of one incident."""

import re
from collections.abc import Callable

import pytest
from psycopg.types.json import Jsonb

from escalade import incidents
from escalade.db import Tx
from tests import factories
from tests.web.screens import Person, Screens, fail

RECEIVER = "http://127.0.0.1:9/hook"


@pytest.fixture
def incident(screens: Screens) -> int:
    return factories.open_incident(screens.db, factories.ladder(screens.db, RECEIVER), "the-key").id


@pytest.fixture
def alice(screens: Screens, incident: int) -> Person:
    return screens.client()


def status(screens: Screens, incident: int) -> str:
    return str(factories.run(screens.db, "select status from incident where id = %s", incident)[0][0])


def test_it_shows_what_is_known(screens: Screens, alice: Person, incident: int) -> None:
    factories.run(
        screens.db,
        "update incident set details = 'line', link = 'https://grafana.example.com/d', alert_group = %s, count = 3",
        Jsonb({"labels": {"pod": "a<b"}}),
    )
    text = alice.get(f"/incidents/{incident}").text
    for words in ("Disk full", "critical", "api", "the-key", "default, round 1, step 1", "integration:api/prom"):
        assert words in text
    assert 'href="https://grafana.example.com/d" rel="noopener noreferrer"' in text
    assert "a&lt;b" in text and ">line</pre>" in text and "Round 1, step 1" in text


def test_an_unknown_one_is_not_found(screens: Screens, alice: Person) -> None:
    assert alice.get("/incidents/999").status_code == 404
    assert alice.post("/incidents/999/acknowledge").status_code == 404
    assert alice.get("/incidents/99999999999999999999").status_code in (404, 422)


@pytest.mark.parametrize("link", ["javascript:alert(1)", "data:text/html,x", "//evil.example.com", "ftp://x", " http"])
def test_k081_only_web_links_are_links(screens: Screens, alice: Person, incident: int, link: str) -> None:
    factories.run(screens.db, "update incident set link = %s", link)
    assert "<dt>Source</dt>" not in alice.get(f"/incidents/{incident}").text


def test_k081_hostile_text_is_text(screens: Screens, alice: Person, incident: int) -> None:
    evil = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>{{7*7}}</template><hx-partial>"
    for column in ("title", "details", "service_name", "dedup_key", "opened_by"):
        factories.run(screens.db, f"update incident set {column} = %s", evil)
    factories.run(screens.db, "update app_user set name = %s", evil)
    factories.run(screens.db, "update incident_event set data = jsonb_build_object('people', %s::text)", evil)
    for path in ("/", f"/incidents/{incident}", "/attempts?status=PENDING", "/oncall", "/setup"):
        text = alice.get(path).text
        assert "<script>alert" not in text and "<img" not in text and "<hx-partial" not in text
        assert "&lt;script&gt;" in text


@pytest.mark.parametrize(
    ("before", "action", "fields", "after", "words"),
    [
        (None, "acknowledge", {}, "ACKNOWLEDGED", "Acknowledged by alice@example.com"),
        (None, "resolve", {}, "RESOLVED", "Resolved by alice@example.com"),
        (incidents.acknowledge, "unacknowledge", {}, "TRIGGERED", "Acknowledgement taken back by alice@example.com"),
        (incidents.resolve, "reopen", {}, "TRIGGERED", "Reopened by alice@example.com"),
        (None, "escalate", {}, "TRIGGERED", "Escalated by alice@example.com"),
        (None, "snooze", {"for_": "2h"}, "TRIGGERED", "Snoozed by alice@example.com until <time"),
        (None, "reassign", {"target": "user:bob@example.com"}, "TRIGGERED", "Reassigned to user:bob@example.com"),
        (None, "note", {"text": "looking at it"}, "TRIGGERED", "looking at it"),
    ],
)
@pytest.mark.parametrize("live", [False, True])
def test_every_action_shows_the_state_it_leaves(
    screens: Screens,
    alice: Person,
    incident: int,
    before: Callable[[Tx, int, str], object] | None,
    action: str,
    fields: dict[str, str],
    after: str,
    words: str,
    live: bool,
) -> None:
    if before is not None:
        with screens.db.begin() as tx:
            before(tx, incident, "bob@example.com")
    answer = alice.post(f"/incidents/{incident}/{action}", live=live, **fields)
    if not live:
        assert answer.status_code == 303 and answer.headers["Location"].startswith(f"/incidents/{incident}?said=")
        answer = alice.get(answer.headers["Location"])
    assert answer.status_code == 200 and words in answer.text and ("<html" in answer.text) is not live
    assert status(screens, incident) == after
    assert 'role="status"' in answer.text


@pytest.mark.parametrize(
    ("before", "action", "fields", "code"),
    [
        (incidents.acknowledge, "escalate", {}, 409),
        (incidents.resolve, "acknowledge", {}, 409),
        (incidents.resolve, "unacknowledge", {}, 409),
        (incidents.resolve, "snooze", {"for_": "1h"}, 409),
        (None, "snooze", {"for_": "soon"}, 422),
        (None, "snooze", {}, 422),
        (None, "reassign", {"target": "user:nobody@example.com"}, 422),
        (None, "note", {"text": "   "}, 422),
    ],
)
def test_what_is_refused_keeps_the_state(
    screens: Screens,
    alice: Person,
    incident: int,
    before: Callable[[Tx, int, str], object] | None,
    action: str,
    fields: dict[str, str],
    code: int,
) -> None:
    if before is not None:
        with screens.db.begin() as tx:
            before(tx, incident, "bob@example.com")
    was = status(screens, incident)
    assert alice.post(f"/incidents/{incident}/{action}", live=True, **fields).status_code == code
    assert alice.post(f"/incidents/{incident}/{action}", **fields).status_code == code
    assert status(screens, incident) == was


@pytest.mark.parametrize(("action", "words"), [("acknowledge", "You are on #"), ("resolve", "You resolved #")])
def test_twice_says_that_it_was_oneself(
    screens: Screens, alice: Person, incident: int, action: str, words: str
) -> None:
    for _ in range(2):
        answer = alice.post(f"/incidents/{incident}/{action}", live=True)
    assert answer.status_code == 200 and words in answer.text


def test_a_viewer_cannot_act(screens: Screens, incident: int) -> None:
    viewer = screens.client("vera", "viewer")
    text = viewer.get(f"/incidents/{incident}").text
    assert "<form" not in text.split("<main>")[1].split("</main>")[0]
    for action in ("acknowledge", "resolve", "escalate", "note", "snooze", "reassign", "reopen", "unacknowledge"):
        assert viewer.post(f"/incidents/{incident}/{action}").status_code == 403


def test_another_site_cannot_act(screens: Screens, alice: Person, incident: int) -> None:
    answer = alice.client.post(f"/incidents/{incident}/acknowledge", headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 403 and status(screens, incident) == "TRIGGERED"


def test_k091_attempts_show_due_time_reason_and_every_try(screens: Screens, alice: Person, incident: int) -> None:
    attempt = fail(screens.db, incident, "410 Gone")
    factories.run(
        screens.db,
        "insert into attempt_try (attempt_id, claim_seq, try, started_at, ended_at, outcome, error, request, answer)"
        " values (%s, 1, 1, now(), now(), 'retry', '503 busy', '', ''),"
        " (%s, 2, 2, now(), now(), 'failed', '410 Gone', '', '')",
        attempt,
        attempt,
    )
    text = alice.get(f"/incidents/{incident}").text
    assert f"2 tries of attempt {attempt}" in text and "503 busy" in text and "410 Gone" in text
    assert "Step 2: Bob" in text and "due <time" in text
    answer = alice.post(f"/attempts/{attempt}/replay", live=True, back="incident")
    assert answer.status_code == 200 and 'id="incident"' in answer.text and "sent again by alice" in answer.text
    with screens.db.begin() as tx:
        incidents.acknowledge(tx, incident, "bob@example.com")
    assert alice.get(f"/incidents/{incident}").text.count("Cancelled</span>") == 2


def test_a_long_timeline_shows_its_end(screens: Screens, alice: Person, incident: int) -> None:
    factories.run(
        screens.db,
        "insert into incident_event (incident_id, at, event, data)"
        " select %s, now(), 'note', jsonb_build_object('text', 'line ' || n) from generate_series(1, 400) n",
        incident,
    )
    text = alice.get(f"/incidents/{incident}").text
    assert "line 400" in text and "line 100<" not in text and "and 102 earlier events" in text


def test_an_event_says_whom_its_attempt_tells(screens: Screens, alice: Person, incident: int) -> None:
    attempt = fail(screens.db, incident)
    assert alice.post(f"/attempts/{attempt}/replay").status_code == 303
    text = alice.get(f"/incidents/{incident}").text
    words = f'Attempt {attempt} sent again by alice@example.com <small><a href="/attempts/{attempt}">Alice by webhook'
    assert words in text


def test_the_live_part_of_it(screens: Screens, alice: Person, incident: int) -> None:
    text = alice.get(f"/incidents/{incident}").text
    found = re.search(rf'hx-get="(/incidents/{incident}/live\?v=[^"]+)"', text)
    assert found
    assert alice.get(found[1]).status_code == 204
    with screens.db.begin() as tx:
        incidents.note(tx, incident, "news", "bob@example.com")
    changed = alice.get(found[1])
    assert changed.status_code == 200 and "news" in changed.text and "<html" not in changed.text


def test_k088_times_are_the_readers_and_carry_utc(screens: Screens, alice: Person, incident: int) -> None:
    factories.run(screens.db, "update app_user set timezone = 'Asia/Tokyo' where email = 'alice@example.com'")
    factories.run(screens.db, "update incident set opened_at = '2026-01-31T23:30:00Z'")
    factories.run(screens.db, "update incident_event set at = '2026-01-31T23:30:00Z'")
    until = Jsonb({"until": "2026-01-31T23:30:00+00:00"})
    factories.run(screens.db, "update incident_event set event = 'snoozed', actor = 'bob', data = %s", until)
    text = alice.get(f"/incidents/{incident}").text
    assert '<time datetime="2026-01-31T23:30:00Z">1 Feb 08:30:00 JST</time>' in text
    assert 'Snoozed by bob until <time datetime="2026-01-31T23:30:00Z">1 Feb 08:30:00 JST</time>' in text
    assert "Snoozed by bob until <time" in alice.get(f"/incidents/{incident}?said=snoozed").text.split('id="said"')[1]
    assert "Sunday 1 February 2026" in text and "times in Asia/Tokyo" in text


def test_an_unknown_zone_shows_utc(screens: Screens, alice: Person, incident: int) -> None:
    factories.run(screens.db, "update app_user set timezone = 'Mars/Olympus'")
    assert "times in UTC" in alice.get(f"/incidents/{incident}").text


@pytest.mark.parametrize("text", ["0s", "367d", "soon", ""])
def test_a_refusal_speaks_of_the_label(alice: Person, incident: int, text: str) -> None:
    refused = alice.post(f"/incidents/{incident}/snooze", live=True, for_=text)
    assert refused.status_code == 422 and refused.text.startswith('"Snooze for" must be ')
    assert "Snooze for, as in" in alice.get(f"/incidents/{incident}").text
    refused = alice.post(f"/incidents/{incident}/reassign", live=True)
    assert refused.status_code == 422 and refused.text == "Choose whom to page from the list."


def test_a_reassigned_one_says_that_its_policy_is_over(screens: Screens, alice: Person, incident: int) -> None:
    alice.post(f"/incidents/{incident}/reassign", target="user:bob@example.com")
    text = alice.get(f"/incidents/{incident}").text
    assert "<dd>Reassigned to bob@example.com; its policy no longer applies</dd>" in text
    assert "</time>: nobody is left, and no fallback can be told</dd>" in text
    channel = factories.channel(screens.db, RECEIVER)
    factories.fallback(screens.db, "channel", channel, "ops")
    for path in (f"/incidents/{incident}", "/"):
        text = alice.get(path).text
        assert "nobody is left; the fallback #ops is told" in text and "exhausted" not in text


def test_one_opened_for_a_target_has_no_policy(screens: Screens, alice: Person) -> None:
    alice.post("/incidents", for_="schedule:primary", title="x")
    [(opened,)] = factories.run(screens.db, "select max(id) from incident")
    assert "<dd>None: opened for schedule primary alone</dd>" in alice.get(f"/incidents/{opened}").text
    alice.post(f"/incidents/{opened}/reassign", target="user:bob@example.com")
    assert "<dd>Reassigned to bob@example.com</dd>" in alice.get(f"/incidents/{opened}").text


def test_attempts_stand_in_the_order_they_were_due(screens: Screens, alice: Person, incident: int) -> None:
    with screens.db.begin() as tx:
        incidents.unacknowledge(tx, incidents.acknowledge(tx, incident, "bob@example.com").incident.id, "bob")
        incidents.escalate(tx, incident, "bob")
    late = "update notification_attempt set due_at = now() + interval '1 day' where id = %s returning id"
    [(retried,)] = factories.run(screens.db, late, fail(screens.db, incident))
    text = alice.get(f"/incidents/{incident}").text
    shown = [int(number) for number in re.findall(r'<li id="attempt-(\d+)"', text)]
    rows = factories.run(
        screens.db,
        "select id, status from notification_attempt where incident_id = %s"
        " and not (kind = 'STEP' and status = 'DELIVERED') order by due_at, id",
        incident,
    )
    assert shown == [row[0] for row in rows] and shown[-1] == retried
    assert "CANCELLED" in {row[1] for row in rows} and text.count("due <time") == len(shown)
    assert "was due <time" in text
