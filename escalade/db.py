"""The only module that talks to Postgres: named queries, transactions, and the clock.

A query is a name in `sql/queries/*.sql`; rows become the dataclass that the caller names. Inside a transaction
`tx.now` is read from the database once, when it is first asked for: callers that lock a row lock it first.
"""

import logging
import os
import select
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, cast

import aiosql
import psycopg
from psycopg.rows import dict_row, scalar_row
from psycopg.types.json import Jsonb
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from escalade.doorbell import Doorbell, Reading
from escalade.errors import NotFound, Unavailable

T = TypeVar("T")
ROOT = Path(__file__).resolve().parent.parent
log = logging.getLogger("escalade.db")

# The database is no use to us now: it is away, or a standby, or it has given us up, or its schema has changed under
# the statements that this connection had prepared. Nothing is wrong with the request, and another try may go well.
AWAY = (
    psycopg.OperationalError,
    psycopg.errors.FeatureNotSupported,
    psycopg.errors.ReadOnlySqlTransaction,
    psycopg.errors.IdleInTransactionSessionTimeout,
)
# How long an answer is waited for, in seconds: longer than the server lets a statement of ours run.
PATIENCE_SECONDS = 15.0
# How long a reading of the clock is good enough to open an incident by, in seconds.
FRESH_SECONDS = 0.05
RECONNECT_SECONDS = 3.0
# How long the engine waits for a lock, in milliseconds: pages wait with it.
LOCK_MS = 500
# How long a connection is trusted to work after it was last used, in seconds.
TRUSTED_SECONDS = 2.0
KEEPALIVE = {
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    # Keepalives are silent while an answer is awaited: without this a network that swallows packets is noticed only
    # after a quarter of an hour. In milliseconds.
    "tcp_user_timeout": 10_000,
    "connect_timeout": 5,
}


@lru_cache(maxsize=1)
def queries() -> Mapping[str, str]:
    """All named queries of sql/queries, name to SQL in psycopg's parameter style."""
    loaded = aiosql.from_path(ROOT / "sql" / "queries", "psycopg", mandatory_parameters=False)
    names = [name for name in loaded.available_queries if not name.endswith("_cursor")]
    return {name: compact(getattr(loaded, name).sql) for name in names}


def compact(query: str) -> str:
    """A query without its comments and indentation: psycopg keeps what it made of a query's parameters only for the
    next time where the text has at most 4,096 characters."""
    lines = (line.strip() for line in query.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("--"))


class Patient(psycopg.Connection[Any]):
    """A connection that waits only so many seconds for an answer. The server's own limit does not help where the
    server stands still, or a network swallows what it says while something between keeps the connection alive."""

    patience: float | None = PATIENCE_SECONDS

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """Wait for an answer. Raises psycopg.OperationalError, with the connection closed, where none comes."""
        if timeout is not None or self.patience is None:
            return super().wait(gen, interval=interval, timeout=timeout)
        try:
            return super().wait(gen, interval=interval, timeout=self.patience)
        except psycopg.errors._WaitTimeout as error:
            self.pgconn.finish()
            raise psycopg.OperationalError(
                f"no answer within {self.patience:g} s; the connection is given up"
            ) from error


def connect(url: str, *, lock_ms: int = 2000, statement_ms: int = 10_000) -> Patient:
    """An autocommit connection with Escalade's session settings. Raises psycopg.OperationalError."""
    options: dict[str, Any] = {**KEEPALIVE, "application_name": "escalade"}
    conn = Patient.connect(url, autocommit=True, prepare_threshold=3, **options)
    if statement_ms == 0:
        conn.patience = None
    prepare_session(conn, lock_ms=lock_ms, statement_ms=statement_ms)
    return conn


def prepare_session(conn: psycopg.Connection[Any], *, lock_ms: int = 2000, statement_ms: int = 10_000) -> None:
    """Set what every session of ours relies on. Not start-up parameters: poolers refuse those.

    A pooler names another backend at the start than the one that answers. What is prepared on one of its connections
    is not known on the next, so nothing is prepared then; and each transaction says how it is isolated.
    """
    pid = Tx(conn).value("prepare_session", lock_ms=str(lock_ms), statement_ms=str(statement_ms), idle_ms="5000")
    if pid != conn.info.backend_pid:
        conn.prepare_threshold = None
        conn.isolation_level = psycopg.IsolationLevel.READ_COMMITTED


@dataclass(frozen=True, slots=True)
class Limits:
    """What verbs go by of the configuration: numbers, and the keys that secrets at rest are sealed under."""

    max_tries: int = 8
    max_open: int = 5000
    late_seconds: float = 60.0
    sealing_keys: tuple[str, ...] = field(default=(), repr=False)


