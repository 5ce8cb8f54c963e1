"""Real sockets on loopback to send to: well-behaved ones, and ones that drip, hang, reset or never end."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from escalade.transports import wire
from escalade.transports.base import AttemptRef, IncidentBrief, Message, Network

# A certificate for pager.test, localhost and 127.0.0.1, signed by itself; only these tests trust it.
PEM = Path(__file__).parent / "data" / "pager.test.pem"

Script = Callable[[socket.socket, threading.Event], None]


class RawServer:
    """Accepts connections and runs a script on each, in threads; remembers what the scripts say they read."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.stop = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.connections = 0
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/secret-path-1/token"

    def _start(self, work: Callable[..., None], *args: Any) -> None:
        thread = threading.Thread(target=work, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self.stop.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._start(self._run, connection)

    def _run(self, connection: socket.socket) -> None:
        connection.settimeout(30)
        # The sender hangs up at its deadline, which is the very thing under test.
        with connection, suppress(OSError):
            self._script(connection, self.stop)

    def close(self) -> None:
        self.stop.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(5)


@pytest.fixture
def serve() -> Iterator[Callable[[Script], RawServer]]:
    """Start a raw server with a script; every server ends with the test."""
    servers: list[RawServer] = []

    def start(script: Script) -> RawServer:
        servers.append(RawServer(script))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def read_request(connection: socket.socket) -> bytes:
    """One whole HTTP request, by its Content-Length."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65536)
        if not part:
            return data
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def drip(connection: socket.socket, stop: threading.Event, data: bytes, every: float = 0.05) -> None:
    """Send the data a byte at a time, each well within any read timeout."""
    for byte in data:
        connection.sendall(bytes([byte]))
        if stop.wait(every):
            return


@pytest.fixture
def network() -> Network:
    """Loopback allowed, and all the time a busy machine may need."""
    return Network(connect_timeout=5, read_timeout=10, deadline=20, allow_private=True)


@pytest.fixture
def hasty(network: Network) -> Network:
    """Little time: 0.4 s to connect, 0.4 s between two bytes, 0.7 s for everything."""
    return replace(network, connect_timeout=0.4, read_timeout=0.4, deadline=0.7)


@pytest.fixture
def server_tls() -> ssl.SSLContext:
    """The TLS side of a server that is pager.test."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(PEM)
    return context


@pytest.fixture
def trust(monkeypatch: pytest.MonkeyPatch) -> None:
    """Senders trust the certificate of pager.test."""
    context = ssl.create_default_context(cafile=str(PEM))
    monkeypatch.setattr(wire, "tls_context", lambda: context)


def incident(**changes: Any) -> IncidentBrief:
    """An incident that messages are about."""
    base = IncidentBrief(
        id=7,
        title="Disk full on web1",
        details="/dev/sda1 is at 99 %",
        status="TRIGGERED",
        severity="critical",
        service="api",
        dedup_key="disk-web1",
        url="https://escalade.example/incidents/7",
        link="https://grafana.example/d/1",
    )
    return replace(base, **changes)


def page(address: str = "", **changes: Any) -> Message:
    """A page to Alice about one incident."""
    base = Message(
        type="page",
        event="triggered",
        key="att-31-0",
        address=address,
        secret=None,
        user="alice@example.com",
        recipient="Alice",
        attempts=(AttemptRef(31, 1),),
        incidents=(incident(),),
        ack_url="https://escalade.example/a/acknowledge-token-123",
    )
    return replace(base, **changes)
