"""The loop that makes pages leave: it looks for what is due, has it sent, records what became of it, and sleeps.

One thread with one connection, and one beside it that records. No transaction is open while bytes are on the wire: the
claim commits first, the sender threads never see the database, and what they bring back is recorded afterwards.
"""

import logging
import random
import threading
import time
from collections.abc import Callable
from datetime import datetime

import psycopg

from escalade import attempts, climbing, heartbeats, housekeeping, metrics, outage, strays
from escalade.attempts import Due
from escalade.clock import Clock
from escalade.db import Begin, Session, Tx
from escalade.delivery import Links
from escalade.dispatch import Dispatch, Settings
from escalade.doorbell import Doorbell
from escalade.health import Health
from escalade.lateness import Lateness
from escalade.recorder import Recorder
from escalade.senders import Senders

log = logging.getLogger("escalade.engine")

# While something is due that cannot be taken (held, or locked by somebody else), look again this often, in seconds.
BUSY_SLEEP = 0.1
# Between two connections, in seconds: doubled until one is found to work.
FIRST_WAIT = 0.2
LONGEST_WAIT = 5.0
# How long the database's time may be carried on by our own monotonic clock between polls that find nothing.
CLOCK_SECONDS = 60.0
# How long to wait for more results before a few are recorded; and how long it is believed unseen that pages are due,
# and a reading of the clock good enough to change rows by.
GATHER_SECONDS = 0.0003
TRUST_SECONDS = 0.05
INSTANCE_SECONDS = 15.0
LATE_SECONDS = 5.0
STUCK_SECONDS = 1.0
ASSUMED = Due(
    True, low=False, step=False, lease=False, recheck=False, wake=False, beat=False, next_at=None, assumed=True
)
STRAYS_SECONDS = 60.0
HOUSE_SECONDS = 600.0
# How often a chore that keeps raising is reported, and a database that stays away.
REPORT_SECONDS = 60.0


