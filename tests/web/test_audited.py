"""Whoever changes something leaves a line: every route that can change anything is walked, and each writes a row of
the audit or an event of an incident."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from escalade import first_steps, login_links, passwords, settings, users
from escalade.tokens import digest
from escalade.web import access
from tests import factories
from tests.web.forms import Forms
from tests.web.screens import OWN, Screens, fail
from tests.web.serving import token

PASSWORD = "correct horse"
# What changes nothing that anybody relies on, and why.
EXEMPT = {
    "beats.beat": "a heartbeat's own sign of life, kept on the heartbeat",
    "theme.choose": "a cookie of this browser",
    "first_steps.look": "shows the page again",
}


@dataclass
class Scene:
    """The application with one of everything: root is the admin who acts."""

    screens: Screens
    service: int
    incident: int
    failed: int
    ids: dict[str, int]

    def latest(self, table: str) -> int:
        """The id of the newest row."""
        return int(factories.run(self.screens.db, f"select max(id) from {table}")[0][0])


def scene(screens: Screens) -> Scene:
    """One of everything."""
    db = screens.db
    service = factories.ladder(db, "http://127.0.0.1:9/x")
    factories.integration(db, service)
    incident = factories.open_incident(db, service).id
    ids = {row[0]: row[1] for row in factories.run(db, "select name, id from app_user")}
    root = factories.user(db, "root", "admin", passwords.hashed(PASSWORD))
    screens.people["root"] = root
    return Scene(screens, service, incident, fail(db, incident), ids | {"root": root})


Form = dict[str, Any]
Call = Callable[[Scene], tuple[str, Form]]


def page(path: str, **form: Any) -> Call:
    """A path that may name the incident, the failed attempt or Bob."""
    return lambda at: (path.format(incident=at.incident, failed=at.failed, bob=at.ids["Bob"]), form)


def acted_before(path: str, statement: str, **form: Any) -> Call:
    """The same, in an incident of another state."""

    def call(at: Scene) -> tuple[str, Form]:
        factories.run(at.screens.db, statement, at.incident)
        return path.format(incident=at.incident), form

    return call


def setup_form(path: Callable[[Scene], str], **form: Any) -> Call:
    """A form of Setup as a browser sends it, with something else typed into it."""

    def call(at: Scene) -> tuple[str, Form]:
        address = path(at)
        shown = at.screens.client("root").get(address)
        assert shown.status_code == 200, address
        found = next(one for one in Forms(shown.text).found if one.action.split("#")[0] == address)
        return address, found.fields | form

    return call


def linked(kind: str) -> Call:
    """The link of an invitation or of a reset."""

    def call(at: Scene) -> tuple[str, Form]:
        with at.screens.db.begin() as tx:
            if kind == "reset":
                users.set_password(tx, at.ids["Bob"], PASSWORD)
            return login_links.create(tx, users.find(tx, at.ids["Bob"]), "").url, {"password": "another horse"}

    return call


def started(at: Scene) -> tuple[str, Form]:
    """The first login, on an installation where nobody can log in."""
    with at.screens.db.begin() as tx:
        settings.add_start_token(tx, digest("start"))
    factories.run(at.screens.db, "update app_user set password_hash = null")
    return "/start/start", {"email": "first@example.com", "name": "F", "password": PASSWORD, "timezone": "UTC"}


def overridden(at: Scene) -> int:
    """The id of an override of Bob's."""
    schedule = at.latest("schedule")
    factories.run(
        at.screens.db,
        "insert into override (schedule_id, kind, user_id, start_at, end_at, source, created_by)"
        " values (%s, 'take', %s, now(), now() + interval '1 hour', 'person', 'x')",
        schedule,
        at.ids["Bob"],
    )
    return at.latest("override")


def welcomed(path: str, service: bool = False, **form: Any) -> Call:
    """A step of the first run."""

    def call(at: Scene) -> tuple[str, Form]:
        with at.screens.db.begin() as tx:
            first_steps.begin(tx, at.ids["root"])
            if service:
                steps = first_steps.find(tx)
                assert steps is not None
                first_steps.make_service(tx, steps, "shop")
        return path, form

    return call


