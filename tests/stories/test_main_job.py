"""An alert comes in, the right person is paged at the right second, one tap stops it."""

from escalade import incidents
from escalade.db import Database
from tests import factories
from tests.clock import MovedClock
from tests.engines import running_engine
from tests.receiver import receiver, wait_for


def test_alice_is_paged_at_once_and_bob_after_five_minutes(database: Database, clock: MovedClock) -> None:
    with receiver() as phone, running_engine(database.url, database.doorbell):
        incident = factories.open_incident(database, factories.ladder(database, phone.url))
        [page] = phone.wait(1)
        assert page.path == "/alice"
        assert page.body["incidents"][0]["title"] == "Disk full"
        wait_for(lambda: ("PAGE", "DELIVERED") in factories.statuses(database, incident.id))
        clock.pass_(minutes=5)
        database.doorbell.ring()
        [page] = phone.wait(1, "/bob")
        with database.begin() as tx:
            answer = incidents.acknowledge(tx, incident.id, "alice@example.com")
        assert answer.changed
        clock.pass_(hours=2)
        database.doorbell.ring()
        assert factories.events(database, incident.id)[-1] in ("acknowledged", "delivered")
        assert len(phone.arrived) == 2
