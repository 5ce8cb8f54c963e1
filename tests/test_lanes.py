"""Health checks are answered while every other thread waits, and nobody holds a place in the server for ever."""

import http.client
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from flask import Flask
from waitress import wasyncore

from escalade import lanes
from escalade.config import Config
from escalade.db import Database
from escalade.serve import THREADS, web_server
from escalade.web.access import public
from tests.receiver import wait_for
from tests.web.serving import make_app

SECONDS = 30


@contextmanager
def running(app: Flask, config: Config) -> Iterator[Any]:
    """The server of the process, in a thread; its port is `effective_port`."""
    server = web_server(app, replace(config, host="127.0.0.1", port=0))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        # Its loop ends when it has nothing left to watch, which only that thread may bring about.
        server.trigger.pull_trigger(lambda: wasyncore.close_all(server._map))
        thread.join(SECONDS)
        server.task_dispatcher.shutdown()
        assert not thread.is_alive()


def opened(server: Any, sent: bytes = b"") -> socket.socket:
    """A connection on which something was sent."""
    made = socket.create_connection(("127.0.0.1", int(server.effective_port)), timeout=SECONDS)
    made.sendall(sent)
    return made


def status(server: Any, path: str) -> int:
    """The status of a GET on a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", int(server.effective_port), timeout=SECONDS)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


def asked(path: str) -> bytes:
    """A GET as it goes over the wire."""
    return f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


def noted(server: Any, at: float) -> bool:
    """Whether the only connection waits for a request since then."""
    [channel] = server.active_channels.values()
    return channel.waits_since == at and not channel.requests


def closed(connection: socket.socket) -> bool:
    """Whether the server closes this connection, saying nothing before."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_health_is_told_while_all_threads_wait(database: Database, config: Config) -> None:
    app, let_go, waiting = make_app(database, config), threading.Event(), threading.Semaphore(0)

    @public
    def blocked() -> str:
        waiting.release()
        let_go.wait(SECONDS)
        return "done"

    app.add_url_rule("/blocked", "blocked", blocked)
    with running(app, config) as server, ExitStack() as stack:
        stack.callback(let_go.set)
        callers = [stack.enter_context(opened(server, asked("/blocked"))) for _ in range(12)]
        assert all(waiting.acquire(timeout=SECONDS) for _ in range(THREADS))
        assert not waiting.acquire(blocking=False)
        for _ in range(3):
            assert (status(server, "/healthz"), status(server, "/readyz"), status(server, "/healthz?x")) == (200,) * 3
        assert not let_go.is_set()
        let_go.set()
        assert all(caller.recv(12) == b"HTTP/1.1 200" for caller in callers)


def test_a_database_that_hangs_holds_readyz_and_not_healthz(
    database: Database, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go, waiting = threading.Event(), threading.Semaphore(0)

    def hang() -> None:
        waiting.release()
        let_go.wait(SECONDS)

    monkeypatch.setattr("escalade.web.health.database_fault", hang)
    with running(make_app(database, config), config) as server, ExitStack() as stack:
        stack.callback(let_go.set)
        for _ in range(5):
            stack.enter_context(opened(server, asked("/readyz")))
        assert all(waiting.acquire(timeout=SECONDS) for _ in range(lanes.HEALTH_THREADS["/readyz"]))
        assert status(server, "/healthz") == 200
        let_go.set()
        # Once these are answered, so are those before them, and no thread is left behind to write to a closed server.
        assert [status(server, "/readyz") for _ in range(3)] == [200] * 3


@pytest.mark.parametrize("requests", [[], [SimpleNamespace()], [SimpleNamespace(path="/healthzz")]])
def test_what_is_no_health_check_goes_to_the_others(requests: list[Any]) -> None:
    found: list[Any] = []
    all_lanes = lanes.Lanes(1)
    try:
        channel = SimpleNamespace(requests=requests, service=lambda: found.append(1))
        all_lanes.others.add_task = found.append
        all_lanes.add_task(channel)
        assert found == [channel]
    finally:
        assert all_lanes.shutdown()


def test_requests_on_one_connection_are_answered_in_their_order(database: Database, config: Config) -> None:
    with running(make_app(database, config), config) as server:
        with opened(server, asked("/nowhere") + asked("/healthz") + b"GET / HTTP/9\x00\r\n\r\n") as caller:
            answers = caller.makefile("rb").read()
    assert re.findall(rb"HTTP/1.. ([0-9]+) ", answers) == [b"404", b"200", b"400"]


def test_a_request_that_drips_is_cut_off(database: Database, config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "REQUEST_SECONDS", 2.0)
    begun = [
        b"GET /healthz HT",
        b"POST /hooks/x HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n{",
        b"POST /hooks/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"\r\n\r\n",
    ]
    with running(make_app(database, config), config) as server, ExitStack() as stack:
        connections = [stack.enter_context(opened(server, start)) for start in begun]
        over = threading.Event()
        stack.callback(over.set)

        def drip() -> None:
            while not over.wait(0.05):
                for connection in connections:
                    try:
                        connection.sendall(b"\r\n" if connection is connections[-1] else b"1")
                    except OSError:
                        pass

        threading.Thread(target=drip, daemon=True).start()
        wait_for(lambda: not server.active_channels, SECONDS, "an end of all of them")


def test_an_answer_starts_the_time_anew(database: Database, config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(lanes, "monotonic", lambda: now[0])
    with running(make_app(database, config), config) as server:
        caller = http.client.HTTPConnection("127.0.0.1", int(server.effective_port), timeout=SECONDS)
        caller.connect()
        connection = caller.sock
        for _ in range(4):
            caller.request("GET", "/healthz")
            assert caller.getresponse().read() and caller.sock is connection
            # The answer arrives before the server has noted that it is out.
            wait_for(lambda: noted(server, now[0]), SECONDS, "note")
            now[0] += lanes.REQUEST_SECONDS - 1
        now[0] += 2
        assert closed(connection)
        caller.close()


def test_when_all_places_are_taken_the_oldest_makes_way(database: Database, config: Config) -> None:
    with running(make_app(database, config), config) as server, ExitStack() as stack:
        server.adj.connection_limit = 40
        idle = [stack.enter_context(opened(server, b"G" if number % 2 else b"")) for number in range(60)]
        assert status(server, "/healthz") == 200
        assert closed(idle[0]) and closed(idle[1])
        last = idle[-1]
        last.sendall(asked("/healthz")[1:])
        assert last.recv(12) == b"HTTP/1.1 200"
        assert not server.in_connection_overflow
