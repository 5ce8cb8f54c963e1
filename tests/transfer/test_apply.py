"""Applying a file makes the configuration what it says, keeps what it leaves out, and tells each change."""

import re
import threading

import pytest

from escalade import tokens
from escalade.db import Database
from escalade.transfer import Change, apply
from tests.factories import now, run
from tests.transfer.example import FULL, applied, contents, exported

KEY_LINE = re.compile(r"(integration|heartbeat) api/\w+: key (k_[\w-]{43})")


def row(database: Database, statement: str) -> tuple[object, ...]:
    """The one row of a statement."""
    [found] = run(database, statement)
    return found


def test_each_object_is_told_once_and_the_same_file_again_tells_nothing(database: Database) -> None:
    lines = applied(database, FULL)
    assert [line for line in lines if not KEY_LINE.fullmatch(line)] == [
        "user Alice@example.com: created",
        "user bob@example.com: created",
        "channel ops: created",
        "schedule primary: created",
        "policy default: created",
        "service api: created",
        "settings: fallback changed",
        "settings: repage_exhausted_after changed from none to 1h",
    ]
    before = contents(database)
    assert applied(database, FULL) == applied(database, FULL, dry_run=True) == []
    assert contents(database) == before


def test_new_keys_are_told_once_and_only_their_digest_is_kept(database: Database) -> None:
    keys = [match[2] for line in applied(database, FULL) if (match := KEY_LINE.fullmatch(line))]
    kept = run(database, "select key_hash, key_prefix from integration where name = 'any'") + run(
        database, "select key_hash, key_prefix from heartbeat where name = 'hourly'"
    )
    assert kept == [(tokens.digest(key), key[:8]) for key in keys]
    assert len(set(keys)) == 2 and not any(key in str(contents(database)) for key in keys)


def test_a_dry_run_tells_the_same_changes_writes_nothing_and_makes_no_keys(database: Database) -> None:
    before = contents(database)
    dry = applied(database, FULL, dry_run=True)
    assert contents(database) == before
    assert dry == [line for line in applied(database, FULL) if not KEY_LINE.fullmatch(line)]


def test_changed_fields_are_told_one_by_one_and_secrets_never_shown(database: Database) -> None:
    applied(database, FULL)
    text = (
        FULL.replace("name: Alice", "name: Alicia")
        .replace("whsec_YWJj", "whsec_WFla")
        .replace("/T0/B0/x", "/T0/B0/y")
        .replace("wait: 10m", "wait: 11m")
        .replace("length: 2", "length: 3")
        .replace("urgency: high, ack_timeout: 30m", "urgency: low")
        .replace("a-key-of-more-than-twenty", "some-other-key-of-twenty")
        .replace("secret: shared, verify: on", "secret: other, verify: off")
        .replace(', paused: "moving house"', "")
    )
    assert applied(database, text) == [
        "user Alice@example.com: name changed from Alice to Alicia",
        "contact method Alice@example.com/hook: secret changed",
        "channel ops: address changed",
        "rotation primary/weekly: length changed from 2 to 3",
        "policy default: steps changed",
        "service api: urgency changed from high to low",
        "service api: ack_timeout changed from 30m to none",
        "integration api/prom: key changed",
        "integration api/prom: secret changed",
        "integration api/prom: verify changed from on to off",
        "heartbeat api/nightly: paused changed from moving house to none",
    ]
    assert applied(database, text) == []


def test_keys_secrets_and_overrides_stay_where_they_are_left_out_and_the_rest_takes_its_default(
    database: Database,
) -> None:
    applied(database, FULL)
    lines = applied(
        database,
        """
users: [{email: bob@example.com, contact_methods: [{name: push, kind: ntfy, address: "https://ntfy.example.com/bob"}]}]
schedules: [{name: primary}]
services: [{name: api, policy: default, integrations: [{name: prom, kind: alertmanager}]}]
""",
    )
    assert lines == [
        "schedule primary: timezone changed from Europe/Berlin to UTC",
        "rotation primary/weekly: removed",
        "service api: urgency changed from high to severity",
        "service api: ack_timeout changed from 30m to none",
        "service api: auto_resolve changed from 1d to none",
        "integration api/any: removed",
        "integration api/prom: verify changed from on to off",
        "heartbeat api/hourly: removed",
        "heartbeat api/nightly: removed",
    ]
    assert row(database, "select secret from contact_method where name = 'push'") == ("tk_bob",)
    digest = tokens.digest("a-key-of-more-than-twenty")
    assert row(database, "select key_hash, secret from integration") == (digest, "shared")
    assert row(database, "select count(*) from override") == (2,)
    assert row(database, "select count(*) from setting where name = 'repage_exhausted_after'") == (1,)


