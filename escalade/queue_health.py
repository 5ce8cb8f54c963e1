"""The queue's health: what Postgres and this process say of it, each beside its threshold and what to do.

One list, which `doctor`, /metrics and the page of the same name all show. The reads are cheap and lock nothing; what
this role may not see, or this version of Postgres does not know, says so and is no error.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from math import inf
from typing import Any

import psycopg

from escalade import metrics
from escalade import thresholds as at
from escalade.db import Tx
from escalade.growth import Growth
from escalade.thresholds import Limit, written

RATE_SECONDS = 60
# An average over less says nothing.
AVERAGE_SECONDS = 600.0
# Of fewer claims a share says nothing.
ENOUGH_CLAIMS = 200
GIGABYTE = 1024.0**3
growth = Growth()
OK, WATCH, ACT, UNKNOWN = "ok", "watch", "act", "unknown"


@dataclass(frozen=True, slots=True)
class Sign:
    """One reading: `value` None where it cannot be seen; `note` says more about it."""

    limit: Limit
    value: float | None
    note: str = ""

    @property
    def state(self) -> str:
        """ok, watch, act or unknown."""
        if self.value is None:
            return UNKNOWN
        return ACT if self.value >= self.limit.act else WATCH if self.value >= self.limit.watch else OK

    @property
    def shown(self) -> str:
        """The value as people read it."""
        if self.value is None:
            return "cannot be seen"
        if self.value == inf:
            return "past all bounds"
        return written(self.value, self.limit.unit)

    @property
    def threshold(self) -> str:
        """The two thresholds as people read them."""
        watch, act = (written(value, self.limit.unit) for value in (self.limit.watch, self.limit.act))
        return f"watch from {watch}, act from {act}"


def examine(tx: Tx, *, claims: bool = True) -> list[Sign]:
    """Every sign, the three signals first; without `claims`, none of this process's own claims. Single statements: a
    caller's open transaction would end with a refusal."""
    looks = [(look, limits) for look, limits in LOOKS if claims or look is not _claims]
    # A role that may not see the sessions of others finds none there, which is no good news.
    blind = not tx.value("sees_all_sessions")
    return [
        sign
        for look, limits in looks
        for sign in (_hidden(limits) if blind and look in SESSIONS else _seen(tx, look, limits))
    ]


def _hidden(limits: tuple[Limit, ...]) -> list[Sign]:
    return [Sign(limit, None, "grant pg_read_all_stats to this role to see the sessions of others") for limit in limits]


def _seen(tx: Tx, look: Callable[[Tx], Iterable[Sign]], limits: tuple[Limit, ...]) -> list[Sign]:
    try:
        return list(look(tx))
    except psycopg.ProgrammingError as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
    except (psycopg.errors.QueryCanceled, psycopg.errors.LockNotAvailable):
        why = "the answer took too long: something holds a lock, or the server is busy"
    except psycopg.errors.ObjectNotInPrerequisiteState:
        why = "only the primary knows it"
    return [Sign(limit, None, why) for limit in limits]


def _signals(tx: Tx) -> Iterator[Sign]:
    done = tx.value("health_rate", now=tx.now, seconds=RATE_SECONDS)
    yield Sign(at.THROUGHPUT, done / RATE_SECONDS, f"in the last {RATE_SECONDS} s")
    yield Sign(at.ORDER, None, "nothing here can measure it: ask whoever receives")


def _consumers(tx: Tx) -> Iterator[Sign]:
    slots = tx.many(dict, "health_slots")
    readers = [slot["name"] for slot in slots if slot["kind"] == "logical" and slot["ours"]]
    yield Sign(at.CONSUMERS, len(readers), ", ".join(readers) or "no logical replication slot")
    yield _idle([slot for slot in slots if not slot["active"]])


def _idle(slots: list[dict[str, Any]]) -> Sign:
    if lost := [slot["name"] for slot in slots if slot["wal_status"] == "lost"]:
        return Sign(at.SLOTS, inf, f"{', '.join(lost)} went past max_slot_wal_keep_size: drop it, and begin anew")
    names = ", ".join(f"{slot['name']} ({slot['wal_status'] or 'unknown'})" for slot in slots)
    return Sign(at.SLOTS, sum(slot["held"] or 0.0 for slot in slots) / GIGABYTE, names)


def _claims(tx: Tx) -> Iterator[Sign]:
    """Of this process: one that does not run the engine knows nothing."""
    claims = metrics.total(metrics.claim_seconds)
    if not claims:
        for limit in (at.CLAIM, at.CONTENTION):
            yield Sign(limit, None, "this process has made no claim; ask /metrics of one that has")
        return
    yield Sign(at.CLAIM, metrics.quantile(metrics.claim_seconds, 0.99), f"of {claims:,.0f} since the start")
    if claims < ENOUGH_CLAIMS:
        yield Sign(at.CONTENTION, None, f"fewer than {ENOUGH_CLAIMS} claims so far")
    else:
        yield Sign(at.CONTENTION, metrics.value(metrics.claims_short) / claims)


