"""Looks at everything that has to be right for a page to arrive, and says of each what it found."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import psycopg

from escalade import embedded
from escalade.checks import database, people, queue, reach, secrets, silence
from escalade.checks.environment import configuration
from escalade.checks.finding import Check, Finding, fault
from escalade.config import Config, ConfigFaults
from escalade.db import Tx, connect
from escalade.errors import Refusal

__all__ = ["Finding", "examine"]

LEVELS = ("fault", "warning", "ok")

FIRST: tuple[Check, ...] = (database.server, database.schema, database.clocks)
# These read tables, so they wait until there are the right ones.
THEN: tuple[Check, ...] = (
    queue.engines,
    secrets.secrets,
    reach.transports,
    people.people,
    people.schedules,
    people.policies,
    people.services,
    queue.outages,
    queue.late,
    queue.failed,
    queue.vacuum,
    queue.health,
    silence.gaps,
)
# What a person reads on the page of checks besides.
BESIDES: tuple[Check, ...] = (silence.version, silence.unfinished, silence.loud, silence.pooler, silence.sleeping)
# What people say in a configuration file.
SAID: tuple[Check, ...] = (reach.transports, people.people, people.policies, people.services)


def examine(environ: Mapping[str, str]) -> Iterator[Finding]:
    """All findings, each as soon as it is there. Raises nothing but what stops the process."""
    try:
        config = Config.read(environ)
    except ConfigFaults as wrong:
        yield from (fault("configuration", text) for text in wrong.faults)
        return
    yield from configuration(config)
    with ExitStack() as stack:
        try:
            url = config.database_url or stack.enter_context(embedded.running(config.data_dir, environ))
            conn = stack.enter_context(connect(url))
        except Refusal as refusal:
            yield fault("database", refusal.message)
            return
        except psycopg.Error as away:
            yield fault("database", f"away: {_short(away)}; check DATABASE_URL, and whether it runs")
            return
        yield from _all(conn, config)


def on_page(conn: psycopg.Connection[Any], config: Config) -> list[Finding]:
    """All findings for a process that serves: it has a configuration and a database. The worst come first."""
    found = [*configuration(config), *_all(conn, config)]
    found += [finding for check in BESIDES for finding in _careful(check, conn, config)]
    return sorted(found, key=lambda finding: LEVELS.index(finding.level))


def unwell(conn: psycopg.Connection[Any], config: Config) -> Iterator[Finding]:
    """What is wrong with transports, people, policies and services. The connection is in no transaction."""
    for check in SAID:
        yield from (finding for finding in _careful(check, conn, config) if finding.level != "ok")


def _all(conn: psycopg.Connection[object], config: Config) -> Iterator[Finding]:
    first = [finding for check in FIRST for finding in _careful(check, conn, config)]
    yield from first
    if any(finding.level == "fault" and finding.check in ("database", "schema") for finding in first):
        return
    for check in THEN:
        yield from _careful(check, conn, config)
        if conn.closed:
            return


def _careful(check: Check, conn: psycopg.Connection[object], config: Config) -> list[Finding]:
    """What one check finds; one that cannot be made does not stop the others."""
    try:
        return list(check(Tx(conn), config))
    except Exception as error:
        return [fault(check.__name__, f"could not be checked: {_short(error)}")]


def _short(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
