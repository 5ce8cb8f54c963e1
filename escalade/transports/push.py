"""Pages by Web Push (RFC 8030): encrypted for one browser (RFC 8291), signed with this installation's own keys (RFC
8292), in the shape of declarative Web Push, which Safari shows by itself and our service worker shows elsewhere.

It needs the extra `push` (pywebpush), which is imported when it is first used: it takes a while, and few send by it.
"""

import base64
import hashlib
import importlib.util
import json
import time
from dataclasses import dataclass, field, replace
from typing import Any

from escalade.transports import http
from escalade.transports.addresses import is_loopback, parse_web, push_endpoint, secret_parts
from escalade.transports.base import DeliveryError, Message, Network, PushSender, Receipt
from escalade.transports.text import facts, hidden, lines, opening, shorten, stem, subject

MISSING = "Web Push needs a package that is not installed: python -m pip install pywebpush"
NO_KEYS = "This process has no keys for Web Push; start it again, now that pywebpush is installed."
NO_SUBSCRIPTION = "The address is no subscription of a browser; switch push on in that browser, under Account."
GONE = (404, 410)
# Every push service takes 4,096 bytes, of which the encryption needs 103 (RFC 8291, section 4).
PLAIN_LIMIT = 3_993
TITLE_LIMIT = 200
BODY_LIMIT = 1_500
# A link for some hundred incidents. The message of more has none, and its page leads to them.
LINK_LIMIT = 2_000
# As long as the acknowledge link works, and at most as long as the signature may.
TTL_SECONDS = 24 * 3600
SIGNED_SECONDS = 12 * 3600
# The version of the shape: the number of the RFC, as WebKit and the Push API have it.
DECLARATIVE = 8030


@dataclass(frozen=True, slots=True)
class Subscription:
    """Where one browser is reached, and what to encrypt with: its public key and a secret, both as base64url."""

    endpoint: str
    p256dh: str = field(repr=False)
    auth: str = field(repr=False)

    @property
    def info(self) -> dict[str, Any]:
        """As browsers hand it over."""
        return {"endpoint": self.endpoint, "keys": {"p256dh": self.p256dh, "auth": self.auth}}


def is_installed() -> bool:
    """Whether the extra is there."""
    return importlib.util.find_spec("pywebpush") is not None


def send(message: Message, network: Network) -> Receipt:
    """Push the message to one browser; a receipt once the push service took it, or DeliveryError."""
    if not is_installed():
        raise DeliveryError(f"{MISSING}.", permanent=True)
    if network.push is None:
        raise DeliveryError(NO_KEYS, permanent=True)
    try:
        to = subscription(message.address)
        content, shortened = payload(message, network.push.home)
        plain = _json(content)
        body, headers = encrypted(to, plain), headers_for(message, to, network.push)
    except ValueError as fault:
        raise DeliveryError(str(fault), permanent=True) from None
    hide = (*hidden(message), to.p256dh, to.auth, *secret_parts(to.endpoint))
    try:
        receipt = http.post(to.endpoint, body, headers, network, hide=hide, shown=plain.decode("utf-8"))
    except DeliveryError as fault:
        raise explained(fault) from None
    return replace(receipt, note="shortened to fit a push message") if shortened else receipt


def check_address(address: str) -> str | None:
    """What is wrong with a subscription, in one sentence, or None."""
    if not is_installed():
        return f"{MISSING}."
    try:
        subscription(address)
    except ValueError as fault:
        return str(fault)
    return None


def subscription(address: str) -> Subscription:
    """The subscription that a browser gave, from its JSON; ValueError, one sentence, where it is none."""
    endpoint = push_endpoint(address)
    if endpoint is None:
        raise ValueError(NO_SUBSCRIPTION)
    web = parse_web(endpoint)
    if web.scheme != "https" and not is_loopback(web.host):
        raise ValueError("A push service is reached over https:// only.")
    keys = json.loads(address).get("keys")
    if not isinstance(keys, dict):
        raise ValueError(NO_SUBSCRIPTION)
    point, auth = _decoded(keys.get("p256dh")), _decoded(keys.get("auth"))
    if len(point) != 65 or point[0] != 4 or len(auth) != 16:
        raise ValueError("The subscription's keys are not those of a browser; switch push on anew in that browser.")
    return Subscription(endpoint, keys["p256dh"], keys["auth"])


