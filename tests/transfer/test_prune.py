"""With prune, what the file does not name goes; the last admin who can log in never does."""

import pytest

from escalade.db import Database
from escalade.transfer import Faults
from tests.factories import run, user
from tests.transfer.example import FULL, applied, contents


def test_what_the_file_does_not_name_stays_without_prune(database: Database) -> None:
    applied(database, FULL)
    before = contents(database)
    assert applied(database, "users: []") == []
    assert contents(database) == before


def test_prune_removes_what_the_file_does_not_name(database: Database) -> None:
    applied(database, FULL)
    dry = applied(database, "users: []", prune=True, dry_run=True)
    assert (
        applied(database, "users: []", prune=True)
        == dry
        == [
            "settings: fallback changed",
            "settings: repage_exhausted_after changed from 1h to none",
            "service api: removed",
            "policy default: removed",
            "schedule primary: removed",
            "channel ops: removed",
            "user Alice@example.com: removed",
            "user bob@example.com: removed",
        ]
    )
    left = {table: rows for table, rows in contents(database).items() if rows}
    assert list(left) == ["setting"]


def test_prune_of_a_file_that_names_everything_changes_nothing(database: Database) -> None:
    applied(database, FULL)
    assert applied(database, FULL, prune=True) == []


def test_prune_moves_services_to_what_is_left_before_it_removes(database: Database) -> None:
    applied(database, FULL)
    text = """
users: [{email: carol@example.com}]
policies: [{name: other, steps: [{targets: ["user:carol@example.com"], wait: 1m}]}]
services: [{name: api, policy: other}]
"""
    assert "service api: policy changed from default to other" in applied(database, text, prune=True)
    assert run(database, "select name from escalation_policy") == [("other",)]
    assert run(database, "select email from app_user") == [("carol@example.com",)]


def test_a_service_that_goes_gives_its_key_to_one_that_comes(database: Database) -> None:
    applied(database, FULL)
    text = """
policies: [{name: p}]
services: [{name: web, policy: p, integrations: [{name: x, kind: generic, key: a-key-of-more-than-twenty}]}]
"""
    assert "service web: created" in applied(database, text, prune=True)


def refused(database: Database, text: str, prune: bool) -> list[str]:
    """The lines of the refusal; nothing is changed."""
    before = contents(database)
    with pytest.raises(Faults) as refusal:
        applied(database, text, prune=prune)
    assert contents(database) == before
    return refusal.value.faults


def test_the_last_admin_who_can_log_in_is_not_pruned(database: Database) -> None:
    user(database, "root", "admin", "scrypt")
    user(database, "ghost", "admin")
    assert refused(database, "users: [{email: alice@example.com, role: admin}]", prune=True) == [
        "users: --prune would remove root@example.com, and no admin who can log in would be left"
    ]
    lines = applied(database, "users: [{email: ROOT@example.com, role: admin}]", prune=True)
    assert "user ghost@example.com: removed" in lines


def test_the_last_admin_who_can_log_in_keeps_that_role(database: Database) -> None:
    user(database, "root", "admin", "scrypt")
    assert refused(database, "users: [{email: root@example.com}]", prune=False) == [
        "users[0].role: root@example.com would be no admin any more, and no admin who can log in would be left"
    ]


def test_an_admin_goes_while_another_can_log_in(database: Database) -> None:
    user(database, "root", "admin", "scrypt")
    user(database, "other", "admin", "scrypt")
    lines = applied(database, "users: [{email: root@example.com, name: Root, role: admin}]", prune=True)
    assert lines == ["user other@example.com: removed"]
