"""What docs/scaling.md promises: a second consumer reads the timeline by logical replication, and one that has gone
away cannot fill the disk."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from escalade import incidents, queue_health
from escalade.db import Database
from escalade.doctor import examine
from escalade.migrate import migrate
from tests import factories
from tests.acting import ALICE, do
from tests.engines import running_engine
from tests.receiver import receiver, wait_for
from tests.servers import Server

PUBLICATION = "create publication incident_events for table incident_event with (publish = 'insert')"


@pytest.fixture
def server() -> Iterator[Server]:
    """A server that keeps what logical replication needs, and not much of it."""
    with tempfile.TemporaryDirectory(prefix="escalade-scaling-") as name:
        Path(name).chmod(0o755)
        options = ("wal_level=logical", "max_slot_wal_keep_size=1MB", "max_wal_size=64MB", "min_wal_size=32MB")
        server = Server(Path(name) / "data", options=options)
        server.create()
        server.start()
        try:
            server.run("create database events")
            migrate(server.url("events"))
            yield server
        finally:
            server.kill()


@pytest.fixture
def database(server: Server) -> Iterator[Database]:
    """The pager's database on that server."""
    db = Database(server.url("events"), size=4)
    yield db
    db.close()


@contextmanager
def reading(server: Server, into: Path) -> Iterator[None]:
    """Somebody who reads the events as they are committed, as Debezium would."""
    command = [server.programs / "pg_recvlogical", "-d", server.url("events"), "--slot=events", "--plugin=pgoutput"]
    subprocess.run([*command, "--create-slot"], check=True, capture_output=True)
    follow = [*command, "--start", "-o", "proto_version=1", "-o", "publication_names=incident_events", "-F", "0"]
    process = subprocess.Popen([*follow, "-f", into], stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait(10)


def places(read: Path, events: list[bytes]) -> list[int]:
    """Where each event first stands in what was read; -1 where it does not."""
    data = read.read_bytes() if read.exists() else b""
    return [data.find(event) for event in events]


def test_a_second_consumer_reads_the_events_of_an_incident_in_order(
    server: Server, database: Database, tmp_path: Path
) -> None:
    with database.connection() as conn:
        conn.execute(PUBLICATION.encode())
    read = tmp_path / "events"
    events = [b"triggered", b"step_reached", b"delivered", b"acknowledged", b"resolved"]
    with reading(server, read), receiver() as phone, running_engine(database.url, database.doorbell):
        incident = factories.open_incident(database, factories.ladder(database, phone.url))
        wait_for(lambda: ("PAGE", "DELIVERED") in factories.statuses(database, incident.id))
        do(database, incidents.acknowledge, incident.id, ALICE)
        do(database, incidents.resolve, incident.id, ALICE)
        found = wait_for(lambda: all(at >= 0 for at in places(read, events)) and places(read, events), 20, "events")
    assert found == sorted(found)


def test_a_consumer_that_has_gone_away_loses_its_place_and_the_pager_goes_on(
    server: Server, database: Database
) -> None:
    with database.connection() as conn:
        conn.execute(PUBLICATION.encode())
        conn.execute("select pg_create_logical_replication_slot('events', 'pgoutput')")
    assert consumers(database)["consumers"].note == "events"
    other = Database(server.url(), size=1)
    with other.connection() as conn:
        # A slot of another database is no reader of ours.
        conn.execute("select pg_create_logical_replication_slot('elsewhere', 'pgoutput')")
    other.close()
    assert consumers(database)["consumers"].note == "events"
    server.run("select pg_drop_replication_slot('elsewhere')")
    with database.connection() as conn:
        conn.execute("create table ballast (text text)")
        for _ in range(6):
            conn.execute("insert into ballast select repeat(md5(n::text), 40) from generate_series(1, 20000) n")
            conn.execute("select pg_switch_wal()")
            conn.execute("checkpoint")
    with receiver() as phone, running_engine(database.url, database.doorbell):
        factories.open_incident(database, factories.ladder(database, phone.url))
        phone.wait(1)
    sign = consumers(database)["idle_slot_gigabytes"]
    assert (sign.state, sign.shown) == (queue_health.ACT, "past all bounds")
    lines = [finding.line for finding in examine({"DATABASE_URL": server.url("events")})]
    assert any(line.startswith("fault: idle_slot_gigabytes: ") and "events went past" in line for line in lines)
    assert sign.note == "events went past max_slot_wal_keep_size: drop it, and begin anew"


def consumers(db: Database) -> dict[str, queue_health.Sign]:
    """Every sign by its name."""
    with db.read() as tx:
        return {sign.limit.name: sign for sign in queue_health.examine(tx)}
