"""People: added, changed, removed."""

import pytest

from escalade import api_tokens, schedules, users
from escalade.db import Database
from escalade.errors import Conflict, Invalid, NotFound
from tests import factories


def test_people_are_known_by_their_e_mail_in_any_case(database: Database) -> None:
    with database.begin() as tx:
        alice = users.create(tx, "Alice@example.com", "admin", timezone="Europe/Berlin")
        assert alice.name == "Alice@example.com" and not alice.has_password
        assert users.by_email(tx, " alice@EXAMPLE.com ") == alice == users.find(tx, alice.id)
        assert users.by_ids(tx, [alice.id, 0]) == {alice.id: alice} and users.every(tx) == [alice]
        assert users.by_email(tx, "\x00") is None
        with pytest.raises(Conflict):
            users.create(tx, "alice@Example.com", "viewer")


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"email": "alice"}, "email"),
        ({"email": "Alice <alice@example.com>"}, "email"),
        ({"email": "a@" + "x" * 300}, "email"),
        ({"role": "owner"}, "role"),
        ({"timezone": "Berlin"}, "timezone"),
    ],
)
def test_a_person_that_cannot_be_is_refused(database: Database, values: dict[str, str], field: str) -> None:
    with database.begin() as tx, pytest.raises(Invalid) as refused:
        users.create(tx, **{"email": "alice@example.com", "role": "viewer", **values})
    assert refused.value.field == field


def test_the_last_admin_who_can_log_in_stays(database: Database) -> None:
    alice = factories.user(database, "alice", "admin", password_hash="x")
    bob = factories.user(database, "bob", "admin")
    for act in (
        lambda tx: users.remove(tx, alice),
        lambda tx: users.change(tx, alice, "Alice", "responder", "UTC"),
    ):
        with pytest.raises(Conflict), database.begin() as tx:
            act(tx)
    with database.begin() as tx:
        users.set_password(tx, bob, "another password")
        users.remove(tx, alice)
        with pytest.raises(NotFound):
            users.find(tx, alice)


def test_k049_whoever_leaves_leaves_their_rotations(database: Database) -> None:
    alice, bob = factories.user(database, "alice"), factories.user(database, "bob")
    primary = factories.schedule(database, [alice, bob])
    with database.begin() as tx:
        users.remove(tx, alice)
    with database.read() as tx:
        [rotation] = schedules.load(tx, [primary])[primary].rotations
    assert rotation.roster_changes[-1].participants == (bob,)


def test_somebody_must_be_able_to_log_in_first(database: Database) -> None:
    user_id = factories.user(database)
    with database.begin() as tx:
        assert not users.anybody_with_password(tx)
        users.set_password(tx, user_id, "another password")
        assert users.anybody_with_password(tx)
        with pytest.raises(NotFound):
            users.set_password(tx, 0, "another password")


def test_a_token_is_shown_once_and_can_be_revoked(database: Database) -> None:
    with database.begin() as tx:
        secret = api_tokens.create(tx, "ci", "viewer")
        found = api_tokens.use(tx, secret)
        assert found is not None and (found.name, found.role) == ("ci", "viewer")
        with pytest.raises(Conflict):
            api_tokens.create(tx, "ci", "admin")
        for name, role in (
            ("", "viewer"),
            ("a\nb", "viewer"),
            ("a\x1b[31m", "viewer"),
            ("a\0b", "viewer"),
            ("x" * 101, "viewer"),
            ("other", "owner"),
        ):
            with pytest.raises(Invalid):
                api_tokens.create(tx, name, role)
        assert [one.name for one in api_tokens.every(tx)] == ["ci"]
        api_tokens.revoke(tx, found.name)
        assert api_tokens.use(tx, secret) is None
        with pytest.raises(NotFound):
            api_tokens.revoke(tx, found.name)
    assert secret not in str(factories.run(database, "select api_token::text from api_token"))