def unacked(at: Scene) -> tuple[str, Form]:
    return at.screens.link(at.incident, user_id=at.ids["Bob"]), {}


def a_bob(at: Scene) -> str:
    return f"/setup/users/{at.ids['Bob']}"


def a_channel(at: Scene) -> tuple[str, Form]:
    channel = factories.channel(at.screens.db, "http://127.0.0.1:9/ops")
    return f"/setup/channels/{channel}/delete", {}


def pushed(at: Scene) -> tuple[str, Form]:
    method = factories.contact(at.screens.db, at.ids["root"], "https://push.example.com/x", kind="push")
    return f"/account/push/{method}/remove", {}


TAKEN = "update incident set status = 'ACKNOWLEDGED', acknowledged_at = now(), acknowledged_by = 'x' where id = %s"
OVER = "update incident set status = 'RESOLVED', resolved_at = now(), resolved_by = 'x' where id = %s"
TIMES = {"start": "2031-01-01T10:00", "end": "2031-01-01T12:00"}
API_TIMES = {"start": "2031-01-01T10:00:00Z", "end": "2031-01-01T12:00:00Z"}
SUBSCRIPTION = (
    '{"endpoint": "https://push.example.com/x", "keys": {"p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcx'
    'aOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4", "auth": "BTBZMqHH6r4Tts7J_aSIgg"}}'
)
CALLS: dict[str, Call] = {
    "acknowledge_link.acknowledge_link": unacked,
    "account_page.change_password": page("/account/password", old=PASSWORD, password="another horse"),
    "account_page.sign_out_everywhere": page("/account/sign-out"),
    "account_page.change": setup_form(lambda at: "/account", name="Root the second"),
    "push_page.switch_on": page("/account/push", subscription=SUBSCRIPTION),
    "push_page.switch_off": pushed,
    "api_attempts.replay": page("/api/v1/attempts/{failed}/replay"),
    "api_attempts.replay_many": page("/api/v1/attempts/replay", status="FAILED"),
    "api_incidents.trigger": page("/api/v1/incidents", service="api", title="x"),
    "api_incidents.acknowledge": page("/api/v1/incidents/{incident}/acknowledge"),
    "api_incidents.escalate": page("/api/v1/incidents/{incident}/escalate"),
    "api_incidents.note": page("/api/v1/incidents/{incident}/note", text="x"),
    "api_incidents.reassign": page("/api/v1/incidents/{incident}/reassign", target="user:bob@example.com"),
    "api_incidents.reopen": acted_before("/api/v1/incidents/{incident}/reopen", OVER),
    "api_incidents.resolve": page("/api/v1/incidents/{incident}/resolve"),
    "api_incidents.snooze": page("/api/v1/incidents/{incident}/snooze", **{"for": "1h"}),
    "api_incidents.unacknowledge": acted_before("/api/v1/incidents/{incident}/unacknowledge", TAKEN),
    "api_rota.create_override": page(
        "/api/v1/schedules/primary/overrides", kind="take", user="bob@example.com", **API_TIMES
    ),
    "api_rota.delete_override": lambda at: (f"/api/v1/schedules/primary/overrides/{overridden(at)}", {}),
    "attempt_pages.replay": page("/attempts/{failed}/replay"),
    "attempt_pages.replay_shown": lambda at: ("/attempts/replay", {"ids": str(at.failed), "back": "attempts"}),
    "hooks.receive": page(f"/hooks/{factories.KEY}", title="x"),
    "now.open_by_hand": page("/incidents", **{"for": "service:api", "title": "x"}),
    "history.acknowledge_listed": lambda at: ("/incidents/acknowledge", {"ids": str(at.incident)}),
    "incident_pages.acknowledge": page("/incidents/{incident}/acknowledge"),
    "incident_pages.escalate": page("/incidents/{incident}/escalate"),
    "incident_pages.note": page("/incidents/{incident}/note", text="x"),
    "incident_pages.reassign": page("/incidents/{incident}/reassign", target="user:bob@example.com"),
    "incident_pages.reopen": acted_before("/incidents/{incident}/reopen", OVER),
    "incident_pages.resolve": page("/incidents/{incident}/resolve"),
    "incident_pages.snooze": page("/incidents/{incident}/snooze", **{"for": "1h"}),
    "incident_pages.unacknowledge": acted_before("/incidents/{incident}/unacknowledge", TAKEN),
    "login_link_pages.accept": linked("invite"),
    "login_link_pages.set_password": linked("reset"),
    "login_page.log_in": page("/login", email="root@example.com", password=PASSWORD),
    "login_page.logout": page("/logout"),
    "login_page.make_first": started,
    "oncall_page.create": lambda at: (
        f"/oncall/{at.latest('schedule')}/override",
        {"kind": "take", "user": "bob@example.com", **TIMES},
    ),
    "oncall_page.remove": lambda at: (f"/oncall/{at.latest('schedule')}/overrides/{overridden(at)}/remove", {}),
    "oncall_page.take": lambda at: (f"/oncall/{at.latest('schedule')}/take", {"until": soon(at)}),
    "setup_edit.change": setup_form(a_bob, name="Robert"),
    "setup_edit.delete": a_channel,
    "setup_edit.create": setup_form(lambda at: "/setup/users/new", email="new@example.com"),
    "setup_edit.change_settings": setup_form(lambda at: "/setup/settings", repage_exhausted_after="1h"),
    "login_pages.make_link": page("/setup/logins/{bob}/link"),
    "login_pages.sign_out": page("/setup/logins/{bob}/sign-out"),
    "test_pages.send": lambda at: ("/setup/tests", {"method": at.latest("contact_method")}),
    "token_pages.create": page("/setup/tokens", name="ci", role="viewer", days="30"),
    "token_pages.revoke": lambda at: ("/setup/tokens/revoke", {"name": made_token(at)}),
    "first_steps.reach": welcomed("/welcome/reach", kind="log"),
    "first_steps.service": welcomed("/welcome/service", name="shop"),
    "first_steps.key": welcomed("/welcome/key", service=True),
    "first_steps.alert": welcomed("/welcome/alert", service=True),
    "first_steps.done": welcomed("/welcome/done"),
}


