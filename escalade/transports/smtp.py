"""Hands a mail to the configured server (RFC 5321), within the same deadline as everything else.

smtplib speaks the protocol; the connection under it is a `Wire`, so a server that drips its greeting, or hangs
in STARTTLS (RFC 3207), ends at the deadline.
"""

import re
import smtplib
import socket
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import parse_qs, unquote, urlsplit

from escalade.transports.base import DeliveryError, Network
from escalade.transports.deadline import Deadline
from escalade.transports.peers import LookUp, find, literal, system_look_up
from escalade.transports.text import one_line, shorten
from escalade.transports.wire import TooMuch, Wire, dial

ANSWER_LIMIT = 300
_STARTTLS = ("required", "auto", "off")
# A dot at the beginning of a line would end the mail (RFC 5321, 4.5.2).
_LEADING_DOT = re.compile(rb"^\.", re.MULTILINE)
_ENHANCED = re.compile(r"([245])\.\d{1,3}\.\d{1,3}\b")


@dataclass(frozen=True, slots=True)
class MailServer:
    """A mail server: `tls` is TLS from the start (smtps), `starttls` is required, auto or off."""

    host: str
    port: int
    tls: bool
    starttls: str
    user: str | None = field(default=None, repr=False)
    password: str = field(default="", repr=False)

    @property
    def shown(self) -> str:
        """What errors call it."""
        return f"{'smtps' if self.tls else 'smtp'}://{self.host}:{self.port}"


