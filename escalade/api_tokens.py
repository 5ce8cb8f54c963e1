"""Tokens of the API: shown once, kept as SHA-256, each with a name and a role."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from escalade import audit
from escalade.db import Tx
from escalade.errors import Conflict, Invalid, NotFound
from escalade.tokens import digest, new_secret
from escalade.users import ROLES

NAME_LIMIT = 100
LONGEST_DAYS = 3_650
USED_EVERY = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class ApiToken:
    """A token without its secret. Times are aware, in UTC; `last_used_at` is exact to a minute."""

    id: int
    name: str
    role: str
    created_at: datetime
    last_used_at: datetime | None
    expires_at: datetime | None = None
    created_by: str | None = None


def create(tx: Tx, name: str, role: str, days: int | None = None) -> str:
    """The secret of a new token, which ends after so many days unless None. Raises Invalid, or Conflict where the
    name is taken."""
    if role not in ROLES:
        raise Invalid(f"role must be {', '.join(ROLES[:-1])} or {ROLES[-1]}.", "role")
    shown = name.strip()
    if not shown.isprintable():
        raise Invalid("The name of a token must stand on one line, without control characters.", "name")
    if not shown or len(shown) > NAME_LIMIT:
        raise Invalid(f"A token needs a name, of at most {NAME_LIMIT} characters.", "name")
    if days is not None and not 1 <= days <= LONGEST_DAYS:
        raise Invalid(f"A token ends after 1 to {LONGEST_DAYS:,} days, or never.", "days")
    secret = new_secret()
    ends = None if days is None else tx.now + timedelta(days=days)
    values = {"name": shown, "role": role, "expires_at": ends, "created_by": audit.who()}
    if tx.maybe(ApiToken, "create_api_token", token_hash=digest(secret), now=tx.now, **values) is None:
        raise Conflict(f"There is a token named {shown} already.", "name")
    audit.record(tx, "token created", shown, None, {"role": role, "expires_at": ends})
    return secret


def use(tx: Tx, secret: str) -> ApiToken | None:
    """The token with this secret, or None where there is none or its time is over. That it was used is written down
    once a minute."""
    token = tx.maybe(ApiToken, "api_token_by_hash", token_hash=digest(secret), now=tx.now)
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
    audit.record(tx, "token revoked", name)
