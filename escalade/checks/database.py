"""The database itself: what it is, whether it can be written, and whether its clock and ours agree."""

import time
from collections.abc import Iterator

from escalade.checks.finding import Finding, fault, ok, warning
from escalade.config import Config
from escalade.db import Tx
from escalade.migrate import files, pending

OLDEST = 14
SKEW_WARNING, SKEW_FAULT = 2.0, 30.0


def server(tx: Tx, config: Config) -> Iterator[Finding]:
    """Its version, and whether it takes writes."""
    number = tx.conn.info.server_version
    version = f"{number // 10_000}.{number % 10_000}"
    if number < OLDEST * 10_000:
        yield fault("database", f"Postgres {version} is too old; move to {OLDEST} or later")
    elif tx.value("is_read_only"):
        yield fault("database", "it takes no writes: a replica, or set to read-only; name the primary in DATABASE_URL")
    else:
        yield ok("database", f"Postgres {version}, takes writes")


def schema(tx: Tx, config: Config) -> Iterator[Finding]:
    """Whether all migrations are applied."""
    missing = pending(tx.conn)
    if missing == [path.stem for path in files()]:
        yield fault("schema", "there is none yet; run: python app.py migrate")
    elif missing:
        yield fault("schema", f"older than this program, {', '.join(missing)} missing; run: python app.py migrate")
    else:
        yield ok("schema", "up to date")


def clocks(tx: Tx, config: Config) -> Iterator[Finding]:
    """How far this machine's clock is from the database's, which decides what is due."""
    before = time.time()
    theirs = tx.now.timestamp()
    after = time.time()
    yield judge_clocks(theirs - (before + after) / 2)


def judge_clocks(ahead: float) -> Finding:
    """The finding for a database whose clock is so many seconds ahead of this machine's."""
    if abs(ahead) <= SKEW_WARNING:
        return ok("clocks", f"this machine and the database differ by {abs(ahead):.1f} s")
    which = "ahead of" if ahead > 0 else "behind"
    text = f"the database is {abs(ahead):.1f} s {which} this machine; let both set their clocks by NTP"
    return fault("clocks", text) if abs(ahead) > SKEW_FAULT else warning("clocks", text)
