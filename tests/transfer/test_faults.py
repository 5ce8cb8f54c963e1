"""Every fault is listed at once, with its path, and nothing is changed."""

import pytest

from escalade.db import Database
from escalade.transfer import Faults, read
from tests.factories import run
from tests.transfer.example import FULL, applied, contents


def faults_of(database: Database, text: str, prune: bool = False) -> list[str]:
    """The lines of the refusal; the database is the same before and after."""
    before = contents(database)
    with pytest.raises(Faults) as refusal:
        applied(database, text, prune=prune)
    assert contents(database) == before
    return refusal.value.faults


def test_all_faults_are_listed_at_once_each_with_its_path(database: Database) -> None:
    text = """
usres: []
users:
  - {email: alice@example.com, role: admn, timezone: Europe/Berln, nmae: Alice}
  - {email: nobody}
  - {name: No Mail}
  - {email: ALICE@example.com}
channels: [{name: ops, kind: slak, address: x}, {name: room, kind: slack, address: ftp://x}]
schedules:
  - name: primary
    rotations:
      - {name: weekly, participants: [alica@example.com], unit: weak, length: two, start_date: 5 May,
         handoff_time: 25:00}
    overrides:
      - {kind: take, user: alice@example.com, start: 2026-01-07T08:00:00, end: soon}
      - {kind: replace, user: alice@example.com, start: 2026-01-07T08:00:00Z, end: 2026-01-07T08:00:00Z}
policies:
  - name: default
    repeat: -1
    steps:
      - {targets: ["schedule:primary"], wait: 5m}
      - {targets: ["schedule:primry", "usr:alice@example.com", ops], wait: 0s}
      - {wait: 400d}
services:
  - {name: api, policy: defalt, integrations: [{name: prom, kind: alertmaneger, key: short, verify: maybe}]}
  - api
"""
    assert sorted(faults_of(database, text)) == sorted(
        [
            'usres: unknown field; did you mean "users"?',
            'users[0].nmae: unknown field; did you mean "name"?',
            'users[0].role: must be admin, responder or viewer, not "admn"',
            'users[0].timezone: no time zone "Europe/Berln"; did you mean "Europe/Berlin"?',
            'users[1].email: "nobody" is no e-mail address such as alice@example.com',
            "users[2].email: required",
            "users[3].email: the same as users[0].email",
            'channels[0].kind: no transport "slak"; did you mean "slack"?',
            "channels[1].address: The address does not begin with http:// or https://",
            'schedules[0].rotations[0].participants[0]: no user "alica@example.com"; did you mean "alice@example.com"?',
            'schedules[0].rotations[0].unit: must be hour, day or week, not "weak"',
            'schedules[0].rotations[0].length: must be a whole number from 1 to 10,000, not "two"',
            'schedules[0].rotations[0].start_date: "5 May" is no date such as 2026-01-05',
            'schedules[0].rotations[0].handoff_time: "25:00" is no time such as "09:00"; midnight is "00:00"',
            'schedules[0].overrides[0].start: "2026-01-07T08:00:00" has no time zone; '
            "write 2026-02-01T00:00:00Z or +01:00",
            'schedules[0].overrides[0].end: "soon" is no instant such as 2026-02-01T00:00:00Z',
            "schedules[0].overrides[1].replaces: required where kind is replace",
            "schedules[0].overrides[1].end: must be after start",
            'policies[0].repeat: must be a whole number from 0 to 1,000, not "-1"',
            'policies[0].steps[1].targets[0]: no schedule "primry"; did you mean "primary"?',
            "policies[0].steps[1].targets[1]: must be user:..., schedule:... or channel:..., "
            'not "usr:alice@example.com"; did you mean "user"?',
            'policies[0].steps[1].targets[2]: must be user:..., schedule:... or channel:..., not "ops"',
            "policies[0].steps[1].wait: must be from 1s to 366d",
            "policies[0].steps[2].targets: required",
            "policies[0].steps[2].wait: must be from 1s to 366d",
            'services[0].policy: no policy "defalt"; did you mean "default"?',
            'services[0].integrations[0].kind: no integration kind "alertmaneger"; did you mean "alertmanager"?',
            "services[0].integrations[0].key: must have at least 20 characters",
            'services[0].integrations[0].verify: must be on or off, not "maybe"',
            "services[1]: must be a mapping of fields",
        ]
    )


def test_an_unknown_kind_that_resembles_none_lists_the_known_ones(database: Database) -> None:
    [fault] = faults_of(database, "channels: [{name: ops, kind: carrier pigeon, address: x}]")
    assert fault.startswith('channels[0].kind: no transport "carrier pigeon"; there are email, ')


