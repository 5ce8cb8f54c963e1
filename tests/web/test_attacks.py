"""Attacks that no screen of its own answers for: what SECURITY.md names beside the tests of each part."""

import io
import json
import logging
import statistics
import time
from typing import Any

import pytest

from escalade import logs, opening, passwords, sealing, sessions, settings, transfer
from escalade.config import Config
from escalade.db import Database, Limits
from escalade.doctor import examine
from escalade.tokens import digest
from escalade.web import access
from tests import factories
from tests.web.screens import OWN, Screens, make_screens
from tests.web.serving import log_in, make_app, token
from tests.web.test_access import path_of
from tests.web.test_audited import CALLS, EXEMPT, changing, scene

CANARY = "canary7f3b9d41"
PASSWORD = "correct horse"
COMBINATIONS: list[tuple[dict[str, str], bool]] = [
    ({"Sec-Fetch-Site": "same-origin"}, True),
    ({"Sec-Fetch-Site": "none"}, True),
    ({"Sec-Fetch-Site": "same-site"}, False),
    ({"Sec-Fetch-Site": "cross-site"}, False),
    ({"Sec-Fetch-Site": "cross-site", "Origin": "http://127.0.0.1:8000"}, False),
    ({"Sec-Fetch-Site": "same-site", "Origin": "http://127.0.0.1:8000"}, False),
    ({"Origin": "http://127.0.0.1:8000"}, True),
    ({"Origin": "https://127.0.0.1:8000"}, False),
    ({"Origin": "http://127.0.0.1:8001"}, False),
    ({"Origin": "https://evil.example"}, False),
    ({"Origin": "null"}, False),
    ({}, False),
]
AGENTS = (
    "Mozilla/5.0 (compatible; MSIE 9.0; Windows NT 6.1; Trident/5.0) SafeLinks",
    "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)",
    "TelegramBot (like TwitterBot)",
    "Mozilla/5.0 (compatible; Discordbot/2.0; +https://discordapp.com)",
    "facebookexternalhit/1.1",
)


@pytest.mark.parametrize(("headers", "allowed"), COMBINATIONS, ids=[str(one[0]) for one in COMBINATIONS])
def test_every_route_with_a_cookie_refuses_what_other_sites_make_a_browser_send(
    screens: Screens, headers: dict[str, str], allowed: bool
) -> None:
    admin, walked = factories.user(screens.db, "root", "admin", "x"), 0
    for endpoint, method in changing(screens).items():
        if access.need_of(screens.app, endpoint) == access.PUBLIC:
            continue
        rule = next(
            one for one in screens.app.url_map.iter_rules() if one.endpoint == endpoint and method in one.methods
        )
        client = screens.app.test_client()
        log_in(client, screens.db, admin)
        answer = client.open(path_of(rule), method=method, headers=headers)
        assert (answer.status_code == 403) == (not allowed), f"{endpoint}: {answer.status}"
        walked += 1
    assert walked == len([name for name in {*CALLS, *EXEMPT} if name not in PUBLIC])


PUBLIC = {
    "acknowledge_link.acknowledge_link",
    "beats.beat",
    "hooks.receive",
    "login_link_pages.accept",
    "login_link_pages.set_password",
    "login_page.log_in",
    "login_page.make_first",
}


def test_a_hundred_scanners_acknowledge_nothing(screens: Screens) -> None:
    at = scene(screens)
    link, client = screens.link(at.incident, user_id=at.ids["Bob"]), screens.app.test_client()
    before = factories.run(screens.db, "select i::text from incident i")
    for number in range(100):
        method = ("GET", "HEAD")[number % 2]
        answer = client.open(link, method=method, headers={"User-Agent": AGENTS[number % len(AGENTS)]})
        assert answer.status_code == 200 and "Set-Cookie" not in answer.headers
        assert "noindex" in answer.headers["X-Robots-Tag"] and "no-store" in answer.headers["Cache-Control"]
    assert factories.run(screens.db, "select i::text from incident i") == before


@pytest.mark.parametrize("header", ["Host", "X-Forwarded-Host", "X-Original-Host", "Forwarded"])
def test_links_come_from_the_base_url_whatever_the_caller_calls_us(screens: Screens, header: str) -> None:
    value = "host=evil.example" if header == "Forwarded" else "evil.example"
    bob = factories.user(screens.db, "bob")
    # Sent as it is: a browser under another name would keep its cookie to itself.
    cookie = {"Cookie": f"escalade={screens.session('root', 'admin')}", header: value}
    client = screens.app.test_client(use_cookies=False)
    page = client.post(f"/setup/logins/{bob}/link", headers=OWN | cookie)
    assert "http://127.0.0.1:8000/invite/" in page.text and "evil.example" not in page.text
    for path in ("/", "/login", "/setup", "/account"):
        answer = client.get(path, headers=cookie)
        assert answer.status_code == 200
        assert "evil.example" not in answer.text + str(answer.headers)


