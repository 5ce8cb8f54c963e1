"""One table from refusal to status, one shape for each kind of caller, and headers on every answer."""

from dataclasses import replace
from typing import Any

import psycopg
import pytest
from flask import Flask
from flask.testing import FlaskClient
from jinja2 import DictLoader

from escalade import errors
from escalade.config import Config
from escalade.db import Database
from escalade.web import access
from escalade.web.access import public
from tests.web.serving import make_app

RAISED: list[Exception] = []


@pytest.fixture
def app(database: Database, config: Config) -> Flask:
    app = make_app(database, config)

    @public
    def broken() -> str:
        raise RAISED[-1]

    for path in ("/broken", "/api/broken", "/a/broken-link/x"):
        app.add_url_rule(path, path, broken, methods=["GET", "POST"])
    return app


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.Unreadable("Bad."), 400),
        (errors.Invalid("Bad."), 422),
        (errors.Unauthenticated("Bad."), 401),
        (errors.Forbidden("Bad."), 403),
        (errors.NotFound("Bad."), 404),
        (errors.Conflict("Bad."), 409),
        (errors.TooMany("Bad.", 7), 429),
        (errors.Unavailable("Bad."), 503),
        (errors.Refusal("Bad."), 409),
    ],
)
def test_every_refusal_has_its_status_and_three_shapes(client: FlaskClient, error: Any, status: int) -> None:
    error.field = "title"
    RAISED.append(error)
    for_tools = client.get("/api/broken")
    assert (for_tools.status_code, for_tools.get_json()) == (status, {"error": "Bad.", "field": "title"})
    page = client.get("/broken", headers={"Accept": "text/html"})
    assert page.status_code == status and "Bad." in page.text
    part = client.get("/broken", headers={"HX-Request": "true", "Accept": "*/*"})
    assert (part.status_code, part.text, part.mimetype) == (status, "Bad.", "text/plain")
    asks_for_json = client.get("/broken", headers={"Accept": "application/json"})
    assert asks_for_json.get_json()["error"] == "Bad."
    waits = {429: "7", 503: "5"}.get(status)
    assert for_tools.headers.get("Retry-After") == page.headers.get("Retry-After") == waits


def test_a_page_without_its_template_still_says_why(app: Flask) -> None:
    RAISED.append(errors.Conflict("It is resolved already."))
    app.jinja_env.loader = DictLoader({})
    response = app.test_client().get("/broken")
    assert (response.status_code, response.text) == (409, "It is resolved already.")


@pytest.mark.parametrize("error", [psycopg.OperationalError("secret host"), psycopg.errors.QueryCanceled("x")])
def test_a_database_that_is_away_asks_to_come_again(client: FlaskClient, error: Exception) -> None:
    RAISED.append(error)
    response = client.get("/api/broken")
    assert (response.status_code, response.headers["Retry-After"]) == (503, "5")
    assert "secret" not in response.text


def test_what_cannot_be_stored_is_refused(client: FlaskClient) -> None:
    RAISED.append(psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes"))
    assert client.get("/api/broken").status_code == 422


def test_a_fault_of_ours_says_only_where_it_is_logged(client: FlaskClient, caplog: pytest.LogCaptureFixture) -> None:
    RAISED.append(RuntimeError("a secret detail"))
    for path in ("/api/broken", "/broken"):
        caplog.clear()
        response = client.get(path, headers={"Accept": "text/html"})
        assert response.status_code == 500
        assert "secret" not in response.text and "Traceback" not in response.text
        request_id = response.text.split("request ")[1][:12]
        assert request_id in caplog.text and "a secret detail" in caplog.text


@pytest.mark.parametrize(
    "error", [errors.Conflict("Bad."), RuntimeError("first"), psycopg.OperationalError(), KeyError()]
)
def test_a_fault_in_the_answer_to_a_fault_ends_as_one_sentence(
    app: Flask, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    RAISED.append(error)
    app.jinja_env.loader = DictLoader({"errors/refused.html": "{{ 1 / 0 }}"})
    response = app.test_client().get("/broken", headers={"Accept": "text/html"})
    assert (response.status_code, response.mimetype) == (500, "text/plain")
    request_id = response.text.split("request ")[1][:12]
    traced = [record for record in caplog.records if record.exc_info]
    assert len(traced) == 1 and request_id in traced[0].getMessage()


def test_a_fault_on_the_way_to_the_login_ends_as_one_sentence(app: Flask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "login_url", lambda: 1 // 0)
    response = app.test_client().get("/incidents", headers={"Accept": "text/html"})
    assert response.status_code == 500 and "in the log as request" in response.text


def test_what_flask_refuses_has_the_same_shape(client: FlaskClient) -> None:
    assert client.get("/nowhere").status_code == 404
    assert client.get("/api/v1/nowhere").get_json()["error"] == "There is nothing at this address."
    wrong = client.delete("/healthz")
    assert wrong.status_code == 405 and "GET" in wrong.headers["Allow"] and wrong.get_json()["field"] is None


def test_every_answer_carries_the_headers(client: FlaskClient) -> None:
    RAISED.append(RuntimeError())
    for path in ("/healthz", "/nowhere", "/broken", "/api/v1/incidents", "/", "/a/broken-link/x"):
        response = client.get(path)
        policy = response.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Referrer-Policy"] == "same-origin"
        assert response.headers["Cache-Control"] == "no-store"
        assert "Cookie" in response.headers["Vary"]
        assert response.headers.get("X-Robots-Tag") == ("noindex" if path.startswith("/a/") else None)


def test_only_static_files_may_be_kept(client: FlaskClient) -> None:
    response = client.get("/static/missing.css")
    assert "no-store" not in response.headers.get("Cache-Control", "")


@pytest.mark.parametrize("host", ["a..b", ".x", "x" * 64 + ".example", "[", "a b", "\xff", "", "evil.example:99999999"])
def test_any_host_header_is_served_the_same(client: FlaskClient, host: str) -> None:
    for path, status in (("/login", 200), ("/healthz", 200), ("/nowhere", 404), ("/api/v1/incidents", 401)):
        response = client.get(path, environ_overrides={"HTTP_HOST": host, "HTTP_X_FORWARDED_HOST": host})
        assert response.status_code == status
    away = client.get("/incidents/7", environ_overrides={"HTTP_HOST": host, "HTTP_X_FORWARDED_HOST": host})
    assert (away.status_code, away.headers["Location"]) == (303, "/login?next=/incidents/7")


@pytest.mark.parametrize("base", ["https://bücher.example", "https://[::1]:8443", "http://pager.example.com:81"])
def test_the_base_url_may_name_any_host(database: Database, config: Config, base: str) -> None:
    client = make_app(database, replace(config, base_url=base)).test_client()
    assert client.get("/login", headers={"Host": "a..b"}).status_code == 200
    assert client.get("/incidents").headers["Location"] == "/login?next=/incidents"


def test_the_host_header_is_in_no_answer(client: FlaskClient) -> None:
    for path in ("/", "/login", "/api/v1/incidents", "/nowhere"):
        response = client.get(path, headers={"Host": "evil.example", "X-Forwarded-Host": "evil.example"})
        assert "evil.example" not in response.text + str(response.headers)
