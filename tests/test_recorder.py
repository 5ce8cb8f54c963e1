"""Outcomes are recorded beside the engine: no claim waits for it, and nothing is lost with its connection."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import cycle

import psycopg
import pytest

from escalade import attempts, dispatch
from escalade.attempts import Outcome
from escalade.db import Database, Session, Tx
from escalade.dispatch import Settings
from escalade.engine import Engine
from escalade.recorder import Recorded, Recorder, record
from escalade.transports import TRANSPORTS, Message, Network, Receipt
from tests import factories
from tests.engines import make_engine, running_engine
from tests.interleavings.hands import claim
from tests.interleavings.scenes import status
from tests.receiver import wait_for
from tests.rows import rows
from tests.wire import wire

QUICK = {"webhook": replace(TRANSPORTS["webhook"], send=lambda message, network: Receipt("POST", "200"))}


@contextmanager
def recorder(url: str, owner: str = "one") -> Iterator[tuple[Recorder, threading.Event]]:
    """A recorder, and the event that it sets when it is done."""
    bell = threading.Event()
    made = Recorder(Session(url), owner, bell.set)
    try:
        yield made, bell
    finally:
        made.close()


def delivered(tx: Tx) -> list[Outcome]:
    """All that is due, claimed by "one" and delivered."""
    return [Outcome(row.id, row.claim_seq, "DELIVERED", tx.now, tx.now) for row in claim(tx)]


def outcome(made: Recorder) -> Recorded:
    """What it recorded, once it is done."""
    found: Recorded = wait_for(made.done)
    return found


def test_what_is_given_to_it_is_recorded_and_it_says_so_once(database: Database) -> None:
    [made] = rows(database, 1)
    with recorder(database.url) as (beside, bell), database.read() as tx:
        beside.begin(tx, delivered(tx), False)
        assert bell.wait(5) and beside.busy
        assert [row.status for row in outcome(beside).settled] == ["DELIVERED"]
        assert not beside.busy and beside.done() is None
    assert status(database, made) == "DELIVERED"


def test_rows_that_a_stranger_holds_keep_no_other_unrecorded(database: Database) -> None:
    held, free = rows(database, 2)
    with recorder(database.url) as (beside, _), psycopg.connect(database.url) as stranger:
        with database.read() as tx:
            all_of_it = delivered(tx)
            stranger.execute("select from notification_attempt where id = %s for update", [held])
            beside.begin(tx, all_of_it, False)
        found = outcome(beside)
    assert found.refused and [row.id for row in found.outcomes] == [free]
    assert (status(database, held), status(database, free)) == ("IN_FLIGHT", "DELIVERED")


def test_closing_cuts_a_statement_that_is_never_answered(database: Database) -> None:
    [made] = rows(database, 1)
    with wire(database.url) as line, database.read() as tx:
        bell = threading.Event()
        beside = Recorder(Session(line.url), "one", bell.set)
        line.hangs.set()
        beside.begin(tx, delivered(tx), False)
        began = time.monotonic()
        beside.close()
        assert bell.wait(5) and time.monotonic() - began < 4
        with pytest.raises(psycopg.OperationalError):
            beside.done()
    assert status(database, made) == "IN_FLIGHT"


def test_rows_that_were_held_and_are_free_again_refuse_nothing(database: Database) -> None:
    made = rows(database, 2)
    with Session(database.url).conn as conn:
        found = record(Tx(conn), "one", delivered(Tx(conn)), True)
    assert not found.refused and sorted(row.id for row in found.settled) == made


def test_one_that_hangs_is_given_up_before_the_shortest_lease_ends(database: Database) -> None:
    [made] = rows(database, 1)
    with wire(database.url) as line, database.read() as tx:
        bell = threading.Event()
        beside = Recorder(Session(line.url, patience=0.5), "one", bell.set)
        line.hangs.set()
        beside.begin(tx, delivered(tx), False)
        assert bell.wait(5)
        with pytest.raises(psycopg.OperationalError):
            beside.done()
        beside.close()
    assert status(database, made) == "IN_FLIGHT"
    for settings in (Settings(), Settings(lease=305, deadline=300), Settings(lease=5.5, deadline=0.5)):
        assert settings.deadline + settings.patience + 2 < settings.lease
        with running_engine(database.url, settings=settings) as running:
            wait_for(lambda hands=running.dispatch: hands.recorder, what="a recorder")
            assert running.dispatch.recorder and running.dispatch.recorder.session.conn.patience == settings.patience


def test_what_is_known_is_not_taken_back_when_its_lease_ends_before_it_is_recorded(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    [made] = rows(database, 1, transport="webhook", channel_id=channel(database))
    go, gone = threading.Event(), list[Message]()
    real = attempts.settle

    def slow(tx: Tx, owner: str, outcomes: list[Outcome]) -> object:
        assert go.wait(20)
        return real(tx, owner, outcomes)

    def send(message: Message, network: Network) -> Receipt:
        gone.append(message)
        return Receipt("POST", "200")

    monkeypatch.setattr(attempts, "settle", slow)
    hands = {"webhook": replace(TRANSPORTS["webhook"], send=send)}
    over = "select count(*) from notification_attempt where lease_until < clock_timestamp() - interval '1 second'"
    settings = Settings(lease=1, deadline=0.5, poll=0.1)
    with running_engine(database.url, transports=hands, settings=settings):
        try:
            wait_for(lambda: factories.run(database, over) == [(1,)] or len(gone) > 1)
        finally:
            go.set()
        wait_for(lambda: status(database, made) == "DELIVERED")
    assert len(gone) == 1


def test_a_server_that_has_one_connection_for_us_is_enough(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    real, turns = Engine._connect, cycle([True, False])

    def connect(self: Engine, *patience: float) -> Session:
        if next(turns):
            return real(self, *patience)
        raise psycopg.OperationalError("sorry, too many clients already")

    monkeypatch.setattr(Engine, "_connect", connect)
    made = rows(database, 20, transport="webhook", channel_id=channel(database))
    with running_engine(database.url, transports=QUICK):
        wait_for(lambda: {status(database, one) for one in made} == {"DELIVERED"})


def test_a_pile_of_outcomes_is_recorded_in_parts_and_keeps_more_from_being_claimed(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = rows(database, 7)
    parts = list[int]()
    real = attempts.settle

    def settle(tx: Tx, owner: str, outcomes: list[Outcome]) -> object:
        parts.append(len(outcomes))
        return real(tx, owner, outcomes)

    monkeypatch.setattr(attempts, "settle", settle)
    monkeypatch.setattr(dispatch, "TOGETHER", 3)
    monkeypatch.setattr(dispatch, "MOST_UNSETTLED", 7)
    hands = make_engine(database.url).dispatch
    hands.owner = "one"
    with database.read() as tx:
        assert hands.hands("high") > 0
        hands.unsettled = delivered(tx)
        assert hands.hands("high") == hands.hands("low") == 0
        hands.settle(tx)
    assert parts == [3, 3, 1] and not hands.unsettled
    assert {status(database, one) for one in made} == {"DELIVERED"}


def test_rows_that_a_stranger_holds_give_way_to_those_behind_them(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = rows(database, 4)
    monkeypatch.setattr(dispatch, "TOGETHER", 2)
    hands = make_engine(database.url).dispatch
    hands.owner = "one"
    with recorder(database.url) as (beside, _), psycopg.connect(database.url) as stranger, database.read() as tx:
        hands.recorder, hands.unsettled = beside, delivered(tx)
        stranger.execute("select from notification_attempt where id = any(%s) for update", [made[:2]])

        def recorded() -> bool:
            hands.settle_beside(tx)
            return {status(database, one) for one in made[2:]} == {"DELIVERED"}

        wait_for(recorded)
        assert {status(database, one) for one in made[:2]} == {"IN_FLIGHT"}


def test_while_outcomes_are_recorded_the_next_pages_leave(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    first = rows(database, 1, transport="webhook", channel_id=channel(database))
    go, recording = threading.Event(), threading.Event()
    real = attempts.settle

    def slow(tx: Tx, owner: str, outcomes: list[Outcome]) -> object:
        recording.set()
        assert go.wait(10)
        return real(tx, owner, outcomes)

    monkeypatch.setattr(attempts, "settle", slow)
    with running_engine(database.url, transports=QUICK) as engine:
        assert recording.wait(5)
        [later] = rows(database, 1, transport="webhook", channel_id=channel(database))
        engine.doorbell.ring()
        wait_for(lambda: any(row[0] == later for row in engine.dispatch.known()), what="the page behind it")
        assert status(database, first[0]) == "IN_FLIGHT"
        go.set()
        wait_for(lambda: {status(database, made) for made in (*first, later)} == {"DELIVERED"})


def test_outcomes_whose_connection_is_lost_are_recorded_by_the_next(database: Database) -> None:
    with wire(database.url) as line:
        made = rows(database, 5, transport="webhook", channel_id=channel(database))
        with running_engine(line.url, transports=QUICK) as engine:
            wait_for(lambda: status(database, made[0]) == "DELIVERED")
            for _ in range(5):
                made += rows(database, 20, transport="webhook", channel_id=channel(database))
                engine.doorbell.ring()
                line.cut()
            wait_for(lambda: {status(database, one) for one in made} == {"DELIVERED"}, 15)
    tries = factories.run(database, "select count(*), count(distinct attempt_id) from attempt_try")
    assert tries == [(len(made), len(made))]


def test_a_process_that_stops_has_noted_all_that_it_recorded(database: Database) -> None:
    made = rows(database, 30, transport="webhook", channel_id=channel(database))
    gone: list[Message] = []

    def send(message: Message, network: Network) -> Receipt:
        gone.append(message)
        return Receipt("POST", "200")

    with running_engine(database.url, transports={"webhook": replace(TRANSPORTS["webhook"], send=send)}) as engine:
        wait_for(lambda: len(gone) >= 10)
    assert engine.dispatch.unsettled == [] and engine.dispatch.recorder is None
    found = [status(database, one) for one in made]
    assert found.count("DELIVERED") == len(gone) and set(found) <= {"DELIVERED", "PENDING"}


def channel(database: Database) -> int:
    """A channel by webhook."""
    made = factories.run(
        database,
        "insert into channel (name, kind, address, updates, pace_seconds, destination) values ('ops', 'webhook', "
        "'http://127.0.0.1:1/', false, 0, 'webhook:127.0.0.1') on conflict (name) do update set name = 'ops' "
        "returning id",
    )
    return int(made[0][0])
