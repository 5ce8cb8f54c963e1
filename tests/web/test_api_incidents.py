"""Incidents through the API: every field, every action, every refusal."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests

from escalade.config import Config
from escalade.db import Database
from tests import factories
from tests.factories import run
from tests.web.serving import Api, api, make_app, serving, token

FIELDS = set(
    """id url service title details severity urgency status dedup_key link policy step round escalates_at exhausted_at
    opened_at last_alert_at count acknowledged_at acknowledged_by resolved_at snoozed_until""".split()
)
ACTIONS = ("acknowledge", "resolve", "unacknowledge", "reopen", "escalate", "snooze", "reassign", "note")
BODIES: dict[str, Any] = {
    "snooze": {"for": "1h"},
    "reassign": {"target": "user:bob@example.com"},
    "note": {"text": "Looking at it."},
}


@pytest.fixture
def service(database: Database) -> int:
    return factories.ladder(database, "http://127.0.0.1:9/secret")


@pytest.fixture
def caller(database: Database, config: Config, service: int) -> Api:
    return api(database, config)


def opened(caller: Api, **more: Any) -> int:
    body = {"service": "api", "title": "Disk full", **more}
    return int(caller.post("/incidents", body, 201)["incident"]["id"])


def act(caller: Api, incident_id: int, verb: str, status: int = 200) -> Any:
    return caller.post(f"/incidents/{incident_id}/{verb}", BODIES.get(verb), status)


def state(db: Database) -> list[tuple[Any, ...]]:
    """Everything an action could change."""
    return run(db, "select i::text from incident i order by id") + run(
        db, "select a::text from notification_attempt a order by id"
    )


def test_an_incident_has_the_fields_of_the_contract(caller: Api, config: Config) -> None:
    asked = {"severity": "warning", "details": "97 %", "link": "https://graphs.example/1"}
    incident_id = opened(caller, **asked)
    answer = caller.get(f"/incidents/{incident_id}")
    incident = answer["incident"]
    assert set(answer) == {"incident", "attempts", "events"} and set(incident) == FIELDS
    assert incident["url"] == f"{config.base_url}/incidents/{incident_id}"
    assert {name: incident[name] for name in asked} == asked
    assert (incident["service"], incident["policy"], incident["status"]) == ("api", "default", "TRIGGERED")
    assert (incident["step"], incident["round"], incident["count"]) == (1, 1, 1)
    assert incident["opened_at"].endswith("Z") and incident["escalates_at"] > incident["opened_at"]
    assert [attempt["kind"] for attempt in answer["attempts"]] == ["PAGE", "STEP"]
    assert [event["event"] for event in answer["events"]] == ["triggered", "step_reached"]
    assert answer["events"][0]["actor"] == "token:responder"
    assert answer["events"][0]["text"] == "Opened by token:responder"


def test_an_incident_for_a_target_has_no_service_and_one_step(caller: Api, database: Database) -> None:
    for target in ("user:BOB@example.com", "schedule:primary"):
        incident = caller.post("/incidents", {"target": target, "title": "Call me"}, 201)["incident"]
        assert (incident["service"], incident["policy"], incident["step"]) == (None, None, 1)
    told = run(database, "select target from notification_attempt where kind = 'PAGE' order by id")
    assert told == [("user:bob@example.com",), ("schedule:primary",)]


def test_a_channel_can_be_a_target(caller: Api, database: Database) -> None:
    factories.channel(database, "http://127.0.0.1:9/room")
    incident = caller.post("/incidents", {"target": "channel:ops", "title": "Look"}, 201)["incident"]
    [page] = [one for one in caller.get(f"/attempts?incident={incident['id']}")["attempts"] if one["kind"] == "PAGE"]
    assert (page["channel"], page["user"], page["address"]) == ("ops", None, "http://127.0.0.1:9/...")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "title"),
        ({"title": "x"}, "service"),
        ({"title": "x", "service": "api", "target": "user:bob@example.com"}, "service"),
        ({"title": "x", "service": "nope"}, "service"),
        ({"title": "x", "service": 7}, "service"),
        ({"title": "", "service": "api"}, "title"),
        ({"title": " \n ", "service": "api"}, "title"),
        ({"title": 7, "service": "api"}, "title"),
        ({"title": None, "service": "api"}, "title"),
        ({"title": "x" * 1001, "service": "api"}, "title"),
        ({"title": "x", "service": "api", "severity": "purple"}, "severity"),
        ({"title": "x", "service": "api", "severity": ["error"]}, "severity"),
        ({"title": "x", "service": "api", "link": "javascript:alert(1)"}, "link"),
        ({"title": "x", "service": "api", "urgency": "high"}, "urgency"),
        ({"title": "x", "target": "bob@example.com"}, "target"),
        ({"title": "x", "target": "user:nobody@example.com"}, "target"),
        ({"title": "x", "target": "user:carol@example.com"}, "target"),
        ({"title": "x", "target": "schedule:nope"}, "target"),
        ({"title": "x", "target": "channel:nope"}, "target"),
        ({"title": "x", "target": "team:ops"}, "target"),
        ([], None),
        ("x", None),
    ],
)
def test_a_body_that_cannot_be_names_its_field(caller: Api, database: Database, body: Any, field: str | None) -> None:
    factories.user(database, "carol", "viewer")
    assert caller.post("/incidents", body, 422)["field"] == field
    assert run(database, "select 1 from incident") == []


@pytest.mark.parametrize("raw", [b"{", b"\xff", b'{"title": NaN}', b"[" * 100_000])
def test_what_is_no_json_is_unreadable(caller: Api, raw: bytes) -> None:
    response = caller.call("POST", "/incidents", data=raw)
    assert response.status_code == 400 and response.get_json()["error"]


def test_texts_are_cleaned(caller: Api) -> None:
    incident = caller.post("/incidents", {"service": "api", "title": "Disk\x00\nfull\ud800"}, 201)["incident"]
    assert incident["title"] == "Disk\ufffd full\ufffd"


def test_k031_acknowledging_twice_keeps_the_first(caller: Api, database: Database, config: Config) -> None:
    incident_id = opened(caller)
    first = act(caller, incident_id, "acknowledge")
    assert first["changed"] and first["cancelled"] == 2 and first["in_flight"] == []
    assert first["incident"]["acknowledged_by"] == "token:responder"
    before = state(database)
    second = Api(caller.client, token(database, "admin"))
    again = act(second, incident_id, "acknowledge")
    assert again == {**first, "changed": False, "cancelled": 0}
    assert state(database) == before


def test_k085_the_answer_shows_the_new_state(caller: Api) -> None:
    incident_id = opened(caller)
    for verb, status in (
        ("acknowledge", "ACKNOWLEDGED"),
        ("unacknowledge", "TRIGGERED"),
        ("snooze", "TRIGGERED"),
        ("escalate", "TRIGGERED"),
        ("reassign", "TRIGGERED"),
        ("resolve", "RESOLVED"),
        ("reopen", "TRIGGERED"),
        ("note", "TRIGGERED"),
    ):
        answer = act(caller, incident_id, verb)
        assert set(answer) == {"incident", "changed", "cancelled", "in_flight"} and set(answer["incident"]) == FIELDS
        assert answer["changed"] and answer["incident"]["status"] == status
        assert answer["incident"] == caller.get(f"/incidents/{incident_id}")["incident"]


def test_what_is_already_so_changes_nothing(caller: Api, database: Database) -> None:
    incident_id = opened(caller)
    for prepare, verb in ((None, "unacknowledge"), (None, "reopen"), ("resolve", "resolve")):
        if prepare:
            act(caller, incident_id, prepare)
        before = state(database)
        assert act(caller, incident_id, verb)["changed"] is False
        assert state(database) == before


@pytest.mark.parametrize("verb", ["acknowledge", "unacknowledge", "snooze", "reassign", "escalate"])
def test_k029_k033_k090_a_resolved_incident_refuses_and_stays(caller: Api, database: Database, verb: str) -> None:
    incident_id = opened(caller)
    act(caller, incident_id, "resolve")
    before = state(database)
    assert "resolved" in act(caller, incident_id, verb, 409)["error"]
    assert state(database) == before


def test_k033_escalating_an_acknowledged_one_is_refused(caller: Api, database: Database) -> None:
    incident_id = opened(caller)
    act(caller, incident_id, "acknowledge")
    before = state(database)
    act(caller, incident_id, "escalate", 409)
    assert state(database) == before


def test_reopening_is_refused_while_the_key_is_open_elsewhere(caller: Api, database: Database, service: int) -> None:
    first = factories.open_incident(database, service, "web1-disk").id
    act(caller, first, "resolve")
    second = factories.open_incident(database, service, "web1-disk").id
    assert str(second) in act(caller, first, "reopen", 409)["error"]


def test_k029_acknowledge_and_resolve_at_once_end_resolved(caller: Api, database: Database, config: Config) -> None:
    with serving(make_app(database, config)) as address:
        headers = {"Authorization": f"Bearer {caller.secret}"}
        for _ in range(8):
            incident_id = opened(caller)
            start = threading.Barrier(2)

            def send(verb: str, start: threading.Barrier = start, incident_id: int = incident_id) -> int:
                start.wait(30)
                path = f"{address}/api/v1/incidents/{incident_id}/{verb}"
                return requests.post(path, headers=headers, timeout=30).status_code

            with ThreadPoolExecutor(2) as pool:
                acknowledged, resolved = pool.map(send, ("acknowledge", "resolve"))
            assert resolved == 200 and acknowledged in (200, 409)
            assert caller.get(f"/incidents/{incident_id}")["incident"]["status"] == "RESOLVED"
            assert "PENDING" not in {status for _, status in factories.statuses(database, incident_id)}


def test_k032_what_is_in_the_air_is_named(caller: Api, database: Database) -> None:
    incident_id = opened(caller)
    [(page,)] = run(
        database,
        "update notification_attempt set status = 'IN_FLIGHT', lease_until = now() + interval '1 minute',"
        " claimed_at = now(), tries = 1 where kind = 'PAGE' returning id",
    )
    answer = act(caller, incident_id, "acknowledge")
    assert answer["in_flight"] == [{"attempt_id": page, "user": "alice@example.com"}]
    assert answer["cancelled"] == 1
    assert act(caller, incident_id, "acknowledge")["in_flight"] == answer["in_flight"]


@pytest.mark.parametrize(
    ("verb", "body", "field"),
    [
        ("snooze", None, "for"),
        ("snooze", {"for": 3600}, "for"),
        ("snooze", {"for": "soon"}, "for"),
        ("snooze", {"for": "0s"}, "for"),
        ("snooze", {"for": "9999d"}, "for"),
        ("reassign", {"target": "user:nobody@example.com"}, "target"),
        ("reassign", {}, "target"),
        ("note", {"text": ""}, "text"),
        ("note", {"text": "x" * 20_001}, "text"),
        ("note", {"text": "x", "mood": "y"}, "mood"),
        ("acknowledge", {"by": "me"}, "by"),
        ("resolve", {"": 1}, ""),
    ],
)
def test_k033_an_action_with_a_wrong_body_changes_nothing(
    caller: Api, database: Database, verb: str, body: Any, field: str
) -> None:
    incident_id = opened(caller)
    before = state(database)
    assert caller.post(f"/incidents/{incident_id}/{verb}", body, 422)["field"] == field
    assert state(database) == before


@pytest.mark.parametrize("verb", ACTIONS)
def test_an_action_needs_a_responder_and_an_incident(caller: Api, database: Database, verb: str) -> None:
    incident_id = opened(caller)
    before = state(database)
    act(Api(caller.client, token(database, "viewer")), incident_id, verb, 403)
    act(Api(caller.client, "wrong"), incident_id, verb, 401)
    for unknown in (incident_id + 1, 0, 2**63, 10**30):
        act(caller, unknown, verb, 404)
    assert state(database) == before


def test_a_note_is_in_the_timeline(caller: Api) -> None:
    incident_id = opened(caller)
    caller.post(f"/incidents/{incident_id}/note", {"text": "  {0.__class__} 100 % {actor}\r\nsecond line "})
    event = caller.get(f"/incidents/{incident_id}")["events"][-1]
    assert (event["event"], event["actor"]) == ("note", "token:responder")
    assert event["text"] == event["data"]["text"] == "{0.__class__} 100 % {actor}\nsecond line"


def test_k086_a_list_is_filtered_and_paged(caller: Api, database: Database) -> None:
    ids = [opened(caller, title=f"Disk {number}") for number in range(7)]
    act(caller, ids[1], "acknowledge")
    act(caller, ids[2], "resolve")

    def listed(query: str) -> list[int]:
        return [incident["id"] for incident in caller.get(f"/incidents?{query}")["incidents"]]

    assert listed("") == ids[::-1]
    assert listed("status=ACKNOWLEDGED,RESOLVED") == [ids[2], ids[1]]
    assert listed("status=TRIGGERED&service=api&limit=2") == [ids[6], ids[5]]
    assert listed("service=nope") == []
    found, query = [], "limit=3"
    for _ in range(3):
        page = caller.get(f"/incidents?{query}")
        found += [incident["id"] for incident in page["incidents"]]
        query = f"limit=3&before={page['next']}"
    assert found == ids[::-1] and page["next"] is None
    assert caller.get("/incidents?limit=7")["next"] is None


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("status=OPEN", "status"),
        ("status=triggered", "status"),
        ("limit=0", "limit"),
        ("limit=501", "limit"),
        ("limit=ten", "limit"),
        ("limit=-1", "limit"),
        ("before=7", "before"),
        ("before=W10", "before"),
        ("before=WyJ4Il0", "before"),
        ("before=%FF%00", "before"),
        ("before=WzFlOTldfQ", "before"),
        ("before=Wzk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5XQ", "before"),
    ],
)
def test_a_list_refuses_what_it_cannot_read(caller: Api, query: str, field: str) -> None:
    assert caller.get(f"/incidents?{query}", 422)["field"] == field


def test_a_viewer_reads(caller: Api, database: Database) -> None:
    incident_id = opened(caller)
    viewer = Api(caller.client, token(database, "viewer"))
    assert viewer.get("/incidents")["incidents"][0]["id"] == incident_id
    viewer.post("/incidents", {"service": "api", "title": "x"}, 403)


def test_an_unknown_service_in_the_query_may_hold_anything(caller: Api) -> None:
    assert caller.get("/incidents?service=%00%FF")["incidents"] == []
