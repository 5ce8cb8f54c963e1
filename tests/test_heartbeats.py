"""Heartbeats: armed by the first beat, late once, and over with the next beat."""

from contextlib import closing
from typing import Any

import psycopg
import pytest

from escalade import heartbeats, opening
from escalade.db import Database, Session
from escalade.errors import NotFound
from escalade.tokens import digest
from tests import factories
from tests.factories import run

KEY = "a-heartbeat-key-of-twenty-characters"


@pytest.fixture
def service(database: Database) -> int:
    return factories.ladder(database, "http://127.0.0.1:9")


def heartbeat(db: Database, service_id: int, name: str = "nightly", **more: Any) -> int:
    values = {"interval_seconds": 60, "grace_seconds": 10, "key_hash": digest(KEY), "key_prefix": KEY[:6]} | more
    return factories.insert(db, "heartbeat", service_id=service_id, name=name, **values)


def beat(db: Database, arms: bool = True) -> bool:
    return heartbeats.beat(db.begin, digest(KEY), arms)


def incidents(db: Database) -> list[tuple[Any, ...]]:
    return run(db, "select title, dedup_key, status, count, opened_by, resolved_by from incident order by id")


LATE = ("Heartbeat nightly of api is late", "heartbeat:nightly")
ACTOR = "heartbeat:api/nightly"


def test_only_an_arming_beat_counts_first(database: Database, service: int, clock: Any) -> None:
    heartbeat(database, service)
    assert not beat(database, arms=False)
    assert run(database, "select last_beat_at, late_at from heartbeat") == [(None, None)]
    clock.pass_(hours=1)
    assert heartbeats.late_due(database.begin) == 0
    assert beat(database) and beat(database, arms=False)
    [(last, late)] = run(database, "select last_beat_at, late_at from heartbeat")
    assert (late - last).total_seconds() == 70


def test_an_unknown_key_is_not_found(database: Database) -> None:
    with pytest.raises(NotFound):
        beat(database)


def test_silence_opens_one_incident_and_the_next_beat_resolves_it(database: Database, service: int, clock: Any) -> None:
    heartbeat(database, service)
    beat(database)
    clock.pass_(seconds=69)
    assert heartbeats.late_due(database.begin) == 0
    clock.pass_(seconds=2)
    assert heartbeats.late_due(database.begin) == 1
    clock.pass_(hours=5)
    assert heartbeats.late_due(database.begin) == 0
    assert incidents(database) == [(*LATE, "TRIGGERED", 1, ACTOR, None)]
    [(details,)] = run(database, "select details from incident")
    assert "every 1m, with 10s of grace" in details
    assert len(run(database, "select 1 from notification_attempt where kind = 'PAGE'")) == 1
    beat(database, arms=False)
    assert incidents(database) == [(*LATE, "RESOLVED", 1, ACTOR, ACTOR)]
    clock.pass_(seconds=71)
    assert heartbeats.late_due(database.begin) == 1
    assert len(incidents(database)) == 2


def test_a_paused_heartbeat_is_never_late(database: Database, service: int, clock: Any) -> None:
    heartbeat(database, service, paused="moving house")
    assert beat(database)
    clock.pass_(days=9)
    assert heartbeats.late_due(database.begin) == 0


def test_a_beat_is_kept_though_its_incident_is_busy(database: Database, service: int, clock: Any) -> None:
    heartbeat(database, service)
    beat(database)
    clock.pass_(seconds=71)
    heartbeats.late_due(database.begin)
    with database.connection() as holder, holder.transaction():
        holder.execute("select 1 from incident for update")
        with closing(Session(database.url)) as session, pytest.raises(psycopg.errors.LockNotAvailable):
            session.conn.execute("set lock_timeout = '50ms'")
            heartbeats.beat(session.begin, digest(KEY), arms=False)
    assert run(database, "select late_at is not null from heartbeat") == [(True,)]
    beat(database)
    assert incidents(database)[0][2] == "RESOLVED"


def test_late_heartbeats_are_shared_between_engines(database: Database, service: int, clock: Any) -> None:
    heartbeat(database, service)
    beat(database)
    clock.pass_(seconds=71)
    with database.connection() as holder, holder.transaction():
        holder.execute("select 1 from heartbeat for update")
        assert heartbeats.late_due(database.begin) == 0
    assert heartbeats.late_due(database.begin) == 1


def test_k104_one_that_raises_stops_no_other(
    database: Database, service: int, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    heartbeat(database, service)
    heartbeat(database, service, "hourly", key_hash=digest("other"))
    beat(database)
    heartbeats.beat(database.begin, digest("other"), arms=True)
    clock.pass_(seconds=71)
    real = opening.trigger

    def trigger(tx: Any, source: Any, event: Any) -> Any:
        if "nightly" in event.title:
            raise RuntimeError("a fault of ours")
        return real(tx, source, event)

    monkeypatch.setattr(opening, "trigger", trigger)
    assert heartbeats.late_due(database.begin) == 2
    assert [row[1] for row in incidents(database)] == ["heartbeat:hourly"]
    monkeypatch.setattr(opening, "trigger", real)
    clock.pass_(seconds=heartbeats.PUT_OFF_SECONDS + 1)
    assert heartbeats.late_due(database.begin) == 1
    assert len(incidents(database)) == 2


def test_a_database_that_goes_away_is_not_blamed_on_the_heartbeat(
    database: Database, service: int, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    heartbeat(database, service)
    beat(database)
    clock.pass_(seconds=71)

    def gone(*args: Any) -> Any:
        raise psycopg.OperationalError("gone")

    monkeypatch.setattr(opening, "trigger", gone)
    with closing(Session(database.url)) as session, pytest.raises(psycopg.OperationalError):
        heartbeats.late_due(session.begin)
    assert run(database, "select late_at is not null from heartbeat") == [(True,)]
