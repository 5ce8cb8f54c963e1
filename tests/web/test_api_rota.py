"""On call, shifts and overrides through the API."""

from datetime import UTC, datetime
from typing import Any

import pytest

from escalade import overview
from escalade.config import Config
from escalade.db import Database
from escalade.nextup import Lookup
from tests import factories
from tests.factories import run
from tests.web.serving import Api, api, token

TAKE = {
    "kind": "take",
    "user": "bob@example.com",
    "start": "2026-01-07T08:00:00Z",
    "end": "2026-01-07T17:00:00+01:00",
}
DURING = "2026-01-07T09:00:00Z"


@pytest.fixture
def service(database: Database) -> int:
    return factories.ladder(database, "http://127.0.0.1:9")


@pytest.fixture
def caller(database: Database, config: Config, service: int) -> Api:
    return api(database, config)


def on_call(caller: Api, query: str = "") -> dict[str, list[str]]:
    return {item["schedule"]: item["users"] for item in caller.get(f"/oncall{query}")["schedules"]}


def test_who_is_on_call_now_and_then(caller: Api, database: Database) -> None:
    answer = caller.get(f"/oncall?at={DURING}")
    assert answer == {"at": DURING, "schedules": [{"schedule": "primary", "users": ["alice@example.com"]}]}
    assert on_call(caller) == {"primary": ["alice@example.com"]}
    assert on_call(caller, "?at=2025-01-07T09:00:00Z") == {"primary": []}
    factories.schedule(database, [], "backup")
    assert on_call(caller) == {"backup": [], "primary": ["alice@example.com"]}
    assert on_call(caller, "?schedule=backup") == {"backup": []}
    assert caller.get("/oncall?schedule=nope", 404)["field"] == "schedule"


@pytest.mark.parametrize("at", ["2026-01-07T10:00:00%2B01:00", "2026-01-07T10:00:00+01:00", "2026-01-07T10:00%2B0100"])
def test_a_zone_may_be_written_in_any_way(caller: Api, at: str) -> None:
    assert caller.get(f"/oncall?at={at}")["at"] == DURING


