"""GET /metrics for Prometheus: what the code counts, and what the database says at the moment of the scrape."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from flask import Blueprint, Flask, Response
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from escalade import outage, overview, queue_health
from escalade.db import Tx
from escalade.errors import Forbidden
from escalade.holds import TRUST
from escalade.metrics import REGISTRY
from escalade.web.access import caller, needs
from escalade.web.context import context

blueprint = Blueprint("metrics", __name__)

KEPT = timedelta(days=365)
STATES = (queue_health.OK, queue_health.WATCH, queue_health.ACT)
RELATIONS = ("attempt_try", "incident", "incident_event", "notification_attempt", "notification_attempt_archive")


def install(app: Flask) -> None:
    """Put it on the application."""
    app.register_blueprint(blueprint)


@blueprint.get("/metrics")
@needs("viewer")
def show() -> Response:
    """Every metric, for a viewer's token or an admin in a browser."""
    who = caller()
    if who.kind == "session" and not who.may("admin"):
        raise Forbidden("Metrics are for tokens and admins.")
    scrape = CollectorRegistry()
    with context().db.read() as tx:
        scrape.register(Gauges(tx))
        text = generate_latest(REGISTRY) + generate_latest(scrape)
    return Response(text, content_type=CONTENT_TYPE_PLAIN_0_0_4)


class Gauges(Collector):
    """The gauges that are read from the database."""

    def __init__(self, tx: Tx) -> None:
        self.tx = tx

    def describe(self) -> list[Any]:
        """Nothing beforehand, or registering would read the database too."""
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """All of them, in the order of the contract."""
        yield from self._queue()
        yield from self._tables()
        seconds = self.tx.value("oldest_snapshot", now=self.tx.now)
        yield gauge("db_oldest_snapshot_seconds", "Age of the oldest open transaction.", seconds)
        yield from self._watch()
        yield from self._health()
        incidents = GaugeMetricFamily("escalade_incidents_open", "Open incidents.", labels=["status"])
        for status, count in overview.incident_counts(self.tx).items():
            incidents.add_metric([status], count)
        yield incidents

    def _watch(self) -> Iterator[GaugeMetricFamily]:
        strays = self.tx.value("doctor_strays", now=self.tx.now)
        yield gauge("strays", "Open incidents with nothing pending and no end.", strays)
        last = outage.latest(self.tx, KEPT)
        yield gauge("last_outage_seconds", "How long delivery was down the last time.", last.seconds if last else 0)
        yield gauge("last_outage_late_pages", "How many pages were late for it.", last.late_pages if last else 0)

    def _health(self) -> Iterator[GaugeMetricFamily]:
        value = GaugeMetricFamily("escalade_health_value", "Each sign of the queue's health.", labels=["sign"])
        state = GaugeMetricFamily(
            "escalade_health_state", "0 all is well, 1 watch, 2 act; absent where it cannot be seen.", labels=["sign"]
        )
        limit = GaugeMetricFamily(
            "escalade_health_threshold", "From which value on a sign is at this level.", labels=["sign", "level"]
        )
        for sign in queue_health.examine(self.tx):
            limit.add_metric([sign.limit.name, queue_health.WATCH], sign.limit.watch)
            limit.add_metric([sign.limit.name, queue_health.ACT], sign.limit.act)
            if sign.value is not None:
                value.add_metric([sign.limit.name], sign.value)
                state.add_metric([sign.limit.name], STATES.index(sign.state))
        yield from (value, state, limit)

    def _queue(self) -> Iterator[GaugeMetricFamily]:
        state = self.tx.one(dict, "gauges", now=self.tx.now)
        yield gauge("queue_due", "Attempts that are due and not yet claimed.", state["due"])
        yield gauge("queue_oldest_due_seconds", "How late the latest of them is.", state["oldest"])
        yield gauge("in_flight", "Attempts in the air.", state["in_flight"])
        yield gauge("failed", "Attempts that failed for good and were not replayed.", state["failed"])
        yield gauge("leases_overdue", "Leases that ran out and were not taken back yet.", state["overdue"])
        held = GaugeMetricFamily("escalade_held", "Due messages that wait, by what holds them.", labels=["reason"])
        for reason, count in self.tx.one(dict, "held_attempts", now=self.tx.now, trust=TRUST).items():
            held.add_metric([reason], count)
        yield held

    def _tables(self) -> Iterator[GaugeMetricFamily]:
        dead = GaugeMetricFamily("escalade_db_dead_tuples", "Rows that wait for vacuum.", labels=["table"])
        vacuumed = GaugeMetricFamily(
            "escalade_db_last_autovacuum_seconds",
            "Seconds since the last autovacuum; absent before it.",
            labels=["table"],
        )
        size = GaugeMetricFamily("escalade_db_bytes", "Size with indexes.", labels=["relation"])
        for row in self.tx.many(dict, "table_sizes", now=self.tx.now, relations=list(RELATIONS)):
            dead.add_metric([row["relation"]], row["dead"])
            size.add_metric([row["relation"]], row["bytes"])
            if row["vacuumed"] is not None:
                vacuumed.add_metric([row["relation"]], row["vacuumed"])
        yield from (dead, vacuumed, size)


def gauge(name: str, help_text: str, value: float) -> GaugeMetricFamily:
    """One number without labels."""
    return GaugeMetricFamily(f"escalade_{name}", help_text, value=value)
