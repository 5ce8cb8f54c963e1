"""The doorbell by NOTIFY: another instance has opened something that is due now. A hint; polling needs none of it."""

import logging
import random
from typing import Any

import psycopg

from escalade.background import Background
from escalade.db import Tx, connect
from escalade.doorbell import Doorbell
from escalade.health import Health
from escalade.metrics import listener_up

log = logging.getLogger("escalade.listener")

PROOF_SECONDS = 3.0
SLICE_SECONDS = 1.0
# It may pause for over a minute between two connections.
PATIENCE_SECONDS = 180.0


class Listener(Background):
    """A thread with a connection of its own that rings the doorbell of this process."""

    def __init__(self, url: str, doorbell: Doorbell, health: Health) -> None:
        super().__init__("listener")
        self.url = url
        self.doorbell = doorbell
        self.health = health
        self.patience = PATIENCE_SECONDS

    def _run(self) -> None:
        wait = 1.0
        self._up(False)
        while self.wanted():
            try:
                with connect(self.url) as conn:
                    self._listen(conn)
            except psycopg.Error as error:
                log.warning("the doorbell's connection is lost: %s", str(error).strip() or type(error).__name__)
            proved = self.health.listening
            if self.mine():
                self._up(False)
            # Behind a transaction pooler it never works: ask again now and then, not all the time.
            wait = 1.0 if proved else min(wait * 2, 60.0)
            self.stopping.wait(wait * random.uniform(0.8, 1.2))

    def _listen(self, conn: psycopg.Connection[Any]) -> None:
        """Ring for every notification until told to stop; at once over where none comes through."""
        tx = Tx(conn)
        tx.run("listen_for_others")
        tx.run("notify_engines")
        if not any(True for _ in conn.notifies(timeout=PROOF_SECONDS, stop_after=1)):
            return
        self._up(True)
        # What was rung while nobody listened is found by looking once.
        self.doorbell.ring()
        while self.wanted():
            for _ in conn.notifies(timeout=SLICE_SECONDS):
                self.doorbell.ring()

    def _up(self, working: bool) -> None:
        self.health.listening = working
        listener_up.set(1 if working else 0)
