"""The engine is watched: a thread that ends is started again, one that stands still is told of, and nothing that a
database does hangs it for ever."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from escalade import attempts, db, listener, metrics, watchdog
from escalade.background import Background
from escalade.config import Config
from escalade.db import Database, Patient, Tx, connect
from escalade.dispatch import Settings
from escalade.doorbell import Doorbell
from escalade.engine import Engine
from escalade.errors import Unavailable
from escalade.health import Health
from escalade.listener import Listener
from escalade.transports import TRANSPORTS, Message, Network, Receipt
from escalade.watchdog import Watchdog, Watched
from tests import factories
from tests.acting import rows
from tests.engines import running_engine
from tests.receiver import Receiver, receiver, wait_for
from tests.web.serving import make_app
from tests.wire import Wire, wire

# That a thread ends by an exception is what these tests are about.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
QUICK = Settings(lease=9, deadline=3, poll=0.2)


@pytest.fixture
def phone() -> Iterator[Receiver]:
    """Where everybody's webhooks lead."""
    with receiver() as found:
        yield found


@contextmanager
def watched(*workers: Watched, health: Health | None = None) -> Iterator[Watchdog]:
    """A watchdog over these workers that looks often."""
    dog = Watchdog(workers, health or Health(), every=0.02)
    dog.pause = 0.05
    dog.start()
    try:
        yield dog
    finally:
        dog.stop()
        assert not dog.thread.is_alive()


def health_of(database: Database, config: Config, engine: Engine) -> Callable[[str], tuple[int, str]]:
    """How the process of this engine answers /healthz and /readyz."""
    client = make_app(database, config, engine.health).test_client()

    def ask(path: str) -> tuple[int, str]:
        answer = client.get(path)
        return answer.status_code, str(answer.get_json().get("error"))

    return ask


def dies(times: int, work: Callable[..., Any], error: type[BaseException] = SystemExit) -> Callable[..., Any]:
    """Does its work, but ends the thread that asks for it the first times."""
    left = iter(range(times))

    def instead(*given: object, **more: object) -> Any:
        if next(left, None) is not None:
            raise error
        return work(*given, **more)

    return instead