def row_of(row: type[T]) -> Callable[[psycopg.Cursor[Any]], Callable[[Sequence[Any]], T]]:
    """Rows as this dataclass or NamedTuple. Columns that it does not know are left out: while a deploy goes on, old
    code runs on a schema that has more of them."""

    def factory(cursor: psycopg.Cursor[Any]) -> Callable[[Sequence[Any]], T]:
        return _maker(cast(Any, row), tuple(column.name for column in cursor.description or ()))

    return factory


@lru_cache(maxsize=512)
def _maker(row: Any, columns: tuple[str, ...]) -> Callable[[Sequence[Any]], Any]:
    """What makes a row of these columns, by place: to hand over names takes several times as long, and every page
    comes out of three rows."""
    names = [field.name for field in fields(row)] if is_dataclass(row) else list(row._fields)
    known = [name for name in names if name in columns]
    if known != names[: len(known)]:
        # Some field in the middle keeps its default.
        places = [(columns.index(name), name) for name in known]
        return lambda values: row(**{name: values[place] for place, name in places})
    if tuple(known) == columns:
        return lambda values: row(*values)
    pick = [columns.index(name) for name in known]
    return lambda values: row(*[values[place] for place in pick])


class Tx:
    """Named queries on one connection. `now` is the database's time, read once, aware, in UTC."""

    def __init__(self, conn: psycopg.Connection[Any], limits: Limits | None = None) -> None:
        self.conn = conn
        self.limits = limits or Limits()
        self.rung = False
        self._now: datetime | None = None
        self.reading: Reading | None = None

    @property
    def now(self) -> datetime:
        """The time of this transaction: read on first use, so after the lock that comes first."""
        if self._now is None:
            asked_at = time.monotonic()
            self._now = cast(datetime, self.value("clock"))
            self.reading = Reading(self._now, asked_at)
        return self._now

    def carry(self, reading: Reading) -> None:
        """Use the time of a moment ago, carried on by our own clock, instead of reading it again."""
        age = time.monotonic() - reading.at
        if age < FRESH_SECONDS:
            self._now = reading.now + timedelta(seconds=age)
            self.reading = reading

    def take_clock(self, now: datetime) -> None:
        """Use this time instead of reading it."""
        self._now = now

    def reread_clock(self) -> None:
        """The row is held only now, and its timeline may have grown since the time was read: read it again."""
        self._now = None

    def ring(self) -> None:
        """Ask for the engine to be woken once this transaction has committed."""
        self.rung = True

    def part(self) -> AbstractContextManager[Any]:
        """A part of this transaction that may fail alone: what it wrote is undone then, and the rest stands."""
        return self.conn.transaction()

    def undo(self) -> None:
        """Undo all of this transaction, also where a statement of it has failed, and go on in a new one."""
        self.run("undo")
        self.reread_clock()

    def many(self, row: type[T], name: str, /, **params: Any) -> list[T]:
        """All rows of the query, each as `row` (a dataclass, or dict)."""
        factory: Any = dict_row if row is dict else row_of(row)
        with self.conn.cursor(row_factory=factory) as cursor:
            return cast(list[T], cursor.execute(cast(Any, queries()[name]), params).fetchall())

    def maybe(self, row: type[T], name: str, /, **params: Any) -> T | None:
        """The first row, or None."""
        rows = self.many(row, name, **params)
        return rows[0] if rows else None

    def one(self, row: type[T], name: str, /, **params: Any) -> T:
        """The first row. Raises NotFound where there is none."""
        found = self.maybe(row, name, **params)
        if found is None:
            raise NotFound("There is no such thing.")
        return found

    def value(self, name: str, /, **params: Any) -> Any:
        """The first column of the first row, or None."""
        with self.conn.cursor(row_factory=scalar_row) as cursor:
            return cursor.execute(cast(Any, queries()[name]), params).fetchone()

    def values(self, name: str, /, **params: Any) -> list[Any]:
        """The first column of every row."""
        with self.conn.cursor(row_factory=scalar_row) as cursor:
            return cursor.execute(cast(Any, queries()[name]), params).fetchall()

    def run(self, name: str, /, **params: Any) -> int:
        """Execute; the number of rows touched."""
        return self.conn.execute(cast(Any, queries()[name]), params).rowcount


Begin = Callable[[], AbstractContextManager[Tx]]


