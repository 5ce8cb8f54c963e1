"""Writes the mail of a message: headers that thread and cannot be broken, and the text as plain and as HTML."""

import email.policy
import hashlib
import re
from datetime import UTC, datetime
from email.header import Header
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from email.utils import format_datetime, formataddr, make_msgid
from html import escape
from urllib.parse import urlsplit

from escalade.transports.base import IncidentBrief, Message
from escalade.transports.text import facts, lines, one_line, opening, shorten, stem, subject, topic

SUBJECT_LIMIT = 200
DETAILS_LIMIT = 10_000
LISTED = 100
# Longer lists of References help nobody and make a header that servers refuse.
_THREADS = 20
# Headers are folded where they are written; a Message-ID moved to a line of its own is one some servers miss.
_POLICY = email.policy.compat32.clone(linesep="\r\n", max_line_length=998)
_HOST = re.compile(r"[A-Za-z0-9.-]{1,100}")
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


def write(message: Message, name: str, sender: str, recipient: str) -> tuple[bytes, bool]:
    """The mail as bytes with CR LF, and whether something in it was shortened.

    `sender` and `recipient` are ASCII addresses, `name` is the sender's. The Message-ID is made from the
    message's key, so every try carries the same one; In-Reply-To and References name an id made from the
    incident, so all mails about it form one thread (RFC 5322, 3.6.4).
    """
    domain = sender.rpartition("@")[2]
    whole = _subject(message)
    text = shorten(whole, SUBJECT_LIMIT)
    threads = [f"<incident-{item.id}@{_host(item, domain)}>" for item in message.incidents[:_THREADS]]
    mail = MIMEMultipart("alternative")
    mail["Subject"] = _header(text, "Subject")
    mail["From"] = formataddr((one_line(name), sender))
    mail["To"] = recipient
    mail["Date"] = format_datetime(datetime.now(UTC))
    mail["Message-ID"] = f"<{_local_part(message.key)}@{domain}>"
    if threads:
        mail["In-Reply-To"] = threads[0]
        mail["References"] = " ".join(threads)
    # RFC 3834, and Exchange's own: no out-of-office notes come back.
    mail["Auto-Submitted"] = "auto-generated"
    mail["X-Auto-Response-Suppress"] = "All"
    mail.attach(MIMEText(_plain(message), "plain", "utf-8"))
    mail.attach(MIMEText(_html(message), "html", "utf-8"))
    cut = text != whole or len(message.incidents) > LISTED or any(map(_is_cut, message.incidents))
    return mail.as_bytes(policy=_POLICY), cut


def note(subject: str, text: str, name: str, sender: str, recipient: str) -> bytes:
    """A plain mail that is about no incident, as bytes with CR LF. Addresses are ASCII."""
    mail = MIMEText(text, "plain", "utf-8")
    mail["Subject"] = _header(shorten(one_line(subject), SUBJECT_LIMIT), "Subject")
    mail["From"] = formataddr((one_line(name), sender))
    mail["To"] = recipient
    mail["Date"] = format_datetime(datetime.now(UTC))
    mail["Message-ID"] = make_msgid(domain=sender.rpartition("@")[2])
    mail["Auto-Submitted"] = "auto-generated"
    return mail.as_bytes(policy=_POLICY)


def _subject(message: Message) -> str:
    # Mail programs keep a thread together by its subject, of which they only ignore the "Re:".
    if message.incidents and message.type == "notice":
        return f"Re: {topic(message)}"
    return subject(message)


def _header(text: str, name: str) -> str:
    """Encoded words (RFC 2047) for what is not plain ASCII, or looks like an encoded word itself."""
    plain = text.isascii() and "=?" not in text
    return Header(text, "us-ascii" if plain else "utf-8", header_name=name).encode()


def _local_part(key: str) -> str:
    return key if _ID.fullmatch(key) else hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


def _host(incident: IncidentBrief, otherwise: str) -> str:
    host = urlsplit(incident.url).hostname
    return host if host and _HOST.fullmatch(host) else otherwise


def _is_cut(incident: IncidentBrief) -> bool:
    return len(lines(incident.details)) > DETAILS_LIMIT


def _plain(message: Message) -> str:
    parts = [subject(message), opening(message)]
    if message.ack_url:
        parts.append(f"Acknowledge: {message.ack_url}")
    for incident in message.incidents[:LISTED]:
        entry = [stem(incident), facts(incident), shorten(lines(incident.details), DETAILS_LIMIT)]
        entry.append(f"Open: {incident.url}")
        if incident.link:
            entry.append(f"Alert: {incident.link}")
        parts.append("\n".join(item for item in entry if item))
    parts.append(_rest(message))
    return "\n\n".join(part for part in parts if part) + "\n"


def _rest(message: Message) -> str:
    rest = len(message.incidents) - LISTED
    return f"… and {rest} more" if rest > 0 else ""


def _html(message: Message) -> str:
    parts = [f"<h2>{_shown(subject(message))}</h2>", f"<p>{_shown(opening(message))}</p>"]
    if message.ack_url:
        parts.append(f'<p><a href="{escape(message.ack_url)}"><strong>Acknowledge</strong></a></p>')
    parts += [_html_entry(incident) for incident in message.incidents[:LISTED]]
    parts.append(f"<p>{_rest(message)}</p>" if _rest(message) else "")
    body = "\n".join(part for part in parts if part)
    return f'<!DOCTYPE html>\n<html><head><meta charset="utf-8"></head><body>\n{body}\n</body></html>\n'


def _html_entry(incident: IncidentBrief) -> str:
    details = shorten(lines(incident.details), DETAILS_LIMIT)
    alert = f' · <a href="{escape(incident.link)}">Alert</a>' if incident.link else ""
    return (
        f"<p><strong>{_shown(stem(incident))}</strong><br>{_shown(facts(incident))}<br>"
        f'<a href="{escape(incident.url)}">Open #{incident.id}</a>{alert}</p>'
        + (f'<pre style="white-space: pre-wrap">{_shown(details)}</pre>' if details else "")
    )


def _shown(text: str) -> str:
    return escape(text, quote=True)
