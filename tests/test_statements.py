"""How many statements things take: a number that does not grow with what there is to do."""

import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from escalade import db, incidents
from escalade.config import Config
from escalade.db import Database, Session
from tests import factories
from tests.engines import make_engine
from tests.interleavings.hands import claim
from tests.interleavings.scenes import crowd
from tests.web.serving import make_app


class Asked(Mapping[str, str]):
    """The named queries, and which of them were asked for, in order."""

    def __init__(self) -> None:
        self.real: Mapping[str, str] = db.queries()
        self.names: list[str] = []
        self.thread = threading.current_thread()

    def __getitem__(self, name: str) -> str:
        # The pool's own threads make connections whenever they like.
        if threading.current_thread() is self.thread:
            self.names.append(name)
        return self.real[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.real)

    def __len__(self) -> int:
        return len(self.real)

    def since(self, mark: int) -> list[str]:
        """What was asked for since then."""
        return self.names[mark:]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Counts what is asked of the database from here on."""
    found = Asked()
    monkeypatch.setattr(db, "queries", lambda: found)
    return found


def counted(asked: Asked, work: Any) -> list[str]:
    """The statements of a piece of work."""
    mark = len(asked.names)
    work()
    return asked.since(mark)


@pytest.mark.parametrize("people", [1, 30])
def test_opening_an_incident_takes_the_same_statements_however_many_it_tells(
    database: Database, asked: Asked, people: int
) -> None:
    service = crowd(database, people)
    with database.read() as tx:
        assert tx.now
    names = counted(asked, lambda: factories.open_incident(database, service, "disk"))
    assert names == [
        "clock",
        "open_incident",
        "people_to_page",
        "insert_pages",
        "notify_engines",
    ]


@pytest.mark.parametrize("on_call", [1, 8])
def test_an_alert_for_whoever_is_on_call_takes_five_statements(
    database: Database, config: Config, asked: Asked, on_call: int
) -> None:
    people = [factories.user(database, f"p{number}") for number in range(on_call)]
    for person in people:
        factories.contact(database, person, "http://127.0.0.1:1")
    policy = factories.policy(database, (300, [("schedule", factories.schedule(database, people))]))
    factories.integration(database, factories.service(database, policy))
    client = make_app(database, config).test_client()

    def post() -> None:
        assert client.post(f"/hooks/{factories.KEY}", json={"title": "Disk full"}).status_code == 202

    expected = ["integration_by_key", "open_incident", "whole_schedules", "insert_pages", "notify_engines"]
    assert counted(asked, post) == expected


@pytest.mark.parametrize("people", [1, 30])
@pytest.mark.parametrize("in_flight", [0, 1])
def test_acknowledging_takes_the_same_statements_however_many_pages_there_are(
    database: Database, asked: Asked, people: int, in_flight: int
) -> None:
    incident = factories.open_incident(database, crowd(database, people), "disk")
    with database.read() as tx:
        claim(tx, n=people * in_flight)

    def acknowledge() -> None:
        with database.begin() as tx:
            assert incidents.acknowledge(tx, incident.id, "alice@example.com").changed

    assert counted(asked, acknowledge) == [
        "lock_incident",
        "clock",
        "acknowledge",
        "lock_live_attempts",
        "stop_attempts",
        "pages_in_flight",
        "record_event",
        "insert_notices",
        "notify_engines",
    ]


def test_a_repeated_alert_takes_two_statements(database: Database, asked: Asked) -> None:
    service = crowd(database)
    factories.open_incident(database, service, "disk")
    names = counted(asked, lambda: factories.open_incident(database, service, "disk"))
    assert names == ["clock", "open_incident"]


def test_an_idle_poll_is_one_statement(database: Database, asked: Asked) -> None:
    engine = make_engine(database.url)
    session = Session(database.url)
    try:
        engine.tick(session)
        assert counted(asked, lambda: engine.tick(session)) == ["whats_due"]
    finally:
        session.close()
