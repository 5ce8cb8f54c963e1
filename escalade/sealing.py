"""Secrets at rest: AES-GCM under a key that is derived from ESCALADE_SECRET_KEY.

Where the environment names no key, the one key there is lies in the same database, so sealing would protect nothing
and nothing is sealed. What was written before stays readable; `python app.py reencrypt` seals it, and seals anew what
an older key sealed.
"""

import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from functools import lru_cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from escalade.errors import Unavailable

PREFIX = "sealed:1:"
NONCE_BYTES = 12
_INFO = b"escalade.secrets-at-rest"


class Unreadable(Unavailable):
    """A secret was sealed under a key that this process does not have."""

    def __init__(self) -> None:
        super().__init__(
            "A secret cannot be decrypted: ESCALADE_SECRET_KEY is not the one it was encrypted under;"
            " give that one as ESCALADE_SECRET_KEY_OLD, or set the secret again."
        )


def seal(keys: Sequence[str], text: str | None) -> str | None:
    """The text as it is kept: sealed under the first key, as it is where that is empty. An empty text stays empty,
    and one that is sealed already stays as it is."""
    if not _seals(keys) or not text or is_sealed(text):
        return text
    nonce = os.urandom(NONCE_BYTES)
    kept = nonce + _cipher(keys[0]).encrypt(nonce, text.encode("utf-8", "surrogatepass"), None)
    return PREFIX + urlsafe_b64encode(kept).decode()


def opened(keys: Sequence[str], kept: str | None) -> str | None:
    """The text as it was given, whichever key sealed it, or none. Raises Unreadable."""
    if kept is None or not is_sealed(kept):
        return kept
    try:
        raw = urlsafe_b64decode(kept.removeprefix(PREFIX))
    except ValueError:
        raise Unreadable from None
    for key in filter(None, keys):
        try:
            return _cipher(key).decrypt(raw[:NONCE_BYTES], raw[NONCE_BYTES:], None).decode("utf-8", "surrogatepass")
        except (InvalidTag, ValueError):
            continue
    raise Unreadable


def is_sealed(kept: str) -> bool:
    """Whether this is something that was sealed."""
    return kept.startswith(PREFIX)


def is_current(keys: Sequence[str], kept: str) -> bool:
    """Whether it is kept as it would be written now. Raises Unreadable."""
    if not _seals(keys):
        opened(keys, kept)
        return not is_sealed(kept)
    if not is_sealed(kept):
        return False
    opened(keys, kept)
    try:
        opened(keys[:1], kept)
        return True
    except Unreadable:
        return False


def _seals(keys: Sequence[str]) -> bool:
    return bool(keys and keys[0])


@lru_cache(maxsize=8)
def _cipher(key: str) -> AESGCM:
    return AESGCM(HKDF(SHA256(), 32, None, _INFO).derive(key.encode("utf-8", "surrogatepass")))
