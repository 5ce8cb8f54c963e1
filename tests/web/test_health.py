"""Health: alive without the database, ready with it, and never waiting for a busy pool."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from flask import Flask
from flask.testing import FlaskClient

from escalade.config import Config
from escalade.db import Database
from escalade.health import Health
from escalade.web.health import POOL_SECONDS
from tests.factories import run
from tests.web.serving import make_app


@pytest.fixture
def engine() -> Iterator[threading.Event]:
    """Ends the thread that stands in for the engine's."""
    stop = threading.Event()
    yield stop
    stop.set()


def running(stop: threading.Event) -> Health:
    thread = threading.Thread(target=stop.wait, daemon=True)
    thread.start()
    return Health(engine=thread, poll=1.0)


def asked(app: Flask, path: str) -> tuple[int, str]:
    response = app.test_client().get(path)
    return response.status_code, response.get_json().get("error") or response.get_json()["status"]


def test_a_process_whose_engine_ticks_is_alive_and_ready(
    database: Database, config: Config, engine: threading.Event
) -> None:
    app = make_app(database, config, running(engine))
    assert asked(app, "/healthz") == asked(app, "/readyz") == (200, "ok")


def test_k100_without_ticks_it_is_alive_but_not_ready(
    database: Database, config: Config, engine: threading.Event
) -> None:
    health = running(engine)
    app = make_app(database, config, health)
    health.ticked -= 1000
    assert asked(app, "/healthz")[0] == 200
    status, reason = asked(app, "/readyz")
    assert status == 503 and "has not ticked for 10" in reason


def test_q32_k100_one_that_stands_still_is_neither(database: Database, config: Config, engine: threading.Event) -> None:
    health = running(engine)
    app = make_app(database, config, health)
    health.pulsed -= 3 * health.poll + health.patience - 1
    assert asked(app, "/healthz") == (200, "ok"), "an answer of the database may take that long"
    health.pulsed -= 2
    for path in ("/healthz", "/readyz"):
        status, reason = asked(app, path)
        assert status == 503 and reason.startswith("the engine has stood still for 1")


def test_an_engine_that_waits_for_its_database_is_alive_and_says_what_it_waits_for(
    database: Database, config: Config, engine: threading.Event
) -> None:
    health = running(engine)
    health.away, health.connecting = "connection refused", True
    health.ticked -= 1000
    health.pulsed -= 40
    app = make_app(database, config, health)
    assert asked(app, "/healthz") == (200, "ok")
    assert asked(app, "/readyz") == (503, "the database is away: connection refused")


def test_k100_a_dead_engine_is_neither(database: Database, config: Config, engine: threading.Event) -> None:
    health = running(engine)
    engine.set()
    assert health.engine is not None
    health.engine.join(5)
    app = make_app(database, config, health)
    for path in ("/healthz", "/readyz"):
        assert asked(app, path) == (503, "the engine's thread has ended")


def test_an_engine_that_was_to_run_and_never_began_is_dead(database: Database, config: Config) -> None:
    assert asked(make_app(database, config, Health()), "/healthz")[0] == 503


def test_without_an_engine_neither_asks_about_it(database: Database, config: Config) -> None:
    health = Health(engine_expected=False)
    health.ticked -= 1000
    app = make_app(database, config, health)
    assert asked(app, "/healthz") == asked(app, "/readyz") == (200, "ok")


def test_a_process_that_stops_takes_no_more_work(database: Database, config: Config) -> None:
    app = make_app(database, config, Health(engine_expected=False, draining=True))
    assert asked(app, "/healthz")[0] == 200
    assert asked(app, "/readyz") == (503, "this process is about to stop")


@contextmanager
def held(database: Database) -> Iterator[None]:
    conns = [database.pool.getconn(5) for _ in range(database.pool.max_size)]
    try:
        yield
    finally:
        for conn in conns:
            database.pool.putconn(conn)


def test_k105_a_busy_pool_is_said_so_in_time(
    database: Database, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app(database, config)
    monkeypatch.setattr(database, "wait", 60.0)
    monkeypatch.setattr(database.pool, "timeout", 60.0)
    with held(database):
        begun = time.monotonic()
        assert asked(app, "/healthz")[0] == 200
        status, reason = asked(app, "/readyz")
        assert time.monotonic() - begun < POOL_SECONDS + 10, "it waits as long as others wait for the pool"
    assert status == 503 and "all connections are busy" in reason
    assert asked(app, "/readyz")[0] == 200


def test_a_database_that_is_away_leaves_the_process_alive(config: Config) -> None:
    gone = Database("postgresql://nobody@127.0.0.1:1/x", wait=0.2)
    try:
        app = make_app(gone, config)
        assert asked(app, "/healthz")[0] == 200
        assert asked(app, "/readyz")[0] == 503
    finally:
        gone.close()


def test_an_old_schema_is_not_ready(database: Database, config: Config) -> None:
    [(newest,)] = run(database, "delete from schema_migration where name like '0002%%' returning name")
    try:
        status, reason = asked(make_app(database, config), "/readyz")
        assert status == 503 and newest in reason and "python app.py migrate" in reason
    finally:
        run(database, "insert into schema_migration (name, applied_at) values (%s, now())", newest)


def test_health_needs_no_login_and_takes_head(database: Database, config: Config) -> None:
    client: FlaskClient = make_app(database, config).test_client()
    assert client.head("/healthz").status_code == client.head("/readyz").status_code == 200


def test_a_standby_is_not_ready(config: Config, clean_url: str, engine: threading.Event) -> None:
    standby = Database(f"{clean_url}&options=-c%20default_transaction_read_only%3Don", size=1)
    app = make_app(standby, config, running(engine))
    assert asked(app, "/readyz") == (503, "the database is read-only: a standby, it seems")
    assert asked(app, "/healthz") == (200, "ok")
    standby.close()
