"""How requests get to a thread, and connections to the server: health checks wait for no others, and nobody keeps a
place for ever.

waitress gives its threads out in the order of the requests, and places until its limit. When the database hangs, all
threads soon wait for it; whoever asks /healthz then would be told nothing and restart a process that is well.
"""

from time import monotonic
from typing import Any

from waitress.channel import HTTPChannel
from waitress.task import ThreadedTaskDispatcher

# /readyz has a lane apart from /healthz, since it asks the database, and so may wait for it.
HEALTH_THREADS = {"/healthz": 1, "/readyz": 2}
SHUTDOWN_SECONDS = 5.0
# From the opening of a connection, or the last answer on it, to the end of the next request. The timeout of idle
# connections starts anew with each byte, so alone it would let one live for ever that drips.
REQUEST_SECONDS = 40.0
# waitress accepts nobody at all at its limit; so many places before it, the oldest connection that only waits goes.
SPARE_PLACES = 20


class Lanes:
    """What waitress hands requests to: threads for each path of HEALTH_THREADS, and `threads` for all others."""

    def __init__(self, threads: int) -> None:
        self.others = _lane(threads)
        self.health = {path: _lane(count) for path, count in HEALTH_THREADS.items()}

    def add_task(self, channel: Any) -> None:
        """The first request of this channel is whole."""
        # One that could not be read has no path.
        path = getattr(channel.requests[0], "path", "") if channel.requests else ""
        self.health.get(path, self.others).add_task(channel)

    def shutdown(self, cancel_pending: bool = True, timeout: float = SHUTDOWN_SECONDS) -> bool:
        """End the threads of all lanes, and wait for them so many seconds altogether."""
        lanes = [self.others, *self.health.values()]
        until = monotonic() + timeout
        for lane in lanes:
            lane.set_thread_count(0)
        return all([lane.shutdown(cancel_pending, max(0.0, until - monotonic())) for lane in lanes])


def _lane(threads: int) -> ThreadedTaskDispatcher:
    lane = ThreadedTaskDispatcher()
    lane.set_thread_count(threads)
    return lane


class Channel(HTTPChannel):  # type: ignore[misc]  # waitress has no types
    """A connection that has to bring a whole request in time, and makes way for others while it brings none."""

    def __init__(self, server: Any, *args: Any, **more: Any) -> None:
        self.waits_since = monotonic()
        super().__init__(server, *args, **more)
        if len(server._map) > self.adj.connection_limit - SPARE_PLACES:
            self._make_room()

    def readable(self) -> bool:
        """Asked in every round of the server, so at least once a second."""
        now = monotonic()
        if self.requests:
            self.waits_since = now
        elif now - self.waits_since > REQUEST_SECONDS:
            self.will_close = True
        return bool(super().readable())

    def service(self) -> None:
        """Answer a request. A quick answer may fall between two rounds, so it is noted here too."""
        super().service()
        self.waits_since = monotonic()

    def _make_room(self) -> None:
        others = [one for one in self.server.active_channels.values() if one is not self]
        idle = [one for one in others if not one.requests and not one.will_close]
        if idle:
            min(idle, key=lambda one: one.waits_since).will_close = True
