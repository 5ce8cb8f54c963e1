"""Whatever a receiver does, a send ends within its deadline, with a sentence of its own and the right class."""

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from escalade.transports import TRANSPORTS, DeliveryError, Message, Network, peers
from tests.transports.conftest import Script, drip, page, read_request

EVERY = 0.05  # between two bytes of what is dripped: well within the read timeout of these tests
SLACK = 5.0  # for a busy machine; what has no deadline never ends


def reset(connection: socket.socket) -> None:
    """Have the connection end in a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def after_the_request(then: Callable[[socket.socket, threading.Event], None]) -> Script:
    """Read a whole request, then do this."""

    def script(connection: socket.socket, stop: threading.Event) -> None:
        read_request(connection)
        then(connection, stop)

    return script


def endless(data: bytes) -> Callable[[socket.socket, threading.Event], None]:
    """Send this again and again, as fast as it is taken."""

    def script(connection: socket.socket, stop: threading.Event) -> None:
        while not stop.is_set():
            connection.sendall(data)

    return script


def silent(connection: socket.socket, stop: threading.Event) -> None:
    """Say nothing for ever."""
    stop.wait(30)


def smtp(until: bytes, then: Callable[[socket.socket, threading.Event], None]) -> Script:
    """A polite mail server as far as the line that begins so; the mail itself ends with a dot."""

    def script(connection: socket.socket, stop: threading.Event) -> None:
        connection.sendall(b"220 ready\r\n")
        in_mail = False
        for line in connection.makefile("rb"):
            if in_mail and line != b".\r\n":
                continue
            if line.startswith(until):
                return then(connection, stop)
            in_mail = line.startswith(b"DATA")
            connection.sendall(b"354 go on\r\n" if in_mail else b"250 fine\r\n")

    return script


def sort(error: DeliveryError) -> str:
    """The class of an error."""
    return "final" if error.permanent else "unknown" if error.unknown else "retry"


def outcome(kind: str, message: Message, network: Network) -> tuple[str, str]:
    """Send, which must end in time: the class and the sentence of what came back."""
    began = time.monotonic()
    try:
        TRANSPORTS[kind].send(message, network)
        found = ("delivered", "")
    except DeliveryError as error:
        found = (sort(error), error.message)
    assert time.monotonic() - began < network.deadline + SLACK
    return found


HTTP: dict[str, tuple[str, Script, str, str]] = {
    "accepted and silent": ("http", silent, "unknown", "gave no answer for 0.4 s"),
    "headers dripped": (
        "http",
        after_the_request(lambda c, stop: drip(c, stop, b"HTTP/1.1 200 OK\r\nX: " + b"x" * 900, EVERY)),
        "unknown",
        "gave no whole answer within the 0.7 s",
    ),
    "body dripped": (
        "http",
        after_the_request(lambda c, stop: drip(c, stop, b"HTTP/1.1 200 OK\r\n\r\n" + b"." * 900, 0.01)),
        "delivered",
        "",
    ),
    "chunks dripped after a refusal": (
        "http",
        after_the_request(
            lambda c, stop: (
                c.sendall(b"HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n"),
                drip(c, stop, b"1\r\n.\r\n" * 300, EVERY),
            )[0]
        ),
        "retry",
        "answered 503",
    ),
    "endless body": (
        "http",
        after_the_request(lambda c, stop: (c.sendall(b"HTTP/1.1 500 No\r\n\r\n"), endless(b"x" * 65536)(c, stop))[0]),
        "retry",
        "answered 500",
    ),
    "endless interim answers": (
        "http",
        after_the_request(endless(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)),
        "unknown",
        "sent an answer without end",
    ),
    "a redirect to itself": (
        "http",
        after_the_request(lambda c, stop: c.sendall(b"HTTP/1.1 307 Again\r\nLocation: /\r\n\r\n")),
        "final",
        "a redirect, which is not followed",
    ),
    "reset after the request": (
        "http",
        after_the_request(lambda c, stop: reset(c)),
        "unknown",
        "closed the connection before it answered",
    ),
    "a handshake that hangs": ("https", silent, "retry", "did not finish the TLS handshake in time"),
    "a handshake that drips": (
        "https",
        lambda c, stop: drip(c, stop, b"\x16\x03\x03\x40\x00" + b"\x02" * 900, EVERY),
        "retry",
        "did not finish the TLS handshake in time",
    ),
    "reset in the handshake": (
        "https",
        lambda c, stop: reset(c) if c.recv(9) else None,
        "retry",
        "The TLS handshake with",
    ),
}

MAIL: dict[str, tuple[Script, str, str]] = {
    "accepted and silent": (silent, "retry", "was silent for 0.4 s"),
    "greeting dripped": (
        lambda c, stop: drip(c, stop, b"220 " + b"x" * 900, EVERY),
        "retry",
        "did not take the mail within the 0.7 s",
    ),
    "endless greeting": (endless(b"220-welcome\r\n" * 1000), "retry", "sent an answer without end"),
    "hung after DATA": (smtp(b"DATA", silent), "retry", "was silent for 0.4 s"),
    "dripped after DATA": (
        smtp(b"DATA", lambda c, stop: drip(c, stop, b"354-" + b"x" * 900, EVERY)),
        "retry",
        "did not take the mail within the 0.7 s",
    ),
    "reset after DATA": (smtp(b"DATA", lambda c, stop: reset(c)), "retry", "closed the connection before it had taken"),
    "hung after the mail": (smtp(b".", silent), "unknown", "did not confirm the mail; it may have been delivered"),
    "dripped after the mail": (
        smtp(b".", lambda c, stop: drip(c, stop, b"250-" + b"x" * 900, EVERY)),
        "unknown",
        "did not confirm the mail",
    ),
    "reset after the mail": (smtp(b".", lambda c, stop: reset(c)), "unknown", "did not confirm the mail"),
    "hung after the acceptance": (
        smtp(b".", lambda c, stop: (c.sendall(b"250 taken\r\n"), stop.wait(30))[0]),
        "delivered",
        "",
    ),
}


@pytest.mark.parametrize("case", HTTP)
def test_k057_k064_a_request_ends_in_time_with_a_reason_of_its_own(serve, hasty: Network, case: str):
    scheme, script, expected, words = HTTP[case]
    found, said = outcome("webhook", page(f"{scheme}://127.0.0.1:{serve(script).port}/"), hasty)
    assert (found, words in said) == (expected, True), said


@pytest.mark.parametrize("case", MAIL)
def test_k057_k064_a_mail_ends_in_time_with_a_reason_of_its_own(serve, hasty: Network, case: str):
    script, expected, words = MAIL[case]
    network = replace(hasty, smtp_url=f"smtp://127.0.0.1:{serve(script).port}?starttls=off")
    found, said = outcome("email", page("alice@example.com"), network)
    assert (found, words in said) == (expected, True), said


@pytest.fixture
def dead_resolver(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The system's resolver answers nobody who asks for a name under .test, and nothing can interrupt it."""
    over = threading.Event()
    real = socket.getaddrinfo

    def look_up(host: str, *args: Any, **more: Any) -> Any:
        return over.wait(30) and [] if host.endswith(".test") else real(host, *args, **more)

    monkeypatch.setattr(peers.socket, "getaddrinfo", look_up)
    yield
    over.set()


