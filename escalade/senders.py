"""The pool of threads that put messages on the wire. They never touch the database.

Whoever takes a job wakes one other thread where more are left: to wake a thread for every job at once would make them
all wait for the interpreter, and each such wait costs as much as a small message.
"""

import logging
import queue
import threading
import time
from collections import deque
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
        self.jobs: deque[Job] = deque()
        self.calls: queue.SimpleQueue[bool] = queue.SimpleQueue()
        # Somebody has been called and has not looked yet: what is there now, they will see.
        self.called = False
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
        self.jobs.append(job)
        self._call()

    def _call(self) -> None:
        if not self.called:
            self.called = True
            self.calls.put(True)

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
                found.append(self.jobs.popleft())
            except IndexError:
                return found

    def stop(self) -> None:
        """Let the threads end once they are idle."""
        for _ in self.threads:
            self.calls.put(False)

    def _run(self) -> None:
        while self.calls.get():
            self.called = False
            while (job := self._next()) is not None:
                self.results.put(self._send(job))
                self.wake()

    def _next(self) -> Job | None:
        """The next job, if any; another thread is woken for what comes behind it."""
        try:
            job = self.jobs.popleft()
        except IndexError:
            return None
        if self.jobs:
            self._call()
        return job

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