def test_a_fault_in_the_last_object_leaves_the_database_as_it_was(database: Database) -> None:
    applied(database, FULL)
    text = FULL.replace("name: Alice", "name: Changed").replace("interval: 1h", "interval: soon")
    assert faults_of(database, text) == [
        "services[0].heartbeats[1].interval: must be a duration such as 30s, 5m, 2h or 1d"
    ]


def test_a_fault_that_shows_only_in_the_database_changes_nothing_either(database: Database) -> None:
    applied(database, FULL)
    text = "users: [{email: carol@example.com}]\nservices: [{name: web, policy: defualt}]"
    assert faults_of(database, text) == ['services[0].policy: no policy "defualt"; did you mean "default"?']


def test_what_the_file_does_not_name_can_be_referred_to_but_not_with_prune(database: Database) -> None:
    applied(database, FULL)
    text = "services: [{name: web, policy: default, integrations: [{name: a, kind: generic}]}]"
    assert faults_of(database, text, prune=True) == ['services[0].policy: no policy "default"']
    assert applied(database, text)[0] == "service web: created"


def test_names_are_given_once_and_rules_differ(database: Database) -> None:
    text = """
users:
  - email: alice@example.com
    contact_methods: [{name: a, kind: log, address: x}, {name: a, kind: log, address: y}]
    notification_rules:
      - {contact_method: a, after: 1m}
      - {contact_method: b, after: 1m}
      - {contact_method: a, after: 60s}
      - {contact_method: a, after: 1m, urgency: low}
policies: [{name: p}, {name: p}]
"""
    assert faults_of(database, text) == [
        "users[0].contact_methods[1].name: the same as users[0].contact_methods[0].name",
        'users[0].notification_rules[1].contact_method: no contact method "b"',
        "users[0].notification_rules[2]: the same contact method, urgency and delay as notification_rules[0]",
        "policies[1].name: the same as policies[0].name",
    ]


VIEWER = """
settings: {fallback: ["user:vera@example.com"]}
users: [{email: vera@example.com, role: viewer}]
schedules:
  - name: primary
    rotations:
      - {name: a, participants: [vera@example.com], unit: day, start_date: 2026-01-05, handoff_time: "09:00",
         roster_changes: [{at: 2026-02-01T00:00:00Z, participants: [vera@example.com]}]}
    overrides: [{kind: take, user: vera@example.com, start: 2026-01-07T08:00:00Z, end: 2026-01-07T16:00:00Z}]
policies: [{name: default, steps: [{targets: ["user:Vera@example.com"], wait: 5m}]}]
"""


def test_a_viewer_is_no_target_no_participant_and_no_override_user(database: Database) -> None:
    vera = "vera@example.com is a viewer and cannot be"
    assert faults_of(database, VIEWER) == [
        f"settings.fallback[0]: {vera} a target",
        f"schedules[0].rotations[0].participants[0]: {vera} a participant",
        f"schedules[0].rotations[0].roster_changes[0].participants[0]: {vera} a participant",
        f"schedules[0].overrides[0].user: {vera} the user of an override",
        f"policies[0].steps[0].targets[0]: {vera} a target",
    ]


def test_nobody_becomes_a_viewer_while_something_that_stays_needs_them(database: Database) -> None:
    applied(database, VIEWER.replace("role: viewer", "role: responder"))
    assert faults_of(database, "users: [{email: vera@example.com, role: viewer}]") == [
        'users[0].role: a viewer cannot be in policy "default"',
        'users[0].role: a viewer cannot be in schedule "primary"',
        "users[0].role: a viewer cannot be in the fallback",
    ]


def test_a_person_s_stand_in_cannot_become_a_viewer_either(database: Database) -> None:
    applied(database, "users: [{email: vera@example.com}]\nschedules: [{name: primary}]")
    run(
        database,
        "insert into override (schedule_id, kind, user_id, start_at, end_at, source, created_by) select s.id, 'take',"
        " u.id, now(), now() + interval '1 day', 'person', 'vera@example.com' from schedule s, app_user u",
    )
    text = "users: [{email: vera@example.com, role: viewer}]\nschedules: [{name: primary, overrides: []}]"
    assert faults_of(database, text, prune=True) == ['users[0].role: a viewer cannot be in schedule "primary"']


def test_kept_is_a_fault_where_nothing_is_kept(database: Database) -> None:
    text = """
users: [{email: a@example.com, contact_methods: [{name: h, kind: webhook, address: "https://x.example", secret: kept}]}]
channels: [{name: ops, kind: slack, address: kept}]
policies: [{name: p}]
services:
  - {name: api, policy: p, integrations: [{name: i, kind: generic, key: kept, secret: kept}],
     heartbeats: [{name: h, interval: 1d, key: kept}]}
"""
    assert faults_of(database, text) == [
        "users[0].contact_methods[0].secret: nothing is kept here",
        "channels[0].address: nothing is kept here",
        "services[0].integrations[0].secret: nothing is kept here",
        "services[0].integrations[0].key: nothing is kept here",
        "services[0].heartbeats[0].key: nothing is kept here",
    ]


