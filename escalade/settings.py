"""Settings of the whole installation that live in the database, and the secret key kept there."""

import secrets
from typing import Any

from escalade import ladder
from escalade.db import Tx, as_json
from escalade.ladder import Target


def get(tx: Tx, name: str) -> Any:
    """One setting, or None."""
    return tx.value("setting_by_name", name=name)


def put(tx: Tx, name: str, value: Any) -> None:
    """Write one setting."""
    tx.run("put_setting", name=name, value=as_json(value))


def add_start_token(tx: Tx, token_hash: str) -> None:
    """One more link by which the first person may get in, beside those that other processes printed lately."""
    tx.run("add_start_token", token_hash=token_hash)


def start_tokens(tx: Tx) -> list[str]:
    """The hashes of the links that work while nobody can log in."""
    kept = get(tx, "start_token") or []
    return [str(one) for one in kept] if isinstance(kept, list) else [str(kept)]


def fallback(tx: Tx) -> list[Target]:
    """Whom to tell when a policy is exhausted."""
    return [ladder.target(item) for item in get(tx, "fallback") or []]


def repage_exhausted_after(tx: Tx) -> int | None:
    """Seconds after which an alert that repeats on an exhausted incident pages again; None: never."""
    value = get(tx, "repage_exhausted_after")
    return None if value is None else int(value)


def secret_key(tx: Tx) -> str:
    """The key that signs links and sessions, made once where the environment names none."""
    tx.run("put_setting_once", name="secret_key", value=as_json(secrets.token_urlsafe(48)))
    return str(get(tx, "secret_key"))
