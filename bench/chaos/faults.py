"""What can break, and how it is mended: one function a kind. Each says whom it struck, and whether it was seen to."""

import random
import signal
import time
from collections.abc import Callable

import psutil
import psycopg

from bench.chaos.alerts import Alerts
from bench.chaos.disk import Disk
from bench.chaos.phone import Phone
from bench.chaos.record import Fault, Record
from bench.chaos.stage import DATABASE, LEASE, App, Stage

# How long a network stays cut, and a disk full, in seconds.
CUT = (1.0, 6.0)
FULL = 3.0
# How long to wait for a moment at which a send is under way, and how long each takes then, in seconds.
MOMENT = 10.0
HELD = 0.25
# What a full disk must refuse: only data, or the server would always have to give up.
WRITE = "create unlogged table refused as select repeat('x', 1000) from generate_series(1, 1000)"


class Breaker:
    """Breaks one thing after the other, and writes down when it was broken."""

    def __init__(
        self, stage: Stage, phone: Phone, alerts: Alerts, record: Record, rng: random.Random, disk: Disk | None
    ) -> None:
        self.stage = stage
        self.alerts = alerts
        self.phone = phone
        self.record = record
        self.rng = rng
        self.disk = disk
        self.standbys = list(stage.servers[1:])
        self.kinds: dict[str, Callable[[Fault], None]] = {
            "kill": self.kill,
            "kill_in_send": self.kill_in_send,
            "restart_fast": lambda fault: self.restart(fault, signal.SIGINT),
            "restart_immediate": lambda fault: self.restart(fault, signal.SIGQUIT),
            "cut_one": lambda fault: self.cut(fault, [self.rng.choice(self.stage.apps)]),
            "cut_all": lambda fault: self.cut(fault, self.stage.apps),
            "terminate": self.terminate,
            "pause": self.pause,
            "full_disk": self.full_disk,
            "failover": self.failover,
        }

    def strike(self, kind: str) -> None:
        """Break, mend, and wait until every process is ready again."""
        fault = Fault(kind, time.time())
        self.record.faults.append(fault)
        self.kinds[kind](fault)
        for app in self.stage.apps:
            self.stage.wait_ready(app)
        fault.ended = time.time()

    def kill(self, fault: Fault) -> None:
        """SIGKILL one process, and start it again some moments later."""
        self._kill(fault, self.rng.choice(self.stage.apps))

    def kill_in_send(self, fault: Fault) -> None:
        """SIGKILL a process that has a page on the wire. Where none comes it is a plain kill, and counts as one."""
        self.phone.hold = HELD
        end = time.monotonic() + MOMENT
        victim = None
        while victim is None and time.monotonic() < end:
            self.alerts.hurry()
            victim = next((app for app in self.stage.apps if self._caught(app)), None)
        fault.kind = "kill_in_send" if victim else "kill"
        self._kill(fault, victim or self.rng.choice(self.stage.apps))
        self.phone.hold = 0.01

    def _caught(self, app: App) -> bool:
        """Whether this process stands still now, with a page on the wire that has not been answered."""
        sending = self._sends(app)
        if not sending:
            return False
        process = psutil.Process(app.pid)
        process.send_signal(signal.SIGSTOP)
        while process.status() != psutil.STATUS_STOPPED:
            time.sleep(0.001)
        if sending & self.phone.sending():
            return True
        process.send_signal(signal.SIGCONT)
        return False

    def _sends(self, app: App) -> set[int]:
        """By which ports this process sends at this moment."""
        sending = self.phone.sending()
        if not sending:
            return sending
        return sending & {end.laddr.port for end in psutil.Process(app.pid).net_connections("tcp4") if end.laddr}

    def _kill(self, fault: Fault, app: App) -> None:
        fault.began, fault.hit = time.time(), frozenset({app.pid})
        app.end(signal.SIGKILL)
        fault.done = app.process is not None and app.process.returncode == -signal.SIGKILL
        time.sleep(self.rng.uniform(0.0, 1.0))
        self.stage.launch(app)

    def restart(self, fault: Fault, order: signal.Signals) -> None:
        """Restart the database."""
        before = self._up_since()
        fault.began = time.time()
        self.stage.primary.stop(order)
        time.sleep(self.rng.uniform(0.0, 2.0))
        self.stage.primary.start()
        fault.away_until = fault.mended = time.time()
        fault.done = self._up_since() != before

    def _up_since(self) -> object:
        return self.stage.primary.run("select pg_postmaster_start_time()")

    def cut(self, fault: Fault, apps: list[App]) -> None:
        """Swallow what passes between these processes and the database; afterwards it goes on, or is reset."""
        fault.hit = frozenset(app.pid for app in apps)
        for app in apps:
            for wire in app.wires:
                wire.hangs.set()
        used = self.stage.servers.index(self.stage.primary)
        fault.done = all(app.wires[used].pairs and app.wires[used].silent() for app in apps)
        time.sleep(self.rng.uniform(*CUT))
        for app in apps:
            reset = self.rng.random() < 0.5
            for wire in app.wires:
                if reset:
                    wire.cut()
                wire.hangs.clear()
        fault.mended = time.time()
        if len(apps) == len(self.stage.apps):
            fault.away_until = fault.mended

    def terminate(self, fault: Fault) -> None:
        """End every backend of the database: each connection of each process."""
        ended = self.stage.primary.run(
            "select count(*) filter (where pg_terminate_backend(pid)) from pg_stat_activity"
            f" where datname = '{DATABASE}'"
        )
        fault.mended = time.time()
        fault.note = f"{ended[0][0]} backends"
        fault.done = ended != [(0,)]

    def pause(self, fault: Fault) -> None:
        """Let a process stand still for longer than its lease, and then go on as if nothing had been."""
        app = self.rng.choice(self.stage.apps)
        fault.hit = frozenset({app.pid})
        process = psutil.Process(app.pid)
        process.send_signal(signal.SIGSTOP)
        time.sleep(LEASE + 3)
        fault.done = process.status() == psutil.STATUS_STOPPED
        process.send_signal(signal.SIGCONT)
        fault.mended = time.time()

    def full_disk(self, fault: Fault) -> None:
        """Fill the disk of the database and its standby; each is started again where it has given up."""
        if self.disk is None:
            fault.note = "a disk of its own could not be mounted here: that needs root"
            fault.mended = fault.began
            return
        self.disk.fill()
        fault.done = self._refused()
        time.sleep(FULL)
        self.disk.free()
        for server in (self.stage.primary, *self.standbys):
            server.start()
        fault.away_until = fault.mended = time.time()

    def _refused(self) -> bool:
        """Whether the database says that its disk is full, or has given up."""
        try:
            self.stage.primary.run(WRITE)
        except psycopg.OperationalError:
            return True
        return False

    def failover(self, fault: Fault) -> None:
        """The primary dies with all its backends; its standby takes over."""
        old = self.stage.primary
        old.kill()
        self.stage.primary = self.standbys.pop(0)
        self.stage.primary.promote()
        fault.away_until = fault.mended = time.time()
        fault.done = not old.answers() and self.stage.primary.run("select pg_is_in_recovery()") == [(False,)]
