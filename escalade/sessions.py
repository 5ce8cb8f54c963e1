"""Logins: sessions kept as rows, and a limit on guessing passwords per account and per address.

A session id is 32 random bytes, of which the database has the SHA-256. It ends 14 days after it was last used, 90
days after it began, and when the person gets another password.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from escalade import audit, clean, passwords, throttle
from escalade.db import Begin, Tx
from escalade.errors import Unauthenticated
from escalade.tokens import digest, new_secret

IDLE_DAYS = 14
LONGEST_DAYS = 90
SEEN_EVERY = timedelta(minutes=1)

# Anybody may guess at any account, so an account bears more wrong guesses than one address may make: otherwise a
# stranger could lock the person on call out.
GUESSES_PER_ADDRESS = 30
GUESSES_PER_ACCOUNT = 100
AGENT_LIMIT = 300


@dataclass(frozen=True, slots=True)
class SessionUser:
    """Whose session it is."""

    id: int
    email: str
    role: str
    last_seen_at: datetime


@dataclass(frozen=True, slots=True)
class Session:
    """A login as its owner sees it. Times are aware, in UTC."""

    session_hash: str
    created_at: datetime
    last_seen_at: datetime
    address: str | None
    agent: str | None


def login(begin: Begin, email: str, password: str, address: str, agent: str = "") -> str:
    """The id of a new session. Raises Unauthenticated, or TooMany after too many wrong guesses."""
    user_id = prove(begin, email, password, address)
    with begin() as tx, audit.acting(email.strip(), address):
        audit.record(tx, "logged in", email.strip())
        return start(tx, user_id, address, agent)


def prove(begin: Begin, email: str, password: str, address: str) -> int:
    """Whose e-mail and password these are. Raises Unauthenticated, or TooMany after too many wrong guesses.

    The guess is counted before it is checked, so that guesses made at once all count; the hash is computed with no
    transaction open.
    """
    account = clean.text(email.strip(), 1_000)[0]
    subjects = [throttle.address(address), throttle.account(account)]
    with begin() as tx:
        # An address that may guess no more uses up nothing of the account.
        wait = throttle.count(tx, subjects[0], GUESSES_PER_ADDRESS)
        wait = wait or throttle.count(tx, subjects[1], GUESSES_PER_ACCOUNT)
        known = tx.maybe(dict, "password_of", email=account) or {}
    if wait:
        raise throttle.too_many("wrong passwords", wait)
    if not passwords.fits(known.get("password_hash"), password):
        raise Unauthenticated("E-mail or password is wrong.", "password")
    with begin() as tx:
        tx.run("forgive_guess", subjects=subjects)
        tx.run("forget_guesses", now=tx.now)
    return int(known["id"])


def forgive(tx: Tx, email: str) -> None:
    """Guesses at this account count no more: it has another password now."""
    tx.run("forget_account", subject=throttle.account(email))


def start(tx: Tx, user_id: int, address: str = "", agent: str = "") -> str:
    """Log a person in; the new session's id. Where from and with which browser is kept for its owner to see."""
    tx.run("forget_sessions", now=tx.now, idle_days=IDLE_DAYS)
    session_id = new_secret()
    tx.run(
        "start_session",
        session_hash=digest(session_id),
        user_id=user_id,
        now=tx.now,
        days=LONGEST_DAYS,
        address=address or None,
        agent=clean.title_text(agent)[0][:AGENT_LIMIT] or None,
    )
    return session_id


def listing(tx: Tx, user_id: int) -> list[Session]:
    """A person's sessions, the one used last first."""
    return tx.many(Session, "sessions_of", user_id=user_id, now=tx.now, idle_days=IDLE_DAYS)


def end_all(tx: Tx, user_id: int) -> int:
    """Log a person out everywhere; from how many sessions."""
    return tx.run("end_sessions_of", user_id=user_id)


def find(tx: Tx, session_id: str) -> SessionUser | None:
    """Whose session this is, or None where it is over. Being asked for keeps it alive."""
    hashed = digest(session_id)
    user = tx.maybe(SessionUser, "session_user", session_hash=hashed, now=tx.now, idle_days=IDLE_DAYS)
    if user is not None and user.last_seen_at < tx.now - SEEN_EVERY:
        tx.run("see_session", session_hash=hashed, now=tx.now)
    return user


def logout(tx: Tx, session_id: str) -> None:
    """End a session."""
    tx.run("end_session", session_hash=digest(session_id))