@pytest.mark.parametrize("kind", ["webhook", "email"])
def test_k057_a_resolver_that_does_not_answer_ends_at_the_deadline(hasty: Network, dead_resolver, kind: str):
    network = replace(hasty, smtp_url="smtp://mail.test")
    address = {"webhook": "http://pager.test/", "email": "alice@example.com"}[kind]
    found, said = outcome(kind, page(address), network)
    assert (found, "had no answer within 0.7 s" in said) == ("retry", True), said


def test_look_ups_that_hang_keep_none_waiting_that_needs_no_look_up(serve, hasty: Network, dead_resolver):
    sends = [
        threading.Thread(target=outcome, args=("webhook", page(f"http://pager{number}.test/"), hasty))
        for number in range(8)
    ]
    for send in sends:
        send.start()
    server = serve(after_the_request(lambda c, stop: c.sendall(b"HTTP/1.1 200 OK\r\n\r\n")))
    assert outcome("webhook", page(server.url), hasty) == ("delivered", "")
    for send in sends:
        send.join()


def test_k057_a_reset_before_the_request_was_whole_is_tried_again(serve, network: Network):
    def script(connection: socket.socket, stop: threading.Event) -> None:
        connection.recv(1000)
        reset(connection)

    long = page(serve(script).url)
    long = replace(long, incidents=tuple(replace(long.incidents[0], title="x" * 1_000_000) for _ in range(20)))
    found, said = outcome("webhook", long, network)
    assert (found, "broke while the request was sent" in said) == ("retry", True), said
