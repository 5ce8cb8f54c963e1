"""From when on each sign of the queue's health is to be watched, and when to act, in numbers; and what to do then."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limit:
    """From when on to watch, and to act, and what to do then; `unit` is how the numbers are written."""

    name: str
    label: str
    unit: str
    watch: float
    act: float
    advice: str


def written(value: float, unit: str) -> str:
    """A number with its unit, no more exact than it is of use."""
    if unit == "share":
        return f"{100 * value:.0f} %"
    digits = 0 if unit in ("", "rows") or value >= 100 else 2 if value < 1 else 1
    return f"{value:,.{digits}f} {unit}".rstrip()


THROUGHPUT = Limit(
    "throughput",
    "Messages a second",
    "a second",
    200,
    1000,
    "one Postgres is good for some thousands; docs/scaling.md says what comes next",
)
ORDER = Limit(
    "strict_order",
    "A need for strict order",
    "",
    1,
    1,
    "pages leave in the order they are due, several at a time; a receiver that needs them one after the other is a"
    " reason for a log such as Kafka (docs/scaling.md)",
)
CONSUMERS = Limit(
    "consumers",
    "Other readers of the events",
    "",
    1,
    3,
    "a second reader takes the events by logical replication (docs/scaling.md), never from the queue's own table",
)
CLAIM = Limit(
    "claim_seconds",
    "Slowest claims here (99 of 100 are faster)",
    "s",
    0.05,
    0.5,
    "look at dead rows and the oldest snapshot below",
)
CONTENTION = Limit(
    "claims_short_ratio",
    "Claims that found rows held by others",
    "share",
    0.2,
    0.5,
    "too many processes for this queue: run fewer, each with more ESCALADE_SENDERS",
)
BACKLOG = Limit(
    "backlog",
    "Due and not yet sent",
    "rows",
    1000,
    10_000,
    "/attempts says what each waits for; more ESCALADE_SENDERS where nothing holds them",
)
OLDEST = Limit(
    "oldest_due_seconds",
    "The oldest of them is late by",
    "s",
    60,
    300,
    "see what it waits for at /attempts",
)
LEASES = Limit(
    "leases_overdue_seconds",
    "A lease ran out and was not taken back for",
    "s",
    5,
    60,
    "no engine goes round: look at /readyz and the log of each process",
)
DEAD = Limit(
    "dead_rows",
    "Dead rows in the queue's table",
    "rows",
    20_000,
    200_000,
    "autovacuum does not keep up: end old transactions (below), then: vacuum notification_attempt",
)
SIZE = Limit(
    "queue_gigabytes",
    "Size of the queue's table and indexes",
    "GB",
    2,
    20,
    "shorten ESCALADE_ARCHIVE_AFTER_DAYS; after a burst: reindex table concurrently notification_attempt",
)
VACUUMED = Limit(
    "autovacuum_age_seconds",
    "Last autovacuum of a table with dead rows",
    "s",
    3600,
    86_400,
    "see that autovacuum is on and not starved by larger tables",
)
SNAPSHOT = Limit(
    "snapshot_seconds",
    "Oldest snapshot",
    "s",
    600,
    3600,
    "dead rows stay until it ends: end it, with pg_terminate_backend where it must be",
)
HORIZON = Limit(
    "horizon_transactions",
    "Transactions since the oldest that still keeps dead rows",
    "",
    500_000,
    5_000_000,
    "end the session; for a prepared transaction: rollback prepared; for a slot: pg_drop_replication_slot, or start its"
    " reader; for a replica: end its long query, or turn hot_standby_feedback off there",
)
LOCKS = Limit(
    "lock_wait_seconds",
    "Longest wait for a lock now",
    "s",
    2,
    10,
    "pg_blocking_pids() names who holds it",
)
SLRU = Limit(
    "slru_waits",
    "Sessions that wait for transaction states (SLRU)",
    "",
    2,
    10,
    "some program takes many row locks or savepoints: look in pg_stat_activity",
)
SLRU_READS = Limit(
    "slru_reads_per_second",
    "Pages of transaction states (SLRU) read from disk a second",
    "a second",
    1000,
    10_000,
    "end old transactions and those with many savepoints or row locks; a larger subtransaction_buffers or"
    " multixact_member_buffers helps (Postgres 17)",
)
MULTIXACT = Limit(
    "multixact_age",
    "Age of the oldest multixact",
    "rows",
    400e6,
    1200e6,
    "run VACUUM FREEZE on the tables that are oldest",
)
WAL = Limit(
    "wal_megabytes_per_second",
    "WAL a second",
    "MB",
    32,
    100,
    "see that disks and replicas keep up with it",
)
REPLICA = Limit(
    "replica_lag_seconds",
    "Replica behind by",
    "s",
    10,
    60,
    "pages not yet there are lost with the primary: look at its network and load",
)
SLOTS = Limit(
    "idle_slot_gigabytes",
    "WAL held by replication slots that nobody reads",
    "GB",
    0.5,
    5,
    "drop the slot (pg_drop_replication_slot) or start its reader; set max_slot_wal_keep_size",
)
NOTIFY = Limit(
    "notification_queue",
    "Queue of notifications in use",
    "share",
    0.1,
    0.5,
    "a listening session does not read: end it, or every alert fails once this is full",
)
CONNECTIONS = Limit(
    "connections",
    "Connections in use",
    "share",
    0.7,
    0.9,
    "fewer processes, a smaller ESCALADE_DB_POOL, or a pooler",
)