def test_nothing_reaches_for_the_setup_again_once_somebody_can_log_in(screens: Screens) -> None:
    with screens.db.begin() as tx:
        settings.add_start_token(tx, digest("start"))
    client = screens.app.test_client()
    assert client.get("/start/start").status_code == 200
    factories.user(screens.db, "root", "admin", passwords.hashed(PASSWORD))
    form = {"email": "evil@example.com", "name": "E", "password": PASSWORD, "timezone": "UTC"}
    for token_ in ("start", "other", "%00", "x" * 3000):
        assert client.get(f"/start/{token_}").status_code == 404
        assert client.post(f"/start/{token_}", data=form, headers=OWN).status_code == 404
    assert factories.run(screens.db, "select email from app_user") == [("root@example.com",)]
    assert screens.app.test_client().get("/welcome").status_code == 303  # to the login


def test_stale_sessions_end_with_what_they_were_made_under(screens: Screens) -> None:
    def cookie_works() -> bool:
        return client.get("/account").status_code == 200

    bob, admin = (
        factories.user(screens.db, "bob", "responder", passwords.hashed(PASSWORD)),
        screens.client("root", "admin"),
    )
    screens.people["bob"] = bob
    client = screens.client("bob").client
    assert cookie_works()
    for change in (
        "users: [{email: bob@example.com, name: Bob, role: viewer}]",
        "users: [{email: Bob@Example.com, name: Bob, role: viewer}]",
    ):
        with screens.db.begin() as tx:
            transfer.apply(tx, change)
        assert not cookie_works()
        client = screens.client("bob").client
        assert cookie_works()
    assert admin.post(f"/setup/logins/{bob}/sign-out").status_code == 303
    assert not cookie_works()


def test_a_session_id_given_by_somebody_else_is_not_taken_over(screens: Screens) -> None:
    factories.user(screens.db, "bob", "responder", passwords.hashed(PASSWORD))
    client = screens.app.test_client()
    client.set_cookie("escalade", "chosen-by-the-attacker", domain="localhost")
    answer = client.post("/login", data={"email": "bob@example.com", "password": PASSWORD}, headers=OWN)
    assert answer.status_code == 303 and "chosen-by-the-attacker" not in answer.headers["Set-Cookie"]
    kept = factories.run(screens.db, "select session_hash from session")
    assert kept != [(digest("chosen-by-the-attacker"),)] and len(kept) == 1


def test_a_login_takes_as_long_for_somebody_unknown(screens: Screens, monkeypatch: pytest.MonkeyPatch) -> None:
    """Medians of alternating tries, in the time of this thread alone: others run beside it."""
    monkeypatch.setattr(sessions, "GUESSES_PER_ADDRESS", 1000)
    factories.user(screens.db, "alice", "responder", passwords.hashed(PASSWORD))
    factories.user(screens.db, "nologin")
    client = screens.app.test_client()
    took: dict[str, list[float]] = {"alice@example.com": [], "nobody@example.com": [], "nologin@example.com": []}
    bodies = set()
    for _ in range(15):
        for email, times in took.items():
            start = time.thread_time()
            answer = client.post("/login", data={"email": email, "password": "wrong"}, headers=OWN)
            times.append(time.thread_time() - start)
            bodies.add((answer.status_code, answer.text.replace(email, "")))
    medians = [statistics.median(times) for times in took.values()]
    assert len(bodies) == 1
    assert max(medians) < 1.1 * min(medians), medians


def test_a_title_cannot_forge_a_line_of_the_log() -> None:
    for form in ("text", "json"):
        stream = io.StringIO()
        handlers = logging.getLogger().handlers[:]
        logs.setup(form, stream)
        try:
            for forged in (
                'x\n{"level": "error", "message": "forged"}',
                "x\r\n2026 ERROR forged",
                "x\u2028y\x1b[31m\x00",
            ):
                logging.getLogger("escalade.test").warning("an alert %s", forged)
        finally:
            logging.getLogger().handlers[:] = handlers
        lines = stream.getvalue().splitlines()
        assert len(lines) == 3 and all("an alert" in line for line in lines) and "\x1b" not in stream.getvalue()
        if form == "json":
            assert [json.loads(line)["level"] for line in lines] == ["warning"] * 3


def test_templates_in_texts_are_texts(screens: Screens) -> None:
    service = factories.ladder(screens.db, "http://127.0.0.1:9/x")
    for text in ("{{7*7}}", "{{x.__class__}}", "{% include '/etc/passwd' %}", "${7*7}", "#{7*7}"):
        incident = factories.open_incident(screens.db, service, title=text).id
        page = screens.client().get(f"/incidents/{incident}").text
        assert text.replace("'", "&#39;") in page and ">49<" not in page


