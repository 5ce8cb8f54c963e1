"""Pages into Slack by an incoming webhook: text and blocks, with a button that opens the acknowledge page."""

import dataclasses
import json
from typing import Any

from escalade.transports import http
from escalade.transports.base import DeliveryError, Message, Network, Receipt
from escalade.transports.text import MARK, facts, hidden, lines, opening, shorten, stem, subject, utf16_size

# Block Kit: 50 blocks, a header of 150 characters, a section of 3,000, an address of 3,000 in a button.
HEADER_LIMIT = 150
TEXT_LIMIT = 3000
LISTED = 20

# The plain-text reasons of Slack's changelog "Improving error conditions for incoming webhooks". They are final
# whatever the status: before that change some came as a 500.
_FINAL = {
    "invalid_payload": "Slack does not understand the message",
    "user_not_found": "the webhook's user is gone",
    "action_prohibited": "an administrator forbids the webhook to post there",
    "invalid_token": "the webhook's address is wrong or no longer valid",
    "no_active_hooks": "the webhook is switched off",
    "no_service": "the webhook was removed or switched off",
    "no_service_id": "the webhook's address is incomplete",
    "no_team": "the workspace is gone",
    "team_disabled": "the workspace is switched off",
    "channel_not_found": "the channel is gone",
    "channel_is_archived": "the channel is archived",
    "posting_to_general_channel_denied": "the webhook may not post to the general channel",
}


def send(message: Message, network: Network) -> Receipt:
    """Post the message; a receipt whose note says what was shortened, or DeliveryError."""
    content, shortened = payload(message)
    body = json.dumps(content).encode("ascii")
    try:
        receipt = http.post(message.address, body, {}, network, hide=hidden(message))
    except DeliveryError as fault:
        raise _explained(fault) from None
    return dataclasses.replace(receipt, note="shortened to fit Slack's limits") if shortened else receipt


def _explained(fault: DeliveryError) -> DeliveryError:
    reason = fault.answer.partition(" ")[2].strip()
    if reason in _FINAL:
        fault.message = f"{fault.message.rstrip('.')} ({_FINAL[reason]})."
        fault.args = (fault.message,)
        fault.permanent = True
    return fault


def escape(text: str) -> str:
    """The text with Slack's three control characters as entities, so mentions and links in it are only text."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def payload(message: Message) -> tuple[dict[str, Any], bool]:
    """The body for the webhook, and whether something in it was shortened."""
    whole_subject = subject(message)
    texts = [whole_subject]
    blocks = [_heading(whole_subject)]
    if opening(message):
        texts.append(opening(message))
        blocks.append(_section(opening(message)))
    if len(message.incidents) == 1:
        details = lines(message.incidents[0].details)
        texts.append(details)
        blocks += [_section(text) for text in (details, facts(message.incidents[0])) if text]
    else:
        blocks += _listed(message)
    blocks += _buttons(message)
    content = {
        "text": escape(_fit(whole_subject)),
        # Without this the text in notifications would be formatted: a * in a title would vanish.
        "mrkdwn": False,
        "blocks": blocks,
        "unfurl_links": False,
        "unfurl_media": False,
    }
    return content, len(message.incidents) > LISTED or any(_fit(text) != text for text in texts)


def _listed(message: Message) -> list[dict[str, Any]]:
    blocks = []
    for incident in message.incidents[:LISTED]:
        entry = _section(f"{stem(incident)}\n{facts(incident)}")
        blocks.append(entry | {"accessory": _button(f"Open #{incident.id}", incident.url)})
    rest = len(message.incidents) - LISTED
    return blocks if rest <= 0 else [*blocks, _section(f"{MARK} and {rest} more")]


def _heading(text: str) -> dict[str, Any]:
    # A header block is short; a longer title is no less readable as a section.
    if _size(text) <= HEADER_LIMIT:
        return {"type": "header", "text": _plain(text)}
    return _section(text)


def _section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": _plain(_fit(text))}


def _plain(text: str) -> dict[str, Any]:
    # Shown as it is: no formatting, and no pictures for what looks like :emoji:.
    return {"type": "plain_text", "text": escape(text), "emoji": False}


def _fit(text: str) -> str:
    return shorten(text, TEXT_LIMIT, _size)


def _size(text: str) -> int:
    return utf16_size(escape(text))


def _buttons(message: Message) -> list[dict[str, Any]]:
    buttons = []
    if message.ack_url:
        buttons.append(_button("Acknowledge", message.ack_url) | {"style": "primary"})
    if len(message.incidents) == 1:
        incident = message.incidents[0]
        buttons.append(_button(f"Open #{incident.id}", incident.url))
        if incident.link:
            buttons.append(_button("Open the alert", incident.link))
    return [{"type": "actions", "elements": buttons}] if buttons else []


def _button(label: str, url: str) -> dict[str, Any]:
    return {"type": "button", "text": _plain(label), "url": url}
