"""Web Push: keys made once, browsers that are known, and subscriptions that are gone."""

import json
import os

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from pytest_httpserver import HTTPServer

from escalade import resealing, subscriptions
from escalade.config import Config
from escalade.db import Database, Limits
from escalade.errors import Conflict
from escalade.transfer import apply, export
from escalade.transfer.faults import Faults
from escalade.transports.base import Network
from tests import factories
from tests.engines import NETWORK, running_engine
from tests.receiver import wait_for
from tests.transports.test_push import Browser

AGENT = "Chrome Android"


@pytest.fixture
def browser() -> Browser:
    return Browser(ec.generate_private_key(ec.SECP256R1()), os.urandom(16))


def subscribe(db: Database, browser: Browser, endpoint: str) -> str:
    with db.begin() as tx:
        return subscriptions.subscribe(tx, "alice@example.com", browser.subscription(endpoint), AGENT)


def methods(db: Database) -> list[tuple[str, str]]:
    return [(row[0], row[1]) for row in factories.run(db, "select name, kind from contact_method order by position")]


def sending(db: Database) -> Network:
    with db.begin() as tx:
        sender = subscriptions.sender(tx, Config.read({}))
    return Network(connect_timeout=1, read_timeout=2, deadline=3, allow_private=True, push=sender)


def test_the_keys_are_made_once(database: Database) -> None:
    with database.begin() as tx:
        first = subscriptions.public_key(tx)
    with database.begin() as tx:
        assert subscriptions.public_key(tx) == first
    assert len(first) == 87


def test_the_private_key_is_sealed_where_the_environment_has_a_key(clean_url: str) -> None:
    db = Database(clean_url, size=2, limits=Limits(sealing_keys=("sixteen characters", "")))
    with db.begin() as tx:
        private = subscriptions.private_key(tx)
    [[kept]] = factories.run(db, "select value from setting where name = 'push_key'")
    assert private not in kept and kept.startswith("sealed:")
    with db.begin() as tx:
        assert subscriptions.private_key(tx) == private
    db.close()


def test_a_key_that_cannot_be_read_stops_no_process_and_is_sealed_anew_by_reencrypt(clean_url: str) -> None:
    def under(*keys: str) -> Database:
        return Database(clean_url, size=1, limits=Limits(sealing_keys=keys))

    old, new = under("an old key of mine", ""), under("a new key of mine", "")
    both = under("a new key of mine", "an old key of mine")
    with old.begin() as tx:
        private = subscriptions.private_key(tx)
    with new.begin() as tx:
        assert subscriptions.sender(tx, Config.read({})) is None
        with pytest.raises(Conflict, match="Nothing can be sent by Web Push"):
            subscriptions.public_key(tx)
    with both.begin() as tx:
        assert [kept.label for kept in resealing.reseal(tx).outdated] == ["setting push_key"]
    with new.begin() as tx:
        assert subscriptions.private_key(tx) == private
    for db in (old, both, new):
        db.close()


@pytest.mark.parametrize(
    ("environ", "contact"),
    [
        ({"ESCALADE_BASE_URL": "https://pager.example.com:8443"}, "https://pager.example.com"),
        ({}, "mailto:escalade@localhost"),
        (
            {"ESCALADE_ADMIN_EMAIL": "ops@example.com", "ESCALADE_ADMIN_PASSWORD": "long enough"},
            "mailto:ops@example.com",
        ),
    ],
)
def test_push_services_are_told_whom_to_write_to(environ: dict[str, str], contact: str) -> None:
    assert subscriptions.contact(Config.read(environ)) == contact


