"""Pages delivered over real HTTP, beside a bare pool of `requests` threads of the same size."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import requests

from bench.drain import LEFT, ROWS
from bench.sink import sink
from escalade.delivery import Links
from escalade.dispatch import Settings
from escalade.doorbell import Doorbell
from escalade.engine import Engine
from escalade.health import Health
from escalade.senders import Senders
from escalade.tokens import Signer
from escalade.transports import TRANSPORTS, Network

# The rows of the drain, to a webhook. They name a hundred destinations, so no gate holds what the pool would send.
TO_WEBHOOK = """
update notification_attempt set transport = 'webhook'
where transport = 'nothing'
"""
CHANNEL = """
insert into channel (name, kind, address, updates, pace_seconds, destination)
values ('delivered', 'webhook', %s, false, 0, 'webhook:127.0.0.1')
on conflict (name) do update set address = excluded.address
returning id
"""


def delivered(url: str, senders: int, pages: int, pause: float = 0.0) -> float:
    """Pages a second from the queue to the receiver and recorded, by one engine."""
    with sink(pause) as address, psycopg.connect(url, autocommit=True) as conn:
        conn.execute("delete from notification_attempt")
        channel = conn.execute(CHANNEL, [address]).fetchone()
        incident = conn.execute("select max(id) from incident").fetchone()
        assert channel is not None and incident is not None
        with conn.transaction():
            conn.execute(ROWS, {"rows": pages, "incident": incident[0], "channel": channel[0]})
            conn.execute(TO_WEBHOOK)
        conn.execute("vacuum analyze notification_attempt")
        bell = Doorbell()
        hands = Senders(senders, Network(allow_private=True), TRANSPORTS, bell.nudge)
        engine = Engine(url, Settings(), hands, Links("http://127.0.0.1", Signer(["bench"])), bell, Health())
        started = time.perf_counter()
        engine.start()
        while (left := conn.execute(LEFT).fetchone()) and left[0]:
            time.sleep(0.02)
        seconds = time.perf_counter() - started
        engine.stop()
        arrived = conn.execute("select count(*) from notification_attempt where status = 'DELIVERED'").fetchone()
        assert arrived == (pages,)
    return pages / seconds


def bare(threads: int, pages: int, pause: float = 0.0, *, keep: bool) -> float:
    """Posts a second by a thread pool of `requests`, and no database at all. `keep`: each thread keeps its connection,
    which we do not; else each post makes its own, as ours do."""
    own = threading.local()

    def post(number: int) -> None:
        if not hasattr(own, "session"):
            own.session = requests.Session()
        sender = own.session if keep else requests
        sender.post(address, json={"title": f"Page {number}"}, timeout=10).raise_for_status()

    with sink(pause) as address, ThreadPoolExecutor(threads) as pool:
        started = time.perf_counter()
        for done in [pool.submit(post, number) for number in range(pages)]:
            done.result()
        return pages / (time.perf_counter() - started)
