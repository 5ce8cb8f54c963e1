"""The dead man's switch: an address outside is pinged while pages can go out, and pages somebody when that stops."""

import logging
from collections.abc import Callable
from datetime import timedelta

from escalade.background import Background
from escalade.db import Database, Tx
from escalade.errors import Unavailable
from escalade.health import Health
from escalade.metrics import deadman_pings
from escalade.transports import DeliveryError, Network, http

log = logging.getLogger("escalade.deadman")

EVERY_SECONDS = 60.0
PATIENCE_SECONDS = 180.0
# How long it waits for one of the web's connections: a flood of requests is no reason to be silent.
BUSY_SECONDS = 10.0


class Deadman(Background):
    """A thread that pings every minute, and stays silent while no page can go out. `check` asks the database itself
    and says what is wrong there, or None."""

    def __init__(
        self,
        url: str,
        network: Network,
        health: Health,
        check: Callable[[], str | None] = lambda: None,
        every: float = EVERY_SECONDS,
    ) -> None:
        super().__init__("deadman")
        self.url = url
        self.network = network
        self.health = health
        self.check = check
        self.every = every
        self.silent: str | None = None
        self.patience = every + PATIENCE_SECONDS

    def _run(self) -> None:
        while self.wanted():
            try:
                self.ping()
            except Exception:
                # A switch that ended here would call people though pages go out.
                log.exception("the dead man's switch could not be pinged")
            self.stopping.wait(self.every)

    def ping(self) -> bool:
        """Ping once, if pages can go out; whether it was heard."""
        fault = self.health.idle_reason() or self.check()
        if fault != self.silent:
            self._said(fault)
        if fault is not None:
            return False
        try:
            http.post(self.url, b"", {}, self.network)
            deadman_pings.inc()
            return True
        except DeliveryError as error:
            log.warning("the dead man's switch did not answer: %s", error.message)
            return False

    def _said(self, fault: str | None) -> None:
        """Why it is silent, once for each reason."""
        self.silent = fault
        if fault is None:
            log.info("pages can go out again; the dead man's switch is pinged")
        else:
            log.warning("no page can go out from here, so the dead man's switch is not pinged: %s", fault)


def database_fault(db: Database) -> str | None:
    """Why pages cannot go out as the database itself says; None: they can."""
    try:
        with db.connection(BUSY_SECONDS) as conn:
            tx = Tx(conn, db.limits)
            if tx.value("is_read_only"):
                return "the database is read-only"
            late = timedelta(seconds=db.limits.late_seconds)
            oldest = tx.value("oldest_overdue", before=tx.now - late, now=tx.now)
    except Unavailable as error:
        return f"the database is away: {error.__cause__ or error}".strip().splitlines()[0]
    return None if oldest is None else f"the queue is overdue: what was due at {oldest:%H:%M:%S} UTC has not left"
