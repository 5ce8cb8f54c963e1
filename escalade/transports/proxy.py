"""Reaches a receiver through the configured proxy: a CONNECT tunnel, for http and https alike."""

import http.client
import socket
from typing import cast

from escalade.transports.addresses import WebAddress, basic_login, parse_web
from escalade.transports.base import DeliveryError, Network
from escalade.transports.deadline import Deadline
from escalade.transports.peers import LookUp, allowed, find, literal
from escalade.transports.wire import Wire, dial


def connect(web: WebAddress, network: Network, deadline: Deadline, look_up: LookUp) -> Wire:
    """A connection through `network.proxy` to the address; DeliveryError (retry) where the proxy gives none.

    The proxy resolves names and decides by its own rules which of them may be reached; only an address given
    in numbers is judged here.
    """
    try:
        via = parse_web(network.proxy or "")
    except ValueError as fault:
        raise DeliveryError(f"The proxy is set wrongly. {fault}", permanent=True) from None
    address = literal(web.host)
    if address is not None:
        allowed([address], web.shown, network)
    name = f"{via.shown} (the proxy)"
    wire = dial(find(via.host, name, deadline, look_up), via.port, name, network, deadline)
    try:
        _open_tunnel(wire, web, basic_login(via), f"No connection to {web.shown}: {name}")
    except BaseException:
        # Whoever called never gets this socket, so nobody else could close it.
        wire.end()
        raise
    return wire


def _open_tunnel(wire: Wire, web: WebAddress, login: str | None, failed: str) -> None:
    goal = f"{web.bracketed}:{web.port}"
    lines = [f"CONNECT {goal} HTTP/1.1", f"Host: {goal}"]
    if login is not None:
        lines.append(f"Proxy-Authorization: {login}")
    answer = http.client.HTTPResponse(cast(socket.socket, wire), method="CONNECT")
    try:
        wire.sendall("".join(f"{line}\r\n" for line in [*lines, ""]).encode("ascii"))
        # Reading ahead loses nothing: behind the tunnel it is ours to speak first.
        answer.begin()
    except (OSError, http.client.HTTPException):
        raise DeliveryError(f"{failed} gave no answer.") from None
    if answer.status != 200:
        raise DeliveryError(f"{failed} answered {answer.status}.")
