"""Alerts that come in, and people who acknowledge and resolve, whatever is broken: each asks until it is answered."""

import http.client
import json
import random
import threading
import time
import urllib.request
from typing import Any

from bench.chaos.record import Answer, Record
from bench.chaos.stage import Stage
from bench.process import KEY

PAUSE = 0.05
# Of so many incidents one is acknowledged or, in turn, resolved.
STOPPED = 8


class Alerts:
    """Sends `count` alerts, not past `limit`, which grows as the faults go on."""

    def __init__(self, stage: Stage, record: Record, token: str, count: int, rate: float) -> None:
        self.stage = stage
        self.record = record
        self.token = token
        self.count = count
        self.rate = rate
        self.limit = 0
        self.sent = 0
        self.over = threading.Event()
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self._run, args=(number,), daemon=True) for number in range(4)]

    def start(self) -> None:
        """Begin."""
        for thread in self.threads:
            thread.start()

    def wait(self, limit: int) -> None:
        """Let alerts come in up to this number, and wait until they have."""
        self.limit = min(limit, self.count)
        while self.sent < self.limit:
            time.sleep(0.02)

    def hurry(self) -> None:
        """Where all that may come in has come: let in one that belongs behind the next fault."""
        if self.sent >= self.limit:
            self.limit = min(self.limit + 1, self.count)

    def finish(self) -> None:
        """Send the rest and wait for the last answer."""
        self.wait(self.count)
        self.over.set()
        for thread in self.threads:
            thread.join()

    def _run(self, number: int) -> None:
        rng = random.Random(number)
        while not self.over.is_set():
            with self.lock:
                mine = self.sent if self.sent < self.limit else None
                self.sent += mine is not None
            if mine is None:
                time.sleep(0.01)
                continue
            incident = self._alert(mine, rng)
            self.record.accepted.add(incident)
            if mine % STOPPED == 0:
                verb = "acknowledge" if mine % (2 * STOPPED) else "resolve"
                self.record.answers.append(self._stop(incident, verb, rng))
            time.sleep(len(self.threads) / self.rate)

    def _alert(self, number: int, rng: random.Random) -> int:
        body = {"title": f"alert {number}", "severity": "critical", "dedup_key": f"alert-{number}"}
        answer = self._ask(f"/hooks/{KEY}", body, rng)
        return int(answer["incidents"][0]["id"])

    def _stop(self, incident: int, verb: str, rng: random.Random) -> Answer:
        answer = self._ask(f"/api/v1/incidents/{incident}/{verb}", {}, rng)
        named = frozenset(int(page["attempt_id"]) for page in answer["in_flight"])
        return Answer(incident, time.time(), named)

    def _ask(self, path: str, body: dict[str, Any], rng: random.Random) -> Any:
        """Ask one process or another until one of them answers."""
        headers = {"content-type": "application/json", "authorization": f"Bearer {self.token}"}
        while True:
            url = rng.choice(self.stage.apps).url + path
            try:
                asked = urllib.request.Request(url, json.dumps(body).encode(), headers)
                with urllib.request.urlopen(asked, timeout=3) as answer:
                    return json.load(answer)
            except (OSError, ValueError, http.client.HTTPException):  # killed in the middle of its answer, too
                time.sleep(PAUSE)
