"""Setup's forms: the same faults as a file, at their fields; nothing lost where two people change one thing; nothing
deleted that is used; secrets that no page shows; and nobody in but admins."""

import html
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from typing import Any

import pytest
import requests
import yaml
from flask import Response

from escalade.db import Database
from escalade.inbound import PARSERS, parse
from escalade.inbound.base import Request
from escalade.inbound.samples import SAMPLES, sample
from escalade.transports import TRANSPORTS
from escalade.web.pages import setup_edit
from tests import factories
from tests.factories import run
from tests.transfer.example import FULL, applied, contents, exported
from tests.web.forms import Browser
from tests.web.screens import OWN, Screens
from tests.web.serving import serving

SECTIONS = ("users", "channels", "schedules", "policies", "services")
SECRETS = ("whsec_YWJj", "tk_bob", "T0/B0/hidden", "shared", "a-key-of-more-than-twenty", "another-key-of-twenty")


@pytest.fixture
def shared(database: Database, screens: Screens) -> Iterator[str]:
    """The full example, served; the address."""
    applied(database, FULL.replace("T0/B0/x", "T0/B0/hidden"))
    factories.user(database, "root", "admin", "x")
    with serving(screens.app) as base:
        yield base


@pytest.fixture
def browser(shared: str, screens: Screens) -> Browser:
    """An admin at it."""
    return Browser(shared, screens.session("root"))


def id_of(database: Database, section: str, name: str) -> int:
    """The id of a thing."""
    column = "email" if section == "users" else "name"
    return int(run(database, f"select id from {TABLES[section]} where lower({column}) = lower(%s)", name)[0][0])


def path_of(database: Database, section: str, name: str) -> str:
    """The address of its form."""
    return f"/setup/{section}/{id_of(database, section, name)}"


def faults_at(page: str, field: str) -> str:
    """What is said to be wrong at a field."""
    found = re.search(rf'<span class="error" id="f-{re.escape(field)}-fault">(.*?)</span>', page)
    return html.unescape(found[1]) if found else ""


def listed(page: str) -> list[str]:
    """The links of a list of uses."""
    return re.findall(r'<li><a href="([^"]+)">', page)


TABLES = {
    "users": "app_user",
    "channels": "channel",
    "schedules": "schedule",
    "policies": "escalation_policy",
    "services": "service",
}
PLACES = {
    "users": "alice@example.com",
    "channels": "ops",
    "schedules": "primary",
    "policies": "default",
    "services": "api",
}


def test_an_admin_reaches_every_form_from_the_first_page(browser: Browser) -> None:
    page = browser.go("/setup").html
    links = re.findall(r'href="(/setup/(?:\w+/(?:new|\d+)|settings))"', page)
    assert {link.split("/")[2] for link in links} == {*SECTIONS, "settings"}
    for link in links:
        assert browser.go(link).status == 200, link


@pytest.mark.parametrize(("section", "name"), PLACES.items())
def test_saving_a_form_as_it_is_changes_nothing(database: Database, browser: Browser, section: str, name: str) -> None:
    before = contents(database)
    page = browser.go(path_of(database, section, name)).press("Save")
    assert "Saved; nothing was different." in page.html
    assert contents(database) == before


def test_saving_the_settings_as_they_are_changes_nothing(database: Database, browser: Browser) -> None:
    before = contents(database)
    assert "Saved; nothing was different." in browser.go("/setup/settings").press("Save").html
    assert contents(database) == before


@pytest.mark.parametrize(("section", "name"), PLACES.items())
def test_no_form_shows_a_secret(database: Database, browser: Browser, section: str, name: str) -> None:
    page = browser.go(path_of(database, section, name)).html
    assert [secret for secret in SECRETS if secret in page] == []


