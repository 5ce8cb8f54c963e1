"""What is kept of secrets in the database: whether it is sealed and can be read, and sealing it anew."""

from collections.abc import Sequence
from dataclasses import dataclass

from escalade import audit, sealing
from escalade.db import Tx
from escalade.transports import TRANSPORTS

WRITES = {
    "contact method": "reseal_contact_method",
    "channel": "reseal_channel",
    "integration": "reseal_integration",
    "setting": "reseal_setting",
}


@dataclass(frozen=True, slots=True)
class Kept:
    """A secret's owner: a contact method, a channel, an integration, or the setting with the key of Web Push."""

    noun: str
    name: str
    id: int
    kind: str
    address: str
    secret: str | None

    @property
    def label(self) -> str:
        """What it is called."""
        return f"{self.noun} {self.name}"

    @property
    def texts(self) -> list[str]:
        """What of it is secret."""
        transport = TRANSPORTS.get(self.kind)
        address = self.address if transport and transport.secret_address else ""
        return [text for text in (address, self.secret) if text]


@dataclass(frozen=True, slots=True)
class Look:
    """How the secrets are kept: what cannot be read, and what is not kept as it would be written now."""

    all: list[Kept]
    unreadable: list[Kept]
    outdated: list[Kept]


def look(tx: Tx, keys: Sequence[str]) -> Look:
    """Look at every secret."""
    found = [kept for kept in tx.many(Kept, "kept_secrets") if kept.texts]
    unreadable = [kept for kept in found if not _readable(keys, kept)]
    rest = [kept for kept in found if kept not in unreadable]
    return Look(
        found, unreadable, [kept for kept in rest if not all(sealing.is_current(keys, text) for text in kept.texts)]
    )


def _readable(keys: Sequence[str], kept: Kept) -> bool:
    try:
        return all(sealing.opened(keys, text) is not None for text in kept.texts)
    except sealing.Unreadable:
        return False


def reseal(tx: Tx) -> Look:
    """Write every secret that can be read as it would be written now; how it was before."""
    keys = tx.limits.sealing_keys
    tx.run("lock_configuration")
    before = look(tx, keys)
    for kept in before.outdated:
        transport = TRANSPORTS.get(kept.kind)
        address, secret = (sealing.opened(keys, text) for text in (kept.address, kept.secret))
        hidden = transport is not None and transport.secret_address
        tx.run(
            WRITES[kept.noun],
            id=kept.id,
            address=sealing.seal(keys, address) if hidden else address,
            secret=sealing.seal(keys, secret),
        )
        audit.record(tx, "secret encrypted anew", kept.label)
    return before
