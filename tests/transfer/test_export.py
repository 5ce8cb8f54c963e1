"""What is exported is applied without a change, for everything a file can say, and shows no secret."""

from typing import Any

import yaml
from hypothesis import HealthCheck, Phase, given, settings
from psycopg import Connection

from escalade.db import Database, Tx, connect
from escalade.transfer import apply, export, shape
from tests.factories import run
from tests.transfer.example import FULL, applied, contents, exported
from tests.transfer.strategies import configurations

SECRETS = ["whsec_YWJj", "tk_bob", "shared", "/T0/B0/x", "a-key-of-more-than-twenty"]


def test_what_is_exported_changes_nothing_when_it_is_applied(database: Database) -> None:
    applied(database, FULL)
    before = contents(database)
    for text in (exported(database), exported(database, secrets=True)):
        assert applied(database, text) == applied(database, text, prune=True) == []
    assert contents(database) == before


def test_an_empty_database_round_trips(database: Database) -> None:
    assert exported(database) == "settings: {}\n"
    assert applied(database, exported(database), prune=True) == []


def test_the_example_sets_every_field_there_is() -> None:
    """So that the round trip of the example speaks for all of them."""
    said = [line.split(":")[0] for line in FULL.replace("{", "\n").replace(",", "\n").splitlines()]
    words = {word.strip(" -") for word in said}
    tables = [value for value in vars(shape).values() if isinstance(value, dict) and "_" not in value]
    fields = {
        name
        for table in tables
        if table and all(isinstance(one, shape.Field) for one in table.values())
        for name in table
    }
    assert len(fields) > 40
    assert fields - words == set()


def test_secrets_are_exported_as_kept(database: Database) -> None:
    applied(database, FULL)
    text = exported(database)
    assert [secret for secret in SECRETS if secret in text] == []
    [channel] = yaml.safe_load(text)["channels"]
    assert channel["address"] == "kept"


def test_what_can_be_printed_is_exported_on_demand_and_keys_cannot(database: Database) -> None:
    applied(database, FULL)
    text = exported(database, secrets=True)
    assert [secret for secret in SECRETS if secret not in text] == ["a-key-of-more-than-twenty"]
    assert {one["key"] for one in yaml.safe_load(text)["services"][0]["integrations"]} == {"kept"}


def test_an_export_with_secrets_fills_an_empty_database_but_for_the_keys(database: Database) -> None:
    applied(database, FULL)
    text = exported(database, secrets=True)
    applied(database, "users: []", prune=True)
    assert len(applied(database, text.replace(", key: kept", ""))) == 12
    assert exported(database, secrets=True) == text


def test_other_readers_of_yaml_take_times_for_text(database: Database) -> None:
    applied(database, FULL)
    [rotation] = yaml.safe_load(exported(database))["schedules"][0]["rotations"]
    assert (rotation["handoff_time"], rotation["restrictions"][0]["to"]) == ("09:00", "17:30")


def test_overrides_of_people_are_not_exported(database: Database) -> None:
    applied(database, "users: [{email: a@example.com}]\nschedules: [{name: s}]")
    before = exported(database)
    run(
        database,
        "insert into override (schedule_id, kind, user_id, start_at, end_at, source, created_by)"
        " select s.id, 'take', u.id, now(), now() + interval '1 day', 'person', 'a' from schedule s, app_user u",
    )
    assert exported(database) == before
    assert applied(database, before) == []


def test_a_fallback_that_is_gone_is_not_exported(database: Database) -> None:
    applied(database, FULL)
    run(database, "delete from channel where name = 'ops'")
    text = exported(database)
    assert yaml.safe_load(text)["settings"]["fallback"] == ["user:alice@example.com", "schedule:primary"]
    assert applied(database, text) == []


def test_an_override_of_somebody_who_is_gone_is_not_exported(database: Database) -> None:
    applied(database, FULL)
    run(database, "update override set replaces_id = null where kind = 'replace'")
    text = exported(database)
    assert [one["kind"] for one in yaml.safe_load(text)["schedules"][0]["overrides"]] == ["take"]
    assert applied(database, text) == []


# No shrinking: an example takes a while, and thousands of them would hold up everybody for minutes.
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)
@given(configurations())
def test_any_configuration_round_trips(clean_url: str, configuration: dict[str, Any]) -> None:
    with connect(clean_url) as conn:
        try:
            check_round_trip(conn, yaml.safe_dump(configuration, sort_keys=False, allow_unicode=True))
        finally:
            conn.rollback()


def check_round_trip(conn: Connection[Any], text: str) -> None:
    """Apply, export, apply again: no changes; and the export applied to nothing gives the same export."""
    conn.autocommit = False
    tx = Tx(conn)
    apply(tx, text, prune=True)
    assert apply(tx, text, prune=True) == []
    out, full = export(tx), export(tx, secrets=True)
    for one in (out, full):
        assert apply(tx, one) == apply(tx, one, prune=True) == []
    apply(tx, "users: []", prune=True)
    apply(tx, full.replace("key: kept", "key: ~"))
    assert export(tx, secrets=True) == full
