"""The queue's health: whether engines go round, what is late, and whether Postgres keeps up."""

from collections.abc import Iterator
from datetime import datetime

from escalade import outage, overview, queue_health
from escalade.checks.finding import Finding, ago, fault, ok, warning
from escalade.config import Config
from escalade.db import Tx


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
    """Whether dead rows are cleared away at all."""
    if tx.value("autovacuum_is_on"):
        yield ok("vacuum", "autovacuum is on")
    else:
        yield fault("vacuum", "autovacuum is off, so the queue becomes slower and slower; turn it on")


def health(tx: Tx, config: Config) -> Iterator[Finding]:
    """Each sign of the queue's health beside its threshold, and what to do where it is past it."""
    levels = {queue_health.ACT: fault, queue_health.WATCH: warning}
    for sign in queue_health.examine(tx, claims=False):  # the doctor makes none
        note = f" ({sign.note})" if sign.note else ""
        advice = f"; {sign.limit.advice}" if sign.state in levels else ""
        yield levels.get(sign.state, ok)(
            sign.limit.name, f"{sign.limit.label}: {sign.shown}{note}; {sign.threshold}{advice}"
        )
