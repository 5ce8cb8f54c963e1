"""How requests reaches a receiver: one exchange on a connection of its own, in time and only where it may go.

The adapter that comes with requests looks the name up by itself, after whoever checked it, and starts its timeout
anew with every read. This one keeps one deadline from the look-up to the last byte, connects to the very address
that was checked, and knows whether a request that failed had been written.
"""

import http.client
import io
import socket
from typing import Any, cast

from requests import PreparedRequest, Response
from requests.adapters import BaseAdapter
from requests.structures import CaseInsensitiveDict

from escalade.transports import proxy
from escalade.transports.addresses import WebAddress, take_apart
from escalade.transports.base import DeliveryError, Network
from escalade.transports.deadline import Deadline
from escalade.transports.peers import LookUp, allowed, find, system_look_up
from escalade.transports.wire import TooMuch, Wire, dial

ANSWER_LIMIT = 64 * 1024
# The status decides and has come by then; the body is only for people to read.
BODY_SECONDS = 2.0
_MAYBE = "it may have been delivered"


class BoundedAdapter(BaseAdapter):
    """Sends requests within the limits of a network. No connection is kept."""

    def __init__(self, network: Network, look_up: LookUp = system_look_up) -> None:
        super().__init__()
        self._network = network
        self._look_up = look_up

    def send(self, request: PreparedRequest, *args: Any, **kwargs: Any) -> Response:
        """The answer with the beginning of its body; DeliveryError where there is none.

        The error is *unknown* where the request had been written. What else the session passes (timeout, proxies,
        certificates) has no say: the network decides, so no call can loosen it.
        """
        web = take_apart(request.url or "")
        deadline = Deadline(self._network.deadline)
        with self._connect(web, deadline) as wire:
            if web.scheme == "https":
                wire.start_tls(web.host.removesuffix("."), web.shown)
            connection = http.client.HTTPConnection(web.host, web.port)
            connection.sock = cast(socket.socket, wire)
            _write(connection, web, request)
            try:
                with connection.getresponse() as answer:
                    return _response(request, answer, _read(answer, wire))
            except (OSError, http.client.HTTPException) as fault:
                raise DeliveryError(self._no_answer(fault, web.shown, deadline), unknown=True) from None

    def close(self) -> None:
        """Nothing: no connection outlives its exchange."""

    def _connect(self, web: WebAddress, deadline: Deadline) -> Wire:
        """A connection to the very address that was looked up and checked, so a second look-up cannot differ."""
        if self._network.proxy is not None:
            return proxy.connect(web, self._network, deadline, self._look_up)
        addresses = allowed(find(web.host, web.shown, deadline, self._look_up), web.shown, self._network)
        return dial(addresses, web.port, web.shown, self._network, deadline)

    def _no_answer(self, fault: Exception, shown: str, deadline: Deadline) -> str:
        if deadline.over:
            return f"{shown} gave no whole answer within the {deadline.seconds:g} s a send may take; {_MAYBE}."
        if isinstance(fault, TimeoutError):
            return f"{shown} gave no answer for {self._network.read_timeout:g} s; {_MAYBE}."
        if isinstance(fault, TooMuch):
            return f"{shown} sent an answer without end; {_MAYBE}."
        if isinstance(fault, OSError):
            return f"{shown} closed the connection before it answered; {_MAYBE}."
        return f"{shown} answered something that is no HTTP; {_MAYBE}."


def _write(connection: http.client.HTTPConnection, web: WebAddress, request: PreparedRequest) -> None:
    """Send the whole request. A receiver acts on a whole one only, so a failure here is to be tried again."""
    headers = {"Host": web.authority, **request.headers}
    try:
        connection.request(request.method or "GET", web.target, request.body, headers)
    except OSError:
        raise DeliveryError(f"The connection to {web.shown} broke while the request was sent.") from None
    except (ValueError, http.client.HTTPException):
        raise DeliveryError(
            f"A header for {web.shown} holds characters HTTP has no place for.", permanent=True
        ) from None


def _read(answer: http.client.HTTPResponse, wire: Wire) -> bytes:
    """The beginning of the body, as much as comes in time: a body that breaks off changes no outcome."""
    body = bytearray()
    try:
        wire.end_within(BODY_SECONDS)
        while len(body) < ANSWER_LIMIT and (part := answer.read1(16 * 1024)):
            body += part
    except (OSError, http.client.HTTPException):
        pass
    return bytes(body[:ANSWER_LIMIT])


def _response(request: PreparedRequest, answer: http.client.HTTPResponse, body: bytes) -> Response:
    """What was answered, as requests has it. Its body has been read, so nothing in it waits for the network."""
    response = Response()
    response.status_code = answer.status
    response.reason = answer.reason
    # A header that came twice is one with both values, as in requests' own responses.
    response.headers = CaseInsensitiveDict((name, answer.getheader(name, "")) for name in answer.headers)
    response.url = request.url or ""
    response.request = request
    response.raw = io.BytesIO(body)
    return response
