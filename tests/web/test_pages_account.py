"""Your own account: name, zone, password, sessions."""

import re

import pytest

from escalade import passwords, sessions
from escalade.db import Database
from tests import factories
from tests.web.screens import OWN, Screens
from tests.web.serving import token

PASSWORD = "correct horse"


@pytest.fixture
def alice(screens: Screens) -> int:
    screens.people["alice"] = factories.user(screens.db, "alice", password_hash=passwords.hashed(PASSWORD))
    return screens.people["alice"]


def count(db: Database) -> int:
    return int(factories.run(db, "select count(*) from session")[0][0])


def audited(db: Database) -> list[tuple[str, str, str]]:
    return [tuple(row) for row in factories.run(db, "select who, action, subject from audit order by id")]


def seen(page: str) -> str:
    found = re.search(r'name="seen" value="(\w+)"', page)
    assert found
    return found[1]


def test_name_and_zone_are_ones_own_to_change(screens: Screens, alice: int) -> None:
    me = screens.client()
    form = {"name": "Alice B.", "timezone": "Europe/Berlin", "seen": seen(me.get("/account").text)}
    answer = me.post("/account", **form)
    assert (answer.status_code, answer.location) == (303, "/account?said=saved")
    assert factories.run(screens.db, "select name, timezone, role from app_user") == [
        ("Alice B.", "Europe/Berlin", "responder")
    ]
    [(before, after)] = factories.run(screens.db, "select before, after from audit where action = 'user changed'")
    assert (before["timezone"], after["timezone"]) == ("UTC", "Europe/Berlin")
    assert "Saved." in me.get("/account?said=saved").text


def test_a_zone_that_does_not_exist_comes_back_as_typed(screens: Screens, alice: int) -> None:
    me = screens.client()
    form = {"name": "<b>A</b>", "timezone": "Mars/Base", "seen": seen(me.get("/account").text)}
    answer = me.post("/account", **form)
    assert answer.status_code == 422 and 'value="Mars/Base"' in answer.text and "&lt;b&gt;A&lt;/b&gt;" in answer.text
    assert 'role="alert"' in answer.text


def test_what_somebody_else_changed_meanwhile_is_not_overwritten(screens: Screens, alice: int) -> None:
    me = screens.client()
    form = {"name": "Alice B.", "timezone": "UTC", "seen": seen(me.get("/account").text)}
    factories.run(screens.db, "update app_user set name = 'Alice the admin said'")
    answer = me.post("/account", **form)
    assert answer.status_code == 409 and "meanwhile" in answer.text and "Alice the admin said" in answer.text
    assert factories.run(screens.db, "select name from app_user") == [("Alice the admin said",)]


def test_a_new_password_takes_the_old_one_and_ends_every_other_session(screens: Screens, alice: int) -> None:
    me, phone = screens.client(), screens.client()
    wrong = me.post("/account/password", old="not it", password="another horse")
    assert wrong.status_code == 422 and "not your password" in wrong.text
    short = me.post("/account/password", old=PASSWORD, password="short")
    assert short.status_code == 422 and "8 to 1,000 characters" in short.text and phone.get("/").status_code == 200
    done = me.post("/account/password", old=PASSWORD, password="another horse")
    assert (done.status_code, done.location) == (303, "/account?said=password")
    assert me.get("/account").status_code == 200
    assert phone.get("/account").location.startswith("/login") and count(screens.db) == 1
    assert ("alice@example.com", "password set", "alice@example.com") in audited(screens.db)


def test_guesses_at_the_old_password_are_counted(screens: Screens, alice: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "GUESSES_PER_ADDRESS", 3)
    me = screens.client()
    answers = [me.post("/account/password", old="no", password="another horse").status_code for _ in range(4)]
    assert answers == [422, 422, 422, 429]


def test_signing_out_everywhere_ends_every_session_at_once(screens: Screens, alice: int) -> None:
    me, phone, bob = screens.client(), screens.client(), screens.client("bob")
    page = me.get("/account", **{"User-Agent": "x"}).text
    assert page.count("last used") == 2 and page.count("This one") == 1
    assert me.post("/account/sign-out").status_code == 303
    for client in (me, phone):
        assert client.get("/account").location.startswith("/login")
    assert bob.get("/account").status_code == 200
    assert ("alice@example.com", "signed out everywhere", "alice@example.com") in audited(screens.db)


def test_a_session_says_which_browser_it_is_and_from_where(screens: Screens, alice: int) -> None:
    client = screens.app.test_client()
    agent = "Firefox <script>alert(1)</script>\x01"
    form = {"email": "alice@example.com", "password": PASSWORD, "next": "/account"}
    client.post("/login", data=form, headers=OWN | {"User-Agent": agent})
    page = client.get("/account").text
    assert "Firefox &lt;script&gt;" in page and "from 127.0.0.1" in page and "<script>alert" not in page


def test_a_token_is_nobody(screens: Screens) -> None:
    headers = {"Authorization": f"Bearer {token(screens.db, 'admin')}"}
    client = screens.app.test_client()
    assert client.get("/account", headers=headers).status_code == 403
    assert client.post("/account/sign-out", headers=headers).status_code == 403
