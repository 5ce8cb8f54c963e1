"""The acknowledge link of a message."""

from pathlib import Path

import pytest
from flask.testing import FlaskClient

from escalade import incidents
from escalade.db import ROOT
from escalade.tokens import AckLink, Signer
from tests import factories
from tests.web.screens import Screens

RECEIVER = "http://127.0.0.1:9/hook"
METHODS = ("GET", "HEAD", "POST")


@pytest.fixture
def service(screens: Screens) -> int:
    return factories.ladder(screens.db, RECEIVER)


@pytest.fixture
def alice(screens: Screens, service: int) -> int:
    return int(factories.run(screens.db, "select id from app_user where email = 'alice@example.com'")[0][0])


@pytest.fixture
def anybody(screens: Screens) -> FlaskClient:
    return screens.app.test_client()


def states(screens: Screens) -> list[str]:
    return [row[0] for row in factories.run(screens.db, "select status from incident order by id")]


def test_k076_looking_changes_nothing(screens: Screens, service: int, alice: int, anybody: FlaskClient) -> None:
    incident = factories.open_incident(screens.db, service, "k")
    before = factories.events(screens.db, incident.id)
    link = screens.link(incident.id, user_id=alice)
    for agent in ("Mozilla/5.0", "Slackbot-LinkExpanding 1.0", "curl/8", ""):
        for method in ("GET", "HEAD"):
            answer = anybody.open(link, method=method, headers={"User-Agent": agent})
            assert answer.status_code == 200
    assert states(screens) == ["TRIGGERED"] and factories.events(screens.db, incident.id) == before
    text = anybody.get(link).text
    assert "Disk full" in text and "Sent to Alice" in text and "api" in text and "Nobody is on it yet" in text
    assert "<button>Acknowledge</button>" in text and "<script" not in text


def test_the_button_acknowledges_as_the_person_it_was_sent_to(
    screens: Screens, service: int, alice: int, anybody: FlaskClient
) -> None:
    incident = factories.open_incident(screens.db, service, "k")
    factories.run(
        screens.db,
        "update notification_attempt set status = 'IN_FLIGHT', tries = 1, claimed_at = now(), lease_owner = 'x',"
        " claim_seq = 1, lease_until = now() + interval '1 minute' where kind = 'PAGE'",
    )
    answer = anybody.post(screens.link(incident.id, user_id=alice))
    assert answer.status_code == 200 and "You are on it" in answer.text
    assert "1 pending page or escalation cancelled, 1 page was already on the way to alice@example.com." in answer.text
    assert factories.run(screens.db, "select acknowledged_by from incident") == [("alice@example.com",)]
    assert "<button" not in answer.text


def test_a_second_time_says_who_was_first(screens: Screens, service: int, alice: int, anybody: FlaskClient) -> None:
    incident = factories.open_incident(screens.db, service, "k")
    with screens.db.begin() as tx:
        incidents.acknowledge(tx, incident.id, "bob@example.com")
    link = screens.link(incident.id, user_id=alice)
    for answer in (anybody.get(link), anybody.post(link), anybody.post(link)):
        assert answer.status_code == 200 and "Acknowledged first by bob@example.com, <time" in answer.text
    assert factories.run(screens.db, "select acknowledged_by from incident") == [("bob@example.com",)]


def test_it_acknowledges_what_still_needs_somebody(
    screens: Screens, service: int, alice: int, anybody: FlaskClient
) -> None:
    ids = [factories.open_incident(screens.db, service, key).id for key in "abc"]
    other = factories.open_incident(screens.db, service, "other").id
    with screens.db.begin() as tx:
        incidents.resolve(tx, ids[0], "bob@example.com")
    answer = anybody.post(screens.link(*ids, user_id=alice))
    assert answer.status_code == 200 and "2 incidents acknowledged." in answer.text
    assert states(screens) == ["RESOLVED", "ACKNOWLEDGED", "ACKNOWLEDGED", "TRIGGERED"]
    assert factories.events(screens.db, other).count("acknowledged") == 0


def test_only_when_all_are_resolved_it_is_a_conflict(
    screens: Screens, service: int, alice: int, anybody: FlaskClient
) -> None:
    ids = [factories.open_incident(screens.db, service, key).id for key in "ab"]
    for number in ids:
        with screens.db.begin() as tx:
            incidents.resolve(tx, number, "bob@example.com")
    link = screens.link(*ids, user_id=alice)
    assert anybody.post(link).status_code == 409
    shown = anybody.get(link)
    assert shown.status_code == 200 and "All of it is resolved" in shown.text and "<button" not in shown.text


@pytest.mark.parametrize("method", METHODS)
def test_altered_links_do_nothing(
    screens: Screens, service: int, alice: int, anybody: FlaskClient, method: str
) -> None:
    incident = factories.open_incident(screens.db, service, "k")
    link = screens.link(incident.id, user_id=alice)
    other_key = "/a/" + Signer(["another key"]).sign(AckLink(alice, None, (incident.id,)))
    altered = [link[:-1] + ("A" if link[-1] != "A" else "B"), link + "x", "/a/x", "/a/" + "é" * 9, other_key]
    altered += [link[:3] + char + link[4:] for char in "ABC" if char != link[3]]
    for path in altered:
        assert anybody.open(path, method=method).status_code == 403, path
    assert states(screens) == ["TRIGGERED"]


