"""Closed by default; sessions, tokens, roles, and where requests may come from."""

from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from escalade import passwords, users
from escalade.config import Config
from escalade.db import Database
from escalade.web import access
from tests import factories
from tests.web.serving import log_in, make_app, token

PASSWORD = "correct horse battery"
OURS = {"Sec-Fetch-Site": "same-origin"}

PUBLIC = {
    "/login",
    "/a/<token>",
    "/start/<token>",
    "/invite/<token>",
    "/reset/<token>",
    "/ics/<token>",
    "/static/<path:filename>",
    "/manifest.webmanifest",
    "/sw.js",
    "/healthz",
    "/readyz",
    "/hooks/<key>",
    "/beat/<key>",
}


@pytest.fixture
def app(database: Database, config: Config) -> Flask:
    return make_app(database, config)


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()


def path_of(rule: Any) -> str:
    """An address that the rule fits."""
    path = str(rule)
    for name in rule.arguments:
        path = path.replace(f"<int:{name}>", "1").replace(f"<path:{name}>", "x").replace(f"<{name}>", "x")
    return path


def test_every_route_says_who_may_use_it(app: Flask) -> None:
    silent = [str(rule) for rule in app.url_map.iter_rules() if access.need_of(app, rule.endpoint) is None]
    assert silent == []


def test_only_the_listed_routes_are_public(app: Flask) -> None:
    opened = {str(rule) for rule in app.url_map.iter_rules() if access.need_of(app, rule.endpoint) == access.PUBLIC}
    assert opened <= PUBLIC | {path for path in opened if path.startswith(("/v2/", "/callbacks/"))}


def test_an_anonymous_caller_gets_nothing_from_any_other_route(app: Flask, client: FlaskClient) -> None:
    tried = 0
    for rule in app.url_map.iter_rules():
        if access.need_of(app, rule.endpoint) == access.PUBLIC:
            continue
        for method in rule.methods or ():
            response = client.open(path_of(rule), method=method)
            sent_to_login = response.status_code == 303 and response.location.startswith("/login")
            assert response.status_code == 401 or sent_to_login, f"{method} {rule}: {response.status}"
            tried += 1
    assert tried > 30


def test_a_route_that_says_nothing_is_closed(app: Flask) -> None:
    app.add_url_rule("/forgotten", "forgotten", lambda: "secret")
    assert app.test_client().get("/forgotten").status_code == 403


def test_a_role_that_does_not_exist_is_noticed_at_once() -> None:
    with pytest.raises(ValueError):
        access.needs("owner")


def test_a_page_sends_a_stranger_to_the_login_and_back(client: FlaskClient) -> None:
    response = client.get("/incidents/7?all=1")
    assert (response.status_code, response.location) == (303, "/login?next=/incidents/7%3Fall%3D1")


def test_htmx_is_sent_to_the_login_of_the_page_it_is_on(client: FlaskClient) -> None:
    shown = {"HX-Request": "true", "HX-Current-URL": "http://localhost/attempts?status=FAILED"}
    response = client.get("/", headers=shown)
    assert response.status_code == 401
    assert response.headers["HX-Redirect"] == "/login?next=/attempts%3Fstatus%3DFAILED"


@pytest.mark.parametrize(
    "shown", ["http://[", "http://[::1", "http://]/x", "//evil.example/", "http://a//evil.example", "\xff["]
)
def test_an_address_that_cannot_be_read_leads_to_the_login_alone(client: FlaskClient, shown: str) -> None:
    response = client.get("/", headers={"HX-Request": "true", "HX-Current-URL": shown})
    assert (response.status_code, response.headers["HX-Redirect"]) == (401, "/login")


