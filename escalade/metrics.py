"""Prometheus metrics that code counts as it goes; the gauges that are read from the database are in web/metrics."""

from functools import lru_cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.samples import Sample

REGISTRY = CollectorRegistry()

QUICK = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
LATE = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200, 43200)

attempts_total = Counter(
    "escalade_attempts_total",
    "Tries that ended, by what became of them.",
    ["kind", "transport", "outcome"],
    registry=REGISTRY,
)
page_delay = Histogram(
    "escalade_page_delay_seconds", "From first due to the start of the send.", buckets=LATE, registry=REGISTRY
)
send_seconds = Histogram(
    "escalade_send_seconds", "One send, from start to answer.", ["transport"], buckets=QUICK, registry=REGISTRY
)
tick_seconds = Histogram("escalade_tick_seconds", "One round of the engine.", buckets=QUICK, registry=REGISTRY)
claim_seconds = Histogram("escalade_claim_seconds", "One claim statement.", buckets=QUICK, registry=REGISTRY)
claimed_rows = Histogram(
    "escalade_claimed_rows",
    "Rows one claim took.",
    buckets=(0, 1, 2, 4, 8, 16, 32, 64, 256, 1024),
    registry=REGISTRY,
)
claims_empty = Counter("escalade_claims_empty_total", "Claims that took nothing.", registry=REGISTRY)
claims_short = Counter(
    "escalade_claims_short_total", "Claims that took fewer rows than asked for while more were due.", registry=REGISTRY
)
leases_expired = Counter("escalade_leases_expired_total", "Leases that ran out and were taken back.", registry=REGISTRY)
late_results = Counter(
    "escalade_late_results_total", "Results that came after their lease.", ["accepted"], registry=REGISTRY
)
outages = Counter("escalade_outages_total", "Times without delivery that this process found.", registry=REGISTRY)
restarts = Counter(
    "escalade_thread_restarts_total", "Threads that ended and were started again.", ["thread"], registry=REGISTRY
)
stalls = Counter("escalade_thread_stalls_total", "Threads that stood still.", ["thread"], registry=REGISTRY)
deadman_pings = Counter(
    "escalade_deadman_pings_total", "Pings of the dead man's switch that were heard.", registry=REGISTRY
)
retries = Counter("escalade_retries_total", "Sends that will be tried again.", ["transport"], registry=REGISTRY)
last_tick = Gauge(
    "escalade_engine_last_tick_timestamp_seconds", "When the engine last went round, Unix time.", registry=REGISTRY
)
listener_up = Gauge("escalade_listener_up", "1 while the doorbell by NOTIFY works.", registry=REGISTRY)


@lru_cache(maxsize=64)
def send_time(transport: str) -> Histogram:
    """`send_seconds` of a transport: looked up once, as every page counts."""
    return send_seconds.labels(transport)


def value(counter: Counter) -> float:
    """What a counter without labels stands at."""
    return next(sample.value for sample in _samples(counter) if sample.name.endswith("_total"))


def total(histogram: Histogram) -> float:
    """How many observations a histogram without labels has."""
    return next(sample.value for sample in _samples(histogram) if sample.name.endswith("_count"))


def quantile(histogram: Histogram, part: float) -> float:
    """The bound below which this part of a histogram's observations lies; the largest bound for what lies above all."""
    buckets = [sample for sample in _samples(histogram) if sample.name.endswith("_bucket")]
    wanted = part * buckets[-1].value
    bounds = [float(bucket.labels["le"]) for bucket in buckets if bucket.value >= wanted]
    return bounds[0] if bounds[0] != float("inf") else float(buckets[-2].labels["le"])


def _samples(metric: Counter | Histogram) -> list[Sample]:
    return [sample for family in metric.collect() for sample in family.samples]
