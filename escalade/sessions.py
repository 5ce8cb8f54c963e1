"""Logins: sessions kept as rows, and a limit on guessing passwords per account and per address.

A session id is 32 random bytes, of which the database has the SHA-256. It ends 14 days after it was last used, 90
days after it began, and when the person gets another password.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil

from escalade import clean, passwords
from escalade.db import Begin, Tx
from escalade.errors import TooMany, Unauthenticated
from escalade.tokens import digest, new_secret

IDLE_DAYS = 14
LONGEST_DAYS = 90
SEEN_EVERY = timedelta(minutes=1)

# Anybody may guess at any account, so an account bears more wrong guesses than one address may make: otherwise a
# stranger could lock the person on call out.
GUESS_WINDOW = 15 * 60
GUESSES_PER_ADDRESS = 30
GUESSES_PER_ACCOUNT = 100


@dataclass(frozen=True, slots=True)
class SessionUser:
    """Whose session it is."""

    id: int
    email: str
    role: str
    last_seen_at: datetime


def login(begin: Begin, email: str, password: str, address: str) -> str:
    """The id of a new session. Raises Unauthenticated, or TooMany after too many wrong guesses.

    The guess is counted before it is checked, so that guesses made at once all count; the hash is computed with no
    transaction open.
    """
    account = clean.text(email.strip(), 1_000)[0]
    subjects = [f"address:{address}", _account(account)]
    with begin() as tx:
        # An address that may guess no more uses up nothing of the account.
        wait = _guess(tx, subjects[0], GUESSES_PER_ADDRESS) or _guess(tx, subjects[1], GUESSES_PER_ACCOUNT)
        known = tx.maybe(dict, "password_of", email=account) or {}
    if wait:
        raise TooMany(f"Too many wrong passwords; try again in {ceil(wait / 60)} minutes.", wait)
    if not passwords.fits(known.get("password_hash"), password):
        raise Unauthenticated("E-mail or password is wrong.", "password")
    with begin() as tx:
        tx.run("forgive_guess", subjects=subjects)
        tx.run("forget_guesses", now=tx.now)
        return start(tx, known["id"])


def forgive(tx: Tx, email: str) -> None:
    """Guesses at this account count no more: it has another password now."""
    tx.run("forget_account", subject=_account(email))


def _account(email: str) -> str:
    return f"account:{digest(email.strip().lower())}"


def _guess(tx: Tx, subject: str, limit: int) -> int:
    """Count a guess; the seconds to wait where it is one too many, else 0."""
    row = tx.one(dict, "count_guess", subject=subject, now=tx.now, window=GUESS_WINDOW)
    return max(1, ceil((row["until"] - tx.now).total_seconds())) if row["guesses"] > limit else 0


def start(tx: Tx, user_id: int) -> str:
    """Log a person in; the new session's id."""
    tx.run("forget_sessions", now=tx.now, idle_days=IDLE_DAYS)
    session_id = new_secret()
    tx.run("start_session", session_hash=digest(session_id), user_id=user_id, now=tx.now, days=LONGEST_DAYS)
    return session_id


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