def test_an_empty_secret_takes_it_away(database: Database) -> None:
    applied(database, 'channels: [{name: a, kind: webhook, address: "https://x.example", secret: s}]')
    lines = applied(database, 'channels: [{name: a, kind: webhook, address: "https://x.example", secret: ""}]')
    assert lines == ["channel a: secret changed"]
    assert row(database, "select secret from channel") == (None,)


def test_a_secret_goes_with_a_kind_that_takes_none(database: Database) -> None:
    applied(database, 'channels: [{name: a, kind: webhook, address: "https://x.example", secret: s}]')
    lines = applied(database, "channels: [{name: a, kind: log, address: here}]")
    assert lines == [
        "channel a: kind changed from webhook to log",
        "channel a: address changed",
        "channel a: secret changed",
    ]
    assert row(database, "select secret, destination from channel") == (None, "log")


def test_rows_keep_their_ids_while_their_names_stay(database: Database) -> None:
    applied(database, FULL)
    statement = """select 'user', id from app_user union all select 'method ' || name, id from contact_method
        union all select 'channel', id from channel union all select 'rotation', id from rotation
        union all select 'service', id from service union all select name, id from integration order by 1, 2"""
    before = run(database, statement)
    text = (
        FULL.replace("Alice@example.com", "ALICE@example.com")
        .replace("/alice", "/alicia")
        .replace("length: 2", "length: 3")
    )
    text = (
        text.replace("/T0/B0/x", "/T0/B0/y")
        .replace("urgency: high", "urgency: low")
        .replace("verify: on", "verify: off")
    )
    assert "user ALICE@example.com: email changed from Alice@example.com to ALICE@example.com" in applied(
        database, text
    )
    assert run(database, statement) == before


def test_a_list_in_another_order_is_told_and_kept(database: Database) -> None:
    methods = [
        "{name: a, kind: log, address: x}",
        "{name: b, kind: log, address: y}",
        "{name: c, kind: log, address: z}",
    ]
    text = "users: [{email: a@example.com, contact_methods: [%s]}]"
    applied(database, text % ", ".join(methods[:2]))
    assert applied(database, text % ", ".join([methods[2], *methods[:2]])) == [
        "contact method a@example.com/c: created"
    ]
    assert applied(database, text % ", ".join(methods)) == ["user a@example.com: contact_methods reordered"]
    assert applied(database, text % ", ".join(methods)) == []
    assert run(database, "select name from contact_method order by position") == [("a",), ("b",), ("c",)]


def test_methods_from_a_file_count_as_verified(database: Database) -> None:
    applied(database, FULL)
    run(database, "update contact_method set verified = false where name = 'push'")
    assert applied(database, FULL) == ["contact method bob@example.com/push: counts as verified"]
    assert row(database, "select bool_and(verified) from contact_method") == (True,)


def test_the_pace_left_out_is_that_of_the_kind(database: Database) -> None:
    kinds = [("log", "x"), ("webhook", "https://x.example"), ("email", "a@example.com")]
    items = [f'{{name: {kind}, kind: {kind}, address: "{address}"}}' for kind, address in kinds]
    applied(database, f"channels: [{', '.join(items)}]")
    assert run(database, "select name, pace_seconds from channel order by name") == [
        ("email", 10),
        ("log", 0),
        ("webhook", 0),
    ]


def test_overrides_given_replace_those_of_a_file_and_leave_those_of_people(database: Database) -> None:
    applied(database, FULL)
    run(
        database,
        "insert into override (schedule_id, kind, user_id, start_at, end_at, source, created_by)"
        " select s.id, 'take', u.id, '2026-03-01Z', '2026-03-02Z', 'person', 'bob' from schedule s, app_user u"
        " where u.email = 'bob@example.com'",
    )
    kept, _, person = [one for (one,) in run(database, "select id from override order by id")]
    text = re.sub(r"      - \{kind: replace.*?\}\n", "", FULL, flags=re.DOTALL)
    assert applied(database, text) == ["schedule primary: overrides changed"]
    assert run(database, "select id, source from override order by id") == [(kept, "yaml"), (person, "person")]
    assert applied(database, "schedules: [{name: primary, overrides: []}]")[-2:] == [
        "schedule primary: overrides changed",
        "rotation primary/weekly: removed",
    ]
    assert run(database, "select id from override") == [(person,)]


