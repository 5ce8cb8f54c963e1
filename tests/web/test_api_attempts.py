"""The queue through the API: what waits and why, what failed, and sending it again."""

from typing import Any

import pytest

from escalade import attempts
from escalade.config import Config
from escalade.db import Database
from tests import factories
from tests.factories import run
from tests.web.serving import Api, api, token

FIELDS = set(
    """id incident_id kind status step round target user channel transport address due_at first_due_at held_until
    held_reason tries max_tries claimed_at lease_owner lease_until cancel_requested idempotency_key last_error
    delivered_at finished_at lane""".split()
)


@pytest.fixture
def service(database: Database) -> int:
    return factories.ladder(database, "http://alice:pw@127.0.0.1:9/secret")


@pytest.fixture
def caller(database: Database, config: Config, service: int) -> Api:
    return api(database, config)


def open_pages(db: Database, service_id: int, n: int = 1) -> list[int]:
    """The pages of so many new incidents."""
    ids = [factories.open_incident(db, service_id).id for _ in range(n)]
    rows = run(db, "select id from notification_attempt where kind = 'PAGE' and incident_id = any(%s) order by id", ids)
    return [row[0] for row in rows]


def fail(db: Database, *ids: int, transport: str = "webhook") -> None:
    run(
        db,
        "update notification_attempt set status = 'FAILED', finished_at = now(), tries = 8, transport = %s,"
        " last_error = 'refused' where id = any(%s)",
        transport,
        list(ids),
    )


def in_flight(db: Database, attempt_id: int) -> None:
    run(
        db,
        "update notification_attempt set status = 'IN_FLIGHT', claimed_at = now(), lease_owner = 'one', tries = 1,"
        " claim_seq = 1, lease_until = now() + interval '20 seconds' where id = %s",
        attempt_id,
    )


def test_an_attempt_has_the_fields_of_the_contract_and_no_secret(caller: Api, database: Database, service: int) -> None:
    [page] = open_pages(database, service)
    answer = caller.get(f"/attempts/{page}")
    seen = answer["attempt"]
    assert set(answer) == {"attempt", "tries"} and set(seen) == FIELDS and answer["tries"] == []
    assert (seen["kind"], seen["status"], seen["lane"]) == ("PAGE", "PENDING", "high")
    assert (seen["target"], seen["user"], seen["channel"]) == ("schedule:primary", "alice@example.com", None)
    assert (seen["transport"], seen["address"]) == ("webhook", "http://127.0.0.1:9/...")
    assert seen["held_until"] is None and seen["max_tries"] == 8
    assert "secret" not in str(answer) and "pw" not in str(answer)


def test_a_step_tells_nobody_itself(caller: Api, database: Database, service: int) -> None:
    open_pages(database, service)
    [step] = [one for one in caller.get("/attempts")["attempts"] if one["kind"] == "STEP"]
    assert [step[name] for name in ("transport", "address", "user", "target")] == [None] * 4


def test_tries_are_listed_with_the_one_under_way(caller: Api, database: Database, service: int) -> None:
    [page] = open_pages(database, service)
    run(
        database,
        "insert into attempt_try values (%s, 1, 1, now(), now(), 'retry', 'refused', 'POST ...', '503')",
        page,
    )
    in_flight(database, page)
    run(database, "update notification_attempt set tries = 2, claim_seq = 2 where id = %s", page)
    first, second = caller.get(f"/attempts/{page}")["tries"]
    assert (first["try"], first["outcome"], first["error"]) == (1, "retry", "refused")
    assert (second["try"], second["outcome"], second["ended_at"]) == (2, None, None) and second["started_at"]


def test_lists_go_by_due_time_and_page_through(caller: Api, database: Database, service: int) -> None:
    open_pages(database, service, 5)
    rows = run(database, "select id from notification_attempt order by due_at, id")
    found: list[int] = []
    query = ""
    for _ in range(4):
        answer = caller.get(f"/attempts?status=PENDING&limit=3{query}")
        found += [one["id"] for one in answer["attempts"]]
        query = f"&before={answer['next']}"
    assert found == [row[0] for row in rows] and answer["next"] is None


