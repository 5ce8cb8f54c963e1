"""Alerts in over HTTP: answered once committed, refused with a reason, and never with a fault of ours."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import psycopg
import pytest
import requests
from flask.testing import FlaskClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from escalade import fanout, opening
from escalade.buckets import Buckets
from escalade.config import Config
from escalade.db import Database, Tx
from escalade.errors import Unavailable
from escalade.web import hooks
from tests import factories
from tests.factories import KEY, run
from tests.web.serving import make_app, serving

PATH = f"/hooks/{KEY}"


@pytest.fixture
def service(database: Database) -> int:
    return factories.ladder(database, "http://127.0.0.1:9")


@pytest.fixture
def client(database: Database, config: Config, service: int) -> FlaskClient:
    factories.integration(database, service)
    return make_app(database, config).test_client()


def alerts(*fingerprints: str, status: str = "firing") -> dict[str, Any]:
    """An Alertmanager body."""
    items = [{"status": status, "labels": {"alertname": name}, "fingerprint": name} for name in fingerprints]
    return {"alerts": items}


def incidents(db: Database) -> list[tuple[Any, ...]]:
    return run(db, "select title, severity, status, count from incident order by id")


def test_k001_an_unknown_severity_opens_an_incident(database: Database, client: FlaskClient) -> None:
    response = client.post(PATH, json={"title": "Disk full", "severity": "purple", "state": "odd"})
    assert response.status_code == 202
    [opened] = response.get_json()["incidents"]
    assert response.get_json() == {"status": "accepted", "incidents": [{"id": opened["id"], "action": "triggered"}]}
    assert incidents(database) == [("Disk full", "error", "TRIGGERED", 1)]


def test_k001_a_refusal_names_the_field(database: Database, client: FlaskClient) -> None:
    response = client.post(PATH, json={"details": ""})
    assert (response.status_code, response.get_json()["field"]) == (422, "title")
    assert incidents(database) == []


@pytest.mark.parametrize("host", ["a..b", ".x", "x" * 64, "[", "", "evil.example"])
def test_an_alert_is_taken_whatever_the_caller_calls_us(database: Database, client: FlaskClient, host: str) -> None:
    response = client.post(PATH, json={"title": "Disk full"}, environ_overrides={"HTTP_HOST": host})
    assert (response.status_code, len(incidents(database))) == (202, 1)


@pytest.mark.parametrize("path", [PATH, PATH + "/", "/" + PATH, PATH + "//", "/hooks//" + KEY, "/hooks", "/hooks/"])
def test_k002_the_answer_is_never_a_redirect(client: FlaskClient, path: str) -> None:
    response = client.post(path, json={"title": "Disk full"})
    assert response.status_code == (202 if path in (PATH, PATH + "/") else 404)


@pytest.mark.parametrize(
    "body", [b"", b"null", b"[]", b"3", b'"x"', b'{"title": null}', b'{"title": [[]]}', b"{", b"NaN", b"[" * 40_000]
)
@pytest.mark.parametrize("kind", ["generic", "alertmanager"])
def test_k003_an_unexpected_shape_is_refused(
    database: Database, config: Config, service: int, kind: str, body: bytes
) -> None:
    factories.integration(database, service, kind)
    client = make_app(database, config).test_client()
    response = client.post(PATH, data=body, content_type="application/json")
    assert response.status_code in (400, 422) and response.get_json()["error"]
    assert incidents(database) == []


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE"])
def test_k003_only_post_is_taken(client: FlaskClient, method: str) -> None:
    response = client.open(PATH, method=method)
    assert response.status_code == 405 and "POST" in response.headers["Allow"]


def test_k004_an_integration_over_its_rate_is_told_when_to_come_again(
    database: Database, service: int, clean_url: str
) -> None:
    factories.integration(database, service)
    other = "another-key-of-twenty-characters"
    factories.integration(database, service, key=other, name="other")
    config = Config.read({"DATABASE_URL": clean_url, "ESCALADE_HOOK_RATE": "1"})
    app = make_app(database, config)
    app.extensions[hooks.EXTENSION] = Buckets(rate=1 / 60, burst=3)
    client = app.test_client()
    answers = [client.post(PATH, json={"title": f"Disk {number}"}) for number in range(5)]
    assert [answer.status_code for answer in answers] == [202, 202, 202, 429, 429]
    assert 1 <= int(answers[-1].headers["Retry-After"]) <= 60 and answers[-1].get_json()["error"]
    assert [row[0] for row in incidents(database)] == ["Disk 0", "Disk 1", "Disk 2"]
    assert client.post(f"/hooks/{other}", json={"title": "Other"}).status_code == 202


def test_the_configured_rate_is_used(database: Database, clean_url: str) -> None:
    config = Config.read({"DATABASE_URL": clean_url, "ESCALADE_HOOK_RATE": "2"})
    buckets = make_app(database, config).extensions[hooks.EXTENSION]
    assert sum(buckets.take(1) == 0.0 for _ in range(150)) in range(100, 103)


def test_k005_a_resolve_for_nothing_opens_nothing(database: Database, client: FlaskClient) -> None:
    response = client.post(PATH, json={"action": "resolve", "dedup_key": "web1-disk"})
    assert response.status_code == 202
    assert response.get_json()["incidents"] == [{"id": None, "action": "ignored"}]
    assert incidents(database) == [] and run(database, "select 1 from notification_attempt") == []


def test_k006_k014_a_resolve_needs_the_key_alone(database: Database, client: FlaskClient) -> None:
    client.post(PATH, json={"title": "Disk full", "severity": "critical", "dedup_key": "web1-disk"})
    other = {"title": "Something else", "severity": "info", "dedup_key": "web1-disk", "action": "resolve"}
    [done] = client.post(PATH, json=other).get_json()["incidents"]
    assert done["action"] == "resolved" and incidents(database) == [("Disk full", "critical", "RESOLVED", 1)]


def test_k007_an_alert_that_repeats_puts_its_auto_resolve_off(database: Database, config: Config, clock: Any) -> None:
    alice = factories.user(database)
    policy = factories.policy(database, (300, [("user", alice)]))
    factories.integration(database, factories.service(database, policy, auto_resolve_seconds=600))
    client = make_app(database, config).test_client()
    deadlines = []
    for _ in range(2):
        client.post(PATH, json={"title": "Disk full", "dedup_key": "web1-disk"})
        deadlines += run(database, "select auto_resolve_at from incident")[0]
        clock.pass_(seconds=500)
    assert 500 <= (deadlines[1] - deadlines[0]).total_seconds() < 600


def test_k008_two_alerts_of_a_group_are_two_incidents(database: Database, config: Config, service: int) -> None:
    factories.integration(database, service, "alertmanager")
    client = make_app(database, config).test_client()
    body = alerts("a", "b", "c")
    body["alerts"][1]["status"] = "resolved"
    done = client.post(PATH, json=body).get_json()["incidents"]
    assert [one["action"] for one in done] == ["triggered", "ignored", "triggered"]
    assert [row[0] for row in incidents(database)] == ["a", "c"]


def test_k009_k011_the_same_key_counts_on_the_open_incident(database: Database, client: FlaskClient) -> None:
    for number in range(3):
        last = client.post(PATH, json={"title": f"Disk {number}", "dedup_key": "web1-disk"})
    assert last.get_json()["incidents"][0]["action"] == "deduplicated"
    assert incidents(database) == [("Disk 0", "error", "TRIGGERED", 3)]
    assert len(run(database, "select 1 from notification_attempt where kind = 'PAGE'")) == 1


def test_k010_without_a_key_alerts_never_merge(database: Database, client: FlaskClient) -> None:
    for _ in range(2):
        client.post(PATH, json={"title": "Disk full"})
    assert len(incidents(database)) == 2


def test_k012_k013_fifty_identical_alerts_at_once_are_one_incident(
    database: Database, config: Config, service: int
) -> None:
    factories.integration(database, service)
    start = threading.Barrier(50)
    with serving(make_app(database, config)) as address:

        def send(_: int) -> tuple[int, str]:
            start.wait(30)
            sent = requests.post(f"{address}{PATH}", json={"title": "Disk full", "dedup_key": "web1-disk"}, timeout=30)
            return sent.status_code, sent.json()["incidents"][0]["action"]

        with ThreadPoolExecutor(50) as pool:
            answers = list(pool.map(send, range(50)))
    assert sorted(answers) == [(202, "deduplicated")] * 49 + [(202, "triggered")]
    assert incidents(database) == [("Disk full", "error", "TRIGGERED", 50)]
    assert len(run(database, "select 1 from notification_attempt where kind = 'PAGE'")) == 1
    assert len(run(database, "select 1 from notification_attempt where kind = 'STEP' and status = 'PENDING'")) == 1


def test_k015_the_same_key_pages_again_after_a_resolve(database: Database, client: FlaskClient) -> None:
    for body in ({"title": "Disk full"}, {"action": "resolve"}, {"title": "Disk full"}):
        client.post(PATH, json={**body, "dedup_key": "web1-disk"})
    assert [row[2] for row in incidents(database)] == ["RESOLVED", "TRIGGERED"]
    assert len(run(database, "select 1 from notification_attempt where kind = 'PAGE' and status = 'PENDING'")) == 1


def test_k016_a_fingerprint_is_kept_verbatim(database: Database, client: FlaskClient) -> None:
    key = ' Web1/"disk" — ä\t%00 '
    client.post(PATH, json={"title": "Disk full", "dedup_key": key})
    assert run(database, "select dedup_key from incident") == [(key,)]


def test_an_unknown_key_is_not_found(database: Database, client: FlaskClient) -> None:
    for key in (KEY.upper(), KEY[:-1], "%00", "%ff", "x" * 5000):
        response = client.post(f"/hooks/{key}", json={"title": "Disk full"})
        assert response.status_code == 404 and response.get_json()["error"]


def test_a_body_over_the_limit_is_too_large(database: Database, client: FlaskClient) -> None:
    fits = client.post(PATH, data=b"x" * (256 * 1024), content_type="text/plain")
    assert fits.status_code == 202
    response = client.post(PATH, data=b"x" * (256 * 1024 + 1), content_type="text/plain")
    assert response.status_code == 413 and response.get_json()["error"]
    assert len(incidents(database)) == 1


def test_bad_bytes_in_the_query_are_marked(database: Database, client: FlaskClient) -> None:
    assert client.post(f"{PATH}?title=Disk%FF%00full", data=b"").status_code == 202
    assert run(database, "select title, sanitized from incident") == [("Disk\ufffd\ufffdfull", True)]


def test_a_compressed_body_is_refused_and_not_misread(client: FlaskClient) -> None:
    response = client.post(PATH, data=b"\x1f\x8b", headers={"Content-Encoding": "gzip"})
    assert (response.status_code, response.get_json()["field"]) == (400, "Content-Encoding")
    assert client.post(PATH, data=b"x", headers={"Content-Encoding": "identity"}).status_code == 202


def test_a_cookie_changes_nothing_here(client: FlaskClient) -> None:
    client.set_cookie("escalade", "anything", domain="localhost")
    assert client.post(PATH, json={"title": "x"}, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 202


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Basic c2VjcmV0"}, 401),
        ({"X-Escalade-Secret": ""}, 401),
        ({"Authorization": "Bearer s3cret"}, 202),
        ({"X-Escalade-Secret": "s3cret"}, 202),
    ],
)
def test_with_verify_on_the_secret_is_demanded(
    database: Database, client: FlaskClient, headers: dict[str, str], status: int
) -> None:
    run(database, "update integration set verify = true, secret = 's3cret'")
    assert client.post(PATH, json={"title": "x"}, headers=headers).status_code == status
    run(database, "update integration set secret = null")
    assert client.post(PATH, json={"title": "x"}, headers=headers).status_code == 401


class Breaks:
    """Stands in for `opening.accept` and raises at one call."""

    def __init__(self, at: int, error: Exception) -> None:
        self.at, self.error, self.calls = at, error, 0
        self.real = opening.accept

    def __call__(self, *args: Any) -> opening.Done:
        self.calls += 1
        if self.calls == self.at:
            raise self.error
        return self.real(*args)


def fifty(database: Database, config: Config, service: int) -> Any:
    factories.integration(database, service, "alertmanager")
    client = make_app(database, config).test_client()
    return lambda: client.post(PATH, json=alerts(*(f"alert{number}" for number in range(50))))


def test_the_database_away_in_the_middle_asks_for_all_again(
    database: Database, config: Config, service: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = fifty(database, config, service)
    breaks = Breaks(30, psycopg.OperationalError("gone"))
    monkeypatch.setattr(opening, "accept", breaks)
    response = send()
    assert (response.status_code, response.headers["Retry-After"]) == (503, "5")
    assert len(incidents(database)) == 29
    actions = [one["action"] for one in send().get_json()["incidents"]]
    assert actions == ["deduplicated"] * 29 + ["triggered"] * 21


def test_a_fault_in_one_alert_costs_no_other(
    database: Database, config: Config, service: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = fifty(database, config, service)
    monkeypatch.setattr(opening, "accept", Breaks(30, RuntimeError("a fault of ours")))
    response = send()
    assert response.status_code == 503 and "a fault" not in response.text
    assert len(incidents(database)) == 49


def test_a_lost_deadlock_is_tried_again(
    database: Database, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for error in (psycopg.errors.DeadlockDetected("deadlock"), psycopg.errors.SerializationFailure("40001")):
        breaks = Breaks(1, error)
        monkeypatch.setattr(opening, "accept", breaks)
        assert client.post(PATH, json={"title": "Disk full"}).status_code == 202
        monkeypatch.setattr(opening, "accept", breaks.real)
    assert len(incidents(database)) == 2


def test_a_ladder_that_raises_does_not_lose_the_alert(
    database: Database, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(tx: Tx, *rest: Any) -> Any:
        raise RuntimeError("a fault in the ladder")

    monkeypatch.setattr(fanout, "fan_out", broken)
    assert client.post(PATH, json={"title": "Disk full"}).status_code == 202
    assert run(database, "select kind, status from notification_attempt") == [("STEP", "PENDING")]


def test_k105_with_all_connections_busy_the_tool_is_told_to_come_again(
    database: Database, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "wait", 0.2)
    with held(database):
        response = client.post(PATH, json={"title": "Disk full"})
    assert (response.status_code, response.headers["Retry-After"]) == (503, "5")
    assert client.post(PATH, json={"title": "Disk full"}).status_code == 202


@contextmanager
def held(database: Database) -> Any:
    """All connections of the pool are in use."""
    conns = [database.pool.getconn(5) for _ in range(database.pool.max_size)]
    try:
        yield
    finally:
        for conn in conns:
            database.pool.putconn(conn)


def test_a_dead_database_is_a_503(database: Database, config: Config) -> None:
    gone = Database("postgresql://nobody@127.0.0.1:1/x", wait=0.2)
    try:
        response = make_app(gone, config).test_client().post(PATH, json={"title": "x"})
        assert (response.status_code, response.headers["Retry-After"]) == (503, "5")
    finally:
        gone.close()


def test_the_key_is_in_no_log(
    database: Database, client: FlaskClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("escalade.inbound.parse", Breaks(1, RuntimeError("x")))
    assert client.post(PATH, json={"title": "x"}).status_code == 500
    assert "raised" in caplog.text and KEY not in caplog.text


BODIES = st.one_of(
    st.binary(max_size=200),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.sampled_from(["title", "alerts", "labels", "status", "action", "dedup_key"]), inner)
        ),
        max_leaves=12,
    ).map(lambda value: json.dumps(value).encode("utf-8", "surrogatepass")),
)
TYPES = ["application/json", "application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x", ""]


@pytest.mark.parametrize("kind", ["generic", "alertmanager"])
def test_no_bytes_are_answered_with_a_fault_of_ours(
    database: Database, config: Config, service: int, kind: str
) -> None:
    factories.integration(database, service, kind)
    client = make_app(database, replace(config, hook_rate=1_000_000)).test_client()

    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
    @given(body=BODIES, content_type=st.sampled_from(TYPES), query=st.binary(max_size=20))
    def post(body: bytes, content_type: str, query: bytes) -> None:
        quoted = "".join(f"%{byte:02x}" for byte in query)
        response = client.post(f"{PATH}?title={quoted}", data=body, content_type=content_type)
        assert response.status_code in (202, 400, 422), response.text

    post()


def test_headers_of_any_kind_are_no_fault_of_ours(client: FlaskClient) -> None:
    for headers in (
        {"Content-Type": "application/json; charset=nonsense"},
        {"Content-Type": "multipart/form-data"},
        {"Content-Type": "\xff"},
        {"Content-Encoding": "br"},
        {"Transfer-Encoding": "chunked"},
        {"Content-Length": "-1"},
        {"Content-Length": "lots"},
        {"Expect": "100-continue"},
        {"Authorization": "Bearer"},
    ):
        assert client.post(PATH, data=b'{"title": "x"}', headers=headers).status_code < 500


def test_unavailable_is_what_a_pool_without_a_connection_says(database: Database) -> None:
    database.wait = 0.1
    with held(database), pytest.raises(Unavailable), database.begin():
        pass
