"""While a deploy goes on, this code runs on a schema that already has more columns; and after going back, too."""

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from escalade import housekeeping, incidents, overview, transfer
from escalade.db import Database
from escalade.errors import Unavailable
from escalade.migrate import migrate
from tests import factories
from tests.clock import MovedClock
from tests.engines import running_engine
from tests.receiver import Receiver, receiver, wait_for


@pytest.fixture
def deploying(server_url: str, worker_name: str) -> Iterator[Database]:
    """A database of its own, used by this code before another version migrates it."""
    name = f"escalade_deploy_{worker_name}"
    with psycopg.connect(server_url, autocommit=True) as conn:
        conn.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))
        conn.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
    url = urlsplit(server_url)._replace(path=f"/{name}").geturl()
    migrate(url)
    database = Database(url, size=2)
    yield database
    database.close()
    with psycopg.connect(server_url, autocommit=True) as conn:
        conn.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


@pytest.fixture
def phone() -> Iterator[Receiver]:
    """Where pages arrive."""
    with receiver() as found:
        yield found


def add_a_column_everywhere(database: Database) -> None:
    """What a later migration may do."""
    tables = factories.run(database, "select tablename from pg_tables where schemaname = 'public'")
    for (table,) in tables:
        factories.run(database, f"alter table {table} add column later text")


def sent_again(what: Callable[[], Any]) -> Any:
    """As a tool does that is answered 503: what was prepared on a connection fails once there."""

    def once() -> list[Any] | None:
        try:
            return [what()]
        except Unavailable:
            return None

    return wait_for(once, what="success")[0]


def test_old_code_goes_on_while_and_after_a_newer_schema_comes(
    deploying: Database, phone: Receiver, clock: MovedClock
) -> None:
    service = factories.ladder(deploying, phone.url)
    with running_engine(deploying.url, deploying.doorbell):
        for number in range(8):
            factories.open_incident(deploying, service, f"before {number}")
        phone.wait(8, "/alice")
        add_a_column_everywhere(deploying)
        incident = sent_again(lambda: factories.open_incident(deploying, service, "after"))
        phone.wait(9, "/alice")
        wait_for(lambda: ("PAGE", "DELIVERED") in factories.statuses(deploying, incident.id))

    def resolve() -> None:
        with deploying.begin() as tx:
            incidents.acknowledge(tx, incident.id, "alice@example.com")
            incidents.resolve(tx, incident.id, "alice@example.com")

    sent_again(resolve)
    with deploying.begin() as tx:
        assert len(overview.open_incidents(tx)) == 8
        assert overview.of_incident(tx, incident.id) and overview.pending(tx)
        assert transfer.apply(tx, transfer.export(tx)) == []
    clock.pass_(days=8)
    assert housekeeping.archive(deploying.begin, 7) > 0
    clock.pass_(days=400)
    assert housekeeping.prune(deploying.begin, 365) > 0