def test_a_secret_is_set_kept_and_removed(database: Database, browser: Browser) -> None:
    path, kept = path_of(database, "users", "bob@example.com"), "select secret from contact_method where name = 'push'"
    assert "One is set." in browser.go(path).html
    browser.go(path).put({"contact_methods[0].secret": "tk_new"}).press("Save")
    assert run(database, kept) == [("tk_new",)] and "tk_new" not in browser.html
    browser.go(path).put({"name": "Bobby"}).press("Save")
    assert run(database, kept) == [("tk_new",)]
    browser.go(path).put({"contact_methods[0]._drop_secret": "on"}).press("Save")
    assert run(database, kept) == [(None,)]


def test_an_address_that_is_a_secret_stays_where_its_field_is_empty(database: Database, browser: Browser) -> None:
    browser.go(path_of(database, "channels", "ops")).put({"pace": "2m"}).press("Save")
    assert run(database, "select address, pace_seconds from channel") == [
        ("https://hooks.slack.com/services/T0/B0/hidden", 120)
    ]


def test_the_form_of_a_contact_is_made_of_what_its_transport_says(browser: Browser) -> None:
    for kind, transport in TRANSPORTS.items():
        page = browser.go(f"/setup/channels/new?kind={kind}")
        assert html.escape(transport.about, quote=False) in page.html.replace("&#39;", "'"), kind
        assert transport.address_is in page.html and transport.address_is != "Address", kind
        assert ("secret" in page.form.fields) == transport.takes_secret, kind
        assert not transport.takes_secret or transport.secret_is in page.html, kind


def test_another_kind_is_asked_for_what_it_needs(browser: Browser) -> None:
    page = browser.go("/setup/channels/new")
    assert "address" not in page.form.fields
    page.put({"name": "mail", "kind": "email"}).press("Ask for what this kind needs")
    assert page.form.fields["name"] == ["mail"] and "address" in page.form.fields and "secret" not in page.form.fields


# The section, what is typed into which field, and what a file would be told.
FAULTS = [
    ("users", "timezone", "Europe/Berlim", 'no time zone "Europe/Berlim"; did you mean "Europe/Berlin"?'),
    ("users", "email", "bob@example.com", 'there is a user "bob@example.com" already'),
    ("users", "contact_methods[0].address", "x", "The address is no e-mail address such as alice@example.com"),
    ("users", "notification_rules[1].after", "soon", "must be a duration such as 30s, 5m, 2h or 1d"),
    ("schedules", "rotations[0].length", "0", 'must be a whole number from 1 to 10,000, not "0"'),
    ("schedules", "overrides[0].end", "2026-01-07T08:00:00Z", "must be after start"),
    ("policies", "steps[1].wait", "", "required"),
    ("services", "name", "", "required"),
    ("services", "heartbeats[0].interval", "0s", "must be from 1s to 366d"),
    ("services", "integrations[0].key", "short", "must have at least 20 characters"),
    ("services", "heartbeats[0].key", "a-key-of-more-than-twenty!", "must hold letters, digits and - _ . ~ only"),
]


@pytest.mark.parametrize(("section", "field", "typed", "sentence"), FAULTS)
def test_a_fault_comes_back_at_its_field_in_the_words_of_a_file(
    database: Database, browser: Browser, section: str, field: str, typed: str, sentence: str
) -> None:
    before = contents(database)
    page = browser.go(path_of(database, section, PLACES[section])).put({field: typed}).press("Save")
    assert page.status == 422
    element = re.sub(r"\W+", "-", field)
    assert faults_at(page.html, element) == sentence
    assert f'href="#f-{element}"' in page.html
    assert page.form.fields[field] == [typed]
    assert contents(database) == before


def test_faults_at_several_fields_all_come_back_at_once(database: Database, browser: Browser) -> None:
    page = browser.go(path_of(database, "services", "api")).put({"ack_timeout": "x", "heartbeats[1].grace": "y"})
    assert page.press("Save").status == 422
    assert faults_at(page.html, "ack_timeout") and faults_at(page.html, "heartbeats-1-grace")


