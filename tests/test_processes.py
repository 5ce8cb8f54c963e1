"""Up to eight processes on one database: each page is claimed once, nobody stampedes, connections are few."""

import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path

import psycopg
import pytest

from bench import peers
from bench.chaos import phone
from bench.chaos.alerts import Alerts
from bench.chaos.check import double_claims
from bench.chaos.evidence import read, wait_until_quiet
from bench.chaos.record import Record
from bench.chaos.stage import DATABASE, App, Stage
from bench.process import ROOT
from escalade.db import Database, Session
from escalade.dispatch import Settings
from escalade.doorbell import Doorbell
from escalade.listener import Listener
from escalade.migrate import files
from tests import factories
from tests.engines import make_engine
from tests.receiver import wait_for

# What docs/running.md says that a process holds at most, by default.
BUDGET = 8
# What a later version may do: a column more in every table.
LATER = """do $$ declare name text; begin
    for name in select tablename from pg_tables where schemaname = 'public' order by 1 loop
        execute format('alter table %I add column later text', name);
    end loop;
end $$"""


@pytest.fixture
def stage() -> Iterator[Stage]:
    """Four processes on a server of their own."""
    with tempfile.TemporaryDirectory(prefix="escalade-processes-") as name:
        Path(name).chmod(0o755)
        stage = Stage(Path(name), 4, standby=False)
        try:
            yield stage
        finally:
            stage.close()


def test_k060_four_processes_claim_each_page_once_and_stay_within_their_connections(stage: Stage) -> None:
    record = Record()
    with phone.running() as receiver:
        token = stage.configure(receiver.url)
        stage.start()
        alerts = Alerts(stage, record, token, 60, 60.0)
        alerts.start()
        with stage.connect() as conn, counting(stage) as most:
            alerts.finish()
            wait_until_quiet(conn, 20)
            read(conn, record, stage.apps)
        claims = [move for move in record.moves if move.after == "IN_FLIGHT"]
        assert len(claims) >= 100 and list(double_claims(record.moves)) == []
        assert len({claim.pid for claim in claims}) > 1
        arrived = [request.attempt for request in receiver.requests]
    assert len(arrived) == len(set(arrived))
    assert len(most) == len(stage.apps) and all(1 < held <= BUDGET for held in most.values()), most
    for app in stage.apps:
        app.end(signal.SIGTERM)
        assert app.process is not None and app.process.returncode == 0
    with stage.connect() as conn:
        left = "select count(*) from pg_stat_activity where application_name = 'escalade'"
        wait_for(lambda: _number(conn, left) == 0, 10, "end of all connections")


@contextmanager
def counting(stage: Stage) -> Iterator[dict[int, int]]:
    """The most connections that the server has seen of each process at once, by its port, while the block runs."""
    most: dict[int, int] = {app.port: 0 for app in stage.apps}
    over = threading.Event()
    query = "select client_port from pg_stat_activity where application_name = 'escalade'"

    def count() -> None:
        with stage.connect() as conn:
            while not over.wait(0.02):
                held = {row[0] for row in conn.execute(query)}
                for app in stage.apps:
                    own = {port for _, port in list(app.wires[0].reached)}
                    most[app.port] = max(most[app.port], len(held & own))

    thread = threading.Thread(target=count, daemon=True)
    thread.start()
    try:
        yield most
    finally:
        over.set()
        thread.join(10)


@pytest.mark.parametrize("processes", [1, 8])
def test_k061_however_many_engines_each_attempt_is_tried_once(database: Database, processes: int) -> None:
    factories.open_incident(database, factories.ladder(database, "http://127.0.0.1:1"))
    shared = peers.share(database.url, processes, rows=800, senders=4)
    assert shared.tries == 800


@contextmanager
def looking(database: Database, count: int, settings: Settings) -> Iterator[tuple[list[Doorbell], list[list[float]]]]:
    """So many engines with their listeners, as in processes of their own: their doorbells, and when each looked."""
    bells = [Doorbell() for _ in range(count)]
    looks: list[list[float]] = [[] for _ in range(count)]
    with ExitStack() as stack:
        for bell, seen in zip(bells, looks, strict=True):
            engine = make_engine(database.url, bell, settings=settings)
            tick = engine.tick

            def noted(session: Session, tick=tick, seen=seen) -> float:
                seen.append(time.monotonic())
                return tick(session)

            engine.tick = noted  # type: ignore[method-assign]
            listener = Listener(database.url, bell, engine.health)
            listener.start()
            engine.start()
            stack.callback(engine.stop, 10)
            stack.callback(listener.stop, 10)
            wait_for(lambda health=engine.health, seen=seen: health.listening and seen, 20, "listening engine")
        yield bells, looks


