"""The phone's other end: it writes down every page, when it came and when the answer was given."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from bench.chaos.record import Request


class Phone:
    """What has come. Each answer takes `hold` seconds, so that there are moments at which a send is under way."""

    def __init__(self) -> None:
        self.url = ""
        self.hold = 0.01
        self.lock = threading.Lock()
        self.requests: list[Request] = []
        self.under_way: set[int] = set()

    def arrive(self, body: dict[str, Any], key: str, port: int) -> list[Request]:
        """Write down that a message has come."""
        now = time.time()
        found = [
            Request(attempt["id"], incident["id"], key, port, now)
            for attempt, incident in zip(body["attempts"], body["incidents"], strict=True)
        ]
        with self.lock:
            self.requests += found
            self.under_way.add(port)
        return found

    def answered(self, found: list[Request]) -> None:
        """Write down that it has been answered. Written before the answer leaves: later it may never be."""
        with self.lock:
            for request in found:
                request.answered = time.time()
                self.under_way.discard(request.port)

    def sending(self) -> set[int]:
        """The ports from which a message has come that is not answered yet."""
        with self.lock:
            return set(self.under_way)

    def gone(self, port: int) -> None:
        """The exchange is over."""
        with self.lock:
            self.under_way.discard(port)


@contextmanager
def running() -> Iterator[Phone]:
    """A phone on a free port of loopback."""
    phone = Phone()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            port = self.client_address[1]
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            found = phone.arrive(body, self.headers["idempotency-key"], port)
            try:
                time.sleep(phone.hold)
                phone.answered(found)
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()
            except OSError:
                self.close_connection = True
            finally:
                phone.gone(port)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 256

    server = Server(("127.0.0.1", 0), Handler)
    phone.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield phone
    finally:
        server.shutdown()
        server.server_close()