def test_an_address_of_another_kind_is_not_kept(database: Database) -> None:
    applied(database, 'channels: [{name: ops, kind: webhook, address: "https://x.example/secret"}]')
    assert faults_of(database, "channels: [{name: ops, kind: slack, address: kept}]") == [
        "channels[0].address: nothing is kept here"
    ]


def test_a_secret_that_nothing_would_use_is_a_fault(database: Database) -> None:
    [fault] = faults_of(database, "channels: [{name: a, kind: log, address: x, secret: y}]")
    assert fault == "channels[0].secret: log takes no secret"


@pytest.mark.parametrize("letter", ["/", "%2F", " ", "é", "?", "#", ":", ";", "+", "\\\\", "\\n", "\\0"])
def test_a_key_is_a_part_of_an_address_as_it_stands(database: Database, letter: str) -> None:
    text = f"""
policies: [{{name: p, steps: [{{targets: ["channel:ops"], wait: 5m}}]}}]
channels: [{{name: ops, kind: log, address: ops}}]
services:
  - {{name: api, policy: p, integrations: [{{name: i, kind: generic, key: "twenty-characters-or-more{letter}"}}],
     heartbeats: [{{name: h, interval: 1d, key: "twenty{letter}characters-or-more"}}]}}
"""
    reason = "must hold letters, digits and - _ . ~ only"
    assert faults_of(database, text) == [
        f"services[0].integrations[0].key: {reason}",
        f"services[0].heartbeats[0].key: {reason}",
    ]


@pytest.mark.parametrize("zone", ["localtime", "Factory", "posixrules", "posix/Europe/Berlin", "right/UTC"])
def test_what_is_no_zone_for_people_is_not_proposed_either(database: Database, zone: str) -> None:
    [fault] = faults_of(database, f"schedules: [{{name: s, timezone: {zone}}}]")
    assert fault.startswith(f'schedules[0].timezone: no time zone "{zone}"')
    assert not {"localtime", "Factory", "posixrules"} & set(fault.split('"')[3:])


def test_names_stand_on_one_line(database: Database) -> None:
    text = """
channels: [{name: "a\\nb", kind: log, address: ops}]
schedules: [{name: "a\\e[31m", rotations: [{name: "\\0", participants: [], unit: day, start_date: 2026-01-05,
             handoff_time: "09:00"}]}]
policies: [{name: "a\\x85", steps: [{targets: ["channel:ops"], wait: 5m}]}]
services: [{name: "a\\u2028b", policy: p, integrations: [{name: "a\\tb", kind: generic}],
            heartbeats: [{name: "a\\rb", interval: 1d}]}]
users: [{email: alice@example.com, name: "a\\nb", contact_methods: [{name: "a\\nb", kind: log, address: ops}]}]
"""
    named = [fault.split(":")[0] for fault in faults_of(database, text) if "must not hold control characters" in fault]
    assert named == [
        "users[0].name",
        "users[0].contact_methods[0].name",
        "channels[0].name",
        "schedules[0].name",
        "schedules[0].rotations[0].name",
        "policies[0].name",
        "services[0].name",
        "services[0].integrations[0].name",
        "services[0].heartbeats[0].name",
    ]


def test_a_key_belongs_to_one_integration(database: Database) -> None:
    applied(database, FULL)
    key = "a-key-of-more-than-twenty"
    text = f"""
services:
  - {{name: web, policy: default, integrations: [{{name: a, kind: generic, key: {key}}}],
     heartbeats: [{{name: b, interval: 1d, key: {key}}}]}}
"""
    assert faults_of(database, text) == ["services[0].integrations[0].key: integration api/prom has this key"]


@pytest.mark.parametrize(
    "text",
    [
        "name: ''",
        'name: "a\\0b"',
        'name: "two\\nlines"',
        f"name: {'x' * 251}",
        "name: [a]",
        "name: {a: b}",
    ],
)
def test_text_that_cannot_be_stored_or_shown_is_a_fault(database: Database, text: str) -> None:
    [fault] = faults_of(database, f"users: [{{email: alice@example.com, {text}}}]")
    assert fault.startswith("users[0].name: must ")


@pytest.mark.parametrize("field", ["users", "settings", "services"])
def test_a_section_of_the_wrong_type_is_a_fault(field: str) -> None:
    [fault] = read(f"{field}: word").faults
    assert fault in (f"{field}: must be a list", f"{field}: must be a mapping of fields")


@pytest.mark.parametrize("pace", ["2h", "-5s", "5", "1.5m", "5 m", "1h30m", "∞"])
def test_bad_durations_are_faults(pace: str) -> None:
    [fault] = read(f"channels: [{{name: a, kind: log, address: x, pace: {pace}}}]").faults
    assert fault.startswith("channels[0].pace: must be ")
