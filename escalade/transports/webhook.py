"""Pages by webhook: JSON as CONTRACT.md has it, signed as Standard Webhooks (standardwebhooks.com, v1)."""

import base64
import binascii
import hashlib
import hmac
import json
import time
from typing import Any

from escalade.transports import http
from escalade.transports.base import AttemptRef, DeliveryError, IncidentBrief, Message, Network, Receipt
from escalade.transports.text import hidden, whole

_PREFIX = "whsec_"


def send(message: Message, network: Network) -> Receipt:
    """POST the message to its address; the receipt of a 2xx answer, DeliveryError for anything else."""
    body = json.dumps(payload(message)).encode("ascii")
    headers = signed_headers(message.key, int(time.time()), body, message.secret)
    return http.post(message.address, body, headers, network, hide=hidden(message))


def payload(message: Message) -> dict[str, Any]:
    """The body as CONTRACT.md fixes it."""
    attempts = [_attempt(attempt) for attempt in message.attempts]
    return {
        "type": message.type,
        "event": message.event,
        "attempt": attempts[0] if attempts else None,
        "attempts": attempts,
        "user": message.user,
        "incidents": [_incident(incident) for incident in message.incidents],
        "ack_url": message.ack_url,
    }


def _attempt(attempt: AttemptRef) -> dict[str, int]:
    return {"id": attempt.id, "try": attempt.try_}


def _incident(incident: IncidentBrief) -> dict[str, Any]:
    return {
        "id": incident.id,
        "title": whole(incident.title),
        "status": incident.status,
        "severity": incident.severity,
        "service": None if incident.service is None else whole(incident.service),
        "dedup_key": None if incident.dedup_key is None else whole(incident.dedup_key),
        "url": incident.url,
        "link": incident.link,
    }


def signed_headers(key: str, at: int, body: bytes, secret: str | None) -> dict[str, str]:
    """The headers of one try at `at` (Unix seconds); a signature only where there is a secret."""
    headers = {"Idempotency-Key": key, "webhook-id": key, "webhook-timestamp": str(at)}
    if secret:
        headers["webhook-signature"] = sign(key, at, body, secret)
    return headers


def sign(key: str, at: int, body: bytes, secret: str) -> str:
    """`v1,` and the base64 of HMAC-SHA256 over `key.at.body` (Standard Webhooks, symmetric signature)."""
    digest = hmac.new(_secret_bytes(secret), f"{key}.{at}.".encode() + body, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode("ascii")


def check_secret(secret: str) -> str | None:
    """What is wrong with a secret, in one sentence, or None: `whsec_` and base64, or any other text."""
    try:
        _secret_bytes(secret)
    except DeliveryError as fault:
        return fault.message
    return None


def _secret_bytes(secret: str) -> bytes:
    if not secret.startswith(_PREFIX):
        return secret.encode("utf-8", "replace")
    encoded = secret.removeprefix(_PREFIX)
    try:
        # Tools hand out secrets with and without the padding.
        return base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise DeliveryError("The webhook's secret begins with whsec_ but is not base64.", permanent=True) from None
