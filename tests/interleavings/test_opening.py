"""Alerts of one key at once, and against a resolve and a reopen: none falls between."""

import pytest

from escalade import incidents, opening
from escalade.db import Database, Tx
from escalade.errors import Conflict, NotFound
from escalade.inbound.base import Event
from tests import factories
from tests.clock import MovedClock
from tests.interleavings.hands import Hands
from tests.interleavings.invariants import check
from tests.interleavings.scenes import crowd

ALICE = "alice@example.com"


def alert(tx: Tx, service_id: int, action: str = "trigger") -> opening.Done:
    """One alert under the key `disk`."""
    source = opening.Source(service_id, "api", None, "integration:api/prom")
    return opening.accept(tx, source, Event(action, "Disk full", severity="critical", dedup_key="disk"))


def test_q52_of_two_alerts_at_once_one_opens_the_incident_and_the_other_counts(
    database: Database, hands: Hands
) -> None:
    service = crowd(database)
    first = hands.call(alert, service, before="commit").stopped()
    second = hands.call(alert, service).blocked()
    opened, repeated = first.done(), second.done()
    assert (opened.action, repeated.action) == ("triggered", "deduplicated")
    assert opened.id == repeated.id
    with database.read() as tx:
        assert incidents.find(tx, opened.id).count == 2


def test_an_alert_whose_rival_rolls_back_opens_the_incident_itself(database: Database, hands: Hands) -> None:
    service = crowd(database)

    def fails(tx: Tx) -> None:
        alert(tx, service)
        tx.run("notify_engines")
        raise RuntimeError("the first alert's process died")

    first = hands.call(fails, before="notify_engines").stopped()
    second = hands.call(alert, service).blocked()
    with pytest.raises(RuntimeError):
        first.done()
    assert second.done().action == "triggered"
    assert check(database.url) == []


def test_an_alert_that_waited_for_a_resolve_opens_a_new_incident(database: Database, hands: Hands) -> None:
    service = crowd(database)
    with database.begin() as tx:
        old = alert(tx, service).id
    resolve = hands.call(incidents.resolve, old, ALICE, before="commit").stopped()
    repeat = hands.call(alert, service).blocked()
    resolve.done()
    done = repeat.done()
    assert done.action == "triggered" and done.id != old
    assert check(database.url) == []


def test_a_resolve_that_waited_for_a_repeat_resolves_what_the_repeat_counted_on(
    database: Database, hands: Hands
) -> None:
    service = crowd(database)
    with database.begin() as tx:
        incident_id = alert(tx, service).id
    repeat = hands.call(alert, service, before="commit").stopped()
    resolve = hands.call(alert, service, "resolve").blocked()
    assert repeat.done().id == incident_id
    assert resolve.done().action == "resolved"
    with database.begin() as tx:
        assert alert(tx, service).action == "triggered"
    assert check(database.url) == []


def test_a_reopen_that_waited_for_an_alert_of_its_key_is_refused(database: Database, hands: Hands) -> None:
    service = crowd(database)
    with database.begin() as tx:
        old = alert(tx, service).id
        incidents.resolve(tx, old, ALICE)
    repeat = hands.call(alert, service, before="commit").stopped()
    reopen = hands.call(incidents.reopen, old, ALICE).blocked()
    assert repeat.done().action == "triggered"
    with pytest.raises(Conflict, match="key has just been opened"):
        reopen.done()
    assert check(database.url) == []


def test_an_alert_that_waited_for_a_reopen_counts_on_it(database: Database, hands: Hands) -> None:
    service = crowd(database)
    with database.begin() as tx:
        old = alert(tx, service).id
        incidents.resolve(tx, old, ALICE)
    reopen = hands.call(incidents.reopen, old, ALICE, before="commit").stopped()
    repeat = hands.call(alert, service).blocked()
    reopen.done()
    assert repeat.done() == opening.Done(old, "deduplicated")
    assert check(database.url) == []


def test_an_alert_that_waited_does_not_bring_the_auto_resolve_forward(
    database: Database, hands: Hands, clock: MovedClock
) -> None:
    service = crowd(database, auto_resolve_seconds=600)
    with database.begin() as tx:
        incident_id = alert(tx, service).id
    early = hands.call(alert, service, before="open_incident").stopped()
    clock.pass_(seconds=60)
    with database.begin() as tx:
        alert(tx, service)
        latest = incidents.find(tx, incident_id)
    early.done()
    with database.read() as tx:
        now = incidents.find(tx, incident_id)
    assert now.count == 3
    assert (now.last_alert_at, now.auto_resolve_at) == (latest.last_alert_at, latest.auto_resolve_at)


def test_the_key_of_a_service_that_differs_is_another_key(database: Database) -> None:
    one, other = crowd(database), factories.service(database, factories.policy(database, name="none"), name="web")
    with database.begin() as tx:
        assert alert(tx, one).id != alert(tx, other).id


def test_an_alert_pages_when_the_silence_of_its_key_ended_while_it_waited(database: Database, hands: Hands) -> None:
    service = crowd(database)
    with database.begin() as tx:
        old = alert(tx, service).id
        incidents.snooze(tx, old, 8 * 3600, ALICE)
    waiting = hands.call(alert, service, before="open_incident").stopped()
    with database.begin() as tx:
        incidents.acknowledge(tx, old, ALICE)
        incidents.resolve(tx, old, ALICE)
    new = waiting.done().id
    assert new != old
    assert ("PAGE", "PENDING") in factories.statuses(database, new)
    assert check(database.url) == []


def test_an_alert_stays_silent_when_the_incident_its_key_was_silenced_on_was_resolved(database: Database) -> None:
    service = crowd(database)
    with database.begin() as tx:
        old = alert(tx, service).id
        incidents.snooze(tx, old, 8 * 3600, ALICE)
        incidents.resolve(tx, old, ALICE)
        new = alert(tx, service).id
    assert new != old and factories.statuses(database, new) == []
    assert check(database.url) == []


def test_an_alert_whose_service_is_deleted_while_it_waits_is_refused(database: Database, hands: Hands) -> None:
    service = crowd(database)

    def delete(tx: Tx) -> None:
        tx.conn.execute("delete from service where id = %s", [service])

    deleting = hands.call(delete, before="commit").stopped()
    waiting = hands.call(alert, service).blocked()
    deleting.done()
    with pytest.raises(NotFound, match="no service"):
        waiting.done()
