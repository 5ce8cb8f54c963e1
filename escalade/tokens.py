"""Secrets that people and tools hold: their digests, and the signed acknowledge link.

The link names the message: who was told, and of which incidents. It is signed with itsdangerous, expires after a
day, and opens nothing but the page that acknowledges these incidents.
"""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from itsdangerous import BadSignature, SignatureExpired, URLSafeTimedSerializer

ACK_SECONDS = 24 * 3600


class Expired(Exception):
    """The link was ours, and its day is over."""


class Altered(Exception):
    """The link is not one that we signed."""


@dataclass(frozen=True, slots=True)
class AckLink:
    """What an acknowledge link says: user_id or channel_id it was sent to, and the incidents of the message."""

    user_id: int | None
    channel_id: int | None
    incident_ids: tuple[int, ...]


def new_secret() -> str:
    """A fresh key, token or session id: 32 random bytes, safe in a URL."""
    return secrets.token_urlsafe(32)


def digest(secret: str) -> str:
    """What is kept of a secret: its SHA-256 in hex. Enough, since the secrets are random and long."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


class Signer:
    """Signs with the first key; accepts what any of them signed."""

    def __init__(self, keys: Sequence[str]) -> None:
        # itsdangerous signs with the last key of its list.
        self._serializer = URLSafeTimedSerializer(list(reversed(keys)), salt="acknowledge")

    def sign(self, link: AckLink) -> str:
        """The token for a link. Ids are kept as steps, so that the link of a thousand incidents stays short."""
        ids = sorted(link.incident_ids)
        steps = [later - earlier for earlier, later in zip([0, *ids], ids, strict=False)]
        body: dict[str, Any] = {"i": steps}
        body |= {"u": link.user_id} if link.user_id is not None else {"c": link.channel_id}
        return str(self._serializer.dumps(body))

    def read(self, token: str) -> AckLink:
        """What the token says. Raises Expired or Altered."""
        try:
            body = self._serializer.loads(token, max_age=ACK_SECONDS)
            return AckLink(body.get("u"), body.get("c"), tuple(accumulate(int(step) for step in body["i"])))
        except SignatureExpired:
            raise Expired from None
        except (BadSignature, KeyError, TypeError, ValueError, AttributeError):
            raise Altered from None
