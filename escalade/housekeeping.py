"""What is old leaves in bounded batches, so that no claim ever waits for it.

The bound is one of rows, whoever they belong to: one incident may have a hundred thousand of them. No row that
somebody holds is waited for; it is left for a later batch.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

import psycopg

from escalade import attempts
from escalade.db import Begin, Tx

# So many rows, and so many incidents looked at, a transaction.
ROWS = 2000
INCIDENTS = 500


class TooSlow(Exception):
    """A batch took longer than the server lets a statement run: it is undone, and the connection is sound."""


def archive(begin: Begin, days: int) -> int:
    """Move finished attempts of incidents resolved more than `days` ago out of the hot table; how many. Raises
    TooSlow, as `prune` does."""
    with _batch(begin) as tx:
        return attempts.archive(tx, days)


def prune(begin: Begin, days: int, rows: int = ROWS) -> int:
    """Forget what is more than `days` old: resolved incidents with their attempts, tries and timeline, messages that
    belong to no incident, outages, and the audit; how many rows, at most `rows` of each. Incidents go last, once
    nothing belongs to them."""
    gone = 0
    for chore in (_incidents, _loose, _outages, _audit):
        with _batch(begin) as tx:
            gone += chore(tx, tx.now - timedelta(days=days), rows)
    return gone


@contextmanager
def _batch(begin: Begin) -> Iterator[Tx]:
    """One transaction. Raises TooSlow where psycopg's error would say that the database is away."""
    try:
        with begin() as tx:
            yield tx
    except psycopg.errors.QueryCanceled as error:
        raise TooSlow(str(error)) from error


def _incidents(tx: Tx, before: datetime, rows: int) -> int:
    ids = tx.values("incidents_to_prune", before=before, n=INCIDENTS)
    left = rows
    for look, forget in (("attempts_to_prune", "prune_attempts"), ("archived_to_prune", "prune_archived")):
        if ids and left > 0:
            left -= _attempts(tx, tx.values(look, ids=ids, n=left), forget, left)
    if ids and left > 0:
        left -= tx.run("prune_events", ids=ids, n=left)
    if ids and left > 0:
        left -= tx.run("prune_incidents", ids=ids[:left])
    return rows - left


def _loose(tx: Tx, before: datetime, rows: int) -> int:
    return _attempts(tx, tx.values("loose_to_prune", before=before, n=rows), "prune_archived", rows)


def _outages(tx: Tx, before: datetime, rows: int) -> int:
    return tx.run("prune_outages", before=before, n=rows)


def _audit(tx: Tx, before: datetime, rows: int) -> int:
    tx.run("allow_pruning")
    return tx.run("prune_audit", before=before, n=rows)


def _attempts(tx: Tx, ids: list[int], forget: str, rows: int) -> int:
    """Their tries first, and then as many of them as the bound leaves room for."""
    if not ids:
        return 0
    tries = tx.run("prune_tries", ids=ids, n=rows)
    return tries + (tx.run(forget, ids=ids[: rows - tries]) if tries < rows else 0)