def test_lists_are_filtered(caller: Api, database: Database, service: int) -> None:
    failed, flying, waiting = open_pages(database, service, 3)
    fail(database, failed, transport="slack")
    in_flight(database, flying)

    def listed(query: str) -> set[int]:
        found = caller.get(f"/attempts?{query}")["attempts"]
        return {one["id"] for one in found if one["kind"] == "PAGE"}

    assert listed("") == {failed, flying, waiting}
    assert listed("status=FAILED") == {failed} and listed("status=IN_FLIGHT,FAILED") == {failed, flying}
    assert listed("transport=slack") == {failed} and listed("status=DELIVERED,CANCELLED") == set()
    incident_id = caller.get(f"/attempts/{flying}")["attempt"]["incident_id"]
    assert listed(f"incident={incident_id}") == {flying}
    assert listed(f"incident={incident_id}&status=FAILED") == set()


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("status=LOST", "status"),
        ("incident=x", "incident"),
        ("incident=99999999999999999999", "incident"),
        ("limit=501", "limit"),
        ("before=x", "before"),
        ("before=WyJ4IiwxXQ", "before"),
        ("before=WzEsMV0", "before"),
    ],
)
def test_a_list_refuses_what_it_cannot_read(caller: Api, query: str, field: str) -> None:
    assert caller.get(f"/attempts?{query}", 422)["field"] == field


def test_the_archive_is_part_of_one_incidents_attempts(caller: Api, database: Database, service: int) -> None:
    [page] = open_pages(database, service)
    incident_id = caller.get(f"/attempts/{page}")["attempt"]["incident_id"]
    caller.post(f"/incidents/{incident_id}/resolve")
    run(
        database,
        "with moved as (delete from notification_attempt where incident_id = %s returning *)"
        " insert into notification_attempt_archive"
        " select (jsonb_populate_record(null::notification_attempt_archive, to_jsonb(moved))).* from moved",
        incident_id,
    )
    assert len(caller.get(f"/attempts?incident={incident_id}")["attempts"]) == 2
    assert len(caller.get(f"/incidents/{incident_id}")["attempts"]) == 2
    assert caller.get(f"/attempts/{page}")["attempt"]["status"] == "CANCELLED"
    assert caller.get("/attempts")["attempts"] == []
    assert "archive" in caller.post(f"/attempts/{page}/replay", None, 409)["error"]


def test_a_page_that_waits_for_its_destination_says_so(caller: Api, database: Database, service: int) -> None:
    [page] = open_pages(database, service)
    [(gate,)] = run(database, "select destination from notification_attempt where id = %s", page)
    run(database, "insert into destination values (%s, 3, now() + interval '1 minute', 'it answers 503', now())", gate)
    seen = caller.get(f"/attempts/{page}")["attempt"]
    assert seen["held_reason"] == "it answers 503" and seen["held_until"] > seen["due_at"]
    run(database, "update destination set not_before = now() - interval '1 second'")
    assert caller.get(f"/attempts/{page}")["attempt"]["held_until"] is None
    run(database, "update destination set not_before = now() + interval '1 minute'")
    run(database, "update notification_attempt set due_at = now() + interval '1 hour' where id = %s", page)
    assert caller.get(f"/attempts/{page}")["attempt"]["held_until"] is None


def test_a_page_that_waits_for_its_pace_says_so(caller: Api, database: Database, service: int) -> None:
    flying, waiting = open_pages(database, service, 2)
    run(database, "update contact_method set pace_seconds = 30")
    run(database, "update notification_attempt set bundle = 'method:1', pace_seconds = 30 where kind = 'PAGE'")
    in_flight(database, flying)
    run(database, "insert into contact_turn values ('method:1', 'one', now() + interval '20 seconds')")
    assert "30 s" in caller.get(f"/attempts/{waiting}")["attempt"]["held_reason"]
    run(
        database,
        "update notification_attempt set status = 'DELIVERED', lease_until = null, delivered_at = now(),"
        " finished_at = now() where id = %s",
        flying,
    )
    [(until,)] = run(database, "update contact_turn set until = until + interval '10 seconds' returning until")
    seen = caller.get(f"/attempts/{waiting}")["attempt"]
    assert seen["held_until"] == until.isoformat().replace("+00:00", "Z")


