"""Whether the secrets at rest are sealed, and can be read."""

from collections.abc import Iterator

from escalade import resealing
from escalade.checks.finding import Finding, fault, listed, ok, warning
from escalade.config import Config
from escalade.db import Tx


def secrets(tx: Tx, config: Config) -> Iterator[Finding]:
    """Secrets that cannot be decrypted fail every page they are for; those that lie open are in every backup."""
    found = resealing.look(tx, config.sealing_keys)
    if found.unreadable:
        yield fault(
            "secrets",
            f"{listed(kept.label for kept in found.unreadable)}: cannot be decrypted under ESCALADE_SECRET_KEY;"
            " give the key it was encrypted under as ESCALADE_SECRET_KEY_OLD, or set the secret again",
        )
    if found.outdated and config.secret_key is not None:
        yield warning(
            "secrets",
            f"{listed(kept.label for kept in found.outdated)}: not encrypted under ESCALADE_SECRET_KEY;"
            " run: python app.py reencrypt",
        )
    if config.secret_key is None and found.all:
        yield warning("secrets", f"{len(found.all)}, none encrypted: that takes ESCALADE_SECRET_KEY")
    elif not found.unreadable and not found.outdated:
        yield ok("secrets", f"{len(found.all)}, all encrypted" if found.all else "none are kept")