class Engine:
    """Claims, sends, settles, reaps and climbs, until stopped."""

    def __init__(
        self, url: str, settings: Settings, senders: Senders, links: Links, doorbell: Doorbell, health: Health
    ) -> None:
        self.url = url
        self.settings = settings
        self.doorbell = doorbell
        self.health = health
        self.senders = senders
        self.dispatch = Dispatch(senders, links, settings)
        self.rng = random.Random()
        self.stopping = threading.Event()
        self.wait = FIRST_WAIT
        self.clock = Clock()
        self.assuming_since: float | None = None
        self.full = False
        self.away = False
        self.lateness = Lateness()
        self.done_at: dict[str, float] = {}
        self.name = "engine"
        self.thread = threading.Thread(target=self.run, name="engine", daemon=True)

    def start(self) -> None:
        """Run in a thread of its own."""
        self.health.senders = self.senders.count
        self.senders.start()
        self._begin()

    def restart(self) -> None:
        """Go on in a new thread, with all that is in hand: the old one has ended."""
        self.thread = threading.Thread(target=self.run, name="engine", daemon=True)
        self._begin()

    def _begin(self) -> None:
        self.health.pulse()
        self.health.poll = self.poll()
        self.health.engine = self.thread
        self.thread.start()

    def still_for(self) -> float:
        """Seconds for which it has stood still; 0 while it goes on."""
        return self.health.still_for()

    def replaceable(self) -> bool:
        """Never: what stands still may wake, and two threads cannot share what is in hand."""
        return False

    def stop(self, timeout: float = 25.0) -> None:
        """Claim no more, give back what has not begun, let what has begun end; at most `timeout` seconds."""
        self.stopping.set()
        self.doorbell.ring()
        self.thread.join(timeout)
        self.senders.stop()

    def run(self) -> None:
        """Go round until stopped; a lost connection is made again, and nothing is lost with it."""
        while not self.stopping.is_set() or self.dispatch.jobs or self.dispatch.unsettled:
            try:
                session = self._connect()
                try:
                    self.dispatch.recorder = self._recorder()
                    self._serve(session)
                finally:
                    # Nobody here takes work now: whoever opens an incident tells the other instances.
                    self.doorbell.idle = False
                    self.dispatch.stop_recording()
                    session.close()
            except psycopg.Error as error:
                self._lost(str(error).strip() or type(error).__name__)
            except Exception:
                # Whatever it was, a pager whose loop has ended pages nobody.
                log.exception("the engine's round raised; it goes on")
            self._pause(self.wait * self.rng.uniform(0.5, 1.0))
            self.wait = min(self.wait * 2, LONGEST_WAIT)

    def _recorder(self) -> Recorder | None:
        """What records beside this thread; None where the server has no second connection for us: one will do."""
        try:
            return Recorder(self._connect(self.settings.patience), self.dispatch.owner, self.doorbell.nudge)
        except psycopg.OperationalError as error:
            log.warning("outcomes are recorded without a connection of their own: %s", str(error).strip())
            return None

    def _connect(self, patience: float | None = None) -> Session:
        self.health.pulse()
        self.health.connecting = True
        try:
            return Session(self.url, self.settings.limits, patience)
        finally:
            self.health.connecting = False
            self.health.pulse()

    def _lost(self, why: str) -> None:
        """The database is away: said at once, and then now and then."""
        said_lately = self.away and not self._time_for("report away", REPORT_SECONDS)
        if not said_lately:
            self.done_at["report away"] = time.monotonic()
            log.warning("the database is away: %s", why)
        self.away = True
        self.health.away = why.splitlines()[0]

    def _pause(self, seconds: float) -> None:
        """Between connections; at once when there is nothing left to do."""
        if not self.stopping.is_set():
            self.stopping.wait(seconds)
        elif self.dispatch.jobs or self.dispatch.unsettled:
            time.sleep(seconds)

    def _serve(self, session: Session) -> None:
        # What an earlier connection claimed and never heard of is given back at once, not left to its lease.
        attempts.recover(session.single(), self.dispatch.owner, self.dispatch.known())
        # Only now it is known that this server does our work: one that connects may be a standby.
        self.wait = FIRST_WAIT
        if self.away:
            self.away = False
            log.info("the database is back")
        self.health.away = None
        self._try(outage.report, session)
        self.lateness = Lateness()
        while not self.stopping.is_set():
            sleep = self.tick(session)
            if sleep > 0:
                self.doorbell.event.wait(sleep)
        self._finish(session)

    def _finish(self, session: Session) -> None:
        """Give back what has not begun, and wait for what has."""
        self.dispatch.give_back()
        self.dispatch.settle(session.single())
        while self.dispatch.jobs:
            self.doorbell.event.wait(1.0)
            self.doorbell.event.clear()
            self.dispatch.settle(session.single())
            self._ticked()
        tx = session.single()
        tx.run("engine_stopped", owner=self.dispatch.owner, now=tx.now)

    def tick(self, session: Session) -> float:
        """One round; how many seconds nothing will be due (0: look again at once).

        The doorbell is cleared before anything is looked at: what rings during the round is seen by the next.
        """
        self.health.pulse()
        self._gather()
        rung, news = self.doorbell.event.is_set(), self.doorbell.news
        self.doorbell.event.clear()
        with metrics.tick_seconds.time():
            tx = self._statements(session, rung)
            self.dispatch.settle_beside(tx)
            due = self._look(tx, likely=news or self.full)
            if due.anything:
                tx = self.clock.carried(session, TRUST_SECONDS)
            worked = self._climb(session, due) if due.step or due.lease or due.recheck or due.wake or due.beat else 0
            if worked:
                tx = self.clock.fresh(session)
            hands = self.dispatch.hands("high")
            claimed = self.dispatch.claim(tx, due, self.clock.at) if due.high or due.low else 0
            if hands > 0:
                self.full = claimed >= hands and due.high
            self._tell_late(session, due)
            self._keep_house(session)
        self._ticked()
        free = self.dispatch.hands("high") > 0
        if worked or self.dispatch.waiting() or (free and (claimed or due.assumed)):
            return 0.0
        return self.sleep_for(tx.now, due)

    def _statements(self, session: Session, rung: bool) -> Tx:
        """Statements at a time good enough for what comes: what rang is due only now, and may say when that was; what
        changes rows needs a recent reading; an idle poll is one statement."""
        if self.doorbell.news:
            self.doorbell.news = False
            self.clock.learn(self.doorbell.reading)
        recent = rung or self.dispatch.waiting()
        return self.clock.carried(session, TRUST_SECONDS if recent else CLOCK_SECONDS)

    def _gather(self) -> None:
        """Results that come back together are recorded together: while most are still out, wait for them a moment."""
        if 0 < self.senders.results.qsize() < len(self.dispatch.jobs):
            time.sleep(GATHER_SECONDS)

    def _look(self, tx: Tx, likely: bool) -> Due:
        """What is due. Where it is likely that pages are (somebody rang, or the queue drains) the claim goes first, as
        nothing else is that urgent, and the look follows: a claim that finds nothing costs no more than a look."""
        now = time.monotonic()
        if likely and (self.assuming_since is None or now - self.assuming_since < TRUST_SECONDS):
            self.assuming_since = self.assuming_since or now
            return ASSUMED
        self.assuming_since = None
        return attempts.whats_due(tx)

    def _climb(self, session: Session, due: Due) -> int:
        chores: tuple[tuple[bool, Callable[[Begin], int]], ...] = (
            (due.lease, self._reap),
            (due.recheck, climbing.escalate_early),
            (due.step, climbing.escalate_due),
            (due.wake, climbing.wake_due),
            (due.beat, heartbeats.late_due),
        )
        return sum(self._try(chore, session) for wanted, chore in chores if wanted)

    def _reap(self, begin: Begin) -> int:
        with begin() as tx:
            reaped = attempts.reap(tx, [outcome.id for outcome in self.dispatch.unsettled])
        metrics.leases_expired.inc(reaped)
        return reaped

    def _try(self, chore: Callable[[Begin], int], session: Session) -> int:
        """A chore that raises keeps neither the others nor any page waiting; it comes again in the next round."""
        self.health.pulse()
        try:
            return chore(session.begin)
        except Exception as error:
            if climbing.away(error):
                raise
            if self._time_for(f"report {chore.__name__}", REPORT_SECONDS):
                log.exception("%s raised; the engine goes on without it", chore.__name__)
            return 0

    def _tell_late(self, session: Session, due: Due) -> None:
        """While something is due: say which pages wait for too long."""
        if (due.high or due.low) and self._time_for("late", LATE_SECONDS):
            tx = session.single()
            for lane, wanted in (("high", due.high), ("low", due.low)):
                if wanted:
                    self.lateness.report(tx, lane)

    def _keep_house(self, session: Session) -> None:
        """What is done now and then: say that this engine lives, look for strays, move finished rows."""
        if self._time_for("instance", INSTANCE_SECONDS):
            if self.health.since_tick() > 3 * self.poll() + outage.DOWN.total_seconds():
                self._try(outage.report, session)
            self._try(self._lives, session)
        if self._time_for("strays", STRAYS_SECONDS):
            self._try(strays.report_strays, session)
        for chore, moved in (("archive", self._archive), ("prune", self._prune)):
            if self._time_for(chore, HOUSE_SECONDS) and self._try(moved, session):
                # There may be more: a batch a round, so that claims are never kept waiting.
                self.done_at[chore] = -HOUSE_SECONDS

    def _lives(self, begin: Begin) -> int:
        with begin() as tx:
            return tx.run("engine_ticked", owner=self.dispatch.owner, now=tx.now)

    def _archive(self, begin: Begin) -> int:
        return housekeeping.archive(begin, self.settings.archive_days)

    def _prune(self, begin: Begin) -> int:
        return housekeeping.prune(begin, self.settings.keep_days)

    def _time_for(self, chore: str, every: float) -> bool:
        now = time.monotonic()
        if now - self.done_at.get(chore, -every) < every:
            return False
        self.done_at[chore] = now
        return True

    def _ticked(self) -> None:
        self.health.ticked = time.monotonic()
        self.health.pulse()
        if self._time_for("stuck", STUCK_SECONDS):
            # A send ends within its deadline, so one that is still out after its lease never will.
            over = time.monotonic() - self.settings.deadline
            self.health.stuck = sum(job.start_by < over for job in self.dispatch.jobs.values())
        self.health.poll = self.poll()
        self.health.in_flight = len(self.dispatch.jobs)
        self.doorbell.idle = not self.stopping.is_set() and len(self.dispatch.jobs) < self.senders.count
        metrics.last_tick.set_to_current_time()

    def poll(self) -> float:
        """The longest sleep, in seconds."""
        return self.settings.poll or (5.0 if self.health.listening else 1.0)

    def sleep_for(self, now: datetime, due: Due) -> float:
        """Seconds until the next due time or the poll, whichever is earlier; never nothing."""
        if due.assumed:
            return TRUST_SECONDS
        poll = self.poll() * self.rng.uniform(0.8, 1.2)
        until_next = (due.next_at - now).total_seconds() if due.next_at is not None else poll
        return max(min(poll, until_next, self._while_stuck(now, due)), 0.001)

    def _while_stuck(self, now: datetime, due: Due) -> float:
        """How long to leave alone what is due and could not be taken. A sender that comes free rings; a contact's pace
        and a closed gate say when they end; nothing tells when somebody else lets go of a row."""
        if due.step or due.lease or due.recheck or due.wake or due.beat or self.dispatch.blocked:
            return BUSY_SLEEP
        if not (due.high or due.low):
            return float("inf")
        opening = self.dispatch.gates.opens_at(now)
        if opening is not None:
            return max(BUSY_SLEEP, min(1.0, (opening - now).total_seconds()))
        return 1.0 if self.dispatch.jobs else BUSY_SLEEP
