"""Escalade's composition root: it reads the configuration and puts the parts together. See `python app.py --help`."""

import sys
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from escalade import cli, embedded, first_run, serve, settings, subscriptions
from escalade.config import Config
from escalade.db import Database, Limits
from escalade.deadman import Deadman, database_fault
from escalade.delivery import Links
from escalade.dispatch import Settings
from escalade.doorbell import Doorbell
from escalade.engine import Engine
from escalade.health import Health
from escalade.listener import Listener
from escalade.migrate import migrate
from escalade.senders import Senders
from escalade.tokens import Signer
from escalade.transports import TRANSPORTS
from escalade.watchdog import Watchdog
from escalade.web import create_app
from escalade.web.context import Context

Worker = Engine | Listener | Deadman | Watchdog


def run(config: Config, *, engine: bool = True, demo: bool = False) -> int:
    """Serve until told to stop; the exit code. Raises Refusal, psycopg.Error or OSError before it serves."""
    with ExitStack() as stack:
        url = config.database_url or stack.enter_context(embedded.running(config.data_dir))
        migrate(url)
        health, doorbell = Health(engine_expected=engine), Doorbell()
        limits = limits_of(config)
        db = Database(url, config.db_pool, doorbell, limits)
        stack.callback(db.close)
        signer = Signer(signing_keys(config, db))
        server = serve.web_server(create_app(Context(config, db, signer, health)), config)
        lines = first_run.prepare(db, config, with_demo=demo)
        workers = start_workers(db, config, Links(config.base_url, signer), health) if engine else []

        def drain(seconds: float) -> None:
            for worker in workers:
                worker.stop(seconds)

        serve.Shutdown(health, drain).install()
        first_run.announce(lines)
        server.run()
    return 0


def start_workers(db: Database, config: Config, links: Links, health: Health) -> list[Worker]:
    """Start the engine, the doorbell by NOTIFY where it is wanted, and who looks after them."""
    listening = config.listen != "off"
    url, doorbell = db.url, db.doorbell
    doorbell.notify = listening
    with db.begin() as tx:
        network = replace(config.network(), push=subscriptions.sender(tx, config))
    senders = Senders(config.senders, network, TRANSPORTS, doorbell.nudge)
    numbers = Settings(
        lease=config.lease_seconds,
        deadline=config.send_deadline,
        poll=config.poll_seconds,
        archive_days=config.archive_after_days,
        limits=limits_of(config),
        keep_days=config.keep_days,
    )
    workers: list[Worker] = [Engine(url, numbers, senders, links, doorbell, health)]
    if listening:
        workers.append(Listener(url, doorbell, health))
    if config.deadman_url:
        workers.append(Deadman(config.deadman_url, config.network(), health, partial(database_fault, db)))
    for worker in workers:
        worker.start()
    watchdog = Watchdog(tuple(workers), health)
    watchdog.start()
    # It is stopped first, so that it starts none of the others again.
    return [watchdog, *workers]


def limits_of(config: Config) -> Limits:
    """What verbs go by."""
    return Limits(config.max_tries, config.max_open, config.late_seconds, config.sealing_keys)


def signing_keys(config: Config, db: Database) -> list[str]:
    """The key that signs, then those that still verify."""
    with db.begin() as tx:
        first = config.secret_key or settings.secret_key(tx)
    return [key for key in (first, config.secret_key_old) if key]


if __name__ == "__main__":
    sys.exit(cli.main(sys.argv[1:], run))
