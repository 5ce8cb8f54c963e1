"""What can break, and how it is mended: one function a kind. Each returns when everything works again."""

import random
import signal
import time
from collections.abc import Callable

import psutil

from bench.chaos.disk import Disk
from bench.chaos.phone import Phone
from bench.chaos.record import Fault, Record
from bench.chaos.stage import DATABASE, LEASE, App, Stage

# How long a network stays cut, and a disk full, in seconds.
CUT = (1.0, 6.0)
FULL = 3.0
# How long to wait for a moment at which a send is under way.
MOMENT = 3.0


class Breaker:
    """Breaks one thing after the other, and writes down when it was broken."""

    def __init__(self, stage: Stage, phone: Phone, record: Record, rng: random.Random, disk: Disk | None) -> None:
        self.stage = stage
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
        fault = Fault(kind, time.time(), float("inf"))
        self.record.faults.append(fault)
        self.kinds[kind](fault)
        for app in self.stage.apps:
            self.stage.wait_ready(app)
        fault.ended = time.time()

    def kill(self, fault: Fault) -> None:
        """SIGKILL one process, and start it again some moments later."""
        self._kill(self.rng.choice(self.stage.apps))

    def kill_in_send(self, fault: Fault) -> None:
        """SIGKILL a process that has a page on the wire."""
        self.phone.hold = 0.15
        end = time.monotonic() + MOMENT
        sending = None
        while sending is None and time.monotonic() < end:
            sending = next((app for app in self.stage.apps if self._sends(app)), None)
        fault.kind += "" if sending else " (no send came)"
        self._kill(sending or self.rng.choice(self.stage.apps))
        self.phone.hold = 0.01

    def _sends(self, app: App) -> bool:
        under_way = set(self.phone.under_way)
        if not under_way or app.process is None:
            return False
        own = {end.laddr.port for end in psutil.Process(app.process.pid).net_connections("tcp4") if end.laddr}
        return bool(under_way & own)

    def _kill(self, app: App) -> None:
        app.end(signal.SIGKILL)
        time.sleep(self.rng.uniform(0.0, 1.0))
        self.stage.launch(app)

    def restart(self, fault: Fault, order: signal.Signals) -> None:
        """Restart the database."""
        self.stage.primary.stop(order)
        time.sleep(self.rng.uniform(0.0, 2.0))
        self.stage.primary.start()
        fault.away_until = time.time()

    def cut(self, fault: Fault, apps: list[App]) -> None:
        """Swallow what passes between these processes and the database; afterwards it goes on, or is reset."""
        for app in apps:
            for wire in app.wires:
                wire.hangs.set()
        time.sleep(self.rng.uniform(*CUT))
        for app in apps:
            reset = self.rng.random() < 0.5
            for wire in app.wires:
                if reset:
                    wire.cut()
                wire.hangs.clear()
        if len(apps) == len(self.stage.apps):
            fault.away_until = time.time()

    def terminate(self, fault: Fault) -> None:
        """End every backend of the database."""
        self.stage.primary.run(f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{DATABASE}'")

    def pause(self, fault: Fault) -> None:
        """Let a process stand still for longer than its lease, and then go on as if nothing had been."""
        app = self.rng.choice(self.stage.apps)
        assert app.process is not None
        app.process.send_signal(signal.SIGSTOP)
        time.sleep(LEASE + 3)
        app.process.send_signal(signal.SIGCONT)

    def full_disk(self, fault: Fault) -> None:
        """Fill the disk of the database and its standby; each is started again where it has given up."""
        if self.disk is None:
            fault.kind += " (no disk of its own)"
            return
        self.disk.fill()
        time.sleep(FULL)
        self.disk.free()
        for server in (self.stage.primary, *self.standbys):
            server.start()
        fault.away_until = time.time()

    def failover(self, fault: Fault) -> None:
        """The primary dies with all its backends; its standby takes over."""
        self.stage.primary.kill()
        self.stage.primary = self.standbys.pop(0)
        self.stage.primary.promote()
        fault.away_until = time.time()
