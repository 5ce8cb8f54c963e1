"""The one place HTTP leaves from: a POST that ends in time, goes only where it may, and says what went wrong.

No connection is kept: a page is rare, and one that was kept is stale when it is needed. Nothing is taken from
the environment (no proxies, no .netrc) and no redirect is followed.
"""

import http.client
import socket
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import cast

from escalade import __version__
from escalade.retry import parse_retry_after
from escalade.transports import proxy
from escalade.transports.addresses import WebAddress, basic_login, parse_web, secret_parts
from escalade.transports.base import DeliveryError, Network, Receipt
from escalade.transports.deadline import Deadline
from escalade.transports.peers import LookUp, allowed, find, system_look_up
from escalade.transports.text import one_line, shorten
from escalade.transports.wire import TooMuch, Wire, dial

ANSWER_LIMIT = 64 * 1024
RECORD_LIMIT = 1_000
REASON_LIMIT = 200
# The status decides and has come by then; the body is only for people to read.
BODY_SECONDS = 2.0
_TRY_AGAIN = (408, 425, 429)
_MAYBE = "it may have been delivered"


def post(
    address: str,
    body: bytes,
    headers: Mapping[str, str],
    network: Network,
    *,
    hide: Iterable[str] = (),
    look_up: LookUp = system_look_up,
) -> Receipt:
    """POST a JSON body and return the receipt of a 2xx answer; anything else raises DeliveryError.

    The class of the error: *retry* for a failed look-up, connection or TLS handshake and for 408, 425, 429 and
    5xx (Retry-After obeyed); *permanent* for other 4xx, redirects, bad and refused addresses; *unknown* where
    the connection broke or time ran out after the request was written. `hide` are texts that no record may
    show, besides the secret parts of the address. A login in the address is sent as HTTP Basic.
    """
    web = _taken_apart(address)
    secrets = [*hide, *secret_parts(address)]
    request = _record(f"POST {web.shown} {body.decode('utf-8', 'replace')}", secrets)
    try:
        status, retry_after, text = _exchange(web, body, headers, network, look_up)
    except DeliveryError as fault:
        fault.request = request
        raise
    answer = _record(f"{status} {text}", secrets)
    if 200 <= status < 300:
        return Receipt(request, answer)
    raise _refusal(web, status, retry_after, request, answer)


def _taken_apart(address: str) -> WebAddress:
    try:
        return parse_web(address)
    except ValueError as fault:
        raise DeliveryError(str(fault), permanent=True) from None


def _exchange(
    web: WebAddress, body: bytes, headers: Mapping[str, str], network: Network, look_up: LookUp
) -> tuple[int, str | None, str]:
    """Status, Retry-After and the beginning of the body that the receiver answers."""
    deadline = Deadline(network.deadline)
    with _connect(web, network, deadline, look_up) as wire:
        if web.scheme == "https":
            wire.start_tls(web.host.removesuffix("."), web.shown)
        connection = http.client.HTTPConnection(web.host, web.port)
        connection.sock = cast(socket.socket, wire)
        try:
            connection.request("POST", web.target, body, _headers(web) | dict(headers))
        except OSError:
            raise DeliveryError(f"The connection to {web.shown} broke while the request was sent.") from None
        except (ValueError, http.client.HTTPException):
            raise DeliveryError(
                f"A header for {web.shown} holds characters HTTP has no place for.", permanent=True
            ) from None
        try:
            with connection.getresponse() as response:
                return response.status, response.getheader("Retry-After"), _read(response, wire)
        except (OSError, http.client.HTTPException) as fault:
            raise DeliveryError(_no_answer(fault, web.shown, network, deadline), unknown=True) from None


def _headers(web: WebAddress) -> dict[str, str]:
    headers = {
        "Host": web.authority,
        "User-Agent": f"Escalade/{__version__}",
        "Content-Type": "application/json",
        "Connection": "close",
    }
    login = basic_login(web)
    return headers | {"Authorization": login} if login else headers


def _connect(web: WebAddress, network: Network, deadline: Deadline, look_up: LookUp) -> Wire:
    """A connection to the very address that was looked up and checked, so a second look-up cannot differ."""
    if network.proxy is not None:
        return proxy.connect(web, network, deadline, look_up)
    addresses = allowed(find(web.host, web.shown, deadline, look_up), web.shown, network)
    return dial(addresses, web.port, web.shown, network, deadline)


def _read(response: http.client.HTTPResponse, wire: Wire) -> str:
    """The beginning of the body, as much as comes in time: a body that breaks off changes no outcome."""
    body = bytearray()
    try:
        wire.end_within(BODY_SECONDS)
        while len(body) < ANSWER_LIMIT and (part := response.read1(16 * 1024)):
            body += part
    except (OSError, http.client.HTTPException):
        pass
    return bytes(body[:ANSWER_LIMIT]).decode("utf-8", "replace")


def _no_answer(fault: Exception, shown: str, network: Network, deadline: Deadline) -> str:
    if deadline.over:
        return f"{shown} gave no whole answer within the {deadline.seconds:g} s a send may take; {_MAYBE}."
    if isinstance(fault, TimeoutError):
        return f"{shown} gave no answer for {network.read_timeout:g} s; {_MAYBE}."
    if isinstance(fault, OSError) and not isinstance(fault, TooMuch):
        return f"{shown} closed the connection before it answered; {_MAYBE}."
    return f"{shown} answered something that is no HTTP; {_MAYBE}."


def _refusal(web: WebAddress, status: int, retry_after: str | None, request: str, answer: str) -> DeliveryError:
    """The error that an answer other than 2xx stands for."""
    said = f"{web.shown} answered {shorten(answer, REASON_LIMIT).rstrip('. ')}"
    if 300 <= status < 400:
        said += ": a redirect, which is not followed (enter the final address)"
    permanent = 300 <= status < 500 and status not in _TRY_AGAIN
    wait = None
    if retry_after is not None and not permanent:
        wait = parse_retry_after(retry_after, datetime.now(UTC))
    return DeliveryError(
        f"{said}.",
        permanent=permanent,
        limited=status == 429,
        retry_after=wait,
        request=request,
        answer=answer,
    )


def _record(text: str, secrets: Iterable[str]) -> str:
    """One line for the log of a try, short and without the secrets."""
    for secret in secrets:
        text = text.replace(secret, "...") if secret else text
    return shorten(one_line(text), RECORD_LIMIT)
