"""Ways to reach somebody. Adding one is one module here and one line in `TRANSPORTS`."""

from collections.abc import Callable
from dataclasses import dataclass

from escalade.transports import addresses, email, log, ntfy, push, slack, webhook
from escalade.transports.addresses import mask
from escalade.transports.base import DeliveryError, Message, Network, Receipt

__all__ = ["TRANSPORTS", "DeliveryError", "Message", "Network", "Receipt", "Transport", "mask"]


@dataclass(frozen=True, slots=True)
class Transport:
    """One kind of transport.

    `send` delivers a message or raises DeliveryError. `check_address` says what is wrong with an address, in
    one sentence, or None. `destination` names the gate an address shares with others. `default_pace` is the
    least time between two messages to one contact, in seconds. `secret_address` says that whoever knows the
    address can send there, so exports keep it; `takes_secret` that a secret can be set beside it. `about` says in a
    sentence what it is and what it needs, `example` what an address looks like (empty where there is none to enter);
    `loud` that it can wake somebody up whose phone is silent. `address_is` and `secret_is` are what a form calls them.
    """

    kind: str
    label: str
    send: Callable[[Message, Network], Receipt]
    check_address: Callable[[str], str | None]
    destination: Callable[[str], str]
    default_pace: float
    secret_address: bool
    takes_secret: bool
    about: str = ""
    example: str = ""
    loud: bool = False
    address_is: str = "Address"
    secret_is: str = ""


def _check_slack(address: str) -> str | None:
    fault = addresses.check_web(address)
    if fault is None and addresses.parse_web(address).user is not None:
        return "A Slack webhook's address holds no user name or password."
    return fault


def _by_host(kind: str) -> Callable[[str], str]:
    return lambda address: addresses.destination(kind, address)


def _by_push_service(address: str) -> str:
    return addresses.destination("push", addresses.push_endpoint(address) or "")


def _one_gate(kind: str) -> Callable[[str], str]:
    return lambda address: kind


def _any_address(address: str) -> str | None:
    return None


_ALL = (
    Transport(
        "webhook",
        "Webhook",
        webhook.send,
        addresses.check_web,
        _by_host("webhook"),
        default_pace=0,
        secret_address=False,
        takes_secret=True,
        about="A POST with JSON to an address of yours, signed where you set a secret.",
        example="https://example.com/page-me",
        loud=True,
        address_is="Address of your receiver",
        secret_is="Secret that signs each message",
    ),
    Transport(
        "email",
        "E-mail",
        email.send,
        addresses.check_mail,
        _one_gate("email"),
        default_pace=10,
        secret_address=False,
        takes_secret=False,
        about="A mail with a link that acknowledges. It may be silent: few phones ring for a mail at night.",
        example="alice@example.com",
        loud=False,
        address_is="Mail address",
    ),
    Transport(
        "slack",
        "Slack",
        slack.send,
        _check_slack,
        _by_host("slack"),
        default_pace=10,
        secret_address=True,
        takes_secret=False,
        about="A message in a Slack channel, by an incoming webhook. It may be silent, as Slack's settings have it.",
        example="https://hooks.slack.com/services/T0/B0/x",
        loud=False,
        address_is="Address of the incoming webhook",
    ),
    Transport(
        "ntfy",
        "ntfy",
        ntfy.send,
        ntfy.check_address,
        _by_host("ntfy"),
        default_pace=10,
        secret_address=False,
        takes_secret=True,
        about="The ntfy app, free on every phone: subscribe there to a topic that nobody guesses, and enter it here."
        " It can ring although the phone is silent.",
        example="https://ntfy.sh/a-long-secret-topic",
        loud=True,
        address_is="Address of the topic",
        secret_is="Access token of the ntfy server, if it wants one",
    ),
    Transport(
        "push",
        "Web Push",
        push.send,
        push.check_address,
        _by_push_service,
        default_pace=10,
        secret_address=True,
        takes_secret=False,
        about="A notification by a browser or by Escalade on a phone's home screen. It may be silent: it cannot break"
        " through a phone that is muted.",
        example="",
        loud=False,
        address_is="Subscription that the browser made",
    ),
    Transport(
        "log",
        "Log",
        log.send,
        _any_address,
        _one_gate("log"),
        default_pace=0,
        secret_address=False,
        takes_secret=False,
        about="A line in the log of this server, to try things out. It wakes nobody up.",
        example="",
        loud=False,
        address_is="Name in the log",
    ),
)
TRANSPORTS: dict[str, Transport] = {transport.kind: transport for transport in _ALL}