@pytest.mark.parametrize("then", ["http://[", "//[", "/\\[", "/\t/[", "[", "//evil.example/x"])
def test_a_login_leads_to_no_address_that_cannot_be_read(database: Database, client: FlaskClient, then: str) -> None:
    factories.user(database, password_hash=passwords.hashed(PASSWORD))
    response = client.post("/login", data={"email": "alice@example.com", "password": PASSWORD, "next": then})
    assert (response.status_code, response.headers["Location"]) == (303, "/")
    assert client.get("/login", query_string={"next": then}).status_code == 200


def test_the_api_answers_a_stranger_in_json(client: FlaskClient) -> None:
    response = client.get("/api/v1/incidents")
    assert response.status_code == 401
    assert response.get_json()["error"] and response.headers["WWW-Authenticate"] == "Bearer"


def test_a_wrong_token_is_refused_also_with_a_session(database: Database, client: FlaskClient) -> None:
    log_in(client, database, factories.user(database))
    assert client.get("/api/v1/incidents").status_code == 200
    assert client.get("/api/v1/incidents", headers={"Authorization": "Bearer wrong"}).status_code == 401
    assert client.get("/api/v1/incidents", headers={"Authorization": "Basic eDp5"}).status_code == 200


def test_a_viewer_reads_and_a_responder_acts(database: Database, client: FlaskClient) -> None:
    viewer = {"Authorization": f"Bearer {token(database, 'viewer')}"}
    assert client.get("/api/v1/incidents", headers=viewer).status_code == 200
    refused = client.post("/api/v1/incidents", headers=viewer, json={"service": "api", "title": "x"})
    assert refused.status_code == 403 and "responder" in refused.get_json()["error"]


def test_a_role_taken_away_is_gone_with_the_next_request(database: Database, client: FlaskClient) -> None:
    user_id = factories.user(database)
    log_in(client, database, user_id)
    with database.begin() as tx:
        users.change(tx, user_id, "Alice", "viewer", "UTC")
    answer = client.post("/api/v1/attempts/replay", json={}, headers=OURS)
    assert answer.status_code == 401
    log_in(client, database, user_id)
    assert client.post("/api/v1/attempts/replay", json={}, headers=OURS).status_code == 403


def test_when_a_token_was_used_is_written_once_a_minute(database: Database, client: FlaskClient, clock: Any) -> None:
    sent = {"Authorization": f"Bearer {token(database)}"}
    seen = []
    for seconds in (0, 30, 40):
        clock.pass_(seconds=seconds)
        assert client.get("/api/v1/attempts", headers=sent).status_code == 200
        seen.append(factories.run(database, "select last_used_at from api_token")[0][0])
    assert seen[0] == seen[1] < seen[2]


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({"Sec-Fetch-Site": "same-origin"}, True),
        ({"Sec-Fetch-Site": "none"}, True),
        ({"Sec-Fetch-Site": "same-site"}, False),
        ({"Sec-Fetch-Site": "cross-site"}, False),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "http://127.0.0.1:8000"}, False),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "https://evil.example"}, True),
        ({"Origin": "http://127.0.0.1:8000"}, True),
        ({"Origin": "https://127.0.0.1:8000"}, False),
        ({"Origin": "http://127.0.0.1:8001"}, False),
        ({"Origin": "http://evil.example"}, False),
        ({"Origin": "null"}, False),
        ({"Origin": "http://[broken"}, False),
        ({}, False),
    ],
)
def test_every_unsafe_request_with_a_cookie_must_come_from_our_pages(
    database: Database, app: Flask, headers: dict[str, str], allowed: bool
) -> None:
    client = app.test_client()
    log_in(client, database, factories.user(database, role="admin", password_hash="x"))
    for rule in app.url_map.iter_rules():
        unsafe = (rule.methods or set()) - set(access.SAFE_METHODS)
        if access.need_of(app, rule.endpoint) == access.PUBLIC or rule.endpoint == "login.logout":
            continue
        for method in unsafe:
            response = client.open(path_of(rule), method=method, headers=headers)
            assert (response.status_code == 403) == (not allowed), f"{method} {rule}: {response.status}"


