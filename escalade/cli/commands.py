"""Runs one command: the configuration, the log and the database it needs, and its exit code."""

import logging
import os
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Protocol

from escalade import audit, doctor, embedded, logs
from escalade.cli import lists
from escalade.cli.actions import ACTIONS, ACTOR
from escalade.config import Config, ConfigFaults
from escalade.db import Database, Limits
from escalade.errors import Refusal
from escalade.migrate import migrate, require_current


class Serve(Protocol):
    """Serves until told to stop; its exit code."""

    def __call__(self, config: Config, *, engine: bool, demo: bool) -> int: ...


def run(options: Namespace, serve: Serve) -> int:
    """Run the command; its exit code. Raises what `faults.lines` puts into words."""
    if options.command == "doctor":
        return examine(options)
    config = Config.read(os.environ)
    if options.command == "serve":
        return start(options, config, serve)
    # A command's output is what was asked for; the log is for processes that stay.
    logs.setup(config.log, level=logging.ERROR)
    if options.command == "migrate":
        return bring_up_to_date(config)
    name = f"{options.command} {options.verb}" if "verb" in options else options.command
    with database(config) as db, audit.acting(ACTOR):
        ACTIONS[name](db, config, options)
    return 0


def start(options: Namespace, config: Config, serve: Serve) -> int:
    """serve"""
    logs.setup(config.log)
    found = config.serve_faults()
    if config.database_url is None and (reason := embedded.refusal(os.environ)):
        found.append(reason)
    if found:
        raise ConfigFaults(found)
    try:
        return serve(config, engine=not options.no_engine, demo=options.demo)
    except OSError as fault:
        why = fault.strerror or fault
        raise Refusal(f"Cannot serve on {config.host}, port {config.port}: {why}. Choose another by PORT.") from fault


def examine(options: Namespace) -> int:
    """doctor"""
    logs.setup(level=logging.CRITICAL)
    found = []
    for finding in doctor.examine(os.environ):
        found.append(finding)
        if not options.json:
            # A fault goes where faults go, and in its place among the others where both end on one screen.
            print(logs.escape(finding.line), file=sys.stderr if finding.level == "fault" else sys.stdout, flush=True)
    if options.json:
        lists.show_json({"findings": [finding.shown for finding in found]})
    return int(any(finding.level == "fault" for finding in found))


def bring_up_to_date(config: Config) -> int:
    """migrate"""
    with ExitStack() as stack:
        url = config.database_url or stack.enter_context(embedded.running(config.data_dir))
        done = migrate(url)
    for name in done:
        print(f"applied {name}")
    if not done:
        print("the schema is up to date")
    return 0


@contextmanager
def database(config: Config) -> Iterator[Database]:
    """The configured database, or that of the data directory, with the schema that this program needs."""
    with ExitStack() as stack:
        url = config.database_url or stack.enter_context(embedded.running(config.data_dir))
        require_current(url)
        db = Database(url, size=1, limits=Limits(config.max_tries, sealing_keys=config.sealing_keys))
        stack.callback(db.close)
        db.doorbell.notify = config.listen != "off"
        yield db