@pytest.mark.parametrize("method", METHODS)
def test_a_day_later_it_has_expired(
    screens: Screens, service: int, alice: int, anybody: FlaskClient, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    incident = factories.open_incident(screens.db, service, "k")
    link = screens.link(incident.id, user_id=alice)
    monkeypatch.setattr("escalade.tokens.ACK_SECONDS", -1)
    answer = anybody.open(link, method=method)
    assert answer.status_code == 410 and answer.headers["Cache-Control"] == "no-store"
    assert states(screens) == ["TRIGGERED"]


@pytest.mark.parametrize("method", METHODS)
def test_somebody_who_left_acknowledges_nothing(
    screens: Screens, service: int, anybody: FlaskClient, method: str
) -> None:
    incident = factories.open_incident(screens.db, service, "k")
    for path in (
        screens.link(incident.id, user_id=999_999),
        screens.link(incident.id, channel_id=999_999),
        screens.link(incident.id),
    ):
        assert anybody.open(path, method=method).status_code == 403
    assert states(screens) == ["TRIGGERED"]


def test_a_channel_acknowledges_under_its_name(screens: Screens, service: int, anybody: FlaskClient) -> None:
    incident = factories.open_incident(screens.db, service, "k")
    channel = factories.channel(screens.db, RECEIVER)
    link = screens.link(incident.id, channel_id=channel)
    assert "Sent to ops (channel:ops)" in anybody.get(link).text
    assert anybody.post(link).status_code == 200
    assert factories.run(screens.db, "select acknowledged_by from incident") == [("channel:ops",)]


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({"User-Agent": "ntfy/1.21 (play)", "Content-Type": "text/plain"}, b""),
        ({"Origin": "https://evil.example.com", "Sec-Fetch-Site": "cross-site"}, b""),
        ({"Origin": "null"}, b""),
        ({"Content-Type": "application/json"}, b'{"broken"'),
        ({"Content-Type": "multipart/form-data; boundary=x"}, b"no parts" * 1000),
        ({"Cookie": "escalade=stale", "Content-Type": "application/x-www-form-urlencoded"}, b"payload=%7B%7D"),
    ],
)
def test_apps_post_it_without_cookie_or_origin(
    screens: Screens, service: int, alice: int, anybody: FlaskClient, headers: dict[str, str], body: bytes
) -> None:
    incident = factories.open_incident(screens.db, service, "k")
    answer = anybody.post(screens.link(incident.id, user_id=alice), headers=headers, data=body)
    assert answer.status_code == 200 and states(screens) == ["ACKNOWLEDGED"]


def test_it_is_kept_nowhere_and_logs_nobody_in(
    screens: Screens, service: int, alice: int, anybody: FlaskClient
) -> None:
    incident = factories.open_incident(screens.db, service, "k")
    link = screens.link(incident.id, user_id=alice)
    for answer in (anybody.get(link), anybody.post(link), anybody.get(link + "x")):
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["X-Robots-Tag"] == "noindex"
        assert answer.headers["Referrer-Policy"] == "same-origin"
        assert "Set-Cookie" not in answer.headers
    assert anybody.get(f"/incidents/{incident.id}").status_code == 303


def test_k081_hostile_text_is_text(screens: Screens, service: int, alice: int, anybody: FlaskClient) -> None:
    title = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    incident = factories.open_incident(screens.db, service, "k", title)
    factories.run(screens.db, "update app_user set name = %s", title)
    text = anybody.get(screens.link(incident.id, user_id=alice)).text
    assert "<script" not in text and "<img" not in text and "&lt;script&gt;" in text


@pytest.fixture
def many(screens: Screens, service: int) -> list[int]:
    factories.open_incident(screens.db, service, "first", "Host unreachable in rack 12, row 7")
    factories.run(
        screens.db,
        "insert into incident (service_id, service_name, title, details, severity, urgency, status, dedup_key,"
        " sanitized, policy, round, step, repeats_left, opened_at, opened_by, last_alert_at, count)"
        " select service_id, service_name, title, details, severity, urgency, status, n::text, sanitized,"
        " policy, round, step, repeats_left, opened_at, opened_by, last_alert_at, count"
        " from incident, generate_series(2, 300) n",
    )
    return [row[0] for row in factories.run(screens.db, "select id from incident order by id")]


def test_hundreds_of_incidents_stay_a_small_page(
    screens: Screens, alice: int, many: list[int], anybody: FlaskClient
) -> None:
    link = screens.link(*many, user_id=alice)
    shown = anybody.get(link)
    assert "300 incidents need somebody" in shown.text and "and 280 more" in shown.text
    css = Path(ROOT, "static", "ack.css").stat().st_size
    assert len(shown.data) + css < 15_000
    answer = anybody.post(link)
    assert answer.status_code == 200 and "300 incidents acknowledged." in answer.text
    assert set(states(screens)) == {"ACKNOWLEDGED"}


def test_ones_own_second_time_says_that_one_is_on_it(
    screens: Screens, service: int, alice: int, anybody: FlaskClient
) -> None:
    ids = [factories.open_incident(screens.db, service, key).id for key in "ab"]
    link = screens.link(*ids, user_id=alice)
    anybody.post(link)
    for answer in (anybody.get(link), anybody.post(link)):
        assert "<h1>You are on it already</h1>" in answer.text and ">Since <time" in answer.text
        assert "Somebody" not in answer.text and answer.text.count("Acknowledged by you, <time") == 2
    factories.run(screens.db, "update incident set acknowledged_by = 'bob@example.com' where id = %s", ids[1])
    text = anybody.get(link).text
    assert "Somebody is on it already" in text and "Acknowledged first by bob@example.com" in text
    assert "Acknowledged by you, <time" in text


def test_a_channel_is_not_one_person(screens: Screens, service: int, anybody: FlaskClient) -> None:
    incident = factories.open_incident(screens.db, service, "k")
    link = screens.link(incident.id, channel_id=factories.channel(screens.db, RECEIVER))
    anybody.post(link)
    assert "Acknowledged first by channel:ops" in anybody.get(link).text
