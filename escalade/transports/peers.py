"""Finds a host's addresses within a time limit, and says which of them may be reached."""

import ipaddress
import queue
import socket
import threading
from collections.abc import Callable

from escalade.transports.base import DeliveryError, Network
from escalade.transports.deadline import Deadline

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
LookUp = Callable[[str], list[str]]

_UNICAST_V6 = ipaddress.IPv6Network("2000::/3")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
# A look-up cannot be stopped, only abandoned; this many may be under way before the next one waits for a place.
_PLACES = threading.BoundedSemaphore(64)


def system_look_up(host: str) -> list[str]:
    """The host's IP addresses in the system's order of preference; OSError where it has none."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def literal(host: str) -> IPAddress | None:
    """The address a host given in numbers is, None for a name.

    Odd spellings (one number, octal, hexadecimal) count as names: the system's resolver understands them.
    """
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def find(host: str, shown: str, deadline: Deadline, look_up: LookUp = system_look_up) -> list[IPAddress]:
    """The addresses behind a host name or a literal address; DeliveryError (retry) where there are none.

    The look-up runs in a thread of its own, because nothing else can bound the system's resolver; at the
    deadline it is left to itself.
    """
    address = literal(host)
    if address is not None:
        return [address]
    try:
        answer = _ask_in_time(host, deadline, look_up)
    except TimeoutError:
        raise DeliveryError(
            f"The look-up of the name in {shown} had no answer within {deadline.seconds:g} s."
        ) from None
    if isinstance(answer, Exception):
        reason = answer.strerror if isinstance(answer, OSError) and answer.strerror else "no valid answer"
        raise DeliveryError(f"The look-up of the name in {shown} failed: {reason}.")
    if not answer:
        raise DeliveryError(f"The look-up of the name in {shown} found no address.")
    return [ipaddress.ip_address(address) for address in answer]


def _ask_in_time(host: str, deadline: Deadline, look_up: LookUp) -> list[str] | Exception:
    if not _PLACES.acquire(timeout=deadline.left()):
        raise TimeoutError
    answers: queue.SimpleQueue[list[str] | Exception] = queue.SimpleQueue()
    threading.Thread(target=_ask, args=(host, look_up, answers), name="look-up", daemon=True).start()
    try:
        return answers.get(timeout=deadline.left())
    except queue.Empty:
        raise TimeoutError from None


def _ask(host: str, look_up: LookUp, answers: "queue.SimpleQueue[list[str] | Exception]") -> None:
    try:
        answers.put(look_up(host))
    except Exception as fault:  # whatever it is, it belongs to the sender who waits for it
        answers.put(fault)
    finally:
        _PLACES.release()


def allowed(found: list[IPAddress], shown: str, network: Network) -> list[IPAddress]:
    """Those of the addresses that may be reached; DeliveryError (permanent) where none of them may."""
    usable = [address for address in found if may_reach(address, network)]
    if not usable:
        raise DeliveryError(
            f"{shown} is at {found[0]}, which is not on the public internet, so it is not contacted: "
            "allow it with ESCALADE_ALLOW_PRIVATE_ADDRESSES.",
            permanent=True,
        )
    return usable


def may_reach(address: IPAddress, network: Network) -> bool:
    """Whether the address is on the public internet or in one of the networks allowed besides."""
    if network.allow_private is True:
        return True
    inner = _carried(address)
    if network.allow_private and any(inner in net or address in net for net in network.allow_private):
        return True
    if isinstance(inner, ipaddress.IPv6Address) and inner not in _UNICAST_V6:
        return False
    return inner.is_global and not inner.is_multicast


def _carried(address: IPAddress) -> IPAddress:
    # These IPv6 forms end up at the IPv4 address inside them, so that is the one to judge.
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address
