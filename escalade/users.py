"""People: who they are, what they may do, and their passwords."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from escalade import audit, clean, oncall, passwords, schedules, sessions
from escalade.db import Tx
from escalade.errors import Conflict, Invalid, NotFound
from escalade.values import EMAIL_LIMIT, MAIL_ADDRESS

ROLES = ("viewer", "responder", "admin")
NAME_LIMIT = 200


@dataclass(frozen=True, slots=True)
class User:
    """A person. `role` is viewer, responder or admin; `created_at` is aware, in UTC."""

    id: int
    email: str
    name: str
    role: str
    timezone: str
    has_password: bool
    created_at: datetime


def find(tx: Tx, user_id: int) -> User:
    """One person. Raises NotFound."""
    found = tx.maybe(User, "user_by_id", id=user_id)
    if found is None:
        raise NotFound("There is no such person.")
    return found


def by_email(tx: Tx, email: str) -> User | None:
    """The person with this e-mail, in whatever case, or None."""
    # A text that Postgres cannot take is nobody's e-mail.
    return None if clean.text(email)[1] else tx.maybe(User, "user_by_email", email=email.strip())


def by_ids(tx: Tx, ids: Iterable[int]) -> dict[int, User]:
    """The people with these ids; those who are gone are left out."""
    wanted = list(set(ids))
    return {user.id: user for user in tx.many(User, "users_by_id", ids=wanted)} if wanted else {}


def every(tx: Tx) -> list[User]:
    """Everybody, by e-mail."""
    return tx.many(User, "all_users")


def create(tx: Tx, email: str, role: str, name: str = "", timezone: str = "UTC") -> User:
    """Add a person, without a password. Raises Invalid, or Conflict where the e-mail is taken."""
    address = email.strip()
    try:
        MAIL_ADDRESS.parse(address)
    except ValueError:
        raise Invalid(f"{address!r} is not an e-mail address.", "email") from None
    if "<" in address or len(address) > EMAIL_LIMIT or clean.text(address)[1]:
        raise Invalid("An e-mail address stands alone, in at most 254 characters.", "email")
    values = _checked(name or address, role, timezone)
    created = tx.maybe(User, "create_user", email=address, now=tx.now, **values)
    if created is None:
        raise Conflict(f"There is a person with the e-mail {address} already.", "email")
    audit.record(tx, "user created", created.email, None, _audited(created))
    return created


def _audited(person: User) -> dict[str, str]:
    return {"email": person.email, "name": person.name, "role": person.role, "timezone": person.timezone}


def change(tx: Tx, user_id: int, name: str, role: str, timezone: str) -> User:
    """Change what a person is called, may do, and where they live; with another role they log in anew. Raises
    NotFound, Invalid, or Conflict for the last admin who can log in."""
    before = find(tx, user_id)
    values = _checked(name or before.email, role, timezone)
    if role != "admin":
        _keep_an_admin(tx, user_id)
    tx.run("change_user", id=user_id, **values)
    if role != before.role:
        sessions.end_all(tx, user_id)
    after = find(tx, user_id)
    if _audited(before) != _audited(after):
        audit.record(tx, "user changed", after.email, _audited(before), _audited(after))
    return after


def _checked(name: str, role: str, timezone: str) -> dict[str, str]:
    if role not in ROLES:
        raise Invalid(f"role must be {', '.join(ROLES[:-1])} or {ROLES[-1]}.", "role")
    try:
        oncall.zone(timezone)
    except ValueError as fault:
        raise Invalid(f"T{str(fault)[1:]}.", "timezone") from None
    shown = clean.cut(clean.title_text(name)[0], NAME_LIMIT)
    return {"name": shown, "role": role, "timezone": timezone}


def set_password(tx: Tx, user_id: int, password: str) -> None:
    """Give a person a new password; whoever is logged in as them is logged out, links to set one work no more, and
    wrong guesses at the old one are forgiven. Raises Invalid or NotFound."""
    person = find(tx, user_id)
    if tx.run("set_password", id=user_id, password_hash=passwords.hashed(password)) == 0:
        raise NotFound("There is no such person.")
    tx.run("drop_login_links", user_id=user_id)
    sessions.end_all(tx, user_id)
    sessions.forgive(tx, person.email)
    audit.record(tx, "password set", person.email)


def remove(tx: Tx, user_id: int) -> None:
    """A person leaves: from now on they are in no rotation. Raises NotFound, or Conflict for the last admin who can
    log in."""
    person = find(tx, user_id)
    _keep_an_admin(tx, user_id)
    schedules.drop_participant(tx, user_id)
    tx.run("remove_user", id=user_id)
    audit.record(tx, "user removed", person.email, _audited(person), None)


def _keep_an_admin(tx: Tx, user_id: int) -> None:
    if tx.values("lock_admins") == [user_id]:
        raise Conflict("This is the last admin who can log in; make somebody else one first.")


def anybody_with_password(tx: Tx) -> bool:
    """Whether anybody can log in; until then the first-login link works."""
    return bool(tx.value("anybody_with_password"))
