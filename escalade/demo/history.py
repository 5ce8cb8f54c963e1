"""What happened in the demo before it was loaded: three incidents, lived through by the real verbs at earlier times.

Only the clock and the receivers' answers are made up. Claims, settles, retries and acknowledgements are those of the
engine and of people, so what the pages show is what they show of real incidents.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from escalade import attempts, incidents, opening, retry, rota
from escalade.attempts import Claimed, Outcome, Room
from escalade.db import Tx
from escalade.inbound.base import Event
from escalade.incident import Incident
from escalade.opening import Source

OWNER = "demo"
LEASE = 20.0
SEND = timedelta(milliseconds=200)
TRIES = 8
NO_ANSWER = "The look-up of the name in https://pager.demo.invalid/... failed: Name or service not known."

_CERTIFICATE = Event(
    "trigger",
    "Certificate of shop.example.com expires in 6 days",
    "Renewal failed twice: the DNS challenge found no record.",
    severity="warning",
    dedup_key="certificate",
)
_DISK = Event(
    "trigger",
    "Disk of db-2 is 91 % full",
    "/var/lib/postgresql: 182 GB of 200 GB.",
    severity="warning",
    dedup_key="disk-db-2",
    link="https://grafana.example.com/d/disks",
)
_CHECKOUT = Event(
    "trigger",
    "Checkout: 5 % of requests answer 500",
    'rate(http_requests_total{job="checkout",code="500"}[5m]) is above 0.02 since three minutes.',
    severity="critical",
    dedup_key="checkout-errors",
    link="https://grafana.example.com/d/checkout",
)


def write(tx: Tx, source: Source) -> list[int]:
    """Live through the past of the demo; the ids of its incidents. The last one is still climbing."""
    present = tx.now
    yesterday = _answered(tx, source, _CERTIFICATE, present - timedelta(hours=26))
    person = on_call(tx)
    tx.take_clock(present - timedelta(hours=25))
    incidents.resolve(tx, yesterday.id, person)
    disk = _answered(tx, source, _DISK, present - timedelta(minutes=55))
    incidents.note(tx, disk.id, "Old exports fill it; deleting those older than a month.", on_call(tx))
    checkout = _climbing(tx, source, present - timedelta(minutes=6))
    tx.take_clock(present)
    return [yesterday.id, disk.id, checkout.id]


def on_call(tx: Tx) -> str:
    """The e-mail of who is on call in the demo at the transaction's time."""
    [found] = rota.on_call(tx, tx.now, "demo-primary")
    return found.people[0].email


def _answered(tx: Tx, source: Source, event: Event, opened_at: datetime) -> Incident:
    """An incident whose page arrived, and which was acknowledged three minutes later."""
    tx.take_clock(opened_at)
    incident, _ = opening.trigger(tx, source, event)
    _send(tx, "low", opened_at, _arrives)
    tx.take_clock(opened_at + timedelta(minutes=3))
    return incidents.acknowledge(tx, incident.id, on_call(tx)).incident


def _climbing(tx: Tx, source: Source, opened_at: datetime) -> Incident:
    """An incident nobody has answered: one page arrived, one was tried until it failed, one is still to come."""
    tx.take_clock(opened_at)
    incident, _ = opening.trigger(tx, source, _CHECKOUT)
    at = opened_at
    for number in range(1, TRIES + 1):
        delay = retry.delay(number, 0.0)
        _send(tx, "high", at, _fails("FAILED" if number == TRIES else "RETRY", delay))
        at += SEND + timedelta(seconds=delay)
    return incident


Answer = Callable[[Claimed], Outcome]


def _send(tx: Tx, lane: str, at: datetime, answer: Answer) -> None:
    """Claim what is due at that time, and record what became of it a moment later."""
    tx.take_clock(at)
    rows = attempts.claim(tx, lane, OWNER, LEASE, TRIES, Room((), (), {}, TRIES))
    tx.take_clock(at + SEND)
    attempts.settle(tx, OWNER, [answer(row) for row in rows])


def _arrives(row: Claimed) -> Outcome:
    return Outcome(row.id, row.claim_seq, "DELIVERED", row.claimed_at, row.claimed_at + SEND)


def _fails(word: str, delay: float) -> Answer:
    """Pages into the log arrive; all others end like this."""

    def answer(row: Claimed) -> Outcome:
        if row.transport == "log":
            return _arrives(row)
        return Outcome(row.id, row.claim_seq, word, row.claimed_at, row.claimed_at + SEND, delay, NO_ANSWER)

    return answer
