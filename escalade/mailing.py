"""Mails that carry a link to log in. They take no place in the queue, where the link would be kept and shown."""

import logging
import threading

from escalade.transports import email, mask
from escalade.transports.base import DeliveryError, Network

log = logging.getLogger("escalade.mailing")


def post(network: Network, address: str, subject: str, text: str) -> bool:
    """Send one mail now; whether the server took it. Why not is in the log, and asking again makes another."""
    try:
        email.post(address, subject, text, network)
        return True
    except DeliveryError as error:
        log.warning("the mail %r to %s could not be sent: %s", subject, mask("email", address), error.message)
        return False


def post_later(network: Network, address: str, subject: str, text: str) -> threading.Thread:
    """Send it beside the request, which is answered at once; the thread that does it."""
    thread = threading.Thread(target=post, args=(network, address, subject, text), daemon=True)
    thread.start()
    return thread