def test_the_last_admin_who_can_log_in_stays_one(database: Database, browser: Browser) -> None:
    path = path_of(database, "users", "root@example.com")
    page = browser.go(path).put({"role": "viewer"}).press("Save")
    assert page.status == 422 and "no admin who can log in would be left" in faults_at(page.html, "role")
    page = browser.go(f"{path}/delete").press("Delete person")
    assert page.status == 409 and "This is the last admin who can log in" in page.html


RENAMED = [
    ("name: api", "name: web"),
    ("name: prom,", "name: prometheus,"),
    ("name: hook", "name: door"),
    ("method: hook", "method: door"),
    ("email: Alice@example.com", "email: alice@example.org"),
    ("[alice@example.com", "[alice@example.org"),
    ("replaces: alice@example.com", "replaces: alice@example.org"),
    ("user:alice@example.com", "user:alice@example.org"),
    ("channel:ops", "channel:new ops"),
    ("name: ops", "name: new ops"),
    ("schedule:primary", "schedule:new primary"),
    ("name: primary", "name: new primary"),
    ("name: default", "name: new default"),
    ("policy: default", "policy: new default"),
]


def test_another_name_is_the_same_thing(database: Database, browser: Browser) -> None:
    ids = run(database, "select id, key_hash from integration order by id")
    before = exported(database, secrets=True)
    browser.go(path_of(database, "services", "api")).put({"name": "web", "integrations[1].name": "prometheus"}).press(
        "Save"
    )
    browser.go(path_of(database, "users", "alice@example.com"))
    browser.put({"email": "alice@example.org", "contact_methods[1].name": "door"}).press("Save")
    for section, name in (("channels", "ops"), ("schedules", "primary"), ("policies", "default")):
        browser.go(path_of(database, section, name)).put({"name": f"new {name}"}).press("Save")
    assert run(database, "select id, key_hash from integration order by id") == ids
    for old, new in RENAMED:
        assert old in before, old
        before = before.replace(old, new)
    assert exported(database, secrets=True).split() == before.split()
    told = run(database, "select value from setting where name = 'fallback'")[0][0]
    assert [target["name"] for target in told] == ["new ops", "alice@example.org", "new primary"]


def test_two_things_may_swap_their_names(database: Database, browser: Browser) -> None:
    before = dict(run(database, "select name, key_hash from integration"))
    path = path_of(database, "services", "api")
    browser.go(path).put({"integrations[0].name": "prom", "integrations[1].name": "any"}).press("Save")
    assert browser.status == 200 and dict(run(database, "select name, key_hash from integration")) == {
        "any": before["prom"],
        "prom": before["any"],
    }
    browser.go(path).press("Remove Integration any")
    browser.put({"integrations[0].name": "any"}).press("Save")
    assert run(database, "select name, key_hash from integration") == [("any", before["any"])]


def test_lines_are_moved_and_removed_without_javascript(database: Database, browser: Browser) -> None:
    page = browser.go(path_of(database, "policies", "default"))
    page.press("Move down Step 1").press("Remove Target 1 of Step 1").press("Add step")
    assert page.form.fields["steps[1].targets[0]"] == ["schedule:primary"]
    page.press("Remove Step 3").press("Save")
    [policy] = yaml.safe_load(exported(database))["policies"]
    assert policy["steps"] == [
        {"targets": ["channel:ops"], "wait": "10m"},
        {"targets": ["schedule:primary"], "wait": "5m"},
    ]


def test_a_key_is_shown_once_in_a_command_that_works(database: Database, browser: Browser, screens: Screens) -> None:
    page = browser.go(path_of(database, "services", "api")).put({"integrations[0]._new_key": "on"}).press("Save")
    [key] = re.findall(r"<code>(k_[\w-]+)</code>", page.html)
    assert f"http://127.0.0.1:8000/hooks/{key}" in html.unescape(page.html)
    assert f"hooks/{key}" not in browser.go(path_of(database, "services", "api")).html
    assert "hooks/KEY" in html.unescape(browser.html)
    sent = screens.app.test_client().post(f"/hooks/{key}", data=sample("generic"), content_type="application/json")
    assert sent.status_code == 202


