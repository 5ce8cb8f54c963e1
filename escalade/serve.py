"""The one process: web server in the main thread, engine and listener beside it, and an end in good order."""

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from flask import Flask
from waitress.server import BaseWSGIServer, MultiSocketServer, create_server

from escalade.config import Config
from escalade.health import Health
from escalade.lanes import Channel, Lanes

log = logging.getLogger("escalade.serve")

DRAIN_SECONDS = 25.0
REPEAT_SECONDS = 1.0
THREADS = 8


def web_server(app: Flask, config: Config) -> Any:
    """A bound server of waitress, not running yet. Raises OSError where the address is taken."""
    proxies: dict[str, Any] = {}
    if config.trusted_proxies:
        proxies = {
            "trusted_proxy": "*",
            "trusted_proxy_count": config.trusted_proxies,
            "trusted_proxy_headers": {"x-forwarded-for", "x-forwarded-proto"},
        }
    server = create_server(
        app,
        _dispatcher=Lanes(THREADS),
        host=config.host,
        port=config.port,
        ident="",
        connection_limit=500,
        channel_timeout=20,
        cleanup_interval=5,
        max_request_body_size=1024 * 1024,
        max_request_header_size=32 * 1024,
        asyncore_use_poll=True,
        expose_tracebacks=False,
        **proxies,
    )
    # A name such as localhost may stand for several addresses, and then there is a server for each.
    for one in server.map.values() if isinstance(server, MultiSocketServer) else [server]:
        if isinstance(one, BaseWSGIServer):
            one.channel_class = Channel
    return server


class Shutdown:
    """SIGTERM and SIGINT: claim no more, let what is in the air end, then stop the web server. A second signal from
    outside ends at once.

    waitress stops when its main loop raises SystemExit. So the first signal only starts the draining, in a thread of
    its own, and that thread signals again once it is done.
    """

    def __init__(self, health: Health, drain: Callable[[float], None]) -> None:
        self.health = health
        self.drain = drain
        self.drained = False
        self.told_at = 0.0

    def install(self) -> None:
        """Handle both signals from here on. Only in the main thread."""
        signal.signal(signal.SIGTERM, self.handle)
        signal.signal(signal.SIGINT, self.handle)

    def handle(self, number: int, frame: FrameType | None) -> None:
        """A signal has come."""
        if self.drained:
            raise SystemExit(0)
        if self.health.draining:
            # Whoever stops make stops its child too, so that both pass the signal on: one wish, said twice.
            if time.monotonic() - self.told_at > REPEAT_SECONDS:
                log.warning("told to stop a second time: ending at once")
                os._exit(1)
            return
        self.health.draining = True
        self.told_at = time.monotonic()
        threading.Thread(target=self._drain, name="drain", daemon=True).start()

    def _drain(self) -> None:
        started = time.monotonic()
        try:
            self.drain(DRAIN_SECONDS)
        finally:
            self.drained = True
            log.info("stopped after %.1f s", time.monotonic() - started)
            os.kill(os.getpid(), signal.SIGTERM)