def canary_file() -> str:
    """A configuration with the canary wherever a secret can be."""
    return f"""
users:
  - email: root@example.com
    role: admin
    contact_methods:
      - {{name: hook, kind: webhook, address: "https://hook.example.com/x", secret: "{CANARY}"}}
      - {{name: push, kind: ntfy, address: "https://ntfy.example.com/topic", secret: "tk_{CANARY}"}}
channels: [{{name: ops, kind: slack, address: "https://hooks.slack.com/services/T0/B0/{CANARY}"}}]
policies: [{{name: p, steps: [{{targets: ["channel:ops", "user:root@example.com"], wait: 5m}}]}}]
services:
  - {{name: api, policy: p, integrations: [{{name: i, kind: generic, key: "{CANARY}-integration", secret: "{CANARY}"}}],
     heartbeats: [{{name: h, interval: 1d, key: "{CANARY}-heartbeat"}}]}}
"""


@pytest.fixture
def canaried(clean_url: str, database: Database) -> Any:
    """An installation with a secret key, whose secrets are all the canary; and what its log says."""
    environ = {"DATABASE_URL": clean_url, "ESCALADE_SECRET_KEY": f"{CANARY} is a key of the environment"}
    config = Config.read(environ)
    db = Database(clean_url, size=4, limits=Limits(sealing_keys=config.sealing_keys))
    with db.begin() as tx:
        transfer.apply(tx, canary_file())
    yield db, config, environ
    db.close()


def test_a_secret_is_in_no_page_export_log_metric_or_dump(canaried: Any) -> None:
    db, config, environ = canaried
    stream, handlers = io.StringIO(), logging.getLogger().handlers[:]
    logs.setup("text", stream)
    try:
        found = said(db, config)
    finally:
        logging.getLogger().handlers[:] = handlers
    with db.begin() as tx:
        found["export"] = transfer.export(tx)
    found["doctor"] = "\n".join(finding.line for finding in examine(environ))
    found["dump"] = dumped(db)
    found["log"] = stream.getvalue()
    found["config"] = repr(config)
    assert {name for name, text in found.items() if CANARY in text} == set()
    assert all(found[name] for name in ("export", "doctor", "dump"))


def said(db: Database, config: Config) -> dict[str, str]:
    """Every page that an admin can read, the API and the metrics, after an alert and a failure."""
    screens = make_screens(db, config)
    client = screens.client("root", "admin")
    client.post(f"/hooks/{CANARY}-integration", title="x")
    client.client.post(f"/hooks/{CANARY}-unknown", json=[1])
    client.client.post(f"/beat/{CANARY}-heartbeat")
    client.client.get(f"/reset/{CANARY}")
    headers = {"Authorization": f"Bearer {token(db, 'admin')}"}
    found = {}
    for rule in screens.app.url_map.iter_rules():
        if "GET" in (rule.methods or ()) and rule.endpoint not in UNREAD:
            for asked in ({}, headers):
                answer = client.client.get(path_of(rule), headers=asked)
                found[f"{rule} {sorted(asked)}"] = answer.text + str(answer.headers)
    return found


UNREAD = {"static", "files.static", "beats.beat"}


def dumped(db: Database) -> str:
    """Everything the database holds."""
    tables = factories.run(db, "select tablename from pg_tables where schemaname = 'public'")
    return "\n".join(str(factories.run(db, f"select t::text from {table} t")) for (table,) in tables)


def test_a_poisoned_alert_costs_its_neighbours_nothing(database: Database, config: Config) -> None:
    factories.integration(database, factories.ladder(database, "http://127.0.0.1:9/x"))
    client = make_app(database, config).test_client()
    for text in (
        "<script>alert(1)</script>",
        "{{7*7}}",
        "%s%n",
        "\x00",
        "\ud800",
        "‮",
        "A" * 50_000,
        "\r\nBcc: x@evil.example",
        "=?utf-8?q?x?=",
    ):
        body = json.dumps({"title": text, "details": text, "link": text, "severity": text})
        assert client.post(f"/hooks/{factories.KEY}", data=body, content_type="application/json").status_code == 202
    assert client.post(f"/hooks/{factories.KEY}", json={"title": "the neighbour"}).status_code == 202
    with database.read() as tx:
        assert opening.integration(tx, digest(factories.KEY)).name == "prom"
    assert factories.run(database, "select count(*) from incident where title = 'the neighbour'") == [(1,)]


def test_the_old_key_opens_and_a_foreign_one_does_not() -> None:
    kept = sealing.seal(["old"], "secret")
    assert sealing.opened(["new", "old"], kept) == "secret"
    with pytest.raises(sealing.Unreadable):
        sealing.opened(["new", "other"], kept)


def test_every_dynamic_answer_is_kept_by_nobody(screens: Screens) -> None:
    admin = screens.client("root", "admin")
    for rule in screens.app.url_map.iter_rules():
        if "GET" in (rule.methods or ()) and rule.endpoint not in {*UNREAD, *KEPT}:
            answer = admin.get(path_of(rule))
            assert answer.headers["Cache-Control"] == "no-store", rule
            assert "Cookie" in answer.headers["Vary"], rule


# The same for everybody: an icon, a manifest, a script.
KEPT = {"files.manifest", "files.worker"}