def test_every_tool_has_an_alert_to_try_it_with() -> None:
    assert set(SAMPLES) == set(PARSERS)
    for kind, body in SAMPLES.items():
        request = Request(body.encode(), "application/json", {}, ())
        assert [event.action for event in parse(kind, request)] == ["trigger"], kind


def test_a_heartbeat_is_paused_with_its_reason_and_goes_on(database: Database, browser: Browser) -> None:
    path, paused = path_of(database, "services", "api"), "select name, paused from heartbeat order by name"
    browser.go(path).put({"heartbeats[0].paused": "no job\ntoday", "heartbeats[1].paused": ""}).press("Save")
    assert run(database, paused) == [("hourly", "no job\ntoday"), ("nightly", None)]


def test_a_time_without_a_zone_is_meant_in_that_of_the_schedule(database: Database, browser: Browser) -> None:
    path = path_of(database, "schedules", "primary")
    browser.go(path).put({"overrides[0].start": "2026-01-07T08:30", "overrides[0].end": "2026-07-07 08:30"}).press(
        "Save"
    )
    assert "start: '2026-01-07T07:30:00Z'" in exported(database) and "end: '2026-07-07T06:30:00Z'" in exported(database)


USES = {
    "users": ["/setup/settings", "/setup/schedules/", "/setup/schedules/"],
    "channels": ["/setup/settings", "/setup/policies/"],
    "schedules": ["/setup/settings", "/setup/policies/"],
    "policies": ["/setup/services/"],
}


@pytest.mark.parametrize(("section", "links"), USES.items())
def test_what_something_uses_is_not_deleted_and_the_uses_are_links(
    database: Database, browser: Browser, section: str, links: list[str]
) -> None:
    before, path = contents(database), path_of(database, section, PLACES[section]) + "/delete"
    page = browser.go(path)
    assert [link.rstrip("0123456789") for link in listed(page.html)] == links
    assert all(browser.go(link).status == 200 for link in listed(page.html))
    answer = screens_post(browser, path)
    assert answer.status == 409 and [link.rstrip("0123456789") for link in listed(answer.html)] == links
    assert contents(database) == before


def screens_post(browser: Browser, path: str) -> Browser:
    """Post as a button of ours would that is not there."""
    return browser.took(
        requests.post(browser.base + path, headers=OWN, cookies={"escalade": browser.cookie}, timeout=20)
    )


def test_an_override_that_a_person_made_is_a_use(database: Database, browser: Browser) -> None:
    carol = factories.user(database, "carol")
    run(
        database,
        "insert into override (schedule_id, kind, user_id, start_at, end_at, source, created_by)"
        " values (%s, 'take', %s, now(), now() + interval '1 day', 'person', 'x')",
        id_of(database, "schedules", "primary"),
        carol,
    )
    assert "an override until" in browser.go(f"/setup/users/{carol}/delete").html


def test_what_nothing_uses_is_deleted(database: Database, browser: Browser) -> None:
    for section, name, button in (("services", "api", "Delete service"), ("policies", "default", "Delete policy")):
        page = browser.go(path_of(database, section, name) + "/delete").press(button)
        assert page.address.endswith("/setup?said=deleted") and "Deleted." in page.html
    assert run(database, "select count(*) from integration") == run(database, "select count(*) from service") == [(0,)]
    assert run(database, "select action, who from audit order by id desc limit 1") == [
        ("policy removed", "root@example.com")
    ]


