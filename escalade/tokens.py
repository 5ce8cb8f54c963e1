"""Secrets that people and tools hold: their digests, and the signed acknowledge link.

The link names the message: who was told, and of which incidents. It is signed with itsdangerous, expires after a
day, and opens nothing but the page that acknowledges these incidents.
"""

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, groupby

from itsdangerous import BadSignature, SignatureExpired, TimestampSigner
from itsdangerous.encoding import base64_decode, base64_encode
from itsdangerous.signer import SigningAlgorithm

ACK_SECONDS = 24 * 3600
MOST_INCIDENTS = 10_000


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


class _HmacSha256(SigningAlgorithm):
    """What itsdangerous computes by default, in one call: every page is signed."""

    def get_signature(self, key: bytes, value: bytes) -> bytes:
        return hmac.digest(key, value, "sha256")


class _TimestampSigner(TimestampSigner):
    """Derives each key once: every page is signed."""

    def derive_key(self, secret_key: str | bytes | None = None) -> bytes:
        return self._derived(secret_key if secret_key is not None else self.secret_keys[-1])

    @lru_cache(maxsize=64)  # noqa: B019 - one signer lives as long as the process
    def _derived(self, secret_key: str | bytes) -> bytes:
        return super().derive_key(secret_key)


class Signer:
    """Signs with the first key; accepts what any of them signed."""

    def __init__(self, keys: Sequence[str]) -> None:
        # itsdangerous signs with the last key of its list.
        self._signer = _TimestampSigner(
            list(reversed(keys)),
            salt="escalade.acknowledge",
            digest_method=hashlib.sha256,
            algorithm=_HmacSha256(),
        )

    def sign(self, link: AckLink) -> str:
        """The token for a link: u12-7_1x999 is person 12, and incident 7 and the 999 after it. Ids are kept as steps,
        and equal steps as one, so that the link of a thousand incidents stays short."""
        ids = sorted(link.incident_ids)
        steps = [later - earlier for earlier, later in zip([0, *ids], ids, strict=False)]
        runs = "_".join(f"{step}x{count}" if count > 1 else str(step) for step, count in _runs(steps))
        recipient = f"u{link.user_id}" if link.user_id is not None else f"c{link.channel_id}"
        return self._signer.sign(f"{recipient}-{runs}").decode()

    def read(self, token: str) -> AckLink:
        """What the token says. Raises Expired or Altered."""
        try:
            body = self._signer.unsign(token, max_age=ACK_SECONDS).decode()
            # The last letter of base64 has bits to spare: without this, a changed one could still verify.
            if any(base64_encode(base64_decode(part)).decode() != part for part in token.split(".")[1:]):
                raise Altered
            recipient, _, runs = body.partition("-")
            number = int(recipient[1:])
            ids = tuple(accumulate(_steps(runs)))
            return AckLink(number, None, ids) if recipient[0] == "u" else AckLink(None, number, ids)
        except SignatureExpired:
            raise Expired from None
        except (BadSignature, ValueError, IndexError):
            raise Altered from None


def _runs(steps: Iterable[int]) -> Iterator[tuple[int, int]]:
    return ((step, len(list(same))) for step, same in groupby(steps))


def _steps(runs: str) -> list[int]:
    steps: list[int] = []
    for run in runs.split("_"):
        step, _, count = run.partition("x")
        # Counted before they are written out: a few letters could stand for more than the memory holds.
        if len(steps) + int(count or "1") > MOST_INCIDENTS:
            raise Altered
        steps += [int(step)] * int(count or "1")
    return steps
