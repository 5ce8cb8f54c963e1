"""A connected socket on which every wait is cut to the exchange's deadline.

A socket's own timeout starts anew with each call, so a peer that drips a byte now and then holds a reader for
ever. Here the timeout is set from the deadline before each single call to the system.
"""

import functools
import io
import socket
import ssl
from types import TracebackType
from typing import Self

import certifi

from escalade.transports.base import DeliveryError, Network
from escalade.transports.deadline import Deadline
from escalade.transports.peers import IPAddress

# No exchange of ours needs more, and a peer that sends without end must not fill the memory until the deadline.
RECEIVE_LIMIT = 1024 * 1024


class TooMuch(OSError):
    """The peer sent more than any answer needs."""


class Wire:
    """One connection. It has what http.client and smtplib use of a socket: sendall, makefile and close."""

    def __init__(self, sock: socket.socket, deadline: Deadline, read_timeout: float) -> None:
        self._sock = sock
        self._deadline = deadline
        self._read_timeout = read_timeout
        self._received = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """Close the connection."""
        self._sock.close()

    def sendall(self, data: bytes) -> None:
        """Send all of it; TimeoutError at the deadline or when nothing moves for the read timeout."""
        rest = memoryview(data)
        while rest:
            self._arm()
            rest = rest[self._sock.send(rest) :]

    def receive_into(self, buffer: memoryview) -> int:
        """Fill part of the buffer with what comes next; 0 at the end. Raises TimeoutError, TooMuch, OSError."""
        self._arm()
        count = self._sock.recv_into(buffer)
        self._received += count
        if self._received > RECEIVE_LIMIT:
            raise TooMuch("the answer does not end")
        return count

    def makefile(self, mode: str = "rb") -> io.BufferedReader:
        """A reader over the connection; it only reads bytes, whatever the mode."""
        return io.BufferedReader(_Reader(self))

    def close(self) -> None:
        """Nothing: http.client closes before it reads the body. The `with` block around the exchange closes."""

    def start_tls(self, host: str, shown: str) -> None:
        """Go on encrypted, with the certificate checked against the host; DeliveryError (retry) if that fails."""
        try:
            self._arm()
            self._sock = tls_context().wrap_socket(self._sock, server_hostname=host)
        except ssl.SSLCertVerificationError as fault:
            raise DeliveryError(f"{shown} has no valid certificate: {fault.verify_message}.") from None
        except TimeoutError:
            raise DeliveryError(f"{shown} did not finish the TLS handshake in time.") from None
        except (OSError, ValueError) as fault:
            raise DeliveryError(f"The TLS handshake with {shown} failed: {_reason(fault)}.") from None

    def end_within(self, seconds: float) -> None:
        """From now on wait no longer than so many seconds in all, even where the deadline would allow more."""
        self._deadline = Deadline(min(seconds, self._deadline.left()))

    def local_address(self) -> str:
        """The IP address this end of the connection has."""
        return str(self._sock.getsockname()[0])

    def _arm(self) -> None:
        self._sock.settimeout(min(self._read_timeout, self._deadline.left()))


class _Reader(io.RawIOBase):
    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        return self._wire.receive_into(buffer)


def dial(addresses: list[IPAddress], port: int, shown: str, network: Network, deadline: Deadline) -> Wire:
    """Connect to the first of the addresses that answers; DeliveryError (retry) where none does."""
    fault: OSError = OSError("no address")
    for address in addresses:
        try:
            wait = min(network.connect_timeout, deadline.left())
            sock = socket.create_connection((str(address), port), timeout=wait)
        except OSError as refusal:
            fault = refusal
            continue
        # Headers and body leave as two writes; without this the second waits for the first one's receipt.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return Wire(sock, deadline, network.read_timeout)
    if isinstance(fault, TimeoutError):
        raise DeliveryError(f"{shown} did not accept a connection in time.")
    raise DeliveryError(f"No connection to {shown}: {_reason(fault)}.")


def _reason(fault: Exception) -> str:
    if isinstance(fault, ssl.SSLError) and fault.reason:
        return fault.reason.replace("_", " ").lower()
    return (fault.strerror if isinstance(fault, OSError) else None) or "the connection broke"


@functools.cache
def tls_context() -> ssl.SSLContext:
    """The one TLS configuration: certificates and names verified against the system's and certifi's roots."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context
