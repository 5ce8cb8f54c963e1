"""Words in which the stories are told: people with phones and mailboxes, time that passes, and what each heard.

A running engine, a real database, real sockets; only the clock is moved.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from email import message_from_bytes
from email.message import Message
from typing import Any

from aiosmtpd.controller import Controller

from escalade import incidents, opening
from escalade.db import Database
from escalade.dispatch import Settings
from escalade.inbound.base import Event
from escalade.incident import Incident
from escalade.opening import Done, Source
from tests import factories
from tests.acting import do, state
from tests.clock import MovedClock
from tests.engines import NETWORK, SIGNER, running_engine
from tests.receiver import Receiver, receiver, wait_for

DUE = """select count(*) from notification_attempt
    where status = 'IN_FLIGHT' or recheck or status = 'PENDING' and due_at <= %s"""
WAKING = "select count(*) from incident where wake_at <= %s"


class Mailbox(Controller):
    """A mail server that takes everything."""

    def __init__(self) -> None:
        self.mails: list[Message] = []
        super().__init__(self, hostname="127.0.0.1", port=0)

    def _trigger_server(self) -> None:
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        self.mails.append(message_from_bytes(envelope.content))
        return "250 OK"


@dataclass
class Story:
    """One evening on call. People are named by their first name in lower case."""

    database: Database
    clock: MovedClock
    phones: Receiver
    mailbox: Mailbox
    people: dict[str, int] = field(default_factory=dict)
    heard_before: dict[str, int] = field(default_factory=dict)

    def person(self, name: str, *, phone: bool = True, mail: bool = False, updates: bool = False) -> int:
        """Somebody with a phone, or a mailbox, or both."""
        self.people[name] = factories.user(self.database, name)
        if phone:
            factories.contact(self.database, self.people[name], f"{self.phones.url}/{name}", updates=updates)
        if mail:
            factories.contact(self.database, self.people[name], f"{name}@example.com", "email", updates=updates)
        return self.people[name]

    def service(self, *steps: tuple[int, list[tuple[str, int]]], repeat: int = 0, **more: Any) -> Source:
        """A monitored service on a ladder of these steps: (minutes to wait, targets)."""
        seconds = [(minutes * 60, targets) for minutes, targets in steps]
        service_id = factories.service(self.database, factories.policy(self.database, *seconds, repeat=repeat), **more)
        factories.integration(self.database, service_id)
        return Source(service_id, "api", None, "integration:api/prom")

    def alert(self, source: Source, action: str = "trigger", key: str = "disk") -> Done:
        """The monitoring tool calls."""
        return do(self.database, opening.accept, source, Event(action, "Disk full", "", "critical", key))

    def incident(self, done: Done) -> Incident:
        """The incident an alert led to, as it is now."""
        assert done.id is not None
        return state(self.database, done.id)

    def acts(self, name: str, verb: Any, done: Done, *args: Any) -> incidents.Answer:
        """Somebody presses a button."""
        assert done.id is not None
        answer: incidents.Answer = do(self.database, verb, done.id, *args, f"{name}@example.com")
        return answer

    def taps_acknowledge(self, name: str) -> list[incidents.Answer]:
        """Somebody follows the link in the last message on their phone."""
        link = SIGNER.read(self.phones.to(f"/{name}")[-1].body["ack_url"].rpartition("/")[2])
        assert link.user_id == self.people[name]
        return [
            do(self.database, incidents.acknowledge, incident_id, f"{name}@example.com")
            for incident_id in link.incident_ids
        ]

    def minutes_pass(self, minutes: float) -> None:
        """Time passes minute by minute, and the engine does what falls due in each."""
        self.settles()
        end = self.clock.ahead + minutes * 60
        while self.clock.ahead < end:
            self.clock.ahead = min(end, self.clock.ahead + 60)
            self.settles()

    def jump(self, **delta: float) -> None:
        """A long time passes in which nothing is due."""
        self.settles()
        self.clock.pass_(**delta)
        self.settles()

    def settles(self) -> None:
        """Wait until nothing is due any more and nothing is in the air."""
        wait_for(self._quiet, what="end of what is due")

    def _quiet(self) -> bool:
        self.database.doorbell.ring()
        now = factories.now(self.database)
        due = factories.run(self.database, DUE, now) + factories.run(self.database, WAKING, now)
        return due == [(0,), (0,)]

    def on_phone(self, name: str) -> list[str]:
        """What has arrived on somebody's phone since this was last asked."""
        self.settles()
        arrived = [item.body["event"] for item in self.phones.to(f"/{name}")]
        before = self.heard_before.get(name, 0)
        self.heard_before[name] = len(arrived)
        return arrived[before:]

    def mails_to(self, name: str) -> list[str]:
        """The subjects of all mails to somebody."""
        self.settles()
        return [str(mail["subject"]) for mail in self.mailbox.mails if f"{name}@example.com" in str(mail["to"])]


@contextmanager
def telling(database: Database, clock: MovedClock) -> Iterator[Story]:
    """A story with its engine running."""
    mailbox = Mailbox()
    mailbox.start()
    try:
        network = replace(NETWORK, smtp_url=f"smtp://127.0.0.1:{mailbox.port}", mail_from="pager@example.com")
        # Minutes pass in a moment here, and no lease is to end for that: none of the stories is about leases.
        lasting = Settings(lease=timedelta(days=1).total_seconds(), deadline=network.deadline, poll=0.5)
        with receiver() as phones, running_engine(database.url, database.doorbell, network=network, settings=lasting):
            yield Story(database, clock, phones, mailbox)
    finally:
        mailbox.stop()
