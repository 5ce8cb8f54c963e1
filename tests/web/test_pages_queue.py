"""The page of the queue's health, the metrics and the doctor say the same, from one list."""

import re
from html import unescape

import pytest
from flask import Flask
from flask.testing import FlaskClient

from escalade import queue_health
from escalade.config import Config
from escalade.db import Database
from escalade.doctor import examine
from tests import factories
from tests.clock import MovedClock
from tests.web.serving import log_in, make_app, token


@pytest.fixture
def app(database: Database, config: Config) -> Flask:
    """The web application."""
    return make_app(database, config)


def logged_in(app: Flask, db: Database, role: str) -> FlaskClient:
    """A browser in which somebody of this role is logged in."""
    client = app.test_client()
    log_in(client, db, factories.user(db, role, role=role))
    return client


def test_every_sign_stands_on_the_page_with_its_threshold_and_what_to_do(database: Database, app: Flask) -> None:
    page = unescape(logged_in(app, database, "responder").get("/queue").get_data(as_text=True))
    with database.read() as tx:
        signs = queue_health.examine(tx)
    for sign in signs:
        assert sign.limit.label in page and sign.threshold in page
    assert page.count('class="pill') >= len(signs)


def test_a_viewer_may_not_see_it(database: Database, app: Flask) -> None:
    client = logged_in(app, database, "viewer")
    assert client.get("/queue").status_code == 403
    assert "/queue" not in client.get("/setup").get_data(as_text=True)


def test_the_setup_page_leads_to_it(database: Database, app: Flask) -> None:
    assert 'href="/queue"' in logged_in(app, database, "responder").get("/setup").get_data(as_text=True)


def test_page_metrics_and_doctor_agree_that_something_is_wrong(
    database: Database, app: Flask, config: Config, clock: MovedClock
) -> None:
    factories.open_incident(database, factories.ladder(database, "http://127.0.0.1:1"))
    clock.pass_(seconds=600)
    page = logged_in(app, database, "responder").get("/queue").get_data(as_text=True)
    assert re.search(r"late by</strong><span class=\"pill red\">act", page)
    headers = {"authorization": f"Bearer {token(database, 'viewer')}"}
    scrape = app.test_client().get("/metrics", headers=headers).get_data(as_text=True)
    assert 'escalade_health_state{sign="oldest_due_seconds"} 2.0' in scrape
    named = re.findall(r'escalade_health_state{sign="(\w+)"}', scrape)
    assert len(named) == len(set(named)) >= 15
    for level, value in (("watch", 60), ("act", 300)):
        assert f'escalade_health_threshold{{level="{level}",sign="oldest_due_seconds"}} {value}.0' in scrape
    lines = [finding.line for finding in examine({"DATABASE_URL": database.url})]
    assert any(line.startswith("fault: oldest_due_seconds: The oldest of them is late by") for line in lines)
