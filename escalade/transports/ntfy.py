"""Pages by ntfy (ntfy.sh or a server of one's own), published as JSON, with an Acknowledge button."""

import dataclasses
import json
import re
from typing import Any

from escalade.transports import http
from escalade.transports.addresses import parse_web
from escalade.transports.base import DeliveryError, Message, Network, Receipt
from escalade.transports.text import facts, hidden, lines, opening, shorten, stem, subject

# The server takes a message of 4,096 bytes, and twice that for the whole JSON (ntfy server, message-size-limit).
MESSAGE_LIMIT = 4096
TITLE_LIMIT = 250
_TOPIC = re.compile(r"[A-Za-z0-9_-]{1,64}")
# ntfy's own code for a used-up daily quota. Waiting for tomorrow is no way to page somebody.
_DAY_QUOTA = re.compile(r'"code":\s*42908\b')


def send(message: Message, network: Network) -> Receipt:
    """Publish the message; a receipt whose note says what was shortened, or DeliveryError.

    The address is the topic's, its login goes out as HTTP Basic; a secret is an access token (Bearer).
    """
    try:
        server, topic = _split(message.address)
    except ValueError as fault:
        raise DeliveryError(str(fault), permanent=True) from None
    content, shortened = payload(message, topic)
    # Not as ASCII: six characters for a letter would use up the room the server gives the JSON.
    body = json.dumps(content, ensure_ascii=False).encode("utf-8")
    headers = {"Authorization": f"Bearer {message.secret}"} if message.secret else {}
    try:
        receipt = http.post(server, body, headers, network, hide=(topic, *hidden(message)))
    except DeliveryError as fault:
        if _DAY_QUOTA.search(fault.answer):
            fault.permanent, fault.limited = True, False
        raise
    return dataclasses.replace(receipt, note="shortened to fit ntfy's limits") if shortened else receipt


def check_address(address: str) -> str | None:
    """What is wrong with the address of a topic, in one sentence, or None."""
    try:
        _split(address)
    except ValueError as fault:
        return str(fault)
    return None


def _split(address: str) -> tuple[str, str]:
    """The server's root address, where JSON goes, and the topic; ValueError where there is no topic."""
    web = parse_web(address)
    path, mark, query = web.target.partition("?")
    root, _, topic = path.rstrip("/").rpartition("/")
    if not _TOPIC.fullmatch(topic):
        raise ValueError("The address names no topic, as https://ntfy.sh/my-topic does.")
    return f"{web.origin}{root}/{mark}{query}", topic


def payload(message: Message, topic: str) -> tuple[dict[str, Any], bool]:
    """The JSON to publish, and whether something in it was shortened. A page has the highest priority."""
    title = subject(message)
    short_title = shorten(title, TITLE_LIMIT, _size)
    text = _text(message, short_title != title)
    short_text = shorten(text, MESSAGE_LIMIT, _size)
    content: dict[str, Any] = {
        "topic": topic,
        "title": short_title,
        "message": short_text,
        "priority": 5 if message.type == "page" else 3,
        "actions": _actions(message),
    }
    if message.incidents:
        content["click"] = message.incidents[0].url
    return content, short_text != text


def _text(message: Message, with_title: bool) -> str:
    if len(message.incidents) == 1:
        incident = message.incidents[0]
        title = stem(incident) if with_title else ""
        parts = [title, opening(message), facts(incident), lines(incident.details)]
    else:
        entries = [f"{stem(incident)} ({facts(incident)})" for incident in message.incidents]
        parts = [opening(message), *entries]
    return "\n".join(part for part in parts if part) or subject(message)


def _actions(message: Message) -> list[dict[str, Any]]:
    actions: list[dict[str, Any]] = []
    if message.ack_url:
        # The phone sends this request itself, and takes the notification away once it was answered 2xx.
        ack = {"action": "http", "label": "Acknowledge", "url": message.ack_url, "method": "POST", "clear": True}
        actions.append(ack)
    if message.incidents:
        actions.append({"action": "view", "label": "Open", "url": message.incidents[0].url})
    return actions


def _size(text: str) -> int:
    # As JSON: it is never less than the text's own bytes, so both of the server's limits hold.
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8")) - 2
