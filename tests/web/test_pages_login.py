"""Logging in and out, and the first login."""

import pytest

from escalade import passwords, settings
from escalade.tokens import digest
from tests import factories
from tests.web.screens import OWN, Screens

PASSWORD = "correct horse"


@pytest.fixture
def alice(screens: Screens) -> int:
    return factories.user(screens.db, "alice", password_hash=passwords.hashed(PASSWORD))


def test_a_login_leads_to_where_one_wanted_to_be(screens: Screens, alice: int) -> None:
    client = screens.app.test_client()
    assert 'name="next" value="/oncall"' in client.get("/login?next=/oncall").text
    form = {"email": "Alice@example.com", "password": PASSWORD, "next": "/oncall"}
    answer = client.post("/login", data=form, headers=OWN)
    assert answer.status_code == 303 and answer.headers["Location"] == "/oncall"
    assert client.get("/oncall").status_code == 200


@pytest.mark.parametrize("target", ["//evil.example.com", "/\\evil.example.com", "https://evil.example.com", ""])
def test_a_login_leads_to_no_other_site(screens: Screens, alice: int, target: str) -> None:
    form = {"email": "alice@example.com", "password": PASSWORD, "next": target}
    answer = screens.app.test_client().post("/login", data=form, headers=OWN)
    assert answer.headers["Location"] == "/"


def test_a_wrong_password_shows_the_form_again(screens: Screens, alice: int) -> None:
    client = screens.app.test_client()
    answer = client.post("/login", data={"email": "alice@example.com", "password": "no", "next": "/x"}, headers=OWN)
    assert answer.status_code == 401 and "Set-Cookie" not in answer.headers
    assert 'value="alice@example.com"' in answer.text and 'value="/x"' in answer.text and 'role="alert"' in answer.text


def test_a_logout_ends_the_session(screens: Screens) -> None:
    alice = screens.client()
    assert alice.get("/").status_code == 200
    answer = alice.post("/logout")
    assert answer.status_code == 303
    assert alice.get("/").headers["Location"] == "/login"


def begin(screens: Screens, token: str = "the-start-token") -> str:
    with screens.db.begin() as tx:
        settings.add_start_token(tx, digest(token))
    return f"/start/{token}"


FORM = {"email": "root@example.com", "name": "Root", "password": PASSWORD, "timezone": "Europe/Berlin"}


def test_the_first_login_makes_an_admin_once(screens: Screens) -> None:
    path, client = begin(screens), screens.app.test_client()
    assert client.get(path).status_code == 200
    answer = client.post(path, data=FORM, headers=OWN)
    assert answer.status_code == 303 and answer.headers["Location"] == "/welcome"
    assert client.get("/").status_code == 200
    assert factories.run(screens.db, "select email, role, timezone from app_user") == [
        ("root@example.com", "admin", "Europe/Berlin")
    ]
    for method in (client.get, client.post):
        assert method(path, headers=OWN).status_code == 404


def test_the_links_of_the_last_five_processes_work(screens: Screens) -> None:
    client = screens.app.test_client()
    paths = [begin(screens, f"token-{number}") for number in range(6)]
    assert [client.get(path).status_code for path in paths] == [404, 200, 200, 200, 200, 200]
    assert client.post(paths[2], data=FORM, headers=OWN).status_code == 303
    assert [client.get(path).status_code for path in paths] == [404] * 6
    assert factories.run(screens.db, "select count(*) from setting where name = 'start_token'") == [(0,)]


def test_a_link_that_an_older_version_printed_works_beside_a_newer_one(screens: Screens) -> None:
    with screens.db.begin() as tx:
        settings.put(tx, "start_token", digest("older"))
    client = screens.app.test_client()
    assert client.get("/start/older").status_code == 200
    begin(screens, "newer")
    assert client.get("/start/older").status_code == 200
    assert client.post("/start/newer", data=FORM, headers=OWN).status_code == 303


def test_somebody_known_becomes_the_first_admin(screens: Screens) -> None:
    factories.user(screens.db, "root", "viewer")
    path = begin(screens)
    assert screens.app.test_client().post(path, data=FORM, headers=OWN).status_code == 303
    assert factories.run(screens.db, "select role, name from app_user") == [("admin", "Root")]


@pytest.mark.parametrize("wrong", [{"password": "short"}, {"email": "nobody"}, {"timezone": "Mars/Olympus"}])
def test_what_cannot_be_shows_the_form_again(screens: Screens, wrong: dict[str, str]) -> None:
    path, client = begin(screens), screens.app.test_client()
    answer = client.post(path, data=FORM | wrong, headers=OWN)
    assert answer.status_code == 422 and 'role="alert"' in answer.text and 'value="Root"' in answer.text
    assert client.post(path, data=FORM, headers=OWN).status_code == 303


def test_without_the_token_or_once_somebody_can_log_in_there_is_nothing(screens: Screens, alice: int) -> None:
    client = screens.app.test_client()
    answer = client.get("/start/anything")
    assert answer.status_code == 404 and 'href="/login"' in answer.text
    assert "This link is no longer valid: a newer one was printed, or somebody can log in already." in answer.text
    assert client.get(begin(screens)).status_code == 404
    factories.run(screens.db, "update app_user set password_hash = null")
    assert client.get("/start/another").status_code == 404
    assert client.get("/start/the-start-token").status_code == 200
