"""The pool of threads that put messages on the wire. They never touch the database."""

import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping

from escalade.delivery import Job, Sent
from escalade.transports import DeliveryError, Network, Transport

log = logging.getLogger("escalade.senders")


class Senders:
    """So many threads; `results` are collected by the engine, which `wake` tells that there are some."""

    def __init__(
        self, count: int, network: Network, transports: Mapping[str, Transport], wake: Callable[[], None]
    ) -> None:
        self.count = count
        self.network = network
        self.transports = transports
        self.wake = wake
        self.jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self.results: queue.SimpleQueue[Sent] = queue.SimpleQueue()
        self.threads = [
            threading.Thread(target=self._run, name=f"sender-{number}", daemon=True) for number in range(count)
        ]

    def start(self) -> None:
        """Start the threads."""
        for thread in self.threads:
            thread.start()

    def submit(self, job: Job) -> None:
        """Hand over a message; the caller sees to it that a sender is idle."""
        self.jobs.put(job)

    def collect(self) -> list[Sent]:
        """What has come back since the last call."""
        found = []
        while True:
            try:
                found.append(self.results.get_nowait())
            except queue.Empty:
                return found

    def unbegun(self) -> list[Job]:
        """Take back the messages that no thread has begun."""
        found: list[Job] = []
        while True:
            try:
                job = self.jobs.get_nowait()
            except queue.Empty:
                return found
            if job is not None:
                found.append(job)

    def stop(self) -> None:
        """Let the threads end once they are idle."""
        for _ in self.threads:
            self.jobs.put(None)

    def _run(self) -> None:
        while (job := self.jobs.get()) is not None:
            self.results.put(self._send(job))
            self.wake()

    def _send(self, job: Job) -> Sent:
        started = time.monotonic()
        # A machine that stood still may have let the lease grow old: then another instance may send this by now.
        if started > job.start_by:
            return Sent(job, started, started)
        try:
            receipt = self.transports[job.transport].send(job.message, self.network)
            return Sent(job, started, time.monotonic(), receipt=receipt)
        except DeliveryError as error:
            return Sent(job, started, time.monotonic(), error=error)
        except BaseException as error:
            # A thread that ended here would take its message with it: whatever a transport raises is its own fault,
            # and the page is tried again like any other.
            log.exception("the transport %s raised", job.transport)
            fault = DeliveryError(f"The transport {job.transport} failed: {type(error).__name__}.", unknown=True)
            return Sent(job, started, time.monotonic(), error=fault)