def test_q38_idle_engines_that_began_together_do_not_look_at_the_same_moments(database: Database) -> None:
    poll = 0.3
    with looking(database, 6, Settings(lease=9, deadline=3, poll=poll)) as (bells, looks):
        # Past the look of its start, and the one with which its listener says that it works.
        wait_for(lambda: all(len(seen) >= 3 for seen in looks), 20, "three looks of each")
        together = time.monotonic()
        for bell in bells:
            bell.nudge()
        wait_for(lambda: all(len(after(seen, together)) >= 8 for seen in looks), 20, "eight looks of each")
    for number in range(4, 8):
        moments = sorted(after(seen, together)[number] for seen in looks)
        assert moments[-1] - moments[0] > poll / 20, moments
    for seen in looks:
        own = after(seen, together)
        assert statistics.stdev(later - early for early, later in pairwise(own)) > poll / 40


def after(seen: list[float], moment: float) -> list[float]:
    """The looks after a moment."""
    return [at for at in seen if at > moment]


def test_q35_alerts_that_this_process_can_page_for_make_no_other_engine_ask(database: Database) -> None:
    with phone.running() as receiver, looking(database, 5, Settings(lease=9, deadline=3, poll=60.0)) as (bells, looks):
        service = factories.ladder(database, receiver.url)
        wait_for(lambda: bells[0].idle, what="free sender")
        own = Database(database.url, 2, bells[0])
        before = [len(seen) for seen in looks]
        for number in range(20):
            factories.open_incident(own, service, f"alert {number}")
            wait_for(lambda count=number + 1: len(receiver.requests) == count and bells[0].idle, what="page")
        own.close()
        asked = [len(seen) - count for seen, count in zip(looks, before, strict=True)]
    # One may still be the look with which its listener says that it works.
    assert asked[0] >= 20 and max(asked[1:]) <= 1, asked


def test_q23_fifty_ended_backends_leave_no_connection_behind(stage: Stage) -> None:
    with phone.running() as receiver:
        token = stage.configure(receiver.url)
        app = stage.apps[0]
        stage.launch(app)
        stage.wait_ready(app)
        with stage.connect() as conn:
            ended = 0
            while ended < 50:
                ended += len(
                    conn.execute(
                        "select pg_terminate_backend(pid) from pg_stat_activity"
                        " where application_name = 'escalade' and backend_type = 'client backend'"
                    ).fetchall()
                )
                stage.wait_ready(app)
            wait_for(lambda: "escalade_listener_up 1.0" in metrics(app, token), 30, "listener")
            held = _number(conn, "select count(*) from pg_stat_activity where application_name = 'escalade'")
    assert held <= BUDGET


def test_k093_an_old_process_and_a_new_one_serve_side_by_side_while_a_third_migrates(
    stage: Stage, tmp_path: Path
) -> None:
    for path in files():
        (tmp_path / path.name).write_text(path.read_text(encoding="utf-8"))
    (tmp_path / "9998_later.sql").write_text(LATER)
    url = stage.primary.url(DATABASE)
    call = f"from pathlib import Path; from escalade.migrate import migrate; migrate({url!r}, Path({str(tmp_path)!r}))"
    with phone.running() as receiver:
        token = stage.configure(receiver.url)
        old, new = stage.apps[:2]
        stage.launch(old)
        stage.wait_ready(old)
        alerts = Alerts(stage, Record(), token, 80, 40.0)
        alerts.start()
        alerts.wait(20)
        migrating = subprocess.Popen([sys.executable, "-c", call], cwd=ROOT)
        alerts.wait(50)
        assert migrating.wait(30) == 0
        stage.launch(new)
        stage.wait_ready(new)
        alerts.finish()
        with stage.connect() as conn:
            wait_until_quiet(conn, 20)
            pages = "select count(*) from notification_attempt where kind = 'PAGE'"
            made = _number(conn, pages)
            lost = _number(conn, pages + " and status not in ('DELIVERED', 'CANCELLED')")
            later = _number(conn, "select count(*) from information_schema.columns where column_name = 'later'")
            workers = _number(conn, "select count(distinct owner) from chaos_move where after = 'IN_FLIGHT'")
        arrived = [request.attempt for request in receiver.requests]
    assert made == 160 and lost == 0 and later > 20
    assert workers == 2 and len(old.lives) == 1 and old.process and old.process.poll() is None
    assert len(arrived) == len(set(arrived))


def metrics(app: App, token: str) -> str:
    """What the process says of itself."""
    asked = urllib.request.Request(f"{app.url}/metrics", headers={"authorization": f"Bearer {token}"})
    with urllib.request.urlopen(asked, timeout=5) as answer:
        said: str = answer.read().decode()
        return said


def _number(conn: "psycopg.Connection[tuple[object, ...]]", statement: str) -> int:
    row = conn.execute(statement.encode()).fetchone()
    return int(str(row[0])) if row else 0