@pytest.mark.parametrize(("section", "name"), PLACES.items())
def test_two_people_at_one_form_and_nothing_is_lost(
    database: Database, browser: Browser, screens: Screens, section: str, name: str
) -> None:
    path = path_of(database, section, name)
    field = "email" if section == "users" else "name"
    first, second = browser, Browser(browser.base, screens.session("root"))
    first.go(path)
    second.go(path)
    typed = "mine@example.com" if section == "users" else "mine"
    first.put({field: typed.replace("mine", "theirs")}).press("Save")
    page = second.put({field: typed}).press("Save")
    assert page.status == 409 and "Somebody else changed this" in page.html
    assert page.form.fields[field] == [typed] and typed.replace("mine", "theirs") in page.html
    assert not [secret for secret in SECRETS if secret in page.html]
    assert page.press("Save").status == 200
    assert id_of(database, section, typed)


def test_of_two_who_save_at_the_same_time_one_is_told(database: Database, browser: Browser, screens: Screens) -> None:
    path = path_of(database, "policies", "default")
    people = [Browser(browser.base, screens.session("root")).go(path).put({"repeat": str(n)}) for n in range(3, 9)]
    with ThreadPoolExecutor(len(people)) as together:
        answers = list(together.map(lambda one: one.press("Save").status, people))
    assert sorted(answers) == [200, *[409] * 5]
    assert run(database, "select repeat from escalation_policy") == [(3 + answers.index(200),)]


def test_a_form_that_showed_the_old_state_is_not_taken_for_one_of_the_new(
    database: Database, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw, path = setup_edit.drawn, path_of(database, "policies", "default")

    def late(*args: Any, **more: Any) -> Response:
        run(database, "update escalation_policy set repeat = 9")
        return draw(*args, **more)

    monkeypatch.setattr(setup_edit, "drawn", late)
    browser.go(path)
    monkeypatch.setattr(setup_edit, "drawn", draw)
    assert browser.form.fields["repeat"] == ["2"] and browser.press("Save").status == 409


def test_another_e_mail_or_role_logs_the_person_out(database: Database, browser: Browser, screens: Screens) -> None:
    path = path_of(database, "users", "bob@example.com")
    for change in ({"email": "robert@example.com"}, {"role": "viewer"}):
        bob = Browser(browser.base, screens.session("bob"))
        assert bob.go("/setup").address.endswith("/setup")
        for table in ("escalation_target", "rotation", "override"):
            run(database, f"delete from {table}")  # a viewer cannot be in them
        assert browser.go(path).put(change).press("Save").status == 200, browser.html
        assert bob.go("/setup").address.endswith("/login?next=/setup")


def test_the_settings_of_somebody_else_are_not_overwritten_without_a_word(browser: Browser, screens: Screens) -> None:
    other = Browser(browser.base, screens.session("root")).go("/setup/settings")
    browser.go("/setup/settings").put({"repage_exhausted_after": "2h"}).press("Save")
    page = other.put({"repage_exhausted_after": "3h"}).press("Save")
    assert page.status == 409 and "repage_exhausted_after: 2h" in page.html
    assert page.press("Save").status == 200


def test_what_somebody_deleted_meanwhile_can_be_made_anew(database: Database, browser: Browser) -> None:
    page = browser.go(path_of(database, "services", "api"))
    run(database, "delete from service")
    assert page.press("Save").status == 409 and "Somebody else deleted this" in page.html
    assert "Saved, with new keys" in page.press("Save").html
    assert run(database, "select name from service") == [("api",)]
    assert browser.go("/setup/services/99999").status == browser.go("/setup/services/99999/delete").status == 404


@pytest.mark.parametrize("role", ["viewer", "responder"])
def test_nobody_but_an_admin_sees_or_sends_a_form(database: Database, shared: str, screens: Screens, role: str) -> None:
    before = contents(database)
    other = Browser(shared, screens.session("eve", role))
    page = other.go("/setup")
    assert page.status == 200 and "/new" not in page.html and not re.search(r'href="/setup/\w+/\d', page.html)
    paths = [path_of(database, section, name) for section, name in PLACES.items()]
    for path in [*paths, "/setup/services/new", "/setup/settings", *(f"{path}/delete" for path in paths)]:
        assert other.go(path).status == 403, path
        assert screens_post(other, path).status == 403, path
    after = contents(database)
    assert after | {"app_user": []} == before | {"app_user": []}


def test_an_address_of_no_section_is_nothing(browser: Browser) -> None:
    for path in ("/setup/tables/new", "/setup/tables/1", "/setup/tables/1/delete"):
        assert browser.go(path).status == 404 and screens_post(browser, path).status == 404


@pytest.mark.parametrize(
    "order", ["add:nothing", "up:steps[9]", "remove:steps[x]", "add:steps[0].targets[0]", "x", ":", "remove:name[0]"]
)
def test_an_order_that_no_button_gives_does_nothing(browser: Browser, order: str, database: Database) -> None:
    path = path_of(database, "policies", "default")
    answer = requests.post(
        browser.base + path,
        data={"do": order, "steps[0].wait": "5m"},
        headers=OWN,
        cookies={"escalade": browser.cookie},
        timeout=20,
    )
    assert answer.status_code == 200


HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onfocus=alert(1) autofocus='",
    "</textarea></select></title><svg onload=alert(1)>",
    "{{ 7 * 7 }}{% raw %}${7*7}",
    "javascript:alert(1)//\u202e\x00\ud83d",
    "a" * 3_000,
]


