"""A service that drowns in alerts opens one incident that says so; nothing is dropped in silence."""

from escalade import opening
from escalade.db import Database, Limits
from escalade.inbound.base import Event
from tests import factories


def accept(db: Database, service_id: int, key: str | None) -> opening.Done:
    with db.begin() as tx:
        source = opening.Source(service_id, "api", None, "integration:api/prom")
        return opening.accept(tx, source, Event("trigger", "Disk full", severity="critical", dedup_key=key))


def flooded(database: Database) -> tuple[Database, int, list[int | None]]:
    small = Database(database.url, limits=Limits(max_open=3))
    service_id = factories.ladder(database, "http://127.0.0.1:1")
    return small, service_id, [accept(small, service_id, f"key-{number}").id for number in range(3)]


def test_past_the_limit_alerts_are_counted_on_one_flood_incident(database: Database) -> None:
    small, service_id, _ = flooded(database)
    first, second = accept(small, service_id, "key-8"), accept(small, service_id, None)
    small.close()
    assert first.action == second.action == "deduplicated"
    assert first.id == second.id
    [(title, count)] = factories.run(database, "select title, count from incident where id = %s", first.id)
    assert title.startswith("Flood of alerts") and count == 2
    assert ("PAGE", "PENDING") in factories.statuses(database, first.id or 0)


def test_a_repeat_of_an_open_incident_is_no_flood(database: Database) -> None:
    small, service_id, ids = flooded(database)
    assert accept(small, service_id, "key-1") == opening.Done(ids[1], "deduplicated")
    small.close()


def test_a_resolve_goes_through_in_a_flood(database: Database) -> None:
    small, service_id, ids = flooded(database)
    with small.begin() as tx:
        source = opening.Source(service_id, "api", None, "integration:api/prom")
        done = opening.accept(tx, source, Event("resolve", dedup_key="key-0"))
    small.close()
    assert done == opening.Done(ids[0], "resolved")