def test_a_key_can_move_to_another_integration_and_two_can_swap(database: Database) -> None:
    one, two = "the-first-of-the-two-keys", "the-second-of-the-two-keys"
    text = """
policies: [{{name: p}}]
services:
  - {{name: a, policy: p, integrations: [{{name: i, kind: generic, key: {}}}]}}
  - {{name: b, policy: p, integrations: [{{name: {}, kind: generic, key: {}}}]}}
"""
    applied(database, text.format(one, "i", two))
    assert applied(database, text.format(two, "i", one)) == [
        "integration a/i: key changed",
        "integration b/i: key changed",
    ]
    assert applied(database, text.format(two, "j", one)) == ["integration b/i: removed", "integration b/j: created"]
    assert sorted(run(database, "select name, key_hash from integration")) == [
        ("i", tokens.digest(two)),
        ("j", tokens.digest(one)),
    ]


BEAT = "policies: [{name: p}]\nservices: [{name: s, policy: p, heartbeats: [{name: h, interval: %s}]}]"


def test_a_new_interval_counts_from_the_last_beat(database: Database) -> None:
    applied(database, BEAT % "1h")
    assert row(database, "select late_at from heartbeat") == (None,)
    run(database, "update heartbeat set last_beat_at = '2026-01-05 10:00Z', late_at = '2026-01-05 11:00Z'")
    applied(database, BEAT % "1h, grace: 5m")
    assert row(database, "select late_at = '2026-01-05 11:05Z' from heartbeat") == (True,)
    applied(database, BEAT % "2h, grace: 5m")
    assert row(database, "select late_at = '2026-01-05 12:05Z' from heartbeat") == (True,)


def test_a_paused_heartbeat_is_never_late_and_gets_a_whole_interval_when_it_goes_on(database: Database) -> None:
    applied(database, BEAT % "1h")
    run(database, "update heartbeat set last_beat_at = '2026-01-05 10:00Z', late_at = '2026-01-05 11:00Z'")
    applied(database, BEAT % "1h, paused: moving")
    assert row(database, "select late_at from heartbeat") == (None,)
    before = now(database)
    applied(database, BEAT % "1h")
    [(late_at,)] = run(database, "select late_at - interval '1 hour' from heartbeat")
    assert before <= late_at <= now(database)


def test_a_heartbeat_that_is_late_already_does_not_become_late_again(database: Database) -> None:
    applied(database, BEAT % "1h")
    run(database, "update heartbeat set last_beat_at = '2026-01-05 10:00Z'")
    applied(database, BEAT % "2h")
    assert row(database, "select late_at from heartbeat") == (None,)


def test_passwords_are_never_touched(database: Database) -> None:
    applied(database, FULL)
    run(database, "update app_user set password_hash = 'scrypt' where email = 'bob@example.com'")
    applied(database, FULL.replace("email: bob@example.com", "email: bob@example.com\n    role: admin"))
    assert run(database, "select password_hash from app_user order by email") == [(None,), ("scrypt",)]


def test_settings_take_their_defaults_only_where_the_section_is_given(database: Database) -> None:
    applied(database, FULL)
    assert applied(database, "users: []") == []
    assert applied(database, "settings: {repage_exhausted_after: 2h}") == [
        "settings: fallback changed",
        "settings: repage_exhausted_after changed from 1h to 2h",
    ]


def test_other_settings_stay(database: Database) -> None:
    run(database, "insert into setting values ('secret_key', '\"s\"')")
    applied(database, FULL)
    applied(database, "users: []", prune=True)
    assert row(database, "select value from setting where name = 'secret_key'") == ("s",)


def test_two_files_applied_at_once_come_one_after_the_other(database: Database) -> None:
    lines: list[list[Change]] = []

    def work() -> None:
        with database.begin() as tx:
            lines.append(apply(tx, FULL))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(len(one) for one in lines) == [0, 0, 0, 10]


def test_an_error_while_writing_leaves_nothing_half_applied(database: Database) -> None:
    before = contents(database)
    with pytest.raises(RuntimeError), database.begin() as tx:
        apply(tx, FULL)
        raise RuntimeError
    assert contents(database) == before


def test_the_contract_s_own_example_applies(database: Database) -> None:
    text = FULL.replace("another-key-of-twenty", "optional.20-characters-or-more").replace("whsec_YWJj", "whsec_...")
    applied(database, text)
    assert applied(database, exported(database)) == []
