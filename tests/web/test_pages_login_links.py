"""Invitations and resets: links that work once, and tell nobody who has an account."""

import email
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from aiosmtpd.controller import Controller

from escalade import login_links, passwords, users
from escalade.config import Config
from escalade.db import Tx
from escalade.tokens import digest
from tests import factories
from tests.commands import free_port
from tests.web.forms import Forms
from tests.web.screens import OWN, Screens, make_screens
from tests.web.test_pages_account import audited

PASSWORD = "correct horse"
ASK = "/reset/new"


class Letters:
    """A mail server's hands: keeps what comes."""

    def __init__(self) -> None:
        self.kept: list[tuple[list[str], str]] = []

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        """One mail."""
        self.kept.append((envelope.rcpt_tos, envelope.content.decode()))
        return "250 OK"

    def wait(self, n: int = 1, seconds: float = 10) -> list[tuple[list[str], str]]:
        """The mails, once so many are there."""
        end = time.monotonic() + seconds
        while len(self.kept) < n and time.monotonic() < end:
            time.sleep(0.01)
        assert len(self.kept) == n
        return self.kept


@pytest.fixture
def letters() -> Letters:
    return Letters()


@pytest.fixture
def mailing(database: Any, letters: Letters) -> Iterator[Screens]:
    """The application, with a mail server."""
    port = free_port()
    controller = Controller(letters, hostname="127.0.0.1", port=port)
    controller.start()
    config = Config.read(
        {"SMTP_URL": f"smtp://127.0.0.1:{port}?starttls=off", "ESCALADE_MAIL_FROM": "pager@example.com"}
    )
    yield make_screens(database, config)
    controller.stop()


def url_in(text: str, kind: str) -> str:
    """The path of the link in a page or a mail."""
    found = re.search(rf"http://127\.0\.0\.1:8000(/{kind}/[\w-]+)", text)
    assert found, text
    return found[1]


def body(mail: str) -> str:
    """The text of a mail."""
    return bytes(email.message_from_string(mail).get_payload(decode=True)).decode()  # type: ignore[arg-type]


def person(screens: Screens, name: str = "alice", **more: Any) -> int:
    return factories.user(screens.db, name, password_hash=passwords.hashed(PASSWORD), **more)


def test_an_invitation_without_mail_is_shown_once_and_works_once(screens: Screens) -> None:
    admin, bob = screens.client("root", "admin"), factories.user(screens.db, "bob")
    page = admin.post(f"/setup/logins/{bob}/link").text
    path = url_in(page, "invite")
    token = path.removeprefix("/invite/")
    assert token not in admin.get("/setup/logins").text
    assert factories.run(screens.db, "select token_hash from login_link") == [(digest(token),)]
    client = screens.app.test_client()
    assert "Welcome" in client.get(path).text and "bob@example.com" in client.get(path).text
    answer = client.post(path, data={"password": "another horse"}, headers=OWN)
    assert (answer.status_code, answer.location) == (303, "/") and client.get("/").status_code == 200
    for again in (client.get(path), client.post(path, data={"password": "a third horse"}, headers=OWN)):
        assert again.status_code == 404 and "no longer valid" in again.text
    assert ("bob@example.com", "password set", "bob@example.com") in audited(screens.db)
    assert ("root@example.com", "invitation made", "bob@example.com") in audited(screens.db)


def test_an_invitation_goes_by_mail_where_there_is_mail(mailing: Screens, letters: Letters) -> None:
    admin, bob = mailing.client("root", "admin"), factories.user(mailing.db, "bob")
    page = admin.post(f"/setup/logins/{bob}/link").text
    assert "on its way to bob@example.com" in page and "/invite/" not in page
    [(recipients, mail)] = letters.wait()
    assert recipients == ["bob@example.com"]
    client = mailing.app.test_client()
    path = url_in(body(mail), "invite")
    assert client.post(path, data={"password": "another horse"}, headers=OWN).status_code == 303


def test_a_short_password_leaves_the_link_as_it_is(screens: Screens) -> None:
    bob = factories.user(screens.db, "bob")
    path = url_in(screens.client("root", "admin").post(f"/setup/logins/{bob}/link").text, "invite")
    client = screens.app.test_client()
    answer = client.post(path, data={"password": "short"}, headers=OWN)
    assert answer.status_code == 422 and "8 to 1,000" in answer.text
    assert client.get(path).status_code == 200


def test_only_admins_invite(screens: Screens) -> None:
    bob = factories.user(screens.db, "bob")
    assert screens.client().post(f"/setup/logins/{bob}/link").status_code == 403
    assert screens.client().get("/setup/logins").status_code == 403


def test_a_reset_is_mailed_and_ends_every_session(mailing: Screens, letters: Letters) -> None:
    mailing.people["alice"] = person(mailing)
    phone, client = mailing.client(), mailing.app.test_client()
    assert "With this e-mail" not in client.get(ASK).text
    answer = client.post(ASK, data={"email": " Alice@example.com "}, headers=OWN)
    assert answer.status_code == 200 and login_links_said(answer.text)
    [(recipients, mail)] = letters.wait()
    assert recipients == ["alice@example.com"]
    path = url_in(body(mail), "reset")
    assert client.get(path).status_code == 200 and phone.get("/").status_code == 200
    assert client.post(path, data={"password": "another horse"}, headers=OWN).status_code == 303
    assert phone.get("/").location == "/login"
    assert client.post(path, data={"password": "a third horse"}, headers=OWN).status_code == 404


