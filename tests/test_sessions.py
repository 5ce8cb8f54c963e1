"""Logins: how long they last, and how often one may guess."""

import time
from typing import Any

import pytest

from escalade import passwords, sessions, throttle, users
from escalade.db import Database
from escalade.errors import Invalid, TooMany, Unauthenticated
from tests import factories

PASSWORD = "correct horse battery"


@pytest.fixture
def alice(database: Database) -> int:
    return factories.user(database, password_hash=passwords.hashed(PASSWORD))


def login(db: Database, email: str = "alice@example.com", password: str = PASSWORD, address: str = "192.0.2.1") -> str:
    return sessions.login(db.begin, email, password, address)


def owner(db: Database, session_id: str) -> str | None:
    with db.read() as tx:
        found = sessions.find(tx, session_id)
        return None if found is None else found.email


def guess(db: Database, n: int, **more: str) -> None:
    for _ in range(n):
        with pytest.raises(Unauthenticated):
            login(db, password="wrong", **more)


def test_a_session_is_kept_as_a_hash(database: Database, alice: int) -> None:
    session_id = login(database)
    assert owner(database, session_id) == "alice@example.com"
    assert session_id not in str(factories.run(database, "select session::text from session"))


def test_a_session_that_is_used_lives_ninety_days(database: Database, alice: int, clock: Any) -> None:
    session_id = login(database)
    for _ in range(6):
        clock.pass_(days=13)
        assert owner(database, session_id)
    clock.pass_(days=12.1)
    assert owner(database, session_id) is None


def test_a_session_left_alone_ends_after_two_weeks(database: Database, alice: int, clock: Any) -> None:
    session_id = login(database)
    clock.pass_(days=14, seconds=1)
    assert owner(database, session_id) is None
    login(database)
    assert len(factories.run(database, "select 1 from session")) == 1


def test_a_new_password_logs_out_everywhere(database: Database, alice: int) -> None:
    session_id = login(database)
    with database.begin() as tx:
        users.set_password(tx, alice, "another password")
    assert owner(database, session_id) is None


def test_a_session_ends_with_its_person(database: Database, alice: int) -> None:
    session_id = login(database)
    factories.user(database, "bob", "admin", password_hash="x")
    with database.begin() as tx:
        users.remove(tx, alice)
    assert owner(database, session_id) is None


@pytest.mark.parametrize("email", ["nobody@example.com", "", "\x00", "\ud800", "x" * 100_000])
@pytest.mark.parametrize("password", [PASSWORD, "", "\ud800"])
def test_strange_logins_are_only_wrong(database: Database, alice: int, email: str, password: str) -> None:
    with pytest.raises(Unauthenticated):
        login(database, email, password)


def test_nobody_logs_in_without_a_password_of_their_own(database: Database) -> None:
    factories.user(database)
    with pytest.raises(Unauthenticated):
        login(database, password="")


def test_unknown_people_cost_as_much_as_known_ones() -> None:
    kept = passwords.hashed(PASSWORD)
    assert passwords.NOBODY.split("$")[0] == kept.split("$")[0] == passwords.METHOD

    def seconds(stored: str | None) -> float:
        # The time of this thread alone: other tests run beside it.
        begun = time.thread_time()
        assert not passwords.fits(stored, "wrong")
        return time.thread_time() - begun

    assert 1 / 4 < seconds(None) / seconds(kept) < 4


def test_an_address_may_guess_only_so_often(database: Database, alice: int, clock: Any) -> None:
    guess(database, sessions.GUESSES_PER_ADDRESS)
    with pytest.raises(TooMany) as refused:
        login(database)
    assert 0 < refused.value.retry_after <= throttle.WINDOW
    assert login(database, address="192.0.2.2")
    clock.pass_(seconds=throttle.WINDOW + 1)
    assert login(database)


def test_an_account_bears_only_so_many_guesses_from_anywhere(
    database: Database, alice: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "GUESSES_PER_ACCOUNT", 4)
    for number in range(4):
        guess(database, 1, address=f"192.0.2.{number}")
    with pytest.raises(TooMany):
        login(database, address="192.0.2.99")


def test_one_address_cannot_lock_an_account(database: Database, alice: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "GUESSES_PER_ADDRESS", 3)
    monkeypatch.setattr(sessions, "GUESSES_PER_ACCOUNT", 4)
    guess(database, 3)
    for _ in range(5):
        with pytest.raises(TooMany):
            login(database)
    assert login(database, address="192.0.2.2")


def test_right_passwords_use_up_no_guesses(database: Database, alice: int) -> None:
    for _ in range(3):
        login(database)
    assert factories.run(database, "select sum(guesses) from login_guess") == [(0,)]


@pytest.mark.parametrize("password", ["", "1234567", "x" * 1001])
def test_a_password_has_a_sensible_length(password: str) -> None:
    with pytest.raises(Invalid):
        passwords.hashed(password)


def test_a_new_password_forgives_the_guesses_at_the_old_one(
    database: Database, alice: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "GUESSES_PER_ACCOUNT", 1)
    with pytest.raises(Unauthenticated):
        sessions.login(database.begin, "alice@example.com", "wrong", "192.0.2.1")
    with pytest.raises(TooMany, match="try again in 15 minutes"):
        sessions.login(database.begin, "alice@example.com", "wrong", "192.0.2.2")
    with database.begin() as tx:
        users.set_password(tx, alice, "another password")
    assert sessions.login(database.begin, "alice@example.com", "another password", "192.0.2.3")
