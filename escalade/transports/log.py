"""Pages into the log: for trying things out, and as a last resort that needs no network."""

import logging

from escalade.transports.base import Message, Network, Receipt
from escalade.transports.text import facts, one_line, opening, shorten, stem, subject

REQUEST_LIMIT = 1_000
_logger = logging.getLogger("escalade.page")


def send(message: Message, network: Network) -> Receipt:
    """Write the message as one line to the logger "escalade.page". It cannot fail and uses no network."""
    _logger.info("%s", sentence(message))
    return Receipt(request=shorten(subject(message), REQUEST_LIMIT))


def sentence(message: Message) -> str:
    """The whole message on one line: to whom, about what, where to read it and where to acknowledge it."""
    parts = [f"{message.type} to {one_line(message.recipient)}", subject(message), opening(message)]
    parts += [f"{stem(incident)} ({facts(incident)}) {incident.url}" for incident in message.incidents]
    if message.ack_url:
        parts.append(f"acknowledge: {message.ack_url}")
    return " | ".join(part for part in parts if part)
