"""The queue's health: whether engines go round, what is late, and whether Postgres keeps up."""

from collections.abc import Iterator
from datetime import datetime

from escalade import outage, overview, queue_health
from escalade.checks.finding import Finding, ago, fault, ok, warning
from escalade.config import Config
from escalade.db import Tx

DEAD_ROWS = 20_000
SNAPSHOT_SECONDS = 600.0
RATE_SECONDS = 600
# Far below what one Postgres does, and the time to think about more: see docs/queue.md.
HIGH_RATE = 200.0


def engines(tx: Tx, config: Config) -> Iterator[Finding]:
    """When engines last went round."""
    row = tx.one(dict, "doctor_engines", fresh=tx.now - overview.ENGINE_STALE)
    if row["living"]:
        went = "went" if row["living"] == 1 else "each went"
        yield ok("engines", f"{row['living']}, {went} round within {overview.ENGINE_STALE.seconds} s")
    elif row["latest"] is not None:
        yield fault("engines", f"none has gone round for {_since(tx, row['latest'])}, so nothing is sent; {_START}")
    else:
        yield warning("engines", f"none runs, so nothing is sent; {_START}")


_START = "start one with: python app.py"


def _since(tx: Tx, at: datetime) -> str:
    return ago((tx.now - at).total_seconds())


def outages(tx: Tx, config: Config) -> Iterator[Finding]:
    """Whether delivery was down lately, and what that cost."""
    last = outage.latest(tx)
    if last is not None:
        text = f"delivery was down for {ago(last.seconds)}, until {last.ended_at:%d %b %H:%M:%S} UTC"
        yield warning("outage", f"{text}; {last.late_pages} pages were late")


def late(tx: Tx, config: Config) -> Iterator[Finding]:
    """What is due and has not left, and leases that have run out."""
    row = tx.one(dict, "gauges", now=tx.now)
    if row["oldest"] > config.late_seconds:
        living = tx.one(dict, "doctor_engines", fresh=tx.now - overview.ENGINE_STALE)["living"]
        text = f"{row['due']} due, the oldest for {ago(row['oldest'])}; "
        if living:
            yield warning("queue", f"{text}/attempts says what each waits for")
        else:
            yield fault("queue", f"{text}no engine takes them; {_START}")
    else:
        yield ok("queue", f"{row['due']} due, {row['in_flight']} in flight")
    if row["overdue"]:
        yield warning("leases", f"{row['overdue']} ran out and nobody has taken them back; see engines, above")


def failed(tx: Tx, config: Config) -> Iterator[Finding]:
    """What failed for good while somebody still has to be told, and incidents that nothing moves any more."""
    row = tx.one(dict, "doctor_failed")
    if row["needed"]:
        yield warning(
            "failed",
            f"{row['needed']} of incidents that nobody has acknowledged; look at /attempts for the reason, then:"
            " python app.py attempt replay --failed",
        )
    else:
        yield ok("failed", f"none that anybody still needs; {row['total']} in all")
    strays = tx.value("doctor_strays", now=tx.now)
    if strays:
        yield fault("incidents", f"{strays} open without a step to come and without an end; escalate or resolve them")


def vacuum(tx: Tx, config: Config) -> Iterator[Finding]:
    """Whether autovacuum keeps up with the queue's table, and what keeps it from that."""
    [row] = tx.many(dict, "table_sizes", now=tx.now, relations=["notification_attempt"])
    vacuumed = "never" if row["vacuumed"] is None else f"{ago(row['vacuumed'])} ago"
    state = f"{row['dead']:,} dead rows in the queue, last autovacuum {vacuumed}"
    if not tx.value("autovacuum_is_on"):
        yield fault("vacuum", f"autovacuum is off, so the queue becomes slower and slower; turn it on ({state})")
    elif row["dead"] > DEAD_ROWS:
        yield warning("vacuum", f"{state}; look for old transactions, and give autovacuum more to spend")
    else:
        yield ok("vacuum", state)
    oldest = tx.value("oldest_snapshot", now=tx.now)
    if oldest > SNAPSHOT_SECONDS:
        yield warning("vacuum", f"a transaction has been open for {ago(oldest)}, which keeps dead rows; end it")


def rate(tx: Tx, config: Config) -> Iterator[Finding]:
    """How much goes through, beside what one Postgres is good for."""
    done = tx.value("doctor_finished", now=tx.now, seconds=RATE_SECONDS)
    per_second = done / RATE_SECONDS
    text = f"messages ended in the last {ago(RATE_SECONDS)}: {done:,}, {per_second:.1f} a second"
    if per_second > HIGH_RATE:
        yield warning("rate", f"{text}; docs/queue.md says what to do beyond {HIGH_RATE:g}")
    else:
        yield ok("rate", f"{text} (one Postgres does {HIGH_RATE:g} with ease)")


def health(tx: Tx, config: Config) -> Iterator[Finding]:
    """Each sign of the queue's health that is past its threshold; one line where none is."""
    signs = queue_health.examine(tx, claims=False)  # the doctor makes none
    for sign in signs:
        note = f" ({sign.note})" if sign.note else ""
        text = f"{sign.limit.label}: {sign.shown}{note}; {sign.threshold}; {sign.limit.advice}"
        if sign.state == queue_health.ACT:
            yield fault(sign.limit.name, text)
        elif sign.state == queue_health.WATCH:
            yield warning(sign.limit.name, text)
    if all(sign.state in (queue_health.OK, queue_health.UNKNOWN) for sign in signs):
        yield ok("queue health", f"{len(signs)} signs, none past its threshold; /queue shows them, and the claims")