def test_one_failed_page_is_sent_again(caller: Api, database: Database, service: int) -> None:
    [page] = open_pages(database, service)
    before = caller.get(f"/attempts/{page}")["attempt"]
    caller.post(f"/attempts/{page}/replay", None, 409)
    fail(database, page)
    after = caller.post(f"/attempts/{page}/replay")["attempt"]
    assert (after["id"], after["status"], after["last_error"]) == (page, "PENDING", None)
    assert after["idempotency_key"] != before["idempotency_key"] and after["lease_owner"] is None
    assert after["max_tries"] > after["tries"]
    event = caller.get(f"/incidents/{after['incident_id']}")["events"][-1]
    assert (event["event"], event["actor"], event["data"]) == ("replayed", "token:responder", {"attempt": page})


@pytest.mark.parametrize("verb", ["acknowledge", "resolve", "snooze"])
def test_k030_k033_a_page_nobody_needs_is_not_sent_again(
    caller: Api, database: Database, service: int, verb: str
) -> None:
    [page] = open_pages(database, service)
    fail(database, page)
    incident_id = caller.get(f"/attempts/{page}")["attempt"]["incident_id"]
    caller.post(f"/incidents/{incident_id}/{verb}", {"for": "1h"} if verb == "snooze" else None)
    before = caller.get(f"/attempts/{page}")
    caller.post(f"/attempts/{page}/replay", None, 409)
    assert caller.post("/attempts/replay", {"ids": [page]}) == {"replayed": 0, "skipped": 1}
    assert caller.get(f"/attempts/{page}") == before


def test_a_step_is_not_replayed(caller: Api, database: Database, service: int) -> None:
    open_pages(database, service)
    [(step,)] = run(database, "select id from notification_attempt where kind = 'STEP'")
    caller.post(f"/attempts/{step}/replay", None, 409)


def test_many_are_sent_again_and_counted(caller: Api, database: Database, service: int) -> None:
    pages = open_pages(database, service, 5)
    fail(database, *pages[:2], transport="slack")
    fail(database, *pages[2:4])
    incident_id = caller.get(f"/attempts/{pages[1]}")["attempt"]["incident_id"]
    caller.post(f"/incidents/{incident_id}/acknowledge")
    wanted = {"status": "FAILED", "transport": "slack"}
    assert caller.post("/attempts/replay", wanted) == {"replayed": 1, "skipped": 1}
    assert caller.post("/attempts/replay", {"ids": [pages[2], pages[4], 999_999]}) == {"replayed": 1, "skipped": 2}
    assert caller.post("/attempts/replay") == {"replayed": 1, "skipped": 1}
    assert caller.post("/attempts/replay", {"ids": []}) == {"replayed": 0, "skipped": 0}


def test_many_of_one_incident_are_one_transaction(
    caller: Api, database: Database, service: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail(database, *open_pages(database, service, 2))
    real, seen = attempts.replay, set()

    def replay(tx: Any, incident_id: int, ids: Any, actor: str) -> Any:
        seen.add(id(tx))
        assert incident_id not in seen
        return real(tx, incident_id, ids, actor)

    monkeypatch.setattr(attempts, "replay", replay)
    assert caller.post("/attempts/replay", {})["replayed"] == 2


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"status": "PENDING"}, "status"),
        ({"transport": 7}, "transport"),
        ({"ids": "all"}, "ids"),
        ({"ids": ["1"]}, "ids"),
        ({"ids": [True]}, "ids"),
        ({"ids": [2**63]}, "ids"),
        ({"ids": [1.5]}, "ids"),
        ({"everything": True}, "everything"),
    ],
)
def test_a_replay_refuses_what_it_cannot_read(
    caller: Api, database: Database, service: int, body: Any, field: str
) -> None:
    [page] = open_pages(database, service)
    fail(database, page)
    assert caller.post("/attempts/replay", body, 422)["field"] == field
    assert caller.get(f"/attempts/{page}")["attempt"]["status"] == "FAILED"


def test_roles_and_unknown_attempts(caller: Api, database: Database, service: int) -> None:
    [page] = open_pages(database, service)
    fail(database, page)
    viewer = Api(caller.client, token(database, "viewer"))
    viewer.get(f"/attempts/{page}")
    viewer.post(f"/attempts/{page}/replay", None, 403)
    viewer.post("/attempts/replay", {}, 403)
    for unknown in (0, page + 1000, 2**63, 10**30):
        caller.get(f"/attempts/{unknown}", 404)
        caller.post(f"/attempts/{unknown}/replay", None, 404)
