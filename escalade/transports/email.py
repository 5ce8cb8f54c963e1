"""Pages by mail: writes the letter and hands it to the server that SMTP_URL names."""

from email.utils import parseaddr

from escalade.transports import letter, smtp
from escalade.transports.addresses import check_mail, mask
from escalade.transports.base import DeliveryError, Message, Network, Receipt
from escalade.transports.text import shorten, subject

REQUEST_LIMIT = 500


def send(message: Message, network: Network) -> Receipt:
    """Hand the message to the mail server; its acceptance is the receipt, anything else a DeliveryError."""
    server, name, sender, recipient = _route(message.address, network)
    mail, shortened = letter.write(message, name, sender, recipient)
    shown = mask("email", message.address)
    request = f"mail to {shown} by {server.shown}: {shorten(subject(message), REQUEST_LIMIT)}"
    try:
        answer = smtp.deliver(server, sender, recipient, mail, network)
    except DeliveryError as refusal:
        raise _redacted(refusal, (message.address, recipient), shown, request) from None
    return Receipt(request, answer.replace(recipient, shown), "shortened to fit a mail" if shortened else "")


def post(address: str, subject: str, text: str, network: Network) -> None:
    """Hand over a mail of our own that is about no incident. Raises DeliveryError."""
    server, name, sender, recipient = _route(address, network)
    smtp.deliver(server, sender, recipient, letter.note(subject, text, name, sender, recipient), network)


def _route(address: str, network: Network) -> tuple[smtp.MailServer, str, str, str]:
    """By which server, the sender's name and address, and to which address."""
    if not network.smtp_url:
        why = "SMTP_URL is not set: set it, start Escalade again, and replay."
        raise DeliveryError(why, permanent=True)
    fault = check_mail(address)
    if fault is not None:
        raise DeliveryError(fault, permanent=True)
    try:
        server = smtp.parse_server(network.smtp_url)
        name, sender = _sender(network.mail_from)
    except ValueError as wrong:
        raise DeliveryError(str(wrong), permanent=True) from None
    return server, name, sender, _ascii(address)


def _sender(mail_from: str | None) -> tuple[str, str]:
    """Name and ASCII address of the sender; ValueError where the configured one is no address."""
    name, address = parseaddr(mail_from or "Escalade <escalade@localhost>")
    if check_mail(address) is not None:
        raise ValueError("ESCALADE_MAIL_FROM is no e-mail address.")
    return name, _ascii(address)


def _ascii(address: str) -> str:
    # What comes here has passed check_mail, so the part before the @ is ASCII and the domain can be encoded.
    name, _, domain = address.rpartition("@")
    return f"{name}@{domain.encode('idna').decode('ascii')}"


def _redacted(fault: DeliveryError, addresses: tuple[str, ...], shown: str, request: str) -> DeliveryError:
    for address in addresses:
        fault.message = fault.message.replace(address, shown)
        fault.answer = fault.answer.replace(address, shown)
    fault.args = (fault.message,)
    fault.request = request
    return fault
