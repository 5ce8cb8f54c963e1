"""Who changed what: rows that are only ever added, each in the transaction of the change itself.

Who acts is known where a request or a command begins, and is kept for as long as it runs, so that nothing on the way
has to hand it on. What is secret never gets here: it is masked before it is written.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from escalade import clean
from escalade.db import Tx, as_json

MASK = "***"
# Names of fields that nobody may read here; an address is a secret where whoever knows it can send there.
SECRET = frozenset(("secret", "key", "password", "token", "address"))
LONGEST = 1_000
PAGE = 100


@dataclass(frozen=True, slots=True)
class By:
    """Who acts: an e-mail, token:NAME or command-line; `address` is where a request came from."""

    who: str
    address: str | None = None


# What acts without being asked to: start-up, housekeeping.
ITSELF = "escalade"
_acting: ContextVar["By | None"] = ContextVar("acting", default=None)


@dataclass(frozen=True, slots=True)
class Entry:
    """One change. `at` is aware, in UTC."""

    id: int
    at: datetime
    who: str
    address: str | None
    action: str
    subject: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


def act_as(who: str, address: str | None = None) -> None:
    """From here on, in this request or command, this is who acts."""
    _acting.set(By(who, address))


def act_as_nobody() -> None:
    """The request is over: its thread serves others."""
    _acting.set(None)


@contextmanager
def acting(who: str, address: str | None = None) -> Iterator[None]:
    """The same, for a part of it."""
    token = _acting.set(By(who, address))
    try:
        yield
    finally:
        _acting.reset(token)


def who() -> str:
    """Who acts now, as the audit writes it."""
    by = _acting.get()
    return _text(by.who) if by else ITSELF


def address() -> str | None:
    """Where whoever acts comes from."""
    by = _acting.get()
    return by.address if by else None


def record(
    tx: Tx,
    action: str,
    subject: str,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> None:
    """Write down one change: `action` is what was done ("user created"), `subject` to what ("bob@example.com")."""
    tx.run(
        "add_audit",
        now=tx.now,
        who=who(),
        address=address(),
        action=action,
        subject=_text(subject),
        before=None if before is None else as_json(masked(before)),
        after=None if after is None else as_json(masked(after)),
    )


def masked(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values as texts, without secrets: that one is there is told, not which."""
    return {name: _mask(name, value) for name, value in values.items()}


def _mask(name: str, value: Any) -> Any:
    if name in SECRET:
        return MASK if value else None
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, Mapping):
        return masked(value)
    if isinstance(value, list | tuple):
        return [_mask(name, item) for item in value]
    return _text(str(value))


def _text(text: str) -> str:
    return clean.cut(clean.text(text)[0], LONGEST)


def page(tx: Tx, before: int | None = None, n: int = PAGE) -> list[Entry]:
    """What was changed, the newest first; `before` is the id to go on from."""
    return tx.many(Entry, "audit_page", before_id=before, n=n)
