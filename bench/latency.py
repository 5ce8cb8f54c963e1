"""From an alert to the page's first byte at the receiver, by the client's clock, and the floor of this machine."""

import http.client
import json
import time
from urllib.parse import urlsplit

import psycopg

from bench.process import KEY, App
from tests.receiver import Receiver

WARM_UP = 20


def latency(app: App, phone: Receiver, count: int) -> list[float]:
    """Seconds from POST sent to page arrived, one alert after the other, each on a connection of its own."""
    return [one(app, phone, number) for number in range(count + WARM_UP)][WARM_UP:]


def one(app: App, phone: Receiver, number: int) -> float:
    """One alert and its page."""
    have = len(phone.arrived)
    body = json.dumps({"title": f"Disk full {number}", "severity": "critical", "dedup_key": f"bench-{number}"})
    conn = http.client.HTTPConnection(urlsplit(app.url).netloc, timeout=10)
    started = time.monotonic()
    conn.request("POST", f"/hooks/{KEY}", body, {"content-type": "application/json"})
    answer = conn.getresponse()
    answer.read()
    conn.close()
    assert answer.status == 202, answer.status
    [page] = phone.wait(have + 1)[have:]
    return page.at - started


def floor(url: str, phone: Receiver, count: int) -> list[float]:
    """What nobody could beat here: two commits and one HTTP POST."""
    found = []
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute("create table if not exists bench_floor (at timestamptz)")
        for _ in range(count + WARM_UP):
            have = len(phone.arrived)
            started = time.monotonic()
            for _ in range(2):
                conn.execute("insert into bench_floor values (clock_timestamp())")
            post = http.client.HTTPConnection(urlsplit(phone.url).netloc, timeout=10)
            post.request("POST", "/floor", b"{}", {"content-type": "application/json"})
            post.getresponse().read()
            post.close()
            [arrived] = phone.wait(have + 1)[have:]
            found.append(arrived.at - started)
        conn.execute("drop table bench_floor")
    phone.arrived.clear()
    return found[WARM_UP:]


def quantile(values: list[float], part: float) -> float:
    """The value below which this part of the values lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]
