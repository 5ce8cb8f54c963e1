"""The rules 12, 13 and 16 of the queue: alerts of one key at once, replays, and the time after the lock."""

import threading
from types import SimpleNamespace
from unittest.mock import patch

import pytest

from escalade import attempts, climbing, db, incidents, opening
from escalade.db import Begin, Database
from escalade.errors import Conflict, Unavailable
from escalade.inbound.base import Event
from escalade.opening import Done, Source
from escalade.web import hooks
from tests import factories
from tests.clock import MovedClock
from tests.interleavings.hands import Hands, Stepped, claim, settle
from tests.interleavings.invariants import check
from tests.interleavings.scenes import all_failed, crowd, opened
from tests.interleavings.test_rules_stopping import ended_or_waiting
from tests.interleavings.wrong import Code, Play, Query
from tests.receiver import wait_for

ALICE = "alice@example.com"
DO_UPDATE = """do update
    set count = incident.count + 1, last_alert_at = greatest(incident.last_alert_at, excluded.last_alert_at),
        auto_resolve_at = greatest(incident.last_alert_at, excluded.last_alert_at)
            + make_interval(secs => incident.auto_resolve_seconds)"""
# An insert that does nothing, and then an update of what is open.
THEN_UPDATE = (
    Query("open_incident", DO_UPDATE, "do nothing"),
    Query("open_by_key", "select id from incident where", "update incident set count = count + 1 where"),
    Query("open_by_key", "status <> 'RESOLVED'", "status <> 'RESOLVED' returning id"),
    Code(
        opening,
        "write",
        'tx.maybe(Opened, "open_incident", now=tx.now, most=most, **values(source, event))',
        """(tx.maybe(Opened, "open_incident", now=tx.now, most=most, **values(source, event)) or tx.maybe(Opened,
            "incident_by_id", id=tx.value("open_by_key", service_id=source.service_id, dedup_key=event.dedup_key)))""",
    ),
    Code(opening, "trigger", 'tx.value("service_exists", id=source.service_id)', "False"),
)


def alert(key: str = "disk") -> Event:
    """An alert under this key."""
    return Event("trigger", "Disk full", severity="critical", dedup_key=key)


def source(service_id: int) -> Source:
    """The integration that the alerts come from."""
    return Source(service_id, "api", None, "integration:api/prom")


def arrived(verb: Stepped) -> None:
    """The verb has come to the query it is to stop at, or to its end without."""
    wait_for(lambda: verb.reached.is_set() or not verb.thread.is_alive(), what="stop or end")


