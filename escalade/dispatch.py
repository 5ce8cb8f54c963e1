"""What this process has in its hands: it claims rows, gives them to senders, and records what became of them."""

import logging
import os
import random
import socket
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count

import psycopg

from escalade import attempts, delivery, metrics, subscriptions
from escalade.attempts import Claimed, Due, Outcome, Room, Settled
from escalade.db import Limits, Tx
from escalade.delivery import Content, Job, Links, Sent
from escalade.failures import Failures
from escalade.gates import Gates
from escalade.recorder import Recorded, Recorder, record
from escalade.sealing import Unreadable
from escalade.senders import Senders

log = logging.getLogger("escalade.dispatch")

# While the queue drains, what other processes know of the gates is read this often.
GATES_SECONDS = 0.05
GIVE_BACK_DELAY = 30.0
# How long rows that somebody holds are left alone.
REFUSED_SECONDS = 0.09
# So many outcomes are recorded in one statement, which has to end in its time; and with so many that wait for it
# nothing more is claimed, or leases would run out before what became of them is recorded.
TOGETHER = 1000
MOST_UNSETTLED = 5000


@dataclass(frozen=True, slots=True)
class Settings:
    """The engine's numbers, in seconds; `poll` None: 5 while the doorbell works, 1 without it."""

    lease: float = 20.0
    deadline: float = 10.0
    poll: float | None = None
    archive_days: int = 7
    keep_days: int = 365
    limits: Limits = field(default_factory=Limits)

    @property
    def patience(self) -> float:
        """How long to wait until outcomes are recorded. A send that took all its time has only the difference of lease
        and deadline left, in which they must be recorded over another connection."""
        return max(1.0, (self.lease - self.deadline) / 2)