def test_q31_an_engine_whose_thread_ends_is_started_again_and_the_web_stays_up(
    database: Database,
    config: Config,
    phone: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    service = factories.ladder(database, phone.url)
    with running_engine(database.url, database.doorbell, settings=QUICK) as engine:
        ask = health_of(database, config, engine)
        wait_for(lambda: ask("/readyz")[0] == 200)
        first = engine.thread
        monkeypatch.setattr(attempts, "whats_due", dies(1, attempts.whats_due))
        first.join(5)
        assert not first.is_alive()
        assert ask("/healthz") == ask("/readyz") == (503, "the engine's thread has ended")
        with watched(engine, health=engine.health):
            wait_for(lambda: ask("/healthz")[0] == ask("/readyz")[0] == 200)
            factories.open_incident(database, service)
            phone.wait(1, "/alice")
        assert engine.thread is not first
    assert "the thread of the engine has ended; it is started again" in [record.message for record in caplog.records]


def test_q31_what_was_in_the_air_when_the_engines_thread_ended_is_recorded_by_the_next(
    database: Database, phone: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = threading.Event()
    phone.answer = lambda arrived: 200 if go.wait(10) else 500
    incident = factories.open_incident(database, factories.ladder(database, phone.url))
    with running_engine(database.url, database.doorbell, settings=QUICK) as engine:
        phone.wait(1)
        monkeypatch.setattr(attempts, "whats_due", dies(1, attempts.whats_due))
        engine.thread.join(5)
        with watched(engine, health=engine.health):
            go.set()
            wait_for(lambda: rows(database, incident.id)[0]["status"] == "DELIVERED")
    assert len(phone.arrived) == 1, "it was sent once"
    assert rows(database, incident.id)[0]["tries"] == 1


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyError, MemoryError])
def test_q32_an_error_that_escapes_a_round_ends_nothing(
    database: Database, phone: Receiver, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    service = factories.ladder(database, phone.url)
    monkeypatch.setattr(attempts, "whats_due", dies(1, attempts.whats_due, error))
    with running_engine(database.url, database.doorbell, settings=QUICK):
        factories.open_incident(database, service)
        phone.wait(1, "/alice")


def stand_in_lock(go: threading.Event) -> None:
    """In a lock that somebody else holds."""
    lock = threading.Lock()
    lock.acquire()

    def let_go() -> None:
        go.wait(30)
        lock.release()

    threading.Thread(target=let_go, daemon=True).start()
    with lock:
        pass


def stand_in_python(go: threading.Event) -> None:
    """In code that goes round and round."""
    while not go.is_set():
        time.sleep(0.001)


@pytest.mark.parametrize("stand", [stand_in_lock, stand_in_python])
def test_q32_an_engine_that_stands_still_turns_both_red_with_the_reason(
    database: Database,
    config: Config,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    stand: Callable[[threading.Event], None],
) -> None:
    go, real = threading.Event(), attempts.whats_due
    before = metrics.stalls.labels("engine")._value.get()
    with running_engine(database.url, Doorbell(), settings=QUICK) as engine:
        ask = health_of(database, config, engine)
        wait_for(lambda: ask("/readyz")[0] == 200)
        engine.health.patience = 0.1

        def still(tx: Tx) -> attempts.Due:
            stand(go)
            return real(tx)

        monkeypatch.setattr(attempts, "whats_due", still)
        with watched(engine, health=engine.health):
            wait_for(lambda: ask("/healthz")[0] == 503, 15)
            for path in ("/healthz", "/readyz"):
                status, reason = ask(path)
                assert status == 503 and reason.startswith("the engine has stood still for ") and reason.endswith(" s")
            wait_for(lambda: metrics.stalls.labels("engine")._value.get() > before)
            assert engine.thread.is_alive(), "another thread beside it would share what it has in hand"
            go.set()
            wait_for(lambda: ask("/healthz")[0] == ask("/readyz")[0] == 200)
    [told] = [record.message for record in caplog.records if "stood still" in record.message]
    assert stand.__name__ in told, "it says where"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer of the database is waited for a moment only."""
    monkeypatch.setattr(Patient, "patience", 0.5)
    monkeypatch.setitem(db.KEEPALIVE, "connect_timeout", 2)


@pytest.fixture
def line(clean_url: str) -> Iterator[Wire]:
    """A wire to the database."""
    with wire(clean_url) as found:
        yield found


def test_q25_a_query_that_is_never_answered_is_given_up_and_its_connection_with_it(line: Wire, impatient: None) -> None:
    conn = connect(line.url)
    line.hangs.set()
    begun = time.monotonic()
    with pytest.raises(psycopg.OperationalError, match=r"no answer within 0\.5 s"), conn.transaction():
        conn.execute("select 1")
    assert 0.4 < time.monotonic() - begun < 5
    assert conn.closed


def test_q25_a_web_request_that_is_never_answered_is_refused(line: Wire, impatient: None) -> None:
    pool = Database(line.url, size=1, wait=1)
    with pool.read() as tx:
        assert tx.now
    line.hangs.set()
    with pytest.raises(Unavailable), pool.begin() as tx:
        assert tx.now
    line.hangs.clear()
    line.cut()
    wait_for(lambda: works(pool), 20, "a working connection")
    pool.close()


def works(pool: Database) -> bool:
    """Whether the pool has a connection that answers."""
    try:
        with pool.read() as tx:
            return bool(tx.now)
    except Unavailable:
        return False


def test_q25_a_migration_may_take_as_long_as_it_takes(line: Wire, impatient: None) -> None:
    with connect(line.url, statement_ms=0) as conn:
        assert conn.execute("select 1 from pg_sleep(1)").fetchall() == [(1,)]


def test_q25_a_black_hole_hangs_no_engine_and_restarts_no_process(
    database: Database, config: Config, phone: Receiver, line: Wire, impatient: None
) -> None:
    service = factories.ladder(database, phone.url)
    with running_engine(line.url, Doorbell(), settings=QUICK) as engine, watched(engine, health=engine.health):
        ask = health_of(database, config, engine)
        engine.health.patience = 1.0
        # Ready is said as soon as it goes round; both of its connections must be there to hang.
        wait_for(lambda: ask("/readyz")[0] == 200 and engine.dispatch.recorder is not None)
        line.hangs.set()
        wait_for(lambda: engine.health.away)
        factories.open_incident(database, service)
        seen = set()
        end = time.monotonic() + 6  # longer than a still engine would be borne with
        while time.monotonic() < end:
            seen.add(ask("/healthz")[0])
            assert ask("/readyz")[1].startswith("the database is away: ")
            time.sleep(0.05)
        assert seen == {200}, "a restart mends no database"
        assert phone.arrived == []
        line.hangs.clear()
        line.cut()
        phone.wait(1, "/alice")
        wait_for(lambda: ask("/readyz")[0] == 200)


def test_q25_an_engine_that_waits_for_an_answer_for_ever_would_be_seen(
    database: Database, config: Config, line: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Patient, "patience", None)
    with running_engine(line.url, Doorbell(), settings=QUICK) as engine:
        ask = health_of(database, config, engine)
        engine.health.patience = 0.1
        wait_for(lambda: factories.run(database, "select 1 from engine_instance"))
        line.hangs.set()
        wait_for(lambda: "stood still" in ask("/healthz")[1], 15)
        line.cut()
        line.hangs.clear()
        wait_for(lambda: ask("/healthz")[0] == 200, 15)


def test_q21_while_the_database_is_down_it_is_asked_less_and_less_often_and_the_log_is_not_filled(
    line: Wire, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    with running_engine(line.url, Doorbell(), settings=QUICK) as engine:
        wait_for(lambda: engine.health.in_flight == 0 and engine.dispatch.owner and line.opened)

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            time.sleep(0.01)

        monkeypatch.setattr(engine, "_pause", pause)
        line.end()
        wait_for(lambda: len(pauses) > 20)
    assert all(0.5 * 5 <= pause <= 5 for pause in pauses[8:20]), "up to five seconds"
    assert len(set(pauses)) > 15, "no two processes ask in step"
    said = [record.message for record in caplog.records if "the database is away" in record.message]
    assert len(said) == 1


def test_q22_a_listener_whose_thread_ends_is_started_again_and_listens(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "SLICE_SECONDS", 0.05)
    bell, health = Doorbell(), Health()
    ears = Listener(database.url, bell, health)
    ears.start()
    try:
        wait_for(lambda: health.listening)
        with watched(ears, health=health):
            first = ears.thread
            monkeypatch.setattr(ears, "wanted", dies(1, ears.wanted))
            first.join(5)
            wait_for(lambda: ears.thread is not first and health.listening)
            bell.event.clear()
            with database.begin() as tx:
                tx.ring()
            assert bell.event.wait(5)
        open_ones = "select count(*) from pg_stat_activity where datname = current_database() and query like %s"
        assert factories.run(database, open_ones, "select pg_notify%")[0][0] <= 1, "the old connection is closed"
    finally:
        ears.stop()


class Sleeper(Background):
    """Stands still in its first thread until told to go on; its later ones go round."""

    def __init__(self) -> None:
        super().__init__("sleeper")
        self.go = threading.Event()
        self.rounds = 0
        self.sleeping = 1
        self.patience = 0.2

    def _run(self) -> None:
        while self.wanted():
            if self.sleeping:
                self.sleeping -= 1
                self.go.wait(20)
            else:
                self.rounds += 1
                self.stopping.wait(0.01)


def test_q32_a_thread_beside_the_engine_that_stands_still_is_replaced() -> None:
    sleeper, health = Sleeper(), Health(engine_expected=False)
    sleeper.start()
    first = sleeper.thread
    with watched(sleeper, health=health):
        wait_for(lambda: sleeper.rounds > 3)
        assert sleeper.thread is not first and first.is_alive()
        assert health.broken() is None
        sleeper.go.set()
        first.join(5)
        assert not first.is_alive(), "it ends when it comes round, for another has taken over"
    sleeper.stop()


def test_q32_where_its_replacement_stands_still_too_the_process_is_broken() -> None:
    sleeper, health = Sleeper(), Health(engine_expected=False)
    sleeper.sleeping = 5
    sleeper.start()
    with watched(sleeper, health=health):
        wait_for(lambda: health.broken())
        assert health.broken() is not None and "the sleeper has stood still for " in str(health.broken())
        left = [thread for thread in threading.enumerate() if thread.name == "sleeper"]
        assert len(left) == 2, "no more of them pile up"
        sleeper.sleeping = 0
        sleeper.go.set()
        wait_for(lambda: health.broken() is None)
    sleeper.stop()


def test_a_worker_that_was_told_to_stop_is_left_alone() -> None:
    sleeper = Sleeper()
    sleeper.sleeping = 0
    sleeper.start()
    with watched(sleeper) as dog:
        sleeper.stop()
        dog.look()
        assert not sleeper.thread.is_alive()


def test_a_thread_that_ends_at_once_again_and_again_is_not_started_all_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Brief(Sleeper):
        started = 0

        def _run(self) -> None:
            Brief.started += 1

    moment = [1000.0]
    monkeypatch.setattr(watchdog, "time", SimpleNamespace(monotonic=lambda: moment[0]))
    brief = Brief()
    brief.start()
    dog = Watchdog([brief], Health())
    for _ in range(20):
        brief.thread.join(5)
        dog.look()
        moment[0] += 1.0
    assert Brief.started == 5, "at the start, and every fifth second"


def test_senders_that_are_all_stuck_are_seen(database: Database, config: Config, phone: Receiver) -> None:
    go = threading.Event()

    def stuck(message: Message, network: Network) -> Receipt:
        go.wait(30)
        return Receipt("", "")

    transports = {**TRANSPORTS, "webhook": replace(TRANSPORTS["webhook"], send=stuck)}
    service = factories.ladder(database, phone.url)
    quick = Settings(lease=1.0, deadline=0.5, poll=0.1)
    with running_engine(database.url, Doorbell(), senders=1, transports=transports, settings=quick) as engine:
        ask = health_of(database, config, engine)
        engine.dispatch.most = lambda lane: 1  # type: ignore[method-assign]
        factories.open_incident(database, service)
        wait_for(lambda: ask("/healthz") == (503, "all 1 senders are stuck"), 15)
        assert ask("/readyz") == (503, "all 1 senders are stuck")
        go.set()
        wait_for(lambda: ask("/healthz")[0] == 200)


def test_a_sender_outlives_whatever_a_transport_raises(
    database: Database, phone: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "escalade.senders")
    transports = {**TRANSPORTS, "webhook": replace(TRANSPORTS["webhook"], send=dies(1, TRANSPORTS["webhook"].send))}
    incident = factories.open_incident(database, factories.ladder(database, phone.url))
    with running_engine(database.url, Doorbell(), transports=transports, settings=QUICK) as engine:
        wait_for(lambda: rows(database, incident.id)[0]["last_error"])
        assert all(thread.is_alive() for thread in engine.senders.threads)
