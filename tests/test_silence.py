"""Checks of what would let a page go unheard although everything works."""

import json
from pathlib import Path

import pytest

from escalade import doctor
from escalade.checks import reach, silence
from escalade.checks.finding import Finding
from escalade.config import Config
from escalade.db import Database, Tx, connect
from escalade.transports import push
from tests import factories
from tests.bouncer import bouncing, program


def found(db: Database, **environ: str) -> list[Finding]:
    with db.connection() as conn:
        return doctor.on_page(conn, Config.read(environ))


def of(findings: list[Finding], check: str) -> list[tuple[str, str]]:
    return [(finding.level, finding.text) for finding in findings if finding.check == check]


@pytest.mark.parametrize(
    ("hosted", "environ", "level", "word"),
    [
        ({"DYNO": "web.1"}, {}, "warning", "free plan"),
        ({}, {}, "warning", "nobody would know"),
        ({"DYNO": "web.1"}, {"ESCALADE_DEADMAN_URL": "https://hc.example/ping"}, "ok", "ESCALADE_DEADMAN_URL"),
    ],
)
def test_a_server_that_may_sleep_is_told(
    database: Database, hosted: dict[str, str], environ: dict[str, str], level: str, word: str
) -> None:
    with database.read() as tx:
        [finding] = silence.sleeping(tx, Config.read(environ), hosted)
    assert finding.level == level and word in finding.text


@pytest.mark.skipif(program() is None, reason="pgbouncer is not installed (apt-get install pgbouncer)")
def test_a_pooler_before_the_database_is_seen(clean_url: str, tmp_path: Path) -> None:
    with bouncing(clean_url, tmp_path) as url, connect(url) as conn:
        [finding] = silence.pooler(Tx(conn), Config.read({}))
    assert finding.text.startswith("one stands before the database")


def test_push_without_its_package_is_a_fault_once(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    alice = factories.user(database)
    factories.contact(database, alice, "{}", kind="push", number=1)
    factories.contact(database, alice, "{}", kind="push", number=2)
    monkeypatch.setattr(push, "is_installed", lambda: False)
    with database.read() as tx:
        findings = list(reach.transports(tx, Config.read({})))
    assert [finding.line for finding in findings] == [
        "fault: transports: alice@example.com/push1, alice@example.com/push2: Web Push needs a package that is not"
        " installed: python -m pip install pywebpush"
    ]


def test_the_host_of_a_subscription_is_looked_at(database: Database) -> None:
    keys = {"p256dh": "BA" + "A" * 85, "auth": "A" * 22}
    address = json.dumps({"endpoint": "https://10.0.0.1/x", "keys": keys})
    factories.contact(database, factories.user(database), address, kind="push")
    texts = [text for _, text in of(found(database), "transports")]
    assert any("10.0.0.1, which is not on the public internet" in text for text in texts)


def test_the_worst_comes_first(database: Database) -> None:
    levels = [doctor.LEVELS.index(finding.level) for finding in found(database)]
    assert levels == sorted(levels) and len(set(levels)) > 1
