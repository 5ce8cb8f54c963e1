"""A limit on how often something may be tried, per account and per address, counted in the database: it holds for all
processes together, and across restarts."""

from math import ceil

from escalade.db import Begin, Tx
from escalade.errors import TooMany
from escalade.tokens import digest

WINDOW = 15 * 60


def account(email: str) -> str:
    """What counts of an account: the e-mail itself is kept nowhere, since anybody can type anything."""
    return f"account:{digest(email.strip().lower())}"


def address(of: str) -> str:
    """What counts of where a request comes from."""
    return f"address:{of}"


def count(tx: Tx, subject: str, limit: int) -> int:
    """One more try; the seconds to wait where it is one too many, else 0."""
    row = tx.one(dict, "count_guess", subject=subject, now=tx.now, window=WINDOW)
    return max(1, ceil((row["until"] - tx.now).total_seconds())) if row["guesses"] > limit else 0


def take(begin: Begin, what: str, *limits: tuple[str, int]) -> None:
    """One more try at `what` for each of these subjects, counted before anything is looked at. The first that has no
    more is the last that is counted. Raises TooMany."""
    with begin() as tx:
        wait = next((wait for subject, limit in limits if (wait := count(tx, f"{what}:{subject}", limit))), 0)
        tx.run("forget_guesses", now=tx.now)
    if wait:
        raise too_many("tries", wait)


def too_many(of: str, wait: int) -> TooMany:
    """The refusal, with when to come again."""
    return TooMany(f"Too many {of}; try again in {ceil(wait / 60)} minutes.", wait)
