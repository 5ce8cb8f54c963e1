"""The words of a message, the same by every transport: subjects, sentences, and cutting with a visible mark."""

import re
from collections.abc import Callable

from escalade.transports.addresses import secret_parts
from escalade.transports.base import IncidentBrief, Message

MARK = "…"
# Control characters, and what str.splitlines or a mail header takes for the end of a line.
_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_UNFIT_IN_LINES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_SURROGATES = re.compile("[\ud800-\udfff]")

_PREFIXES = {
    "exhausted": "Nobody acknowledged",
    "drill": "Drill",
    "acknowledged": "Acknowledged",
    "resolved": "Resolved",
    "handoff": "Hand-off",
    "verification": "Verification",
    "test": "Test",
}
_ALONE = {
    "handoff": "Hand-off: who is on call has changed",
    "verification": "Confirm that Escalade may reach you here",
    "test": "Test message from Escalade",
}


def whole(text: str) -> str:
    """The text with U+FFFD for lone surrogates, which no encoding has a place for."""
    return _SURROGATES.sub("\ufffd", text)


def one_line(text: str) -> str:
    """The text on one line: every control character and line end becomes a space."""
    return _UNFIT.sub(" ", whole(text)).strip()


def lines(text: str) -> str:
    """The text with its line ends and tabs, and spaces for other control characters."""
    text = whole(text).replace("\r\n", "\n").replace("\r", "\n")
    return _UNFIT_IN_LINES.sub(" ", text).strip()


def shorten(text: str, limit: int, size: Callable[[str], int] = len) -> str:
    """The text, cut with a visible mark where it is larger than the limit; never inside a code point.

    `size` measures one character or more in the receiver's own unit, and sums up over them.
    """
    if size(text) <= limit:
        return text
    room = limit - size(MARK)
    for end, character in enumerate(text):
        room -= size(character)
        if room < 0:
            return text[:end] + MARK
    return text


def utf16_size(text: str) -> int:
    """The UTF-16 units a text takes."""
    return len(text.encode("utf-16-le")) // 2


def stem(incident: IncidentBrief) -> str:
    """What an incident is called in every message about it: `[api] Disk full on web1`."""
    title = one_line(incident.title) or "(no title)"
    return f"[{one_line(incident.service)}] {title}" if incident.service else title


def topic(message: Message) -> str:
    """What the message is about, the same for every event: an incident's stem, or how many there are."""
    count = len(message.incidents)
    if count == 0:
        return _ALONE.get(message.event, "Message from Escalade")
    first = stem(message.incidents[0])
    return first if count == 1 else f"{count} incidents: {first} and {count - 1} more"


def subject(message: Message) -> str:
    """One line that says what happened to what: `Acknowledged: [api] Disk full on web1`; a page is its topic."""
    prefix = _PREFIXES.get(message.event)
    if prefix is None or not message.incidents:
        return topic(message)
    return f"{prefix}: {topic(message)}"


def opening(message: Message) -> str:
    """The sentence a longer message begins with: the summary where there is one, else what the event means."""
    summary = one_line(message.summary)
    if summary:
        return summary
    many = len(message.incidents) > 1
    return {
        "triggered": "These incidents need you." if many else "This incident needs you.",
        "exhausted": "Nobody acknowledged, and no step is left that could page anybody else.",
        "drill": "This is a drill. Acknowledge it as you would a real page.",
        "acknowledged": "Somebody has taken care of it.",
        "resolved": "It is over.",
        "handoff": "Who is on call has changed.",
        "verification": "Somebody entered this address in Escalade.",
        "test": "This is a test. Pages sent here arrive.",
    }.get(message.event, "")


def facts(incident: IncidentBrief) -> str:
    """Number, severity and status of an incident, on one line."""
    return f"#{incident.id}, {one_line(incident.severity)}, {one_line(incident.status)}"


def hidden(message: Message) -> tuple[str, ...]:
    """The pieces of a message that no record of a try may show: its secret and its acknowledgement link."""
    link = secret_parts(message.ack_url) if message.ack_url else ()
    return (message.secret, *link) if message.secret else link
