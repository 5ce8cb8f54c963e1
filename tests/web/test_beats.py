"""Heartbeats over HTTP."""

import pytest
from flask.testing import FlaskClient

from escalade.config import Config
from escalade.db import Database
from tests import factories
from tests.factories import run
from tests.test_heartbeats import KEY, heartbeat
from tests.web.serving import make_app


@pytest.fixture
def client(database: Database, config: Config) -> FlaskClient:
    heartbeat(database, factories.ladder(database, "http://127.0.0.1:9"))
    return make_app(database, config).test_client()


def test_the_first_post_arms_and_then_all_three_count(database: Database, client: FlaskClient) -> None:
    for method in ("GET", "HEAD"):
        assert client.open(f"/beat/{KEY}", method=method).status_code == 204
    assert run(database, "select last_beat_at from heartbeat") == [(None,)]
    seen = set()
    for method in ("POST", "GET", "HEAD"):
        response = client.open(f"/beat/{KEY}", method=method)
        assert response.status_code == 200
        seen.update(run(database, "select last_beat_at from heartbeat"))
    assert len(seen) == 3


def test_k002_no_beat_is_redirected(client: FlaskClient) -> None:
    assert client.post(f"/beat/{KEY}/").status_code == 200


def test_other_methods_and_keys_are_refused(client: FlaskClient) -> None:
    assert client.put(f"/beat/{KEY}").status_code == 405
    for method in ("GET", "POST"):
        response = client.open("/beat/unknown", method=method)
        assert response.status_code == 404 and response.get_json()["error"]
