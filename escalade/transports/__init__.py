"""Ways to reach somebody. Adding one is one module here and one line in `TRANSPORTS`."""

from collections.abc import Callable
from dataclasses import dataclass

from escalade.transports import addresses, email, log, ntfy, slack, webhook
from escalade.transports.addresses import mask
from escalade.transports.base import DeliveryError, Message, Network, Receipt

__all__ = ["TRANSPORTS", "DeliveryError", "Message", "Network", "Receipt", "Transport", "mask"]


@dataclass(frozen=True, slots=True)
class Transport:
    """One kind of transport.

    `send` delivers a message or raises DeliveryError. `check_address` says what is wrong with an address, in
    one sentence, or None. `destination` names the gate an address shares with others. `default_pace` is the
    least time between two messages to one contact, in seconds. `secret_address` says that whoever knows the
    address can send there, so exports keep it; `takes_secret` that a secret can be set beside it.
    """

    kind: str
    label: str
    send: Callable[[Message, Network], Receipt]
    check_address: Callable[[str], str | None]
    destination: Callable[[str], str]
    default_pace: float
    secret_address: bool
    takes_secret: bool


def _check_slack(address: str) -> str | None:
    fault = addresses.check_web(address)
    if fault is None and addresses.parse_web(address).user is not None:
        return "A Slack webhook's address holds no user name or password."
    return fault


def _by_host(kind: str) -> Callable[[str], str]:
    return lambda address: addresses.destination(kind, address)


def _one_gate(kind: str) -> Callable[[str], str]:
    return lambda address: kind


def _any_address(address: str) -> str | None:
    return None


TRANSPORTS: dict[str, Transport] = {
    transport.kind: transport
    for transport in (
        Transport("webhook", "Webhook", webhook.send, addresses.check_web, _by_host("webhook"), 0, False, True),
        Transport("email", "E-mail", email.send, addresses.check_mail, _one_gate("email"), 10, False, False),
        Transport("slack", "Slack", slack.send, _check_slack, _by_host("slack"), 10, True, False),
        Transport("ntfy", "ntfy", ntfy.send, ntfy.check_address, _by_host("ntfy"), 10, False, True),
        Transport("log", "Log", log.send, _any_address, _one_gate("log"), 0, False, False),
    )
}