class Session:
    """One connection of its own, for the engine: it waits for nobody's pool, and says when it is broken."""

    def __init__(self, url: str, limits: Limits | None = None, patience: float | None = None) -> None:
        self.conn = connect(url, lock_ms=LOCK_MS)
        if patience is not None:
            self.conn.patience = patience
        if self.conn.prepare_threshold is not None:
            # Behind a pooler nothing is prepared, and what is set here would be left to others.
            Tx(self.conn).run("plan_once")
        self.limits = limits or Limits()

    @contextmanager
    def begin(self) -> Iterator[Tx]:
        """One transaction. Raises psycopg.Error."""
        with self.conn.transaction():
            yield Tx(self.conn, self.limits)

    def single(self) -> Tx:
        """Statements that are each a transaction of their own, with one reading of the clock."""
        return Tx(self.conn, self.limits)

    @property
    def broken(self) -> bool:
        """Whether the connection can no longer be used."""
        return self.conn.closed

    def cut(self) -> None:
        """End the connection under a statement that another thread waits for, which gets psycopg.OperationalError."""
        with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(self.conn.fileno())) as line:
            line.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Give the connection back to the server."""
        self.conn.close()


class Pooled(Patient):
    """A connection of the pool, which remembers when it was last given back (monotonic seconds)."""

    rested_at = 0.0


def sound(conn: Pooled) -> bool:
    """Whether a connection still works. One that was used a moment ago is only asked where its socket has something to
    say, as it does once the server has gone: an alert waits for the answer."""
    try:
        poll = select.poll()
        poll.register(conn.fileno(), select.POLLIN)
        if poll.poll(0) or time.monotonic() - conn.rested_at > TRUSTED_SECONDS:
            ConnectionPool.check_connection(conn)
        return True
    except psycopg.Error:
        return False


class Database:
    """A small pool of connections for the web, the command line and the tests."""

    def __init__(
        self,
        url: str,
        size: int = 5,
        doorbell: Doorbell | None = None,
        limits: Limits | None = None,
        wait: float = 3.0,
    ) -> None:
        self.url = url
        self.limits = limits or Limits()
        self.doorbell = doorbell or Doorbell()
        self.wait = wait
        self.pool: ConnectionPool[Pooled] = ConnectionPool(
            url,
            min_size=1,
            max_size=size,
            kwargs={"autocommit": True, "application_name": "escalade", "prepare_threshold": 3, **KEEPALIVE},
            configure=prepare_session,
            connection_class=Pooled,
            max_lifetime=1800,
            # How long it may pause between two tries while the database is away: alerts wait for the end of it.
            reconnect_timeout=RECONNECT_SECONDS,
            timeout=wait,
            open=True,
        )

    @contextmanager
    def connection(self, wait: float | None = None) -> Iterator[Pooled]:
        """A pooled connection. Raises Unavailable where none comes free in `wait` seconds, or the database is away."""
        conn = self._take(self.wait if wait is None else wait)
        try:
            yield conn
        except AWAY as error:
            if not isinstance(error, psycopg.OperationalError):
                # Another connection finds its way anew.
                conn.close()
            raise unavailable(error) from error
        finally:
            conn.rested_at = time.monotonic()
            self.pool.putconn(conn)

    def _take(self, wait: float) -> Pooled:
        """A connection that works. After a restart of the database all that rested are dead: they are thrown out one
        after the other, without the pauses that the pool's own check makes between them."""
        end = time.monotonic() + wait
        while True:
            try:
                conn = self.pool.getconn(max(0.05, end - time.monotonic()))
            except (PoolTimeout, PoolClosed) as error:
                raise Unavailable("The database is away or busy: try again in a few seconds.") from error
            if sound(conn):
                return conn
            conn.close()
            self.pool.putconn(conn)

    @contextmanager
    def begin(self) -> Iterator[Tx]:
        """One transaction; committed at the end, rolled back on any exception. Rings the doorbell if asked to."""
        with self.connection() as conn:
            with conn.transaction():
                tx = Tx(conn, self.limits)
                yield tx
                if tx.rung and self.doorbell.needs_notify():
                    tx.run("notify_engines")
        if tx.rung:
            self.doorbell.ring(tx.reading)

    @contextmanager
    def read(self) -> Iterator[Tx]:
        """Single statements, each its own transaction: for pages that read and hold no snapshot."""
        with self.connection() as conn:
            yield Tx(conn, self.limits)

    def close(self) -> None:
        """Give all connections back to the server."""
        self.pool.close()


def unavailable(error: psycopg.Error) -> Exception:
    """The refusal that a person gets for this error of the database."""
    log.warning("database: %s", str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__)
    if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
        return Unavailable("The database is read-only, as a standby is: try again once the primary is back.")
    return Unavailable("The database is away or busy: try again in a few seconds.")


def as_json(value: Any) -> Jsonb:
    """A value for a jsonb parameter."""
    return Jsonb(value)