def resolve_between(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """A repeat of an alert is being taken while somebody resolves its incident."""
    service = crowd(database)
    with database.begin() as tx:
        first = opening.accept(tx, source(service), alert())
    repeat = hands.call(opening.accept, source(service), alert(), before="open_by_key")
    arrived(repeat)
    with database.begin() as tx:
        incidents.resolve(tx, first.id or 0, ALICE)
    try:
        return ["the alert went nowhere"] * (repeat.done().id is None)
    except Exception as error:
        return [f"the alert went nowhere: {error}"]


def test_rule_12_an_alert_is_inserted_or_counted_in_one_statement(play: Play) -> None:
    play(resolve_between, *THEN_UPDATE, reports="went nowhere")


# Whichever process asks, `context().db` is that of its own thread.
here = threading.local()


def request_of(begin: Begin, service_id: int, *keys: str) -> list[Done]:
    """One request with several alerts."""
    here.db = SimpleNamespace(begin=begin)
    with begin() as tx:
        assert tx.now and tx.reading
        reading = tx.reading
    return hooks.accept_all(source(service_id), [alert(key) for key in keys], reading)


def two_requests(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """Two requests hold the same two alerts in opposite order."""
    service = crowd(database)
    with patch.object(hooks, "context", lambda: SimpleNamespace(db=here.db)):
        one = hands.start(lambda begin: request_of(begin, service, "cpu", "disk"), before="insert_pages").stopped()
        other = hands.start(lambda begin: request_of(begin, service, "disk", "cpu")).blocked()
        try:
            taken = [len(request.done()) for request in (one, other)]
        except Unavailable as error:
            return [f"an alert was refused: {error}"]
    return [f"{taken} alerts were taken"] * (taken != [2, 2]) + check(database.url)


def test_rule_12_every_alert_of_a_request_is_a_transaction_of_its_own(play: Play) -> None:
    together = """    broken = 0
    with context().db.begin() as tx:
        return [opening.accept(tx, source, event) for event in events]
"""
    play(two_requests, Code(hooks, "accept_all", "    broken = 0\n", together), reports="40P01")


def replay_beside(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """A replay has looked at the incident, and then somebody acknowledges it."""
    incident = opened(database)
    failed = all_failed(database, incident)
    replay = hands.call(attempts.replay, incident.id, failed, ALICE, before="replay_attempts").stopped()
    ack = hands.call(incidents.acknowledge, incident.id, ALICE)
    ended_or_waiting(ack)
    replay.done()
    ack.done()
    return check(database.url)


def test_rule_13_a_replay_holds_its_incident(play: Play) -> None:
    play(replay_beside, Query("lock_incident", " for no key update"), reports="not TRIGGERED")


def replay_unneeded(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """Pages are replayed of an incident that is acknowledged, and of one that is snoozed."""
    taken = opened(database, people=1)
    silent = factories.open_incident(database, taken.service_id or 0, key="cpu")
    all_failed(database, taken)
    with database.begin() as tx:
        incidents.acknowledge(tx, taken.id, ALICE)
        incidents.snooze(tx, silent.id, 600, ALICE)
    for incident in (taken, silent):
        failed = "select id from notification_attempt where incident_id = %s and status = 'FAILED'"
        ids = [row[0] for row in factories.run(database, failed, incident.id)]
        try:
            with database.begin() as tx:
                attempts.replay(tx, incident.id, ids, ALICE)
        except Conflict:
            continue
    return check(database.url)


@pytest.mark.parametrize("guard", ['incident.status != "TRIGGERED"', "incident.snoozed_until is not None"])
def test_rule_13_a_replay_is_refused_where_nobody_needs_the_page(play: Play, guard: str) -> None:
    play(replay_unneeded, Code(attempts, "replay", guard, "False"), reports="is not TRIGGERED, or is snoozed")


def old_success(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """The old send of a page that a person has replayed comes back as a success."""
    incident = opened(database, people=1)
    factories.run(database, "update notification_attempt set max_tries = 1 where kind = 'PAGE'")
    with database.read() as tx:
        rows = claim(tx)
    clock.pass_(seconds=30)
    with database.begin() as tx:
        attempts.reap(tx)
        attempts.replay(tx, incident.id, [row.id for row in rows], ALICE)
    with database.read() as tx:
        settle(tx, rows, "DELIVERED")
        return ["the old success swallowed the replay"] * (claim(tx) == [])


def test_rule_13_an_old_success_does_not_swallow_a_replay(play: Play) -> None:
    play(old_success, Query("replay_attempts", "lease_owner = null, "), reports="swallowed")


def written_between(database: Database, hands: Hands, clock: MovedClock, verb, look: str) -> list[str]:
    """Somebody writes into the timeline between the engine's first reading of the time and its lock."""
    incident = opened(database)
    if look == "lock_waking_incident":
        with database.begin() as tx:
            incidents.snooze(tx, incident.id, 60, ALICE)
    clock.pass_(seconds=301)
    engine = hands.start(lambda begin: verb(begin, incident.id), before=look).stopped()
    with database.begin() as tx:
        incidents.note(tx, incident.id, "written in between", ALICE)
    engine.done()
    return check(database.url)


def acknowledge(begin: Begin, incident_id: int) -> None:
    """As a person does."""
    with begin() as tx:
        incidents.acknowledge(tx, incident_id, ALICE)


REREAD = Code(db.Tx, "reread_clock", "self._now = None", "pass")
READ_FIRST = Code(incidents, "lock", "return _known(", "assert tx.now; return _known(")


@pytest.mark.parametrize(
    "verb, look, wrong",
    [
        (lambda begin, _: climbing.escalate_due(begin), "lock_due_step", REREAD),
        (lambda begin, _: climbing.wake_due(begin), "lock_waking_incident", REREAD),
        (acknowledge, "lock_incident", READ_FIRST),
    ],
    ids=["a step", "a deadline", "a person"],
)
def test_rule_16_the_time_is_read_after_the_lock(play: Play, verb, look: str, wrong: Code) -> None:
    play(lambda *stage: written_between(*stage, verb, look), wrong, reports="the timeline runs backwards")