def parse_server(url: str) -> MailServer:
    """The server in `smtp://user:password@host:587?starttls=required` or `smtps://host`; ValueError if it is wrong.

    Without a port it is 587 for smtp and 465 for smtps; starttls is auto (used where the server offers it)
    unless it says required or off. No error repeats the URL, which holds the password.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError("SMTP_URL cannot be read: its host or port is wrong.") from None
    if parts.scheme not in ("smtp", "smtps"):
        raise ValueError("SMTP_URL does not begin with smtp:// or smtps://.")
    if not host:
        raise ValueError("SMTP_URL names no host.")
    options = parse_qs(parts.query, keep_blank_values=True)
    starttls = options.pop("starttls", ["auto"])[-1]
    if options or starttls not in _STARTTLS:
        raise ValueError("SMTP_URL takes the one option starttls, which is required, auto or off.")
    tls = parts.scheme == "smtps"
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if not (user + password).isascii():
        raise ValueError("SMTP_URL holds a login that is not ASCII.")
    return MailServer(host, port or (465 if tls else 587), tls, starttls, user or None, password)


def deliver(
    server: MailServer,
    sender: str,
    recipient: str,
    mail: bytes,
    network: Network,
    look_up: LookUp = system_look_up,
) -> str:
    """Hand over one mail and return the server's answer; DeliveryError for anything but its acceptance.

    A 4yz answer is *retry*, 5yz *permanent* (the enhanced code decides where there is one), a connection that
    breaks after the final dot *unknown*. Addresses are ASCII. The server comes from the configuration, so it
    may be at any address.
    """
    deadline = Deadline(network.deadline)
    found = find(server.host, server.shown, deadline, look_up)
    with dial(found, server.port, server.shown, network, deadline) as wire:
        if server.tls:
            wire.start_tls(server.host, server.shown)
        try:
            session = _greet(wire, server)
            _secure(session, wire, server)
            return _transact(session, server, sender, recipient, mail)
        except smtplib.SMTPResponseException as fault:
            raise _refusal(server, fault.smtp_code, fault.smtp_error) from None
        except (OSError, smtplib.SMTPException) as fault:
            raise DeliveryError(_broken(server, network, deadline, fault)) from None


def _greet(wire: Wire, server: MailServer) -> smtplib.SMTP:
    session = smtplib.SMTP(local_hostname=_own_name(wire))
    session.sock = cast(socket.socket, wire)
    _expect(server, session.getreply(), 220)
    _hello(session, server)
    return session


def _own_name(wire: Wire) -> str:
    # smtplib would look its name up in the DNS, with no limit in time.
    name = socket.gethostname()
    if "." in name and name.isascii():
        return name
    address = wire.local_address()
    return f"[IPv6:{address}]" if ":" in address else f"[{address}]"


def _hello(session: smtplib.SMTP, server: MailServer) -> None:
    code, answer = session.ehlo()
    if code != 250:
        code, answer = session.helo()
    _expect(server, (code, answer), 250)


def _secure(session: smtplib.SMTP, wire: Wire, server: MailServer) -> None:
    """STARTTLS and login, as far as the configuration asks for them."""
    encrypted = server.tls
    if not encrypted and server.starttls != "off" and session.has_extn("starttls"):
        _expect(server, session.docmd("STARTTLS"), 220)
        wire.start_tls(server.host, server.shown)
        # What the server said in the clear counts no longer, nor does what is left of it in the reader.
        session.file = None
        _hello(session, server)
        encrypted = True
    if not encrypted and server.starttls == "required":
        raise DeliveryError(f"{server.shown} offers no STARTTLS, which SMTP_URL requires.", permanent=True)
    if server.user is None:
        return
    if not encrypted and server.starttls == "auto" and not _is_loopback(server.host):
        raise DeliveryError(
            f"{server.shown} offers no STARTTLS, and the password is not sent in the clear: "
            "SMTP_URL can allow it with ?starttls=off.",
            permanent=True,
        )
    if not session.has_extn("auth"):
        raise DeliveryError(f"{server.shown} offers no login, so SMTP_URL must hold none.", permanent=True)
    session.login(server.user, server.password, initial_response_ok=True)


def _transact(session: smtplib.SMTP, server: MailServer, sender: str, recipient: str, mail: bytes) -> str:
    """Sender, recipient and mail, in that order; the answer to the final dot."""
    _expect(server, session.mail(sender), 250)
    _expect(server, session.rcpt(recipient), 250, 251)
    _expect(server, session.docmd("DATA"), 354)
    session.send(_LEADING_DOT.sub(b"..", mail).rstrip(b"\r\n") + b"\r\n.\r\n")
    try:
        reply = session.getreply()
    except (OSError, smtplib.SMTPException):
        raise DeliveryError(
            f"{server.shown} did not confirm the mail; it may have been delivered.",
            unknown=True,
        ) from None
    _expect(server, reply, 250)
    _say_goodbye(session)
    return _said(*reply)


def _say_goodbye(session: smtplib.SMTP) -> None:
    # The mail is accepted, so the answer to this is not worth waiting for.
    try:
        session.putcmd("QUIT")
    except (OSError, smtplib.SMTPException):
        pass


def _expect(server: MailServer, reply: tuple[int, bytes], *codes: int) -> None:
    if reply[0] not in codes:
        raise _refusal(server, *reply)


def _refusal(server: MailServer, code: int, answer: bytes | str) -> DeliveryError:
    said = _said(code, answer)
    enhanced = _ENHANCED.match(said.partition(" ")[2])
    judged = enhanced[1] if enhanced else str(code)[0]
    # -1 is smtplib's code for a line that is no SMTP.
    what = "answered something that is no SMTP" if code == -1 else f"answered {said.rstrip('.')}"
    return DeliveryError(f"{server.shown} {what}.", permanent=judged == "5", answer=said)


def _said(code: int, answer: bytes | str) -> str:
    text = answer.decode("utf-8", "replace") if isinstance(answer, bytes) else answer
    return shorten(f"{code} {one_line(text)}", ANSWER_LIMIT)


def _broken(server: MailServer, network: Network, deadline: Deadline, fault: Exception) -> str:
    # smtplib says "closed" of whatever befell it while it waited for an answer; the cause is what it was handling.
    cause = fault.__context__ or fault
    if deadline.over:
        return f"{server.shown} did not take the mail within the {deadline.seconds:g} s a send may take."
    if isinstance(cause, TimeoutError):
        return f"{server.shown} was silent for {network.read_timeout:g} s."
    if isinstance(cause, TooMuch):
        return f"{server.shown} sent an answer without end."
    return f"{server.shown} closed the connection before it had taken the mail."


def _is_loopback(host: str) -> bool:
    address = literal(host)
    return host == "localhost" or (address is not None and address.is_loopback)