def test_a_token_is_not_asked_where_it_comes_from(database: Database, client: FlaskClient) -> None:
    log_in(client, database, factories.user(database))
    sent = {"Authorization": f"Bearer {token(database)}", "Sec-Fetch-Site": "cross-site"}
    assert client.post("/api/v1/attempts/replay", json={}, headers=sent).status_code == 200


def test_the_port_of_the_scheme_need_not_be_said(database: Database, clean_url: str) -> None:
    base = "https://Pager.example.com:443"
    config = Config.read({"DATABASE_URL": clean_url, "ESCALADE_BASE_URL": base})
    client = make_app(database, config).test_client()
    log_in(client, database, factories.user(database), cookie="__Host-escalade")
    ours = {"Origin": "https://pager.example.com"}
    assert client.post("/api/v1/attempts/replay", json={}, headers=ours).status_code == 200


def enter(app: Flask, email: str = "alice@example.com", password: str = PASSWORD, **more: Any) -> Any:
    """Log in without the page around it."""
    with app.test_request_context("/login", method="POST", **more):
        return access.login(email, password, "/incidents/7")


def test_a_login_sets_a_cookie_that_scripts_and_other_sites_do_not_get(database: Database, app: Flask) -> None:
    factories.user(database, password_hash=passwords.hashed(PASSWORD))
    response = enter(app, email=" ALICE@example.com ")
    assert (response.status_code, response.location) == (303, "/incidents/7")
    cookie = response.headers["Set-Cookie"]
    assert cookie.startswith("escalade=") and "Secure" not in cookie
    assert "HttpOnly" in cookie and "SameSite=Lax" in cookie and "Path=/" in cookie


def test_over_https_the_cookie_is_bound_to_the_host(database: Database, clean_url: str) -> None:
    config = Config.read({"DATABASE_URL": clean_url, "ESCALADE_BASE_URL": "https://pager.example.com"})
    factories.user(database, password_hash=passwords.hashed(PASSWORD))
    cookie = enter(make_app(database, config)).headers["Set-Cookie"]
    assert cookie.startswith("__Host-escalade=") and "Secure" in cookie and "Domain" not in cookie


def test_another_site_cannot_log_somebody_in(database: Database, app: Flask) -> None:
    factories.user(database, password_hash=passwords.hashed(PASSWORD))
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}):
        with pytest.raises(access.Forbidden):
            enter(app, headers=headers)


def test_a_logout_ends_the_session_itself(database: Database, app: Flask) -> None:
    client = app.test_client()
    session_id = log_in(client, database, factories.user(database))
    with app.test_request_context("/logout", method="POST", headers={"Cookie": f"escalade={session_id}"}):
        response = access.logout()
    assert "escalade=;" in response.headers["Set-Cookie"]
    assert client.get("/api/v1/incidents").status_code == 401


@pytest.mark.parametrize(
    "target",
    [
        None,
        "",
        "incidents/7",
        "//evil.example",
        "///evil.example",
        "/\\evil.example",
        "\\/evil.example",
        "/a\\b",
        "/\t/evil.example",
        "/\n/evil.example",
        "\t//evil.example",
        " //evil.example",
        "https://evil.example",
        "https:evil.example",
        "javascript:alert(1)",
        "/\x00",
        "/x\r\nSet-Cookie: a=b",
        "/\x7f",
        "/\x85",
        "/a b",
        "?next=/",
        "#x",
        "/login",
        "/login?next=/",
        "/logout",
        "/" + "x" * 3000,
    ],
)
def test_a_login_leads_to_no_other_place(target: str | None) -> None:
    assert access.safe_next(target) == "/"


@pytest.mark.parametrize("target", ["/", "/incidents/7", "/attempts?status=FAILED&x=//y", "/oncall#week", "/loginx"])
def test_a_login_leads_back_to_our_pages(target: str) -> None:
    assert access.safe_next(target) == target
