"""A phone's other end: an HTTP server on loopback that records what arrives and answers as told."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Arrived:
    """One request: its path, headers (lower case) and JSON body, and when it came (monotonic seconds)."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    at: float


@dataclass
class Receiver:
    """What has arrived, and how to answer: `answer(arrived)` gives the status, and `headers` go with every answer."""

    url: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    arrived: list[Arrived] = field(default_factory=list)
    answer: Callable[[Arrived], int] = lambda arrived: 200

    def to(self, path: str) -> list[Arrived]:
        """What has arrived at a path."""
        return [item for item in self.arrived if item.path == path]

    def wait(self, count: int, path: str | None = None, seconds: float = 10.0) -> list[Arrived]:
        """Wait until so many have arrived. Raises AssertionError when they do not."""
        return wait_for(lambda: self._enough(count, path), seconds, f"{count} requests, got {len(self.arrived)}")

    def _enough(self, count: int, path: str | None) -> list[Arrived] | None:
        found = self.arrived if path is None else self.to(path)
        return list(found) if len(found) >= count else None


def wait_for(condition: Callable[[], Any], seconds: float = 10.0, what: str = "condition") -> Any:
    """Wait until the condition holds; what it gave. Raises AssertionError at the deadline."""
    end = time.monotonic() + seconds
    while True:
        if found := condition():
            return found
        assert time.monotonic() < end, f"within {seconds} s there came no {what}"
        time.sleep(0.005)


@contextmanager
def receiver(port: int = 0) -> Iterator[Receiver]:
    """A running receiver, on a free port unless one is given."""
    found = Receiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            arrived = Arrived(self.path, headers, json.loads(raw or b"{}"), time.monotonic())
            found.arrived.append(arrived)
            self.send_response(found.answer(arrived))
            for name, value in found.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        allow_reuse_address = True
        daemon_threads = True
        request_queue_size = 256

    server = Server(("127.0.0.1", port), Handler)
    found.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
