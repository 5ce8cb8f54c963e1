"""Everybody at once: alerts, people, engines and deadlines on their own connections, with claims abandoned, answers
lost and backends ended, while a checker reads the invariants."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import psycopg

from escalade import attempts, climbing, incidents, opening
from escalade.attempts import Claimed, Outcome
from escalade.db import Session, Tx, connect
from escalade.delivery import message_key
from escalade.errors import Refusal
from escalade.inbound.base import Event
from escalade.ladder import Target
from tests.interleavings.hands import ANYWHERE
from tests.interleavings.invariants import violations

LEASE, DEADLINE = 0.5, 0.25
KEYS = 10
VERBS = (
    """acknowledge resolve unacknowledge reopen snooze reassign escalate replayed kills escalate_due escalate_early
    wake_due reap recovered results""".split()
    + ["lost results"]
)


class StepRaises(Exception):
    """What some ladders raise, so that put-off and skipped steps are part of it."""


@dataclass
class Start:
    """A send that began: which claim of which attempt, and when (monotonic)."""

    id: int
    seq: int
    at: float


@dataclass
class Acknowledged:
    """An answer to an acknowledgement that changed something, and when the caller had it (monotonic)."""

    incident_id: int
    round: int
    since: datetime
    at: float
    named: frozenset[int]


@dataclass
class Record:
    """What the threads saw. Appending to a list is atomic."""

    starts: list[Start] = field(default_factory=list)
    claims: list[tuple[int, int]] = field(default_factory=list)
    acknowledged: list[Acknowledged] = field(default_factory=list)
    recorded: list[int] = field(default_factory=list)
    accepted: list[int] = field(default_factory=list)
    messages: list[tuple[frozenset[str], str]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    unknown_alerts: int = 0
    verbs: Counter[str] = field(default_factory=Counter)


class Hammer:
    """Runs for a while, then drains the queue."""

    def __init__(self, url: str, service_id: int, targets: list[Target], seed: int) -> None:
        self.url = url
        self.service_id = service_id
        self.targets = targets
        self.seed = seed
        self.record = Record()
        self.stopping = threading.Event()
        self.draining = threading.Event()

    def run(self, seconds: float) -> None:
        """Hammer for so long, and on a busy machine longer, until every verb has had its turn."""
        people = [self.alerts, self.alerts, self.person, self.person, self.person]
        engines = [self.engine, self.engine, self.ladder, self.ladder]
        threads = [
            threading.Thread(target=self._keep_going, args=(work, number), daemon=True)
            for number, work in enumerate([*people, *engines, self.checker, self.killer])
        ]
        for thread in threads:
            thread.start()
        begun = time.monotonic()
        while (passed := time.monotonic() - begun) < seconds or (self.missing() and passed < 3 * seconds):
            time.sleep(0.1)
        self.stopping.set()
        for thread in threads:
            thread.join(20)
            assert not thread.is_alive(), "a thread of the hammer hangs"

    def missing(self) -> list[str]:
        """The verbs that have not come to anything yet."""
        return [verb for verb in VERBS if self.record.verbs[verb] == 0]

    def _keep_going(self, work: Callable[["Worker"], None], number: int) -> None:
        worker = Worker(self, random.Random(self.seed * 100 + number))
        while not self.stopping.is_set():
            try:
                work(worker)
            except (Refusal, StepRaises) as error:
                self.record.verbs[type(error).__name__] += 1
            except psycopg.Error as error:
                self._judge(error)
                worker.close()
            except Exception as error:
                self.record.faults.append(f"{work.__name__}: {error!r}")
        worker.close()

    def _judge(self, error: psycopg.Error) -> None:
        """A connection that was ended, and a lock waited for in vain, are no fault; anything else is."""
        lost = isinstance(error, psycopg.OperationalError) and error.sqlstate in (None, "57P01", "08006", "57P02")
        if lost or isinstance(error, psycopg.errors.LockNotAvailable):
            self.record.verbs["lost" if lost else "LockNotAvailable"] += 1
        else:
            self.record.faults.append(f"{error.sqlstate} {error}")

    def alerts(self, worker: "Worker") -> None:
        """One alert, most of them triggers."""
        key = f"key-{worker.rng.randrange(KEYS)}"
        action = worker.rng.choices(["trigger", "resolve", "acknowledge"], [12, 2, 1])[0]
        event = Event(action, "It broke", severity="critical", dedup_key=key)
        source = opening.Source(self.service_id, "api", None, "integration:api/prom")
        try:
            with worker.begin() as tx:
                done = opening.accept(tx, source, event)
        except psycopg.Error:
            self.record.unknown_alerts += action == "trigger"
            raise
        if action == "trigger":
            assert done.id is not None, "an alert was accepted and opened nothing"
            self.record.accepted.append(done.id)
        worker.pause(0.04)

    def person(self, worker: "Worker") -> None:
        """One thing that a person does to one of the latest incidents."""
        with worker.begin() as tx:
            latest = [row["id"] for row in tx.many(dict, "list_incidents", **_LATEST)]
        if latest:
            worker.act(worker.rng.choice(latest))
        worker.pause(0.1)

    def ladder(self, worker: "Worker") -> None:
        """What an engine does as time passes."""
        verb = worker.rng.choice([climbing.escalate_due, climbing.escalate_early, climbing.wake_due])
        self.record.verbs[verb.__name__] += verb(worker.begin)
        if worker.rng.random() < 0.3:
            with worker.begin() as tx:
                self.record.verbs["reap"] += attempts.reap(tx)
        worker.pause(0.01)

    def engine(self, worker: "Worker") -> None:
        """One claim, what becomes of it, and what came back in the meantime."""
        worker.claim()
        worker.settle()
        worker.pause(0.005)

    def checker(self, worker: "Worker") -> None:
        """Read the invariants from a snapshot."""
        for found in violations(worker.session().conn):
            self.record.faults.append(found)
        self.record.verbs["checks"] += 1
        worker.pause(0.1)

    def killer(self, worker: "Worker") -> None:
        """End a backend of somebody."""
        ended = worker.session().conn.execute(
            """select pg_terminate_backend(pid) from (select pid from pg_stat_activity
            where application_name = 'escalade' and datname = current_database() and pid <> pg_backend_pid()
            order by random() limit 1) x"""
        )
        self.record.verbs["kills"] += ended.rowcount
        worker.pause(0.6)


_LATEST = {"statuses": None, "service": None, "before": None, "n": 2 * KEYS}


class Worker:
    """A thread's connection, its dice and, for an engine, what it has in its hands."""

    def __init__(self, hammer: Hammer, rng: random.Random) -> None:
        self.hammer, self.record, self.rng = hammer, hammer.record, rng
        self.current: Session | None = None
        self.owner = f"owner-{rng.random()}"
        self.air: list[tuple[float, Outcome]] = []

    def session(self) -> Session:
        """The connection; made again after a loss, and then what was claimed unheard is given back."""
        if self.current is None or self.current.broken:
            self.current = Session(self.hammer.url)
            known = [(outcome.id, outcome.seq) for _, outcome in self.air]
            self.record.verbs["recovered"] += attempts.recover(self.current.single(), self.owner, known)
        return self.current

    @contextmanager
    def begin(self) -> Iterator[Tx]:
        """One transaction, now and then with a delay before its end."""
        with self.session().begin() as tx:
            yield tx
            if self.rng.random() < 0.1:
                self.pause(0.02)

    def pause(self, most: float) -> None:
        """Anything up to `most` seconds."""
        time.sleep(self.rng.random() * most)

    def close(self) -> None:
        """Let go of the connection."""
        if self.current is not None:
            self.current.close()
        self.current = None

    def act(self, incident_id: int) -> None:
        """One verb of a person."""
        verb = self.rng.choice(
            ["acknowledge", "acknowledge", "resolve", "unacknowledge", "snooze", "reopen", "reassign", "escalate"]
            + ["replay", "replay"]
        )
        if verb == "acknowledge":
            return self.acknowledge(incident_id)
        with self.begin() as tx:
            if verb == "snooze":
                incidents.snooze(tx, incident_id, self.rng.choice([0, 1]), "alice")
            elif verb == "reassign":
                incidents.reassign(tx, incident_id, self.rng.choice(self.hammer.targets), "alice")
            elif verb == "replay":
                failed = attempts.failed_by_incident(tx)
                chosen = self.rng.choice(sorted(failed)) if failed else incident_id
                self.record.verbs["replayed"] += len(attempts.replay(tx, chosen, failed.get(chosen, []), "alice"))
            else:
                getattr(incidents, verb)(tx, incident_id, "alice")
        self.record.verbs[verb] += 1

    def acknowledge(self, incident_id: int) -> None:
        """Acknowledge, and remember which pages the answer named."""
        with self.begin() as tx:
            answer = incidents.acknowledge(tx, incident_id, "alice")
        if answer.changed:
            named = frozenset(page.attempt_id for page in answer.in_flight)
            since = answer.incident.acknowledged_at
            assert since is not None
            self.record.acknowledged.append(
                Acknowledged(incident_id, answer.incident.round, since, time.monotonic(), named)
            )
            self.record.verbs["acknowledge"] += 1

    def claim(self) -> None:
        """Claim a few; now and then the answer is lost, or this engine dies with them and another takes its place."""
        before = time.monotonic()
        lane = self.rng.choice(["high", "high", "low"])
        tx = self.session().single()
        rows = attempts.claim(tx, lane, self.owner, LEASE, self.rng.randint(1, 6), ANYWHERE)
        self.record.claims += [(row.id, row.claim_seq) for row in rows]
        fate = self.rng.random()
        if fate < 0.06:
            self.owner, self.air = f"owner-{self.rng.random()}", []
        elif fate < 0.09:
            self.close()
        else:
            self.pause(0.02)
            self.send(rows, before)

    def send(self, rows: list[Claimed], claimed: float) -> None:
        """Begin to send each message, unless it is too late; its result comes back at a random time."""
        tx = self.session().single()
        flagged = {row["id"]: row["cancel_requested"] for row in tx.many(dict, "messages_of", ids=[r.id for r in rows])}
        for head in {row.head for row in rows}:
            members = [row for row in rows if row.head == head and not flagged[row.id]]
            keys = frozenset(row.idempotency_key for row in members)
            if members:
                self.record.messages.append((keys, message_key([row.idempotency_key for row in members])))
            for row in rows:
                if row.head == head:
                    self.begin_send(row, claimed, row in members)

    def begin_send(self, row: Claimed, claimed: float, wanted: bool) -> None:
        """One row of a message that leaves."""
        now = time.monotonic()
        start = wanted and now < claimed + LEASE - DEADLINE
        word = self.rng.choices(["DELIVERED", "RETRY", "UNKNOWN", "FAILED", "LIMITED"], [3, 3, 1, 6, 1])[0]
        if self.hammer.draining.is_set():
            word = "DELIVERED"
        if start:
            self.record.starts.append(Start(row.id, row.claim_seq, now))
        outcome = Outcome(
            row.id, row.claim_seq, word if start else "RELEASE", row.claimed_at, row.claimed_at, 0.01, "said so"
        )
        took = self.rng.random() * 0.1 if self.rng.random() < 0.85 else LEASE * (1 + self.rng.random())
        self.air.append((now + took, outcome))

    def settle(self) -> None:
        """Record what has come back."""
        now = time.monotonic()
        back = [outcome for at, outcome in self.air if at <= now]
        if not back:
            return
        settled = attempts.settle(self.session().single(), self.owner, back)
        words = {(outcome.id, outcome.seq): outcome.outcome for outcome in back}
        self.air = [item for item in self.air if item[0] > now]
        for row in settled:
            self.record.verbs["lost results" if row.lost else "results"] += 1
            if row.status is not None and words[row.id, row.seq] == "DELIVERED":
                self.record.recorded.append(row.id)


def late_pages(record: Record, url: str) -> list[str]:
    """Pages that began after the answer to an acknowledgement that did not name them."""
    with connect(url) as conn:
        pages = conn.execute("select id, incident_id, round from notification_attempt where kind = 'PAGE'").fetchall()
        replays = conn.execute("select id, at from attempt_log where replays_now > replays_was").fetchall()
    of_incident: dict[int, list[tuple[int, int]]] = {}
    for attempt_id, incident_id, number in pages:
        of_incident.setdefault(incident_id, []).append((attempt_id, number))
    starts: dict[int, list[float]] = {}
    for start in record.starts:
        starts.setdefault(start.id, []).append(start.at)
    found = []
    for ack in record.acknowledged:
        for attempt_id, number in of_incident.get(ack.incident_id, []):
            replayed = any(one == attempt_id and at > ack.since for one, at in replays)
            if number <= ack.round and attempt_id not in ack.named and not replayed:
                found += [f"attempt {attempt_id} after {ack}" for at in starts.get(attempt_id, []) if at > ack.at]
    return found


def twice(items: list[Any]) -> list[Any]:
    """What occurs more than once."""
    return [item for item, count in Counter(items).items() if count > 1]
