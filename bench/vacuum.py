"""From how many dead rows on the queue's table is to be vacuumed: the same drain at several settings, side by side.

make bench ARGS=--vacuum        (BENCH_DRAINED and BENCH_WAITING set how many rows are drained, and how many lie around)
"""

import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from bench import history
from bench.drain import CHANNEL
from bench.latency import quantile
from bench.run import new_database
from escalade import embedded

DRAINED = int(os.environ.get("BENCH_DRAINED", "200000"))
WAITING = int(os.environ.get("BENCH_WAITING", "200000"))
# The server looks for tables to vacuum once a minute unless told otherwise; a drain of a minute would see one look.
NAPTIME = int(os.environ.get("BENCH_NAPTIME", "10"))
INCIDENT = """
insert into incident (title, details, severity, urgency, status, sanitized, policy, round, step, repeats_left,
    opened_at, opened_by, last_alert_at, count)
values ('Disk full', '', 'critical', 'high', 'TRIGGERED', false, '{"steps": []}', 1, 1, 0, clock_timestamp(), 'bench',
    clock_timestamp(), 1)
"""
# By the small partial indexes: the question must not weigh on what it measures. What waits for days is not asked for.
LEFT_DUE = """
select (exists (select from notification_attempt where status = 'PENDING' and kind <> 'STEP' and lane = 'high'
        and due_at <= clock_timestamp())
    or exists (select from notification_attempt where status = 'IN_FLIGHT' and lease_until > '-infinity'))::int
"""
STATE = """
select n_dead_tup, autovacuum_count from pg_stat_user_tables where relname = 'notification_attempt'
"""
SIZES = "select pg_table_size('notification_attempt') / 1048576, pg_indexes_size('notification_attempt') / 1048576"


@dataclass(frozen=True)
class Setting:
    """Vacuum from so many dead rows on, and such a share of the table; `held` keeps a snapshot open beside it."""

    name: str
    threshold: int
    scale: float = 0.0
    held: bool = False


SETTINGS = (
    Setting("500", 500),
    Setting("2,000", 2000),
    Setting("20,000", 20_000),
    Setting("50 and 20 % (Postgres's own)", 50, 0.2),
    Setting("2,000, a snapshot held", 2000, held=True),
)


@dataclass
class Watched:
    """What was seen while the queue drained: the most dead rows, and how many vacuums."""

    dead: list[int] = field(default_factory=list)
    vacuums: int = 0


def drain(url: str, setting: Setting) -> str:
    """Drain what is due at this setting; its figures as a line."""
    with psycopg.connect(url, autocommit=True) as conn:
        options = "autovacuum_vacuum_threshold = {}, autovacuum_vacuum_scale_factor = {}"
        numbers = sql.SQL(options).format(setting.threshold, setting.scale)
        conn.execute(sql.SQL("alter table notification_attempt set ({})").format(numbers))
        history.due(url, DRAINED)
        with (
            _snapshot(url) if setting.held else nullcontext(),
            _watching(url) as watched,
            history.timed_claims() as claims,
            history.engine(url),
        ):
            started = time.perf_counter()
            while history._number(conn, LEFT_DUE):
                time.sleep(0.1)
            seconds = time.perf_counter() - started
        table, indexes = conn.execute(SIZES).fetchone() or (0, 0)
    last = claims[-len(claims) // 3 :]
    return (
        f"{setting.name:30} claim p50 {1000 * quantile(claims, 0.5):5.1f} ms,"
        f" p99 {1000 * quantile(claims, 0.99):6.1f} ms, of the last third {1000 * quantile(last, 0.99):6.1f} ms;"
        f" dead rows at most {max(watched.dead):>7,},"
        f" at the end {watched.dead[-1]:>7,}; {watched.vacuums} vacuums; {DRAINED / seconds:5,.0f} a second;"
        f" table {table} MB, indexes {indexes} MB"
    )


@contextmanager
def _watching(url: str) -> Iterator[Watched]:
    """Read the statistics twice a second in a thread of its own."""
    watched, over = Watched(), threading.Event()

    def look() -> None:
        with psycopg.connect(url, autocommit=True) as conn:
            while True:
                dead, watched.vacuums = conn.execute(STATE).fetchone() or (0, 0)
                watched.dead.append(dead)
                if over.wait(0.5):
                    return

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield watched
    finally:
        over.set()
        thread.join()


@contextmanager
def _snapshot(url: str) -> Iterator[None]:
    """Somebody's report that does not end."""
    with psycopg.connect(url) as conn:
        conn.execute("set transaction isolation level repeatable read")
        conn.execute("select count(*) from incident")
        yield


def template(url: str) -> None:
    """An open incident, a channel, and pages for the days to come."""
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(INCIDENT)
        channel: Any = conn.execute(CHANNEL).fetchone()
        conn.execute(history.LATER, {"rows": WAITING, "channel": channel[0]})
        conn.execute("vacuum analyze notification_attempt")


def main() -> None:
    """Each setting on a copy of the same database, one after the other."""
    with tempfile.TemporaryDirectory(prefix="escalade-vacuum-") as name, embedded.running(Path(name), {}) as server:
        source = new_database(server, "source")
        template(source)
        with psycopg.connect(server, autocommit=True) as conn:
            conn.execute(sql.SQL("alter system set autovacuum_naptime = {}").format(NAPTIME))
            conn.execute("select pg_reload_conf()")
            print(f"{DRAINED:,} drained beside {WAITING:,} waiting, a look for dead rows every {NAPTIME} s")
            for number, setting in enumerate(SETTINGS):
                copy = f"copy_{number}"
                conn.execute(sql.SQL("create database {} template source").format(sql.Identifier(copy)))
                print(drain(source.replace("/source", f"/{copy}"), setting), flush=True)
                conn.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(copy)))


if __name__ == "__main__":
    main()