def soon(at: Scene) -> str:
    return str(factories.run(at.screens.db, "select (now() + interval '2 hours')::text")[0][0])


def made_token(at: Scene) -> str:
    token(at.screens.db, "viewer")
    return "viewer"


def written(at: Scene) -> int:
    """How many lines tell of what people did."""
    asked = "select (select count(*) from audit) + (select count(*) from incident_event)"
    return int(factories.run(at.screens.db, asked)[0][0])


def changing(screens: Screens) -> dict[str, str]:
    """Every endpoint that can change something, and by which method."""
    found = {}
    for rule in screens.app.url_map.iter_rules():
        for method in sorted((rule.methods or set()) - set(access.SAFE_METHODS)):
            found[rule.endpoint] = method
    return found


def test_every_route_that_changes_something_is_walked_here(screens: Screens) -> None:
    assert sorted(changing(screens)) == sorted({*CALLS, *EXEMPT})


@pytest.mark.parametrize("endpoint", CALLS)
def test_it_leaves_a_line(screens: Screens, endpoint: str) -> None:
    at = scene(screens)
    path, form = CALLS[endpoint](at)
    client = screens.app.test_client()
    client.set_cookie("escalade", screens.session("root", "admin"))
    before = written(at)
    sent = {"json": form} if path.startswith("/api/") else {"data": form}
    answer = client.open(path, method=changing(screens)[endpoint], headers=OWN, **sent)
    assert answer.status_code < 400, answer.text
    assert written(at) > before
