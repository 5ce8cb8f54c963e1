"""A running engine for tests, with real senders and a real database."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from escalade.delivery import Links
from escalade.dispatch import Settings
from escalade.doorbell import Doorbell
from escalade.engine import Engine
from escalade.health import Health
from escalade.senders import Senders
from escalade.tokens import Signer
from escalade.transports import TRANSPORTS, Network, Transport

NETWORK = Network(connect_timeout=1, read_timeout=2, deadline=3, allow_private=True)
SIGNER = Signer(["a key for tests"])


def make_engine(
    url: str,
    doorbell: Doorbell | None = None,
    senders: int = 4,
    network: Network = NETWORK,
    transports: Mapping[str, Transport] = TRANSPORTS,
    settings: Settings | None = None,
) -> Engine:
    """An engine that is not running: tests call its tick, or start it."""
    bell = doorbell or Doorbell()
    hands = Senders(senders, network, transports, bell.nudge)
    chosen = settings or Settings(lease=9, deadline=network.deadline, poll=0.5)
    return Engine(url, chosen, hands, Links("http://127.0.0.1:8000", SIGNER), bell, Health())


@contextmanager
def running_engine(url: str, doorbell: Doorbell | None = None, **more: object) -> Iterator[Engine]:
    """An engine in its thread, stopped at the end."""
    engine = make_engine(url, doorbell, **more)  # type: ignore[arg-type]
    engine.start()
    try:
        yield engine
    finally:
        engine.stop(10)
        assert not engine.thread.is_alive()
