"""Metrics: every name of the contract, for tokens and admins, read from the database at the scrape."""

import re
from typing import Any

import pytest
from flask.testing import FlaskClient

from escalade.config import Config
from escalade.db import Database
from tests import factories
from tests.factories import run
from tests.web.serving import log_in, make_app, token

NAMES = """escalade_attempts_total escalade_page_delay_seconds escalade_send_seconds escalade_tick_seconds
    escalade_claim_seconds escalade_claimed_rows escalade_claims_empty_total escalade_claims_short_total
    escalade_queue_due escalade_queue_oldest_due_seconds escalade_in_flight escalade_failed escalade_leases_overdue
    escalade_leases_expired_total escalade_late_results_total escalade_retries_total escalade_held
    escalade_engine_last_tick_timestamp_seconds escalade_listener_up escalade_db_dead_tuples
    escalade_db_last_autovacuum_seconds escalade_db_bytes escalade_db_oldest_snapshot_seconds
    escalade_incidents_open""".split()


@pytest.fixture
def client(database: Database, config: Config) -> FlaskClient:
    return make_app(database, config).test_client()


def scrape(db: Database, client: FlaskClient) -> dict[str, float]:
    secret = token(db, "viewer")
    response = client.get("/metrics", headers={"Authorization": f"Bearer {secret}"})
    assert response.status_code == 200 and response.content_type.startswith("text/plain; version=0.0.4")
    lines = [line.rsplit(" ", 1) for line in response.text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in lines}


def test_every_name_of_the_contract_is_there(database: Database, client: FlaskClient) -> None:
    secret = token(database, "viewer")
    text = client.get("/metrics", headers={"Authorization": f"Bearer {secret}"}).text
    types = set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))
    assert [name for name in NAMES if name not in types] == []


def test_only_tokens_and_admins_read_them(database: Database, config: Config) -> None:
    app = make_app(database, config)
    assert app.test_client().get("/metrics").status_code == 401
    for role, status in (("viewer", 403), ("responder", 403), ("admin", 200)):
        client = app.test_client()
        log_in(client, database, factories.user(database, role, role))
        assert client.get("/metrics").status_code == status


def test_an_empty_queue_is_all_zeros(database: Database, client: FlaskClient) -> None:
    seen = scrape(database, client)
    for name in ("queue_due", "queue_oldest_due_seconds", "in_flight", "failed", "leases_overdue"):
        assert seen[f"escalade_{name}"] == 0
    assert seen['escalade_incidents_open{status="TRIGGERED"}'] == 0
    assert seen['escalade_db_bytes{relation="notification_attempt"}'] > 0


def test_the_queue_is_counted(database: Database, client: FlaskClient, clock: Any) -> None:
    service = factories.ladder(database, "http://127.0.0.1:9")
    for _ in range(3):
        factories.open_incident(database, service)
    pages = [row[0] for row in run(database, "select id from notification_attempt where kind = 'PAGE' order by id")]
    run(database, "update notification_attempt set status = 'FAILED', finished_at = due_at where id = %s", pages[0])
    run(
        database,
        "update notification_attempt set status = 'IN_FLIGHT', lease_until = due_at, lease_owner = 'x' where id = %s",
        pages[1],
    )
    clock.pass_(seconds=60)
    seen = scrape(database, client)
    assert seen["escalade_queue_due"] == seen["escalade_in_flight"] == seen["escalade_failed"] == 1
    assert seen["escalade_leases_overdue"] == 1
    assert 60 <= seen["escalade_queue_oldest_due_seconds"] < 120
    assert seen['escalade_incidents_open{status="TRIGGERED"}'] == 3


def test_what_waits_is_counted_by_what_holds_it(database: Database, client: FlaskClient) -> None:
    service = factories.ladder(database, "http://127.0.0.1:9")
    for _ in range(2):
        factories.open_incident(database, service)
    first = run(database, "select min(id) from notification_attempt where kind = 'PAGE'")[0][0]
    run(
        database,
        "insert into destination values ('webhook:127.0.0.1:9', 1, now() + interval '1 minute', 'down', now())",
    )
    run(database, "update notification_attempt set bundle = 'method:1' where kind = 'PAGE'")
    run(
        database,
        "update notification_attempt set status = 'IN_FLIGHT', lease_until = now() + interval '1 minute' where id = %s",
        first,
    )
    run(database, "insert into contact_turn values ('method:1', 'one', now() + interval '1 minute')")
    seen = scrape(database, client)
    assert seen['escalade_held{reason="destination"}'] == seen['escalade_held{reason="pace"}'] == 1
