"""Postgres servers on loopback ports, as a primary and its standby: they can be stopped, killed and promoted."""

import os
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from escalade.embedded import _programs
from escalade.unprivileged import Account, account_for
from tests.commands import free_port

USER = "escalade"
SECONDS = 60.0
OPTIONS = (
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "wal_retrieve_retry_interval=200ms",
    "max_connections=150",
    "log_checkpoints=off",
)


@dataclass
class Server:
    """One server with its data directory; `start` and `stop` may be called again and again."""

    data: Path
    port: int = field(default_factory=free_port)
    process: "subprocess.Popen[bytes] | None" = None
    options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.programs = _programs({})
        self.account: Account = account_for(self.data)
        self.log = self.data.with_name(self.data.name + ".log")

    def url(self, database: str = "postgres") -> str:
        """How clients reach it."""
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{database}"

    def create(self) -> None:
        """Make the data directory of a new cluster."""
        self._own(self.data)
        access = ("--username", USER, "--auth=trust", "--no-sync", "--no-instructions")
        self._done("initdb", "-D", self.data, *access, "--encoding=UTF8", "--locale=C")

    def copy(self, primary: "Server") -> None:
        """Make the data directory of a standby that follows this primary."""
        self._own(self.data)
        self._done("pg_basebackup", "-D", self.data, "-d", primary.url(), "-R", "-X", "stream", "-c", "fast")

    def start(self) -> None:
        """Start it and wait until it answers. Raises RuntimeError where it does not."""
        command = [str(self.programs / "postgres"), "-D", str(self.data), "-p", str(self.port)]
        for option in (*OPTIONS, *self.options):
            command += ["-c", option]
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            if self.process is None or self.process.poll() is not None:
                with self.log.open("ab") as out:
                    self.process = subprocess.Popen(  # type: ignore[call-overload]
                        command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
                        **self.account.surroundings(),
                    )  # fmt: skip
            if self.answers():
                return
            time.sleep(0.05)
        raise RuntimeError(f"the server does not start: {self.log.read_text(errors='replace')[-500:]}")

    def answers(self) -> bool:
        """Whether it takes connections."""
        try:
            with psycopg.connect(self.url(), connect_timeout=2):
                return True
        except psycopg.OperationalError:
            return False

    def stop(self, order: signal.Signals = signal.SIGINT) -> None:
        """End it: SIGINT is fast, SIGQUIT immediate."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(order)
            self.process.wait(SECONDS)

    def kill(self) -> None:
        """End it and all its backends as a power cut would."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(SECONDS)

    def promote(self) -> None:
        """Make the standby a primary, and wait until it takes writes."""
        self._done("pg_ctl", "promote", "-D", self.data, "-w")

    def run(self, statement: str) -> list[tuple[object, ...]]:
        """One statement as a superuser; its rows."""
        with psycopg.connect(self.url(), autocommit=True) as conn:
            found = conn.execute(statement.encode())
            return found.fetchall() if found.description else []

    def _own(self, directory: Path) -> None:
        directory.mkdir(mode=0o700)
        self.account.give(directory)
        self.account.let_through(directory)

    def _done(self, program: str, *args: str | Path) -> None:
        answer = self.account.command(self.programs / program, *args)
        if answer.returncode != 0:
            raise RuntimeError(f"{program}: {answer.stdout.strip()[-500:]}")


def pair(directory: Path) -> tuple[Server, Server]:
    """A primary and its synchronous standby, both running: what the primary has committed, the standby has."""
    primary, standby = Server(directory / "primary"), Server(directory / "standby")
    primary.create()
    primary.start()
    standby.copy(primary)
    standby.start()
    primary.run("alter system set synchronous_standby_names = '*'")
    primary.run("select pg_reload_conf()")
    end = time.monotonic() + SECONDS
    while not primary.run("select 1 from pg_stat_replication where sync_state = 'sync'"):
        if time.monotonic() > end:
            raise RuntimeError("the standby does not follow")
        time.sleep(0.05)
    return primary, standby