class Seen(HTMLParser):
    """What a browser makes of a page: its tags, and its scripts and handlers, of which there must be only ours."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.foreign: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        at = dict(attrs)
        ours = tag != "script" or (at.get("src") or "").startswith("/static/")
        if not ours or tag in ("img", "iframe") or any(name.startswith("on") for name in at):
            self.foreign.append(str((tag, at)))
        if tag == "a" and not (at.get("href") or "").startswith(("/", "#")):
            self.foreign.append(str((tag, at)))


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize(("section", "name"), PLACES.items())
def test_hostile_text_in_every_field_is_only_text(
    database: Database, browser: Browser, section: str, name: str, text: str
) -> None:
    typed = text.encode("utf-8", "replace").decode()
    page = browser.go(path_of(database, section, name))
    for path in page.form.fields:
        if not path.endswith(("made_from", "_was")):
            page.form.fields[path] = [typed]
    assert page.press("Save").status in (200, 422)
    assert Seen(page.html).foreign == []
    assert page.go("/setup").status == 200 and Seen(page.html).foreign == []


def test_a_hostile_name_is_only_text_wherever_it_is_shown(database: Database, screens: Screens) -> None:
    bad = "".join(HOSTILE[:5])
    person, contact = "alice@example.com", {"name": bad, "kind": "log", "address": bad}
    rotation = {
        "name": bad,
        "participants": [person],
        "unit": "day",
        "start_date": "2026-01-05",
        "handoff_time": "9:00",
    }
    service = {
        "name": bad,
        "policy": bad,
        "integrations": [{"name": bad, "kind": "generic"}],
        "heartbeats": [{"name": bad, "interval": "1h", "paused": bad}],
    }
    told = {
        "settings": {"fallback": [f"channel:{bad}"]},
        "users": [{"email": person, "name": bad, "contact_methods": [contact]}],
        "channels": [contact],
        "schedules": [{"name": bad, "rotations": [rotation]}],
        "policies": [{"name": bad, "steps": [{"targets": [f"schedule:{bad}", f"user:{person}"], "wait": "1m"}]}],
        "services": [service],
    }
    applied(database, yaml.safe_dump(told))
    factories.user(database, "root", "admin", "x")
    pages = ["/setup", "/setup/settings"]
    for section in SECTIONS:
        for (thing_id,) in run(database, f"select id from {TABLES[section]}"):
            pages += [f"/setup/{section}/{thing_id}", f"/setup/{section}/{thing_id}/delete"]
    with serving(screens.app) as base:
        browser = Browser(base, screens.session("root"))
        for page in pages:
            assert browser.go(page).status == 200 and Seen(browser.html).foreign == [], page
            assert "alert(1)" in browser.html or "root" in browser.html
