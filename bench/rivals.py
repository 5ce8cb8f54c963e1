"""Two queues that people use on Postgres, and ours, each draining jobs that do nothing on the same server.

Each is measured at the best of a sweep of its own settings. Jobs are really fetched and finished: the rows are
counted afterwards. Run by `make bench`.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import asyncpg
import procrastinate
import psycopg
from pgqueuer import PgQueuer
from pgqueuer.adapters.drivers.asyncpg import AsyncpgPoolDriver
from pgqueuer.domain.types import QueueExecutionMode
from procrastinate.exceptions import ConnectorException

from bench.drain import drain

PROBE = 3000
SENDERS = (16, 64, 256, 512, 1024)
# Jobs at once, connections.
PROCRASTINATE = ((1, 2), (10, 5), (10, 10), (30, 10), (100, 20))
# Jobs fetched at once, connections.
PGQUEUER = ((10, 2), (100, 4), (1000, 4), (2000, 4), (5000, 4))


@dataclass(frozen=True)
class Best:
    """The best setting of a sweep, and the jobs a second it drained."""

    name: str
    setting: str
    rate: float


def best(name: str, settings: tuple[Any, ...], rate: Callable[[Any, int], float], jobs: int) -> Best:
    """Try each setting on a few jobs, and the best of them on all."""
    found = max(settings, key=lambda setting: rate(setting, min(PROBE, jobs)))
    return Best(name, str(found), rate(found, jobs))


def all_three(url: str, jobs: int) -> list[Best]:
    """Ours first."""
    return [
        best("Escalade", SENDERS, lambda senders, rows: drain(url, senders, rows).rate, jobs),
        best("Procrastinate", PROCRASTINATE, lambda pair, rows: asyncio.run(procrastinate_rate(url, pair, rows)), jobs),
        best("PgQueuer", PGQUEUER, lambda pair, rows: asyncio.run(pgqueuer_rate(url, pair, rows)), jobs),
    ]


async def procrastinate_rate(url: str, setting: tuple[int, int], jobs: int) -> float:
    """Jobs a second with so many jobs at once on so many connections."""
    concurrency, connections = setting
    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url, min_size=1, max_size=connections))

    @app.task(name="nothing")
    async def nothing() -> None:
        return None

    async with app.open_async():
        try:
            await app.schema_manager.apply_schema_async()
        except ConnectorException:
            pass  # an earlier setting has made it
        _run(url, "truncate procrastinate_jobs cascade")
        await nothing.batch_defer_async(*({} for _ in range(jobs)))
        _run(url, "analyze procrastinate_jobs")
        started = time.perf_counter()
        await app.run_worker_async(
            concurrency=concurrency, wait=False, listen_notify=False, install_signal_handlers=False
        )
        seconds = time.perf_counter() - started
    assert _run(url, "select count(*) from procrastinate_jobs where status = 'succeeded'") == jobs
    return jobs / seconds


async def pgqueuer_rate(url: str, setting: tuple[int, int], jobs: int) -> float:
    """Jobs a second with so many fetched at once on so many connections."""
    batch, connections = setting
    async with asyncpg.create_pool(url, min_size=connections, max_size=connections) as pool:
        queue = PgQueuer(AsyncpgPoolDriver(pool))
        if not _run(url, "select (to_regclass('pgqueuer') is not null)::int"):
            await queue.qm.queries.install()
        unlogged = "select count(*) from pg_class where relname like 'pgqueuer%' and relpersistence = 'u'"
        assert _run(url, unlogged) == 0, "the same durability for all"
        _run(url, "truncate pgqueuer, pgqueuer_log")

        @queue.entrypoint("nothing")
        async def nothing(job: Any) -> None:
            return None

        await queue.qm.queries.enqueue(["nothing"] * jobs, [None] * jobs, [0] * jobs)
        _run(url, "analyze pgqueuer")
        started = time.perf_counter()
        await queue.run(batch_size=batch, mode=QueueExecutionMode.drain)
        seconds = time.perf_counter() - started
    assert _run(url, "select count(*) from pgqueuer") == 0
    assert _run(url, "select count(*) from pgqueuer_log where status = 'successful'") == jobs
    return jobs / seconds


def _run(url: str, statement: str) -> int:
    with psycopg.connect(url, autocommit=True) as conn:
        cursor = conn.execute(statement)  # type: ignore[call-overload]
        row = cursor.fetchone() if cursor.description else None
        return int(row[0]) if row else 0