class Dispatch:
    """The jobs in the air, the gates, and the outcomes that are not recorded yet."""

    def __init__(self, senders: Senders, links: Links, settings: Settings) -> None:
        self.senders = senders
        self.links = links
        self.settings = settings
        # Fresh at every start: a process that comes back under its old name must not own what it does not know.
        self.owner = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:12]}"
        self.gates = Gates(self.owner)
        self.rng = random.Random()
        self.failures = Failures()
        self.numbers = count()
        self.jobs: dict[int, Job] = {}
        self.lanes = {"high": 0, "low": 0}
        self.unsettled: list[Outcome] = []
        # What is unsettled only waits for somebody to let go of its rows.
        self.blocked = False
        self.refused_at = 0.0
        self.recorder: Recorder | None = None
        self.last: Recorded | None = None
        self.gates_read_at = -GATES_SECONDS
        self.short: set[str] = set()

    def known(self) -> Iterator[tuple[int, int]]:
        """Every row in hand: its id and the number of its claim."""
        for job in self.jobs.values():
            yield from ((row.id, row.claim_seq) for row in job.rows)
        yield from ((outcome.id, outcome.seq) for outcome in self.unsettled)

    def hands(self, lane: str) -> int:
        """How many more messages of this lane may leave: one sender in eight, at least one, is kept for the low
        lane, and the low lane leaves a quarter to the high one. None while too much waits to be recorded."""
        if len(self.unsettled) >= MOST_UNSETTLED:
            return 0
        return min(self.senders.count - len(self.jobs), self.most(lane) - self.lanes[lane])

    def most(self, lane: str) -> int:
        """How many messages of this lane may be in flight."""
        senders = self.senders.count
        return senders - max(1, senders // 8) if lane == "high" else senders - max(1, senders // 4)

    def claim(self, tx: Tx, due: Due, read_at: float) -> int:
        """Claim what there are hands for, the high lane first, and send it; how many rows. `read_at` is the monotonic
        moment at which tx.now was read: leases count from there."""
        lanes = [lane for lane, wanted in (("high", due.high), ("low", due.low)) if wanted and self.hands(lane) > 0]
        if not due.assumed:
            self._count_short(lanes)
        return sum(self._claim(tx, lane, read_at) for lane in lanes)

    def _count_short(self, lanes: Sequence[str]) -> None:
        """A claim that took less than it asked for, while nothing was held and more turns out to be due: others hold
        the rows, which is contention."""
        metrics.claims_short.inc(len(self.short.intersection(lanes)))
        self.short.clear()

    def _room(self, tx: Tx, lane: str, read_at: float) -> Room:
        """What this lane may take now."""
        if read_at - self.gates_read_at > GATES_SECONDS:
            self.gates.refresh(tx)
            self.gates_read_at = read_at
        return self.gates.room(tx.now, self.most(lane))

    def _claim(self, tx: Tx, lane: str, read_at: float) -> int:
        asked, room = self.hands(lane), self._room(tx, lane, read_at)
        with metrics.claim_seconds.time():
            rows = attempts.claim(tx, lane, self.owner, self.settings.lease, asked, room)
        self.gates.took(rows, room)
        self._turned(rows)
        metrics.claimed_rows.observe(len(rows))
        if not rows:
            metrics.claims_empty.inc()
            return 0
        contents = {item.id: item for item in tx.many(Content, "messages_of", ids=[row.id for row in rows])}
        groups = delivery.by_message(rows)
        if len(groups) < asked and not room.closed and not room.held:
            self.short.add(lane)
        for group in groups:
            self._send(lane, group, contents, read_at)
        return len(rows)

    def _turned(self, rows: Iterable[Claimed]) -> None:
        """A contact with a pace has been told something, or has not: what is known of the gates is no longer true."""
        if any(row.bundle is not None for row in rows):
            self.gates_read_at = -GATES_SECONDS

    def _send(self, lane: str, group: Sequence[Claimed], contents: Mapping[int, Content], claimed: float) -> None:
        """Hand one message to a sender, without the rows that nobody needs any more."""
        rows = tuple(row for row in group if self._needed(row, contents.get(row.id)))
        if not rows:
            return
        content = contents[rows[0].id]
        if content.address is None:
            self._put_back(rows, "FAILED", 0.0, "The contact method or channel no longer exists.")
            return
        if rows[0].transport not in self.senders.transports:
            self._put_back(rows, "RELEASE", GIVE_BACK_DELAY, None)
            return
        try:
            opened = delivery.opened(content, self.settings.limits.sealing_keys)
            message = delivery.compose(rows, [opened, *(contents[row.id] for row in rows[1:])], self.links)
        except Exception as error:
            # One message that cannot be written costs no other its claim, and uses up its own tries.
            log.exception("the message of attempt %s could not be written", rows[0].id)
            why = str(error) if isinstance(error, Unreadable) else f"{type(error).__name__}."
            self._put_back(rows, "RETRY", GIVE_BACK_DELAY, f"The message could not be written: {why}")
            return
        latest = claimed + self.settings.lease - self.settings.deadline
        job = Job(next(self.numbers), lane, message, rows, rows[0].transport, rows[0].destination, latest)
        self.jobs[job.number] = job
        self.lanes[lane] += 1
        self.gates.begin(job.destination)
        self.senders.submit(job)

    def _needed(self, row: Claimed, content: Content | None) -> bool:
        verdict = delivery.unneeded(content) if content is not None else "RELEASE"
        if verdict is not None:
            why = "not sent: this contact was never told of the problem" if verdict == "CANCELLED" else None
            self._put_back((row,), verdict, 0.0, why)
        return verdict is None

    def _put_back(self, rows: Sequence[Claimed], word: str, delay: float, error: str | None) -> None:
        self.unsettled.extend(
            Outcome(row.id, row.claim_seq, word, row.claimed_at, row.claimed_at, delay, error) for row in rows
        )

    def waiting(self) -> bool:
        """Whether anything is there to be recorded that nobody records yet."""
        busy = self.recorder is not None and self.recorder.busy
        return (bool(self.unsettled) and not self.blocked and not busy) or not self.senders.results.empty()

    def give_back(self) -> None:
        """Take back what no sender has begun, unsent; settle records it."""
        for job in self.senders.unbegun():
            self._landed(job)
            self._put_back(job.rows, "RELEASE", 0.0, None)

    def settle(self, tx: Tx) -> int:
        """Take what has come back and record it now; how many rows. What cannot be recorded is kept: it is safe to
        repeat."""
        self.failures.tell_rest()
        self.stop_recording()
        self._note_last(tx)
        self._land(tx)
        parts = [self.unsettled[at : at + TOGETHER] for at in range(0, len(self.unsettled), TOGETHER)]
        return sum(self._note(tx, record(tx, self.owner, part, self.blocked)) for part in parts)

    def settle_beside(self, tx: Tx) -> int:
        """Take what has come back, and have it recorded while this thread goes on; how many rows came back. Its
        senders are free at once, and what was recorded is noted in a later round."""
        self.failures.tell_rest()
        if self.recorder is None:
            return self.settle(tx)
        self._note_last(tx)
        if (recorded := self.recorder.done()) is not None:
            self._note(tx, recorded)
        back = self._land(tx)
        if self.unsettled and not self.recorder.busy and not self._refused_lately():
            part = self.unsettled[:TOGETHER]
            # They go to the end: those of them that somebody holds must not keep others from their turn.
            self.unsettled = self.unsettled[TOGETHER:] + part
            self.recorder.begin(tx, tuple(part), self.blocked)
        return back

    def stop_recording(self) -> None:
        """From now on this thread records. What was recorded last is noted in the next round; what was cut short is
        kept, and recorded again."""
        recorder, self.recorder = self.recorder, None
        if recorder is not None:
            recorder.close()
            with suppress(psycopg.Error):
                self.last = recorder.done()

    def _note_last(self, tx: Tx) -> None:
        last, self.last = self.last, None
        if last is not None:
            self._note(tx, last)

    def _refused_lately(self) -> bool:
        """Whether somebody held rows of ours a moment ago: they may still."""
        return self.blocked and time.monotonic() - self.refused_at < REFUSED_SECONDS

    def _land(self, tx: Tx) -> int:
        """Take what the senders have brought back; how many rows."""
        if self.senders.results.empty():
            return 0
        # The clock first: were the database away, what is collected here would be lost.
        now, monotonic = tx.now, time.monotonic()
        back = self.senders.collect()
        for sent in back:
            self._landed(sent.job)
            self.unsettled.extend(delivery.outcomes(sent, now, monotonic, self.rng))
            observe(sent, now - timedelta(seconds=monotonic - sent.started))
        for sent in back:
            if sent.receipt is not None or sent.error is not None:
                # One that a stranger holds learns of it with the next send.
                with suppress(psycopg.errors.LockNotAvailable):
                    self.gates.record(tx, sent.job.destination, sent.error)
        self.gates.give_back(tx)
        return sum(len(sent.job.rows) for sent in back)

    def _note(self, tx: Tx, recorded: Recorded) -> int:
        """Forget what is recorded, count it, and tell of what failed; how many rows."""
        done = {(outcome.id, outcome.seq) for outcome in recorded.outcomes}
        self.unsettled = [outcome for outcome in self.unsettled if (outcome.id, outcome.seq) not in done]
        blocked, self.blocked = self.blocked, recorded.refused and bool(self.unsettled)
        self.refused_at = time.monotonic()
        if self.blocked and not blocked:
            log.warning("somebody holds a lock on attempts that are to be recorded; the others go on")
        # A contact's turn may have ended with it.
        self.gates_read_at = -GATES_SECONDS if self.gates.contacts else self.gates_read_at
        count_results(recorded.outcomes, recorded.settled)
        if failed := [row.id for row in recorded.settled if row.status == "FAILED" and not row.lost]:
            self.failures.tell(tx, failed)
        if failed := [row.id for row in recorded.settled if row.status == "FAILED" and row.transport == "push"]:
            subscriptions.drop_gone(tx, failed)
        return len(recorded.settled)

    def _landed(self, job: Job) -> None:
        if self.jobs.pop(job.number, None) is not None:
            self.lanes[job.lane] -= 1
            self.gates.end(job.destination)


def observe(sent: Sent, started_at: datetime) -> None:
    """Count how long a send took, and how late its pages were."""
    if sent.receipt is None and sent.error is None:
        return
    metrics.send_time(sent.job.transport).observe(sent.ended - sent.started)
    if sent.job.message.type == "page":
        for row in sent.job.rows:
            metrics.page_delay.observe(max(0.0, (started_at - row.first_due_at).total_seconds()))


def count_results(outcomes: Sequence[Outcome], settled: Sequence[Settled]) -> None:
    """Count what became of each row, and which results came too late."""
    words = {outcome.id: outcome.outcome for outcome in outcomes}
    ends: Counter[tuple[str | None, str, str]] = Counter()
    for row in settled:
        transport = row.transport or "none"
        if row.lost:
            metrics.late_results.labels("no").inc()
        elif row.status is not None:
            if row.was != "IN_FLIGHT":
                metrics.late_results.labels("yes").inc()
            if row.status == "PENDING" and words[row.id] != "RELEASE":
                metrics.retries.labels(transport).inc()
            ends[row.kind, transport, words[row.id].lower()] += 1
    for labels, many in ends.items():
        metrics.attempts_total.labels(*labels).inc(many)
