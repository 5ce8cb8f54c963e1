"""What would let a page go unheard although everything works: phones that stay silent, gaps, a host that sleeps."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from escalade import __version__, first_steps, rota
from escalade.checks.finding import Finding, listed, ok, warning
from escalade.config import Config, on_a_host
from escalade.db import Tx
from escalade.transports import TRANSPORTS

GAP_DAYS = 14


@dataclass(frozen=True, slots=True)
class Signs:
    """When a service was last heard of, and when a page of it last arrived; None: not lately."""

    name: str
    last_alert_at: datetime | None
    last_page_at: datetime | None


def version(tx: Tx, config: Config) -> Iterator[Finding]:
    """Which version this is."""
    yield ok("version", f"Escalade {__version__}")


def unfinished(tx: Tx, config: Config) -> Iterator[Finding]:
    """Whether the first steps are still to be ended."""
    if first_steps.find(tx) is not None:
        yield warning("first steps", f"not finished; an admin goes on at {config.base_url}/welcome")


def loud(tx: Tx, config: Config) -> Iterator[Finding]:
    """People whom no contact method can wake up."""
    quiet = [kind for kind, transport in TRANSPORTS.items() if not transport.loud]
    found = tx.values("only_quiet_people", quiet=quiet)
    if found:
        yield warning(
            "silence",
            f"{listed(found)}: reached only by what may be silent (push, mail, chat, log);"
            " add ntfy, or a webhook that rings",
        )
    else:
        yield ok("silence", "whoever can be reached has a way that rings")


def gaps(tx: Tx, config: Config) -> Iterator[Finding]:
    """Hours of the next two weeks in which a schedule has nobody on call."""
    names = [item.schedule.name for item in rota.on_call(tx, tx.now) if item.fault is None]
    found = [finding for name in names for finding in _gaps(tx, name)]
    yield from found
    if names and not found:
        yield ok("gaps", f"none in the next {GAP_DAYS} days")


def _gaps(tx: Tx, name: str) -> Iterator[Finding]:
    turns = rota.shifts(tx, name, tx.now, tx.now + timedelta(days=GAP_DAYS))
    empty = [turn for turn in turns if not turn.people]
    if empty:
        first = f"{empty[0].start:%a %d %b %H:%M} to {empty[0].end:%a %d %b %H:%M} UTC"
        more = f" and {len(empty) - 1} more" if len(empty) > 1 else ""
        yield warning("gaps", f"{name}: nobody is on call from {first}{more}; close the gap, or page somebody else too")


def sleeping(tx: Tx, config: Config, environ: Mapping[str, str] = os.environ) -> Iterator[Finding]:
    """Hosts put the servers of free plans to sleep, and one that sleeps pages nobody."""
    if config.deadman_url:
        yield ok("dead man", "somebody else watches that this server runs (ESCALADE_DEADMAN_URL)")
    elif on_a_host(environ):
        yield warning(
            "dead man",
            "nobody watches this server: a host may put it to sleep on a free plan, and then nothing is sent; choose a"
            " plan that does not sleep, and set ESCALADE_DEADMAN_URL to a check elsewhere that alarms you",
        )
    else:
        yield warning(
            "dead man",
            "nobody watches this server: were it off, nobody would know; set ESCALADE_DEADMAN_URL to a check elsewhere",
        )


def pooler(tx: Tx, config: Config) -> Iterator[Finding]:
    """Whether a pooler stands before the database: it gives every client a process number of its own making."""
    if tx.value("backend_pid") == tx.conn.info.backend_pid:
        yield ok("pooler", "none stands before the database, so other processes hear of a new page at once")
    elif config.listen == "off":
        yield ok("pooler", "one stands before the database, and ESCALADE_LISTEN is off: new pages are found by polling")
    else:
        yield ok(
            "pooler",
            "one stands before the database; where it pools transactions, other processes find new pages by polling"
            " once a second, which is in order",
        )


def signs(tx: Tx) -> list[Signs]:
    """Every service with its last alert and its last page, as far as its latest incidents tell."""
    return tx.many(Signs, "service_signs")
