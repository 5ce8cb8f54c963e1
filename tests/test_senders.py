"""The threads that put messages on the wire: whatever a transport does, an answer comes back."""

import dataclasses
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from escalade import delivery
from escalade.delivery import Job, Sent
from escalade.senders import Senders
from escalade.transports import TRANSPORTS, DeliveryError, Message, Network, Receipt
from tests.engines import NETWORK
from tests.receiver import wait_for
from tests.test_delivery import LINKS, claimed, content

Send = Callable[[Message, Network], Receipt]


def job(start_by: float = float("inf")) -> Job:
    """A page by webhook."""
    row = claimed()
    return Job(1, "high", delivery.compose([row], [content()], LINKS), (row,), "webhook", row.destination, start_by)


@contextmanager
def running(send: Send, count: int = 1) -> Iterator[tuple[Senders, threading.Event]]:
    """Senders whose webhook transport is this function, and the event they ring."""
    bell = threading.Event()
    transport = dataclasses.replace(TRANSPORTS["webhook"], send=send)
    senders = Senders(count, NETWORK, {"webhook": transport}, bell.set)
    senders.start()
    try:
        yield senders, bell
    finally:
        senders.stop()
        for thread in senders.threads:
            thread.join(5)
            assert not thread.is_alive()


def sent(send: Send, item: Job) -> Sent:
    """Hand it over and wait for the answer, which must ring."""
    with running(send) as (senders, bell):
        senders.submit(item)
        assert bell.wait(5)
        [back] = senders.collect()
        return back


def test_a_receipt_comes_back_with_its_times() -> None:
    before = time.monotonic()
    back = sent(lambda message, network: Receipt("POST", "200"), job())
    assert back.receipt == Receipt("POST", "200")
    assert back.error is None
    assert before <= back.started <= back.ended <= time.monotonic()


def test_a_refusal_comes_back_as_it_is() -> None:
    refusal = DeliveryError("gone", permanent=True)

    def send(message: Message, network: Network) -> Receipt:
        raise refusal

    assert sent(send, job()).error is refusal


def test_k059_a_transport_that_raises_anything_else_is_tried_again_and_the_thread_lives(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.CRITICAL, "escalade.senders")
    calls = []

    def send(message: Message, network: Network) -> Receipt:
        calls.append(message)
        if len(calls) == 1:
            raise ZeroDivisionError("the token is s3cret")
        return Receipt()

    with running(send) as (senders, _):
        for _ in range(2):
            senders.submit(job())
        first, second = wait_for(lambda: senders.results.qsize() == 2 and senders.collect())
    assert first.error.unknown and not first.error.permanent
    assert "s3cret" not in first.error.message
    assert second.receipt == Receipt()


def test_a_send_that_could_outlive_its_lease_is_not_begun() -> None:
    calls: list[Message] = []

    def send(message: Message, network: Network) -> Receipt:
        calls.append(message)
        return Receipt()

    back = sent(send, job(start_by=time.monotonic() - 1))
    assert (back.receipt, back.error, calls) == (None, None, [])


def test_what_no_thread_has_begun_can_be_taken_back() -> None:
    begun, go = threading.Event(), threading.Event()

    def send(message: Message, network: Network) -> Receipt:
        begun.set()
        go.wait(5)
        return Receipt()

    with running(send) as (senders, _):
        for number in (1, 2, 3):
            senders.submit(job()._replace(number=number))
        assert begun.wait(5)
        assert [item.number for item in senders.unbegun()] == [2, 3]
        assert senders.unbegun() == []
        go.set()
        [back] = wait_for(senders.collect)
        assert back.job.number == 1


def test_stopping_lets_what_has_begun_end() -> None:
    begun, go = threading.Event(), threading.Event()

    def send(message: Message, network: Network) -> Receipt:
        begun.set()
        go.wait(5)
        return Receipt()

    with running(send, count=2) as (senders, _):
        senders.submit(job())
        assert begun.wait(5)
        senders.stop()
        go.set()
        [back] = wait_for(senders.collect)
        assert back.receipt == Receipt()


def test_as_many_messages_are_under_way_as_there_are_threads() -> None:
    go, under_way = threading.Event(), threading.Semaphore(0)

    def send(message: Message, network: Network) -> Receipt:
        under_way.release()
        go.wait(5)
        return Receipt()

    with running(send, count=8) as (senders, _):
        for number in range(12):
            senders.submit(job()._replace(number=number))
        for _ in range(8):
            assert under_way.acquire(timeout=5)
        assert not under_way.acquire(blocking=False)
        go.set()
        wait_for(lambda: senders.results.qsize() == 12)


def test_no_message_is_left_lying_however_they_come() -> None:
    with running(lambda message, network: Receipt(), count=3) as (senders, _):
        for number in range(3000):
            senders.submit(job()._replace(number=number))
            if number % 7 == 0:
                wait_for(lambda number=number: senders.results.qsize() == number + 1)
        wait_for(lambda: senders.results.qsize() == 3000)
        assert sorted(back.job.number for back in senders.collect()) == list(range(3000))
