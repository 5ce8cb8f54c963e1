"""The audit: only added to, without secrets, and old rows go."""

from typing import Any

import psycopg
import pytest

from escalade import audit, housekeeping, transfer, users
from escalade.db import Database
from tests import factories
from tests.commands import inside, said
from tests.transfer.example import FULL as EXAMPLE


def rows(db: Database) -> list[tuple[Any, ...]]:
    return factories.run(db, "select who, address, action, subject, before, after from audit order by id")


def test_a_change_is_written_down_with_who_and_from_where(database: Database) -> None:
    with audit.acting("alice@example.com", "192.0.2.7"), database.begin() as tx:
        audit.record(tx, "user changed", "bob@example.com", {"role": "viewer"}, {"role": "admin"})
    assert rows(database) == [
        ("alice@example.com", "192.0.2.7", "user changed", "bob@example.com", {"role": "viewer"}, {"role": "admin"})
    ]


def test_outside_of_any_request_the_program_itself_acts(database: Database) -> None:
    with database.begin() as tx:
        audit.record(tx, "started", "it")
    assert rows(database)[0][:2] == ("escalade", None)


def test_a_change_that_is_undone_leaves_no_row(database: Database) -> None:
    with pytest.raises(RuntimeError), database.begin() as tx:
        users.create(tx, "bob@example.com", "viewer")
        raise RuntimeError
    assert rows(database) == []


@pytest.mark.parametrize(
    "statement",
    ["update audit set who = 'nobody'", "delete from audit", "truncate audit", "update audit set after = null"],
)
def test_nobody_rewrites_it(database: Database, statement: str) -> None:
    with database.begin() as tx:
        audit.record(tx, "started", "it")
    with pytest.raises(psycopg.errors.RaiseException, match="append-only"):
        factories.run(database, statement)
    assert len(rows(database)) == 1


def test_secrets_are_masked_whatever_holds_them(database: Database) -> None:
    canary = "canary-9f3a"
    values = {"secret": canary, "key": canary, "password": canary, "token": canary, "address": f"https://x/{canary}"}
    with database.begin() as tx:
        audit.record(tx, "changed", "it", {"inner": [values], **values}, {"secret": None})
    assert canary not in str(rows(database))
    assert rows(database)[0][4]["inner"] == [dict.fromkeys(values, "***")] and rows(database)[0][5] == {"secret": None}


def test_texts_that_cannot_be_stored_lose_no_row(database: Database) -> None:
    with audit.acting("a\x00\ud800"), database.begin() as tx:
        audit.record(tx, "changed", "b\x00", {"name": "c\ud800" * 2000}, None)
    assert rows(database)[0][0] == "a\ufffd\ufffd" and len(rows(database)[0][4]["name"]) <= audit.LONGEST


def test_it_is_pruned_with_the_rest(database: Database) -> None:
    with database.begin() as tx:
        for number in range(3):
            audit.record(tx, "changed", str(number))
    with database.connection() as conn, conn.transaction():
        conn.execute("alter table audit disable trigger audit_append_only")
        conn.execute("update audit set at = at - interval '400 days' where subject <> '2'")
        conn.execute("alter table audit enable trigger audit_append_only")
    assert housekeeping.prune(database.begin, 365, rows=1) == 1
    assert housekeeping.prune(database.begin, 365) == 1
    assert [row[3] for row in rows(database)] == ["2"]
    with pytest.raises(psycopg.errors.RaiseException):
        factories.run(database, "delete from audit")


def test_a_file_writes_a_row_for_each_thing_and_no_secret(database: Database) -> None:
    with audit.acting("command-line"), database.begin() as tx:
        transfer.apply(tx, EXAMPLE)
    created = {(row[2], row[3]) for row in rows(database)}
    things = factories.run(
        database,
        "select 'user created', email from app_user union all select 'service created', name from service"
        " union all select 'policy created', name from escalation_policy"
        " union all select 'schedule created', name from schedule"
        " union all select 'channel created', name from channel",
    )
    assert things and set(things) <= created
    assert "whsec_" not in str(rows(database)) and "hooks.slack.com/services" not in str(rows(database))
    with database.begin() as tx:
        before = len(rows(database))
        assert transfer.apply(tx, EXAMPLE) == []
    assert len(rows(database)) == before


def test_a_changed_policy_is_told_before_and_after(database: Database) -> None:
    file = (
        "policies: [{name: p, steps: [{targets: ['user:a@example.com'], wait: %s}]}]\nusers: [{email: a@example.com}]"
    )
    for wait in ("5m", "9m"):
        with database.begin() as tx:
            transfer.apply(tx, file % wait)
    assert rows(database)[-1][2:4] == ("policy changed", "p")
    assert rows(database)[-1][4]["steps"][0]["wait"] == "5m" and rows(database)[-1][5]["steps"][0]["wait"] == "9m"
    with database.begin() as tx:
        transfer.apply(tx, "users: [{email: a@example.com}]", prune=True)
    assert rows(database)[-1][2:4] == ("policy removed", "p")


def test_a_dry_run_writes_nothing(database: Database) -> None:
    with database.begin() as tx:
        transfer.apply(tx, EXAMPLE, dry_run=True)
    assert rows(database) == []


def test_the_command_line_is_named(clean_url: str, database: Database) -> None:
    said(inside("token", "create", "ci", "--role", "viewer", "--days", "7", DATABASE_URL=clean_url))
    said(inside("token", "revoke", "ci", DATABASE_URL=clean_url))
    assert [row[:4] for row in rows(database)] == [
        ("command-line", None, "token created", "ci"),
        ("command-line", None, "token revoked", "ci"),
    ]
