"""What the demo consists of, and how it gets into an empty database: as a configuration file would."""

import secrets
from datetime import date, timedelta
from typing import Any

from escalade import opening, settings, tokens, transfer, users
from escalade.db import Tx
from escalade.demo import history

ALICE, BOB = "demo-alice@example.com", "demo-bob@example.com"
NAMES = [ALICE, BOB, "demo-ops", "demo-primary", "demo-default", "demo-shop"]
FALLBACK = "channel:demo-ops"
SETTING = "demo"
NOUNS = {
    "user": "users",
    "channel": "channels",
    "schedule": "schedules",
    "policy": "policies",
    "service": "services",
}

# Pages go to the log. The webhooks lead nowhere (.invalid is nobody's, for ever), so that there is something to see
# among what failed. The last rule is late enough to be seen waiting.
_PERSON = """
  - email: demo-{who}@example.com
    name: {name} (demo)
    role: {role}
    contact_methods:
      - {{name: log, kind: log, address: "{name}"}}
      - {{name: hook, kind: webhook, address: "https://pager.demo.invalid/{who}"}}
    notification_rules:
      - {{contact_method: log, after: 0s}}
      - {{contact_method: hook, after: 0s, urgency: high}}
      - {{contact_method: log, after: 15m, urgency: high}}
"""

_FILE = """
settings: {{fallback: ["channel:demo-ops"]}}
users:
{people}
channels:
  - {{name: demo-ops, kind: log, address: "ops room"}}
schedules:
  - name: demo-primary
    timezone: UTC
    rotations:
      - {{name: weekly, participants: [demo-alice@example.com, demo-bob@example.com], unit: week, length: 1,
         start_date: {monday}, handoff_time: "09:00"}}
policies:
  - name: demo-default
    repeat: 2
    steps:
      - {{targets: ["schedule:demo-primary"], wait: 12m}}
      - {{targets: ["user:demo-alice@example.com", "user:demo-bob@example.com", "channel:demo-ops"], wait: 10m}}
services:
  - name: demo-shop
    policy: demo-default
    integrations: [{{name: alerts, kind: generic, key: "{key}"}}]
"""


def load(tx: Tx, base_url: str = "http://127.0.0.1:8000") -> list[str]:
    """Load the demo where nothing is set up yet, but one admin at most. The lines to print, with a password and a key
    that are shown this once; none where there is something already."""
    if not tx.value("demo_may_be_loaded", names=NAMES):
        return []
    tx.run("lock_configuration")
    # Another process may have loaded it while this one waited for the lock.
    if not tx.value("demo_may_be_loaded", names=NAMES):
        return []
    key, password = tokens.new_secret(), secrets.token_urlsafe(9)
    transfer.apply(tx, file(key, tx.now.date()))
    for email in (ALICE, BOB):
        person = users.by_email(tx, email)
        assert person is not None
        users.set_password(tx, person.id, password)
    made = recorded(tx)
    made["incidents"] = history.write(tx, opening.integration(tx, tokens.digest(key)).source)
    settings.put(tx, SETTING, made)
    return [
        f"Demo: log in as {ALICE} (admin) or {BOB} (responder) with the password {password} (shown only now).",
        f"Demo: an alert by hand: curl -d title='Try me' -d severity=critical {base_url}/hooks/{key}",
        "Demo: to take it all out again: python app.py demo --remove",
    ]


def loaded(tx: Tx) -> bool:
    """Whether demo data is here, or what was kept of it."""
    return settings.get(tx, SETTING) is not None


def file(key: str, today: date) -> str:
    """The demo's configuration. The schedule began on a Monday two weeks ago, so that somebody is on call."""
    people = [
        _PERSON.format(who="alice", name="Alice", role="admin").strip("\n"),
        _PERSON.format(who="bob", name="Bob", role="responder").strip("\n"),
    ]
    monday = today - timedelta(days=today.weekday() + 14)
    return _FILE.format(people="\n".join(people), monday=monday, key=key)


def recorded(tx: Tx) -> dict[str, Any]:
    """The ids of what has just been made, by which it is found again however people edit around it."""
    made: dict[str, Any] = {noun: [] for noun in NOUNS.values()}
    for row in tx.many(dict, "demo_things", names=NAMES, **made):
        made[NOUNS[row["noun"]]].append(row["id"])
    made["integrations"] = tx.values("demo_integrations", services=made["services"])
    return made
