"""What a campaign plays on: servers, wires, and processes of `python app.py serve`."""

import os
import signal
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from bench.process import KEY, ROOT
from escalade.migrate import migrate
from tests.commands import free_port
from tests.servers import USER, Server, pair
from tests.wire import Wire

DATABASE = "chaos"
LEASE = 7.0
DEADLINE = 2.0
YAML = """
users:
  - {{email: alice@example.com, contact_methods: [{{name: hook, kind: webhook, address: "{url}/alice"}}]}}
  - {{email: bob@example.com, contact_methods: [{{name: hook, kind: webhook, address: "{url}/bob"}}]}}
policies: [{{name: both, steps: [{{targets: ["user:alice@example.com", "user:bob@example.com"], wait: 2h}}]}}]
services: [{{name: api, policy: both, urgency: high, integrations: [{{name: chaos, kind: generic, key: {key}}}]}}]
"""
# Every claim, and whatever ends one, is written down by the database itself, in the transaction that makes it. What is
# given back unsent uses no try, and keeps the error of an earlier one.
WATCH = """
create table chaos_move (attempt bigint, seq int, owner text, before text, after text, at timestamptz,
    lease_until timestamptz, port int, error text);
create function chaos_moved() returns trigger language plpgsql as $$
begin
    insert into chaos_move values (new.id, new.claim_seq, coalesce(new.lease_owner, old.lease_owner), old.status,
        new.status, clock_timestamp(), coalesce(new.lease_until, old.lease_until), inet_client_port(),
        case when new.tries = old.tries then new.last_error end);
    return null;
end $$;
create trigger chaos_moved after update on notification_attempt for each row
    when (new.kind = 'PAGE' and (new.status <> old.status or new.claim_seq <> old.claim_seq))
    execute function chaos_moved();
"""


@dataclass
class App:
    """One process, with wires of its own to each server. `lives` are its pids, each with when it was started."""

    wires: list[Wire]
    port: int = field(default_factory=free_port)
    process: "subprocess.Popen[bytes] | None" = None
    lives: list[tuple[float, int]] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Where it serves."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def database(self) -> str:
        """How it reaches the servers: whichever takes writes."""
        hosts = ",".join(f"127.0.0.1:{wire.port}" for wire in self.wires)
        return f"postgresql://{USER}@{hosts}/{DATABASE}?target_session_attrs=read-write"

    def start(self, log: Path) -> None:
        """Start it; it is ready some moments later."""
        started = time.time()
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                [sys.executable, "app.py", "serve"], cwd=ROOT, env=self._environment(), stdout=out, stderr=out
            )
        self.lives.append((started, self.process.pid))

    def end(self, order: signal.Signals) -> None:
        """Send it this signal and wait for its end."""
        if self.process is not None:
            self.process.send_signal(order)
            self.process.wait(40)

    @property
    def pid(self) -> int:
        """The process that runs now, or ran last."""
        return self.lives[-1][1]

    def ready(self) -> bool:
        """Whether it says that pages can go out from it."""
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=1):
                return True
        except OSError:
            return False

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ESCALADE_")}
        return {
            **kept,
            "DATABASE_URL": self.database,
            "HOST": "127.0.0.1",
            "PORT": str(self.port),
            "ESCALADE_ALLOW_PRIVATE_ADDRESSES": "on",
            "ESCALADE_SEND_DEADLINE": str(DEADLINE),
            "ESCALADE_LEASE_SECONDS": str(LEASE),
            "ESCALADE_HOOK_RATE": "1000",
        }


class Stage:
    """All of it. `primary` is the server that takes writes now."""

    def __init__(self, directory: Path, processes: int, *, standby: bool) -> None:
        self.directory = directory
        self.servers = list(pair(directory)) if standby else [_single(directory)]
        self.primary = self.servers[0]
        self.primary.run(f"create database {DATABASE}")
        migrate(self.primary.url(DATABASE))
        with self.connect() as conn:
            conn.execute(WATCH)
        self.apps = [App([Wire(server.url()) for server in self.servers]) for _ in range(processes)]

    def connect(self) -> "psycopg.Connection[tuple[object, ...]]":
        """A connection to the primary that no fault touches but its own end."""
        return psycopg.connect(self.primary.url(DATABASE), autocommit=True)

    def configure(self, phone: str) -> str:
        """Two people to page for every alert; a token that may acknowledge."""
        app = self.apps[0]
        environment = {**app._environment(), "DATABASE_URL": self.primary.url(DATABASE)}
        command = [sys.executable, "app.py"]
        text = YAML.format(url=phone, key=KEY).encode()
        subprocess.run([*command, "apply", "-"], input=text, cwd=ROOT, env=environment, check=True, capture_output=True)
        made = subprocess.run(
            [*command, "token", "create", "chaos", "--role", "responder"],
            cwd=ROOT, env=environment, check=True, capture_output=True,
        )  # fmt: skip
        return made.stdout.decode().split()[-1]

    def start(self) -> None:
        """Start every process and wait until all are ready."""
        for app in self.apps:
            self.launch(app)
        for app in self.apps:
            self.wait_ready(app)

    def launch(self, app: App) -> None:
        """Start one process; what it says goes into a file of the campaign."""
        app.start(self.directory / f"app-{app.port}.log")

    def wait_ready(self, app: App, seconds: float = 60.0) -> None:
        """Wait until this process is ready. Raises RuntimeError where it is not in time."""
        end = time.monotonic() + seconds
        while not app.ready():
            if time.monotonic() > end:
                raise RuntimeError(f"the process on port {app.port} did not become ready within {seconds:.0f} s")
            time.sleep(0.05)

    def close(self) -> None:
        """End everything that was started."""
        for app in self.apps:
            if app.process is not None and app.process.poll() is None:
                app.end(signal.SIGKILL)
            for wire in app.wires:
                wire.end()
        for server in self.servers:
            server.kill()


def _single(directory: Path) -> Server:
    server = Server(directory / "primary")
    server.create()
    server.start()
    return server