def test_a_browser_is_added_once_and_used_at_once(database: Database, browser: Browser) -> None:
    alice = factories.user(database)
    factories.rule(database, alice, factories.contact(database, alice, "http://127.0.0.1:9/x"))
    assert subscribe(database, browser, "https://push.example/1") == "push Chrome Android"
    assert subscribe(database, browser, "https://push.example/1") == ""
    assert subscribe(database, browser, "https://push.example/2") == "push Chrome Android 2"
    assert methods(database) == [
        ("webhook", "webhook"),
        ("push Chrome Android", "push"),
        ("push Chrome Android 2", "push"),
    ]
    assert factories.run(database, "select count(*) from notification_rule where after_seconds = 0") == [(3,)]
    assert factories.run(database, "select distinct pace_seconds from contact_method where kind = 'push'") == [(10,)]


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"endpoint": "https://x.example/"}', "x" * 100_000])
def test_what_is_no_subscription_is_refused(database: Database, text: str) -> None:
    factories.user(database)
    with pytest.raises(Faults), database.begin() as tx:
        subscriptions.subscribe(tx, "alice@example.com", text, AGENT)
    assert methods(database) == []


def test_an_export_keeps_the_subscription_to_itself(database: Database, browser: Browser) -> None:
    factories.user(database)
    subscribe(database, browser, "https://push.example/secret-1")
    with database.begin() as tx:
        text = export(tx)
        assert "secret-1" not in text and "kept" in text
        assert apply(tx, text) == []


@pytest.mark.parametrize("status", [404, 410])
def test_a_page_to_a_subscription_that_is_gone_fails_for_good_and_drops_it(
    database: Database, browser: Browser, httpserver: HTTPServer, status: int
) -> None:
    alice = factories.user(database)
    factories.contact(database, alice, "log", kind="log")
    httpserver.expect_request("/gone").respond_with_data("", status=status)
    httpserver.expect_request("/here").respond_with_data("", status=201)
    subscribe(database, browser, httpserver.url_for("/gone"))
    other = Browser(ec.generate_private_key(ec.SECP256R1()), os.urandom(16))
    subscribe(database, other, httpserver.url_for("/here"))
    service = factories.service(database, factories.policy(database, (300, [("user", alice)])))
    with running_engine(database.url, database.doorbell, network=sending(database)):
        incident = factories.open_incident(database, service)
        wait_for(lambda: len(methods(database)) == 2)
    assert methods(database) == [("log", "log"), ("push Chrome Android 2", "push")]
    [[error]] = factories.run(
        database,
        "select last_error from notification_attempt where incident_id = %s and status = 'FAILED'",
        incident.id,
    )
    assert "given this subscription up, so it was removed" in error
    rows = factories.run(database, "select subject from audit where action = 'contact method removed'")
    assert rows == [("alice@example.com/push Chrome Android",)]


def test_a_push_that_is_refused_otherwise_drops_nothing(
    database: Database, browser: Browser, httpserver: HTTPServer
) -> None:
    alice = factories.user(database)
    httpserver.expect_request("/push").respond_with_data("", status=403)
    subscribe(database, browser, httpserver.url_for("/push"))
    service = factories.service(database, factories.policy(database, (300, [("user", alice)])))
    with running_engine(database.url, database.doorbell, network=sending(database)):
        incident = factories.open_incident(database, service)
        wait_for(lambda: ("PAGE", "FAILED") in factories.statuses(database, incident.id))
    assert len(methods(database)) == 1


def test_a_page_reaches_the_browser(database: Database, browser: Browser, httpserver: HTTPServer) -> None:
    alice = factories.user(database)
    httpserver.expect_request("/push").respond_with_data("", status=201)
    subscribe(database, browser, httpserver.url_for("/push"))
    service = factories.service(database, factories.policy(database, (300, [("user", alice)])))
    with running_engine(database.url, database.doorbell, network=sending(database)):
        incident = factories.open_incident(database, service)
        wait_for(lambda: httpserver.log)
    content = browser.read(httpserver.log[0][0].get_data())
    assert content["notification"]["navigate"].endswith(f"/incidents/{incident.id}")
    assert json.dumps(content).count("/a/") == 1


def test_a_process_without_keys_fails_the_page_with_a_reason(database: Database, browser: Browser) -> None:
    alice = factories.user(database)
    subscribe(database, browser, "https://push.example/1")
    service = factories.service(database, factories.policy(database, (300, [("user", alice)])))
    with running_engine(database.url, database.doorbell, network=NETWORK):
        incident = factories.open_incident(database, service)
        wait_for(lambda: ("PAGE", "FAILED") in factories.statuses(database, incident.id))
