"""Forward-only migrations: plain SQL files, in order, each in its transaction, under an advisory lock.

Killing it half-way is harmless: what had begun is rolled back, and the next run goes on from there. The lock is
of the transaction, not of the session, so it also works through a transaction pooler.
"""

import logging
from pathlib import Path
from typing import Any, cast

import psycopg

from escalade.db import ROOT, Tx, connect
from escalade.errors import Refusal

log = logging.getLogger("escalade.migrate")

FOLDER = ROOT / "sql" / "migrations"
TRIES = 10


def migrate(url: str, folder: Path = FOLDER) -> list[str]:
    """Bring the schema up to date; the names of the files applied. Raises psycopg.Error."""
    with connect(url, lock_ms=60_000, statement_ms=0) as conn:
        return [path.stem for path in files(folder) if apply_patiently(conn, path)]


def files(folder: Path = FOLDER) -> list[Path]:
    """The migrations in order."""
    return sorted(folder.glob("*.sql"))


def apply_patiently(conn: psycopg.Connection[Any], path: Path) -> bool:
    """Apply one file, again where it met a deadlock: processes that go on beside it lock rows in another order."""
    for _ in range(TRIES - 1):
        try:
            return apply(conn, path)
        except psycopg.errors.DeadlockDetected:
            log.info("%s met a deadlock and begins again", path.stem)
    return apply(conn, path)


def apply(conn: psycopg.Connection[Any], path: Path) -> bool:
    """Apply one file unless it is applied already; whether it was applied now."""
    tx = Tx(conn)
    with conn.transaction():
        # Waits for another instance that migrates at the same time, then looks again.
        tx.run("lock_migrations")
        tx.run("create_migration_table")
        if path.stem in tx.values("applied_migrations"):
            return False
        conn.execute(cast(Any, path.read_text(encoding="utf-8")))
        tx.run("record_migration", name=path.stem, now=tx.now)
        return True


def pending(conn: psycopg.Connection[Any], folder: Path = FOLDER) -> list[str]:
    """The migrations this code needs and the database does not have."""
    tx = Tx(conn)
    if not tx.value("migration_table_exists"):
        return [path.stem for path in files(folder)]
    done = set(tx.values("applied_migrations"))
    return [path.stem for path in files(folder) if path.stem not in done]


def require_current(url: str) -> None:
    """Refuse to work on an old schema or none, with what to do. Raises Refusal or psycopg.OperationalError."""
    with connect(url) as conn:
        if not Tx(conn).value("migration_table_exists"):
            raise Refusal("The database has no schema yet; run: python app.py migrate")
        if pending(conn):
            raise Refusal("The database's schema is older than this program; run: python app.py migrate")
