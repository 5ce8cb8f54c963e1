"""The dead man's switch: an address outside is pinged while pages can go out, and pages somebody when that stops."""

import logging

from escalade.background import Background
from escalade.health import Health
from escalade.transports import DeliveryError, Network, http

log = logging.getLogger("escalade.deadman")

EVERY_SECONDS = 60.0


class Deadman(Background):
    """A thread that pings every minute, and stays silent while the engine does not go round."""

    def __init__(self, url: str, network: Network, health: Health, every: float = EVERY_SECONDS) -> None:
        super().__init__("deadman")
        self.url = url
        self.network = network
        self.health = health
        self.every = every

    def _run(self) -> None:
        while not self.stopping.is_set():
            self.ping()
            self.stopping.wait(self.every)

    def ping(self) -> bool:
        """Ping once, if pages can go out; whether it was heard."""
        if not (self.health.alive() and self.health.ticking()) or self.health.draining:
            return False
        try:
            http.post(self.url, b"", {}, self.network)
            return True
        except DeliveryError as error:
            log.warning("the dead man's switch did not answer: %s", error.message)
            return False