def _backlog(tx: Tx) -> Iterator[Sign]:
    lanes = tx.many(dict, "health_backlog", now=tx.now)
    note = ", ".join(f"{lane['due']:,} in the {lane['lane']} lane" for lane in lanes)
    yield Sign(at.BACKLOG, sum(lane["due"] for lane in lanes), note)
    yield Sign(at.OLDEST, max(lane["oldest"] for lane in lanes))
    row = tx.one(dict, "health_leases", now=tx.now)
    yield Sign(at.LEASES, row["oldest"], f"{row['overdue']:,} of them")


def _table(tx: Tx) -> Iterator[Sign]:
    row = tx.one(dict, "health_table", now=tx.now)
    running = "" if row["percent"] is None else f", a vacuum is at {row['percent']} %"
    yield Sign(at.DEAD, row["dead"], f"of {row['live'] + row['dead']:,}{running}")
    tables, indexes = row["table_bytes"] / GIGABYTE, row["index_bytes"] / GIGABYTE
    yield Sign(at.SIZE, tables + indexes, f"{tables:.2f} GB of rows, {indexes:.2f} GB of indexes")
    due = row["dead"] >= at.DEAD.watch
    vacuumed = row["vacuumed"]
    note = "never yet" if vacuumed is None else f"{row['vacuums']:,} in all"
    if due:
        yield Sign(at.VACUUMED, vacuumed if vacuumed is not None else at.VACUUMED.watch, note)
    else:
        yield Sign(
            at.VACUUMED, None if vacuumed is None else min(vacuumed, at.VACUUMED.watch - 1), f"{note}, nothing to do"
        )


def _snapshot(tx: Tx) -> Iterator[Sign]:
    row = tx.maybe(dict, "health_snapshot", now=tx.now)
    yield Sign(at.SNAPSHOT, row["age"] if row else 0.0, row["who"] if row else "nobody holds one")
    row = tx.maybe(dict, "health_horizon")
    yield Sign(at.HORIZON, row["age"] if row else 0, row["who"] if row else "nothing holds any back")


def _waits(tx: Tx) -> Iterator[Sign]:
    row = tx.one(dict, "health_waits", now=tx.now)
    yield Sign(at.LOCKS, row["longest"], f"{row['locks']} sessions wait")
    yield Sign(at.SLRU, row["slru"])


def _multixact(tx: Tx) -> Iterator[Sign]:
    yield Sign(at.MULTIXACT, tx.one(dict, "health_multixact")["age"])


def _slru(tx: Tx) -> Iterator[Sign]:
    rows = tx.many(dict, "health_slru")
    caches = ", ".join(f"{row['cache']}: {row['read']:,}" for row in rows if row["read"])
    total, since = sum(row["read"] for row in rows), min((row["since"] for row in rows), default=None)
    value, note = _rate(tx, "slru", total, since)
    yield Sign(at.SLRU_READS, value, f"{note}; in all {caches or 'none'}")


def _wal(tx: Tx) -> Iterator[Sign]:
    row = tx.one(dict, "health_wal")
    value, note = _rate(tx, "wal", row["bytes"] / 1024**2, row["since"])
    yield Sign(at.WAL, value, note)


def _rate(tx: Tx, name: str, total: float, since: datetime | None) -> tuple[float | None, str]:
    """How fast a total of the statistics grows, a second, and what that is: an average of weeks hides every burst, so
    where this process has looked before, it is the worst between two looks."""
    info = tx.conn.info
    worst = growth.worst(f"{info.host}:{info.port}/{info.dbname}", name, tx.now, total)
    average = None if since is None else total / max((tx.now - since).total_seconds(), AVERAGE_SECONDS)
    if worst is None:
        return average, "on average since the statistics began; bursts do not show until this process looks again"
    return worst, f"the worst between two looks of the last ten minutes; on average {average or 0:.2f}"


def _replicas(tx: Tx) -> Iterator[Sign]:
    rows = tx.many(dict, "health_replicas")
    note = ", ".join(f"{row['name']}: {row['bytes'] / 1024**2:.1f} MB" for row in rows) or "no replica"
    yield Sign(at.REPLICA, max((row["seconds"] for row in rows), default=0.0), note)


def _notifications(tx: Tx) -> Iterator[Sign]:
    yield Sign(at.NOTIFY, tx.value("health_notifications"))


def _connections(tx: Tx) -> Iterator[Sign]:
    row = tx.one(dict, "health_connections")
    yield Sign(at.CONNECTIONS, row["used"] / row["most"], f"{row['used']} of {row['most']}")


LOOKS: tuple[tuple[Callable[[Tx], Iterable[Sign]], tuple[Limit, ...]], ...] = (
    (_signals, (at.THROUGHPUT, at.ORDER)),
    (_consumers, (at.CONSUMERS, at.SLOTS)),
    (_claims, (at.CLAIM, at.CONTENTION)),
    (_backlog, (at.BACKLOG, at.OLDEST, at.LEASES)),
    (_table, (at.DEAD, at.SIZE, at.VACUUMED)),
    (_snapshot, (at.SNAPSHOT, at.HORIZON)),
    (_waits, (at.LOCKS, at.SLRU)),
    (_slru, (at.SLRU_READS,)),
    (_multixact, (at.MULTIXACT,)),
    (_wal, (at.WAL,)),
    (_replicas, (at.REPLICA,)),
    (_notifications, (at.NOTIFY,)),
    (_connections, (at.CONNECTIONS,)),
)
SESSIONS = (_snapshot, _waits, _replicas, _connections)
