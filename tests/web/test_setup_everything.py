"""Everything that YAML can say is said through the forms of Setup, by plain posts over HTTP, and exported again."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from escalade.config import Config
from escalade.db import Database
from escalade.transfer import shape
from escalade.transfer.records import Fields
from tests.factories import user
from tests.transfer.example import applied, exported
from tests.web.forms import Browser
from tests.web.screens import make_screens
from tests.web.serving import serving

WANTED = """
settings: {fallback: ["channel:ops", "user:alice@example.com", "schedule:primary"], repage_exhausted_after: 1h}
users:
  - email: alice@example.com
    name: Alice
    role: admin
    timezone: Europe/Berlin
    contact_methods:
      - {name: mail, kind: email, address: alice@example.com, updates: on}
      - {name: hook, kind: webhook, address: "http://127.0.0.1:9999/alice", secret: whsec_YWJj, updates: on, pace: 30s}
    notification_rules: [{contact_method: hook}, {contact_method: mail, after: 2m, urgency: low}]
  - email: bob@example.com
    name: Bob
    contact_methods:
      - {name: phone, kind: ntfy, address: "https://ntfy.example.com/bob", secret: tk_bob}
  - {email: root@example.com, name: Root, role: admin}
channels:
  - {name: ops, kind: slack, address: "https://hooks.slack.com/services/T0/B0/x", pace: 1m, updates: on}
  - {name: sink, kind: webhook, address: "https://sink.example.com/", secret: shared}
schedules:
  - name: primary
    timezone: Europe/Berlin
    rotations:
      - {name: weekly, participants: [alice@example.com, bob@example.com], unit: week, length: 2,
         start_date: 2026-01-05, handoff_time: "09:00",
         restrictions: [{days: [mon, tue], from: "09:00", to: "17:30"}, {days: [sat], from: "22:00", to: "06:00"}],
         roster_changes: [{at: 2026-02-01T00:00:00Z, participants: [bob@example.com]}]}
      - {name: nights, participants: [], unit: day, start_date: 2026-01-06, handoff_time: "18:00:30"}
    overrides:
      - {kind: take, user: bob@example.com, start: 2026-01-07T08:00:00Z, end: 2026-01-07T16:00:00Z}
      - {kind: replace, user: bob@example.com, replaces: alice@example.com, start: 2026-01-08T07:00:00Z,
         end: 2026-01-08T16:00:00Z}
policies:
  - name: default
    repeat: 2
    steps:
      - {targets: ["schedule:primary"], wait: 5m}
      - {targets: ["user:bob@example.com", "channel:ops"], wait: 10m}
services:
  - name: api
    policy: default
    urgency: high
    ack_timeout: 30m
    auto_resolve: 1d
    integrations:
      - {name: any, kind: generic, key: kept}
      - {name: prom, kind: alertmanager, key: kept, secret: shared, verify: on}
    heartbeats:
      - {name: hourly, interval: 1h, key: kept}
      - {name: nightly, interval: 1d, grace: 10m, key: kept, paused: "moving house"}
"""


@pytest.fixture
def browser(database: Database, config: Config) -> Iterator[Browser]:
    """The first admin, at an installation where nothing is set up."""
    user(database, "root", "admin", "x")
    screens = make_screens(database, config)
    with serving(screens.app) as base:
        yield Browser(base, screens.session("root"))


def fill_in(browser: Browser, fields: Fields, wanted: dict[str, Any], at: str = "") -> None:
    """Put into a form what a file says, adding lines where it takes them."""
    for name, value in wanted.items():
        kind, path = fields[name].kind, at + name
        if value == "kept":
            continue  # a key, which is made
        if kind.item is None:
            browser.put({path: value})
        elif kind.item.words is not None:
            browser.put({path: value})
        elif kind.item.parts is None:
            for index, one in enumerate(value):
                browser.put({f"{path}[{index}]": one})
                browser.press(button(browser, path))
        else:
            for index, one in enumerate(value):
                browser.press(button(browser, f"{path}:{one['kind']}" if "pace" in kind.item.parts else path))
                fill_in(browser, kind.item.parts, one, f"{path}[{index}].")


def button(browser: Browser, path: str) -> str:
    """The name of the button that adds a line to this list."""
    [found] = [one.name for one in browser.form.buttons if one.sends == ("do", f"add:{path}")]
    return found


def make(browser: Browser, section: str, wanted: dict[str, Any]) -> None:
    """Make one thing by its form."""
    kind = f"?kind={wanted['kind']}" if section == "channels" else ""
    browser.go(f"/setup/{section}/new{kind}")
    fill_in(browser, fields_of(section), wanted)
    browser.press("Save")
    assert browser.status == 200 and "Nothing was saved" not in browser.html, browser.html


def fields_of(section: str) -> Fields:
    """The fields of one thing of a section."""
    kind = shape.CONFIGURATION[section].kind
    found = kind.parts if kind.item is None else kind.item.parts
    assert found is not None
    return found


def unset(fields: Fields, things: list[dict[str, Any]], path: str = "") -> list[str]:
    """The fields that none of the things says anything of."""
    missing = []
    for name, field in fields.items():
        said = [thing[name] for thing in things if thing.get(name) not in (None, [])]
        inner = field.kind.parts or (field.kind.item.parts if field.kind.item else None)
        if not said:
            missing.append(path + name)
        elif inner is not None:
            below = [one for value in said for one in (value if isinstance(value, list) else [value])]
            missing += unset(inner, below, f"{path}{name}.")
    return missing


def test_the_example_says_something_of_every_field_of_the_yaml() -> None:
    assert unset(shape.CONFIGURATION, [yaml.safe_load(WANTED)]) == []


def test_every_field_of_the_yaml_is_set_by_the_screens_alone(database: Database, browser: Browser) -> None:
    wanted = yaml.load(WANTED, Loader=yaml.BaseLoader)
    for section in ("users", "channels", "schedules", "policies", "services"):
        for thing in wanted[section]:
            if thing.get("email") != "root@example.com":
                make(browser, section, thing)
    browser.go("/setup/settings")
    fill_in(browser, shape.SETTINGS, wanted["settings"])
    browser.press("Save")
    assert browser.status == 200 and "Saved." in browser.html
    assert yaml.load(exported(database, secrets=True), Loader=yaml.BaseLoader) == wanted
    assert applied(database, WANTED) == []