def login_links_said(page: str) -> bool:
    return "a mail with a link is on its way" in page


def test_a_reset_answers_the_same_whoever_it_is_for(mailing: Screens, letters: Letters) -> None:
    person(mailing)
    factories.user(mailing.db, "bob")  # cannot log in
    client = mailing.app.test_client()
    answers = {
        client.post(ASK, data={"email": account}, headers=OWN).text
        for account in ("alice@example.com", "bob@example.com", "nobody@example.com", "no e-mail at all", "a\x00b")
    }
    assert len(answers) == 1 and login_links_said(answers.pop())
    [(recipients, _)] = letters.wait()
    assert recipients == ["alice@example.com"]


def test_a_reset_is_answered_before_anybody_is_looked_up(
    mailing: Screens, letters: Letters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the answer cannot take longer for somebody known."""
    person(mailing)
    answered, look_up = threading.Event(), users.by_email

    def after_the_answer(tx: Tx, account: str) -> users.User | None:
        assert answered.wait(10)
        return look_up(tx, account)

    monkeypatch.setattr(users, "by_email", after_the_answer)
    answer = mailing.app.test_client().post(ASK, data={"email": "alice@example.com"}, headers=OWN)
    assert answer.status_code == 200 and letters.kept == []
    answered.set()
    letters.wait()


def test_resets_are_limited_for_each_account_and_each_address(
    mailing: Screens, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login_links, "RESETS_PER_ACCOUNT", 2)
    monkeypatch.setattr(login_links, "RESETS_PER_ADDRESS", 5)
    client = mailing.app.test_client()

    def ask(account: str) -> int:
        return client.post(ASK, data={"email": account}, headers=OWN).status_code

    assert [ask("nobody@example.com") for _ in range(3)] == [200, 200, 429]
    assert [ask(f"{n}@example.com") for n in range(3)] == [200, 200, 429]


def test_without_mail_a_reset_says_whom_to_ask(screens: Screens) -> None:
    client = screens.app.test_client()
    assert "ask an admin" in client.get(ASK).text
    answer = client.post(ASK, data={"email": "alice@example.com"}, headers=OWN)
    assert answer.status_code == 409 and "ask an admin" in answer.text


def test_another_site_cannot_ask_or_set(mailing: Screens) -> None:
    client = mailing.app.test_client()
    for path in (ASK, "/reset/x", "/invite/x"):
        answer = client.post(path, data={"email": "a@b.example"}, headers={"Sec-Fetch-Site": "cross-site"})
        assert answer.status_code == 403


@pytest.mark.parametrize(("kind", "seconds"), [("invite", 7 * 86400), ("reset", 3600)])
def test_a_link_ends_with_its_time(screens: Screens, clock: Any, kind: str, seconds: int) -> None:
    with screens.db.begin() as tx:
        known = users.find(tx, factories.user(screens.db, "bob"))
        path = login_links.create(tx, replace(known, has_password=kind == "reset"), "").url
    client = screens.app.test_client()
    other = {"invite": "reset", "reset": "invite"}[kind]
    assert client.get(path).status_code == 200 and client.get(path.replace(kind, other)).status_code == 404
    clock.pass_(seconds=seconds + 1)
    assert client.get(path).status_code == 404


def test_looking_for_links_is_limited(screens: Screens, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_links, "TOKENS_PER_ADDRESS", 3)
    client = screens.app.test_client()
    assert [client.get(f"/invite/{n}").status_code for n in range(4)] == [404, 404, 404, 429]


def test_of_two_who_use_a_link_at_once_one_gets_in(screens: Screens) -> None:
    bob = factories.user(screens.db, "bob")
    with screens.db.begin() as tx:
        path = login_links.create(tx, users.find(tx, bob), "").url
    ready, statuses = threading.Barrier(2), []

    def use(password: str) -> None:
        client = screens.app.test_client()
        ready.wait(10)
        statuses.append(client.post(path, data={"password": password}, headers=OWN).status_code)

    threads = [threading.Thread(target=use, args=(f"the {word} horse",)) for word in ("first", "second")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(statuses) == [303, 404]


def test_a_new_password_ends_every_other_link(screens: Screens) -> None:
    bob = person(screens, "bob")
    with screens.db.begin() as tx:
        paths = [login_links.create(tx, users.find(tx, bob), "").url for _ in range(2)]
    client = screens.app.test_client()
    assert client.post(paths[0], data={"password": "another horse"}, headers=OWN).status_code == 303
    assert client.get(paths[1]).status_code == 404


def test_another_e_mail_ends_the_sessions_and_the_links_of_the_old_one(screens: Screens) -> None:
    bob = screens.people["bob"] = person(screens, "bob")
    client = screens.client("bob")
    with screens.db.begin() as tx:
        path = login_links.create(tx, users.find(tx, bob), "").url
    admin = screens.client("root", "admin")
    form = fields(admin.get(f"/setup/users/{bob}").text, f"/setup/users/{bob}")
    answer = admin.client.post(f"/setup/users/{bob}", data=form | {"email": "robert@example.com"}, headers=OWN)
    assert answer.status_code == 303
    assert factories.run(screens.db, "select email from app_user where id = %s", bob) == [("robert@example.com",)]
    assert screens.app.test_client().get(path).status_code == 404
    assert client.get("/").location == "/login"


def fields(page: str, action: str) -> dict[str, list[str]]:
    """What a browser would send of the form that goes to this address."""
    return next(form.fields for form in Forms(page).found if form.action.split("#")[0] == action)
