"""Configuration files that the tests apply, and how a test applies and exports."""

from escalade.db import Database
from escalade.transfer import apply, export
from tests.factories import run

FULL = """
settings: {fallback: ["channel:ops", "user:alice@example.com", "schedule:primary"], repage_exhausted_after: 1h}
users:
  - email: Alice@example.com
    name: Alice
    role: admin
    timezone: Europe/Berlin
    contact_methods:
      - {name: mail, kind: email, address: alice@example.com, updates: on}
      - {name: hook, kind: webhook, address: "http://127.0.0.1:9999/alice", secret: whsec_YWJj, updates: on, pace: 30s}
    notification_rules: [{contact_method: hook, after: 0s}, {contact_method: mail, after: 2m, urgency: low}]
  - email: bob@example.com
    contact_methods:
      - {name: push, kind: ntfy, address: "https://ntfy.example.com/bob", secret: tk_bob}
channels:
  - {name: ops, kind: slack, address: "https://hooks.slack.com/services/T0/B0/x", pace: 1m, updates: on}
schedules:
  - name: primary
    timezone: Europe/Berlin
    rotations:
      - {name: weekly, participants: [alice@example.com, BOB@example.com], unit: week, length: 2,
         start_date: 2026-01-05, handoff_time: 09:00,
         restrictions: [{days: [mon, tue], from: "09:00", to: 17:30}],
         roster_changes: [{at: 2026-02-01T00:00:00Z, participants: [bob@example.com]}]}
    overrides:
      - {kind: take, user: bob@example.com, start: 2026-01-07T08:00:00Z, end: "2026-01-07T17:00:00+01:00"}
      - {kind: replace, user: bob@example.com, replaces: alice@example.com, start: 2026-01-08 08:00:00 +1,
         end: 2026-01-08T16:00:00Z}
policies:
  - name: default
    repeat: 2
    steps:
      - {targets: ["schedule:primary"], wait: 5m}
      - {targets: ["user:bob@example.com", "channel:ops"], wait: 10m}
services:
  - {name: api, policy: default, urgency: high, ack_timeout: 30m, auto_resolve: 24h,
     integrations: [{name: prom, kind: alertmanager, key: "a-key-of-more-than-twenty", secret: shared, verify: on},
                    {name: any, kind: generic}],
     heartbeats: [{name: nightly, interval: 1d, grace: 10m, key: "another-key-of-twenty", paused: "moving house"},
                  {name: hourly, interval: 1h}]}
"""


def applied(database: Database, text: str, prune: bool = False, dry_run: bool = False) -> list[str]:
    """The lines that applying the text prints."""
    with database.begin() as tx:
        return [change.line for change in apply(tx, text, prune=prune, dry_run=dry_run)]


def exported(database: Database, secrets: bool = False) -> str:
    """The configuration as YAML."""
    with database.begin() as tx:
        return export(tx, secrets)


TABLES = """app_user contact_method notification_rule channel schedule rotation roster_change override
    escalation_policy escalation_step escalation_target service integration heartbeat setting""".split()


def contents(database: Database) -> dict[str, list[str]]:
    """Every row of the configuration, with its place on the disk: the same only where nothing was written."""
    return {
        table: [row for (row,) in run(database, f"select t.ctid || ' ' || t.xmin || ' ' || t::text from {table} t")]
        for table in TABLES
    }