def _decoded(text: object) -> bytes:
    if not isinstance(text, str):
        raise ValueError(NO_SUBSCRIPTION)
    try:
        return base64.b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4), b"-_", validate=True)
    except ValueError:
        raise ValueError(NO_SUBSCRIPTION) from None


def encrypted(to: Subscription, plain: bytes) -> bytes:
    """The message as only that browser can read it; ValueError where its key is no point of the curve."""
    import pywebpush

    return bytes(pywebpush.WebPusher(to.info).encode(plain, "aes128gcm")["body"])


def headers_for(message: Message, to: Subscription, sender: PushSender) -> dict[str, str]:
    """The headers of one try. A later message about the same incidents replaces one that is not delivered yet."""
    headers = {
        "Content-Type": "application/octet-stream",
        "Content-Encoding": "aes128gcm",
        "TTL": str(TTL_SECONDS),
        "Urgency": "high" if message.type == "page" else "normal",
        "Authorization": authorization(to, sender),
    }
    return {**headers, "Topic": tag(message)} if message.incidents else headers


def authorization(to: Subscription, sender: PushSender) -> str:
    """Who sends, signed for this one push service; ValueError where it names itself in a way that cannot be signed."""
    import py_vapid

    web = parse_web(to.endpoint)
    claims = {"aud": f"{web.scheme}://{web.authority}", "exp": int(time.time()) + SIGNED_SECONDS, "sub": sender.contact}
    try:
        return str(py_vapid.Vapid02.from_raw(sender.private.encode()).sign(claims)["Authorization"])
    except py_vapid.VapidException:
        raise ValueError("The push service's address cannot be signed for.") from None


def tag(message: Message) -> str:
    """The same for all messages about the same incidents, in letters that a Topic header takes."""
    ids = ",".join(str(incident.id) for incident in message.incidents)
    return hashlib.sha256(ids.encode()).hexdigest()[:32]


def payload(message: Message, home: str) -> tuple[dict[str, Any], bool]:
    """The JSON to push, and whether something in it was shortened. The acknowledge link stands in it once: our worker
    posts to it, and a browser without the worker opens its page."""
    title, text = subject(message), _text(message)
    notification: dict[str, Any] = {
        "title": shorten(title, TITLE_LIMIT, _size),
        "body": "",
        "navigate": message.incidents[0].url if message.incidents else home,
        "requireInteraction": message.type == "page",
    }
    if message.incidents:
        notification |= {"tag": tag(message), "renotify": True}
    if message.ack_url and len(message.ack_url) <= LINK_LIMIT:
        action = {"action": "acknowledge", "title": "Acknowledge", "navigate": message.ack_url}
        notification["actions"] = [action]
    content = {"web_push": DECLARATIVE, "notification": notification}
    room = PLAIN_LIMIT - len(_json(content))
    notification["body"] = shorten(text, min(BODY_LIMIT, room), _size)
    return content, (notification["title"], notification["body"]) != (title, text)


def _json(content: dict[str, Any]) -> bytes:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def _text(message: Message) -> str:
    if len(message.incidents) == 1:
        incident = message.incidents[0]
        parts = [opening(message), facts(incident), lines(incident.details)]
    else:
        parts = [opening(message), *(f"{stem(incident)} ({facts(incident)})" for incident in message.incidents)]
    return "\n".join(part for part in parts if part)


def _size(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8")) - 2


def explained(fault: DeliveryError) -> DeliveryError:
    """The fault, with what its status means here."""
    status = fault.answer.split(" ", 1)[0]
    if status in map(str, GONE):
        fault.message = "The browser has given this subscription up, so it was removed; switch push on there anew."
    elif status in ("401", "403"):
        fault.message += " The keys for Web Push are not those it was made with; switch push on in that browser anew."
    elif status == "413":
        fault.message += " The message is too long for this push service."
    fault.args = (fault.message,)
    return fault