@pytest.mark.parametrize(
    "at", ["2026-01-07T09:00:00", "2026-01-07", "now", "1700000000", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"]
)
def test_a_time_without_a_zone_or_sense_is_refused(caller: Api, at: str) -> None:
    assert caller.get(f"/oncall?at={at}", 422)["field"] == "at"
    assert caller.get(f"/schedules/primary/shifts?from={at}", 422)["field"] == "from"
    assert caller.post("/schedules/primary/overrides", {**TAKE, "start": at}, 422)["field"] == "start"


def test_one_schedule_that_cannot_be_worked_out_hides_no_other(caller: Api, database: Database) -> None:
    factories.schedule(database, [], "broken", timezone="Mars/Olympus")
    assert on_call(caller) == {"broken": [], "primary": ["alice@example.com"]}
    caller.get("/schedules/broken/shifts", 409)


def test_an_override_is_made_seen_and_ended(caller: Api, database: Database) -> None:
    override_id = caller.post("/schedules/primary/overrides", TAKE, 201)["override"]["id"]
    assert run(database, "select source, created_by from override") == [("person", "token:responder")]
    assert on_call(caller, f"?at={DURING}") == {"primary": ["bob@example.com"]}
    shifts = caller.get("/schedules/primary/shifts?from=2026-01-07T00:00:00Z&to=2026-01-08T00:00:00Z")
    assert shifts["schedule"] == "primary"
    assert [(shift["start"], shift["users"]) for shift in shifts["shifts"]] == [
        ("2026-01-07T00:00:00Z", ["alice@example.com"]),
        ("2026-01-07T08:00:00Z", ["bob@example.com"]),
        ("2026-01-07T16:00:00Z", ["alice@example.com"]),
    ]
    gone = caller.call("DELETE", f"/schedules/primary/overrides/{override_id}")
    assert (gone.status_code, gone.data) == (204, b"")
    assert on_call(caller, f"?at={DURING}") == {"primary": ["alice@example.com"]}
    assert caller.call("DELETE", f"/schedules/primary/overrides/{override_id}").status_code == 404


def test_replacing_and_removing(caller: Api) -> None:
    replace = {**TAKE, "kind": "replace", "user": "BOB@example.com", "replaces": "alice@example.com"}
    caller.post("/schedules/primary/overrides", replace, 201)
    assert on_call(caller, f"?at={DURING}") == {"primary": ["bob@example.com"]}
    caller.post("/schedules/primary/overrides", {**TAKE, "kind": "remove", "replaces": None}, 201)
    assert on_call(caller, f"?at={DURING}") == {"primary": []}


def test_k045_the_api_the_dashboard_and_the_page_agree(
    caller: Api, database: Database, service: int, clock: Any
) -> None:
    now = factories.now(database)
    start, end = now.replace(year=now.year - 1), now.replace(year=now.year + 1)
    override = {"kind": "take", "user": "bob@example.com", "start": start.isoformat(), "end": end.isoformat()}
    with database.read() as tx:
        before = overview.watermark(tx)
    caller.post("/schedules/primary/overrides", override, 201)
    incident = factories.open_incident(database, service)
    with database.read() as tx:
        assert Lookup(tx).who(incident, 1, now) == "Bob"
        assert overview.watermark(tx) != before
    [page] = [one for one in caller.get(f"/attempts?incident={incident.id}")["attempts"] if one["kind"] == "PAGE"]
    assert page["user"] == "bob@example.com" and on_call(caller) == {"primary": ["bob@example.com"]}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"kind": "swap"}, "kind"),
        ({"kind": None}, "kind"),
        ({"user": "nobody@example.com"}, "user"),
        ({"user": "carol@example.com"}, "user"),
        ({"user": None}, "user"),
        ({"replaces": "alice@example.com"}, "replaces"),
        ({"kind": "replace"}, "replaces"),
        ({"kind": "replace", "replaces": "carol@example.com"}, "replaces"),
        ({"kind": "replace", "replaces": "bob@example.com"}, "replaces"),
        ({"end": "2026-01-07T08:00:00Z"}, "end"),
        ({"end": 7}, "end"),
        ({"note": "holiday"}, "note"),
    ],
)
def test_an_override_that_cannot_be_names_its_field(
    caller: Api, database: Database, change: dict[str, Any], field: str
) -> None:
    factories.user(database, "carol", "viewer")
    assert caller.post("/schedules/primary/overrides", {**TAKE, **change}, 422)["field"] == field
    assert run(database, "select 1 from override") == []


def test_schedules_that_are_not_there(caller: Api, database: Database) -> None:
    caller.get("/schedules/nope/shifts", 404)
    caller.post("/schedules/nope/overrides", TAKE, 404)
    override_id = caller.post("/schedules/primary/overrides", TAKE, 201)["override"]["id"]
    factories.schedule(database, [], "backup")
    for schedule in ("nope", "backup"):
        assert caller.call("DELETE", f"/schedules/{schedule}/overrides/{override_id}").status_code == 404
    assert caller.call("GET", "/schedules/%00/shifts").status_code == 422


def test_a_range_has_two_ends_in_order_and_a_limit(caller: Api) -> None:
    path = "/schedules/primary/shifts?from=2026-01-07T00:00:00Z"
    for end in ("2026-01-07T00:00:00Z", "2026-01-01T00:00:00Z", "2027-03-01T00:00:00Z"):
        assert caller.get(f"{path}&to={end}", 422)["field"] == "to"
    shifts = caller.get(path)["shifts"]
    assert shifts[-1]["end"] == datetime(2026, 1, 21, tzinfo=UTC).isoformat().replace("+00:00", "Z")


def test_k046_whoever_is_gone_is_on_call_no_more(caller: Api, database: Database) -> None:
    caller.post("/schedules/primary/overrides", TAKE, 201)
    run(database, "delete from app_user where email = 'bob@example.com'")
    assert on_call(caller, f"?at={DURING}") == {"primary": ["alice@example.com"]}
    [(override_id,)] = run(database, "select id from override")
    assert caller.call("DELETE", f"/schedules/primary/overrides/{override_id}").status_code == 204


def test_a_viewer_reads_and_overrides_nothing(caller: Api, database: Database) -> None:
    viewer = Api(caller.client, token(database, "viewer"))
    viewer.get("/oncall")
    viewer.get("/schedules/primary/shifts")
    viewer.post("/schedules/primary/overrides", TAKE, 403)
    assert viewer.call("DELETE", "/schedules/primary/overrides/1").status_code == 403
