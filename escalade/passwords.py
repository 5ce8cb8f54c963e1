"""Passwords: hashed with scrypt, and checked in the same time whether the account exists or not."""

from werkzeug.security import check_password_hash, generate_password_hash

from escalade.errors import Invalid

SHORTEST = 8
LONGEST = 1_000
METHOD = "scrypt:32768:8:1"
# Nobody's hash: checking against it takes as long as any other and never fits.
NOBODY = f"{METHOD}$nobody$" + "0" * 128


def hashed(password: str) -> str:
    """What is kept of a new password. Raises Invalid where it is too short or too long."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise Invalid(f"A password has from {SHORTEST} to {LONGEST:,} characters.", "password")
    return generate_password_hash(_storable(password), METHOD)


def fits(kept: str | None, password: str) -> bool:
    """Whether this is the password; `kept` is None where there is no such account, or it has no password."""
    # A password of megabytes would be hashed too: nothing that long was ever accepted.
    right = check_password_hash(kept or NOBODY, _storable(password[:LONGEST]))
    return right and kept is not None


def _storable(password: str) -> str:
    return password.encode("utf-8", "replace").decode()
