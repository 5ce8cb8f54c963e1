"""Tokens of the API: shown once, kept as SHA-256, each with a name and a role."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from escalade.db import Tx
from escalade.errors import Conflict, Invalid, NotFound
from escalade.tokens import digest, new_secret
from escalade.users import ROLES

NAME_LIMIT = 100
USED_EVERY = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class ApiToken:
    """A token without its secret. Times are aware, in UTC; `last_used_at` is exact to a minute."""

    id: int
    name: str
    role: str
    created_at: datetime
    last_used_at: datetime | None


def create(tx: Tx, name: str, role: str) -> str:
    """The secret of a new token. Raises Invalid, or Conflict where the name is taken."""
    if role not in ROLES:
        raise Invalid(f"role must be {', '.join(ROLES[:-1])} or {ROLES[-1]}.", "role")
    shown = name.strip()
    if not shown.isprintable():
        raise Invalid("The name of a token must stand on one line, without control characters.", "name")
    if not shown or len(shown) > NAME_LIMIT:
        raise Invalid(f"A token needs a name, of at most {NAME_LIMIT} characters.", "name")
    secret = new_secret()
    if tx.maybe(ApiToken, "create_api_token", name=shown, token_hash=digest(secret), role=role, now=tx.now) is None:
        raise Conflict(f"There is a token named {shown} already.", "name")
    return secret


def use(tx: Tx, secret: str) -> ApiToken | None:
    """The token with this secret, or None. That it was used is written down once a minute."""
    token = tx.maybe(ApiToken, "api_token_by_hash", token_hash=digest(secret))
    if token is not None and (token.last_used_at is None or token.last_used_at < tx.now - USED_EVERY):
        tx.run("use_api_token", id=token.id, now=tx.now)
    return token


def every(tx: Tx) -> list[ApiToken]:
    """Every token, by name."""
    return tx.many(ApiToken, "all_api_tokens")


def revoke(tx: Tx, name: str) -> None:
    """A token opens nothing any more. Raises NotFound."""
    if tx.run("revoke_api_token", name=name) == 0:
        raise NotFound(f"There is no token {name!r}.")
