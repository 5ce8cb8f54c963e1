"""Receivers that are down, slow, wrong or too busy: who still gets what, how often, and what is to be seen of it."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest
from aiosmtpd.controller import Controller

from escalade import climbing, incidents
from escalade.db import Begin, Database, Limits
from escalade.dispatch import Settings
from escalade.transports import TRANSPORTS
from tests import factories
from tests.acting import ALICE, claim, do, end, entries, rows, state
from tests.clock import MovedClock
from tests.commands import free_port
from tests.engines import NETWORK, running_engine
from tests.receiver import Receiver, receiver, wait_for

QUICK = Settings(lease=9, deadline=3, poll=0.2)


@pytest.fixture
def phone() -> Iterator[Receiver]:
    """Where everybody's webhooks lead."""
    with receiver() as found:
        yield found


def page(database: Database, incident_id: int, number: int = 0) -> dict[str, object]:
    """One page of an incident, as it is now."""
    return rows(database, incident_id)[number]


def wait_for_page(database: Database, incident_id: int, number: int = 0, **values: object) -> None:
    """Wait until this page has these values."""
    wait_for(lambda: values.items() <= page(database, incident_id, number).items(), what=str(values))


def tries(database: Database, incident_id: int) -> list[tuple[int, str]]:
    """Number and outcome of every try for an incident, in order."""
    return factories.run(
        database,
        """select t.try, t.outcome from attempt_try t join notification_attempt a on a.id = t.attempt_id
        where a.incident_id = %s order by t.started_at""",
        incident_id,
    )


def test_k057_a_page_that_could_not_connect_arrives_once_the_receiver_is_up(
    database: Database, clock: MovedClock
) -> None:
    port = free_port()
    incident = factories.open_incident(database, factories.ladder(database, f"http://127.0.0.1:{port}"))
    with running_engine(database.url, database.doorbell):
        wait_for_page(database, incident.id, status="PENDING", tries=1)
        with receiver(port) as phone:
            clock.pass_(seconds=6)
            database.doorbell.ring()
            phone.wait(1, "/alice")
            wait_for_page(database, incident.id, status="DELIVERED", tries=2)
    assert tries(database, incident.id) == [(1, "retry"), (2, "delivered")]


def test_k055_tries_are_bounded_their_waits_grow_and_the_end_is_seen(clean_url: str, clock: MovedClock) -> None:
    with closing(Database(clean_url, limits=Limits(max_tries=4))) as database:
        incident = factories.open_incident(database, factories.ladder(database, f"http://127.0.0.1:{free_port()}"))
        waits = []
        with running_engine(database.url, database.doorbell):
            for number in (1, 2, 3):
                wait_for_page(database, incident.id, status="PENDING", tries=number)
                waits.append((page(database, incident.id)["due_at"] - factories.now(database)).total_seconds())
                clock.pass_(seconds=waits[-1] + 0.1)
                database.doorbell.ring()
            wait_for_page(database, incident.id, status="FAILED", tries=4)
            wait_for(lambda: state(database, incident.id).step == 2, what="next step at once")
        assert waits[0] <= 5 < waits[2] <= 20
        assert tries(database, incident.id)[:4] == [(1, "retry"), (2, "retry"), (3, "retry"), (4, "failed")]
        assert "refused" in str(page(database, incident.id)["last_error"])
        assert len(entries(database, incident.id, "failed")) == 1
        assert entries(database, incident.id, "step_hurried") == [{}]


def test_k056_those_who_were_told_hear_nothing_of_the_retry(
    database: Database, phone: Receiver, clock: MovedClock
) -> None:
    alice, bob = factories.user(database, "alice"), factories.user(database, "bob")
    for person, name in ((alice, "alice"), (bob, "bob")):
        factories.contact(database, person, f"{phone.url}/{name}")
    policy = factories.policy(database, (3600, [("user", alice), ("user", bob)]))
    phone.answer = lambda arrived: 503 if arrived.path == "/bob" and len(phone.to("/bob")) == 1 else 200
    incident = factories.open_incident(database, factories.service(database, policy))
    with running_engine(database.url, database.doorbell):
        wait_for_page(database, incident.id, 1, status="PENDING", tries=1)
        clock.pass_(seconds=6)
        database.doorbell.ring()
        wait_for_page(database, incident.id, 1, status="DELIVERED")
    assert Counter(item.path for item in phone.arrived) == {"/alice": 1, "/bob": 2}
    first, second = phone.to("/bob")
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]


def test_k059_k062_a_permanent_refusal_fails_at_once_and_delays_nobody(database: Database, phone: Receiver) -> None:
    alice, bob = factories.user(database, "alice"), factories.user(database, "bob")
    for person, name in ((alice, "alice"), (bob, "bob")):
        factories.contact(database, person, f"{phone.url}/{name}")
    policy = factories.policy(database, (3600, [("user", alice), ("user", bob)]))
    phone.answer = lambda arrived: 404 if arrived.path == "/alice" else 200
    incident = factories.open_incident(database, factories.service(database, policy))
    with running_engine(database.url):
        wait_for_page(database, incident.id, 0, status="FAILED", tries=1)
        wait_for_page(database, incident.id, 1, status="DELIVERED", tries=1)
    assert "404" in str(page(database, incident.id)["last_error"])
    assert state(database, incident.id).step == 1, "Bob was told, so the ladder waits for him"


def test_k059_a_transport_that_is_not_set_up_stops_no_other(database: Database, phone: Receiver) -> None:
    alice = factories.user(database)
    factories.contact(database, alice, "alice@example.com", "email")
    factories.contact(database, alice, f"{phone.url}/alice")
    incident = factories.open_incident(
        database, factories.service(database, factories.policy(database, (3600, [("user", alice)])))
    )
    with running_engine(database.url):
        phone.wait(1, "/alice")
        wait_for(lambda: {row["status"] for row in rows(database, incident.id)} == {"DELIVERED", "FAILED"})
    [mail] = [row for row in rows(database, incident.id) if row["transport"] == "email"]
    assert "SMTP_URL is not set" in mail["last_error"]


def test_k104_a_transport_that_raises_stops_no_other(
    database: Database, phone: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("CRITICAL", "escalade.senders")

    def broken(*args: object) -> None:
        raise ZeroDivisionError

    transports = {**TRANSPORTS, "log": replace(TRANSPORTS["log"], send=broken)}
    alice = factories.user(database)
    factories.contact(database, alice, "", "log")
    factories.contact(database, alice, f"{phone.url}/alice")
    incident = factories.open_incident(
        database, factories.service(database, factories.policy(database, (3600, [("user", alice)])))
    )
    with running_engine(database.url, transports=transports):
        phone.wait(1, "/alice")
        wait_for(
            lambda: (
                {(row["transport"], row["status"]) for row in rows(database, incident.id)}
                == {("webhook", "DELIVERED"), ("log", "PENDING")}
            )
        )


@pytest.mark.parametrize("chore", ["escalate_early", "escalate_due", "wake_due"])
def test_k104_a_chore_that_raises_keeps_no_page_waiting_and_is_reported_now_and_then(
    database: Database, phone: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, chore: str
) -> None:
    def raises(*args: object) -> int:
        calls.append(args)
        raise ZeroDivisionError

    calls: list[object] = []
    service = factories.ladder(database, phone.url, wait=1)
    stuck = [factories.open_incident(database, service, f"k{number}") for number in range(2)]
    factories.run(database, "update notification_attempt set due_at = now() - interval '1 minute' where kind = 'STEP'")
    do(database, incidents.snooze, stuck[0].id, 0, ALICE)
    failed = "status = 'FAILED', finished_at = now(), recheck = true"
    factories.run(
        database, f"update notification_attempt set {failed} where incident_id = %s and kind = 'PAGE'", stuck[1].id
    )
    monkeypatch.setattr(climbing, chore, raises)
    with running_engine(database.url, database.doorbell):
        wait_for(lambda: len(calls) > 2)
        factories.open_incident(database, service, "fresh")
        phone.wait(1, "/alice")
    assert [record.message for record in caplog.records if record.name == "escalade.engine"] == [
        "raises raised; the engine goes on without it"
    ]


def test_a_lease_counts_from_the_claim_however_long_the_ladders_took_before_it(
    database: Database, phone: Receiver, clock: MovedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited = factories.open_incident(database, factories.ladder(database, phone.url))
    factories.run(database, "update notification_attempt set due_at = now() - interval '1 minute' where kind = 'STEP'")
    real, after = climbing.escalate_due, []

    def slow(begin: Begin) -> int:
        done = real(begin)
        if not after:
            clock.pass_(seconds=30)
            after.append(factories.now(database))
        return done

    monkeypatch.setattr(climbing, "escalate_due", slow)
    with running_engine(database.url):
        wait_for(lambda: len(phone.arrived) == 2)
        wait_for(lambda: {row["status"] for row in rows(database, waited.id)} == {"DELIVERED"})
    assert all(row["claimed_at"] >= after[0] for row in rows(database, waited.id))
    assert len(phone.arrived) == 2


def test_a_contact_that_is_gone_when_its_page_is_due_fails_it_and_the_ladder_goes_on(
    database: Database, phone: Receiver
) -> None:
    incident = factories.open_incident(database, factories.ladder(database, phone.url))
    factories.run(database, "delete from contact_method where address like '%%alice'")
    with running_engine(database.url):
        phone.wait(1, "/bob")
    assert page(database, incident.id)["last_error"] == "The contact method or channel no longer exists."


def test_a_page_by_a_transport_this_process_does_not_know_is_left_to_others_and_uses_no_try(
    database: Database, phone: Receiver
) -> None:
    incident = factories.open_incident(database, factories.ladder(database, phone.url))
    with running_engine(database.url, transports={"log": TRANSPORTS["log"]}):
        wait_for_page(database, incident.id, status="PENDING", claim_seq=1, tries=0)
    assert page(database, incident.id)["due_at"] > factories.now(database)
    assert tries(database, incident.id) == []


def test_k026_an_update_for_somebody_who_was_never_told_is_not_sent(
    database: Database, phone: Receiver, clock: MovedClock
) -> None:
    service = factories.ladder(database, phone.url)
    factories.run(database, "update contact_method set updates = true")
    phone.answer = lambda arrived: 500
    incident = factories.open_incident(database, service)
    in_air = claim(database)
    do(database, incidents.resolve, incident.id, ALICE)
    end(database, in_air, "RETRY")
    clock.pass_(seconds=21)
    with running_engine(database.url):
        wait_for(lambda: [row["status"] for row in rows(database, incident.id, "NOTICE")] == ["CANCELLED"])
    assert phone.arrived == []


class Refusing:
    """A mail server's handler that knows nobody."""

    async def handle_RCPT(self, *args: object) -> str:
        return "550 5.1.1 no such mailbox here"


class LoopbackController(Controller):
    """A controller that notes which free port it was given."""

    def _trigger_server(self) -> None:
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


def test_k065_a_mail_refused_for_good_fails_with_the_servers_answer_and_the_ladder_goes_on(
    database: Database, phone: Receiver
) -> None:
    alice, bob = factories.user(database, "alice"), factories.user(database, "bob")
    factories.contact(database, alice, "alice@example.com", "email")
    factories.contact(database, bob, f"{phone.url}/bob")
    policy = factories.policy(database, (3600, [("user", alice)]), (3600, [("user", bob)]))
    incident = factories.open_incident(database, factories.service(database, policy))
    server = LoopbackController(Refusing(), hostname="127.0.0.1", port=0)
    server.start()
    try:
        network = replace(NETWORK, smtp_url=f"smtp://127.0.0.1:{server.port}", mail_from="pager@example.com")
        with running_engine(database.url, network=network):
            phone.wait(1, "/bob")
    finally:
        server.stop()
    failed = page(database, incident.id)
    assert (failed["status"], failed["tries"]) == ("FAILED", 1)
    assert "550 5.1.1 no such mailbox here" in str(failed["last_error"])


def test_k054_a_429_is_obeyed_uses_no_try_and_holds_that_host_alone(
    database: Database, phone: Receiver, clock: MovedClock
) -> None:
    service = factories.ladder(database, phone.url)
    phone.answer, phone.headers = (lambda arrived: 429), {"retry-after": "120"}
    with running_engine(database.url, database.doorbell), receiver() as other:
        incident = factories.open_incident(database, service)
        wait_for_page(database, incident.id, status="PENDING", claim_seq=1)
        assert page(database, incident.id)["tries"] == 0
        assert tries(database, incident.id) == [(1, "retry")]
        held = factories.open_incident(database, service, "another, for the same host")
        ops = factories.channel(database, f"{other.url}/ops")
        policy = factories.policy(database, (3600, [("channel", ops)]), name="ops")
        factories.open_incident(database, factories.service(database, policy, "web"))
        other.wait(1, "/ops")
        clock.pass_(seconds=110)
        database.doorbell.ring()
        wait_for(lambda: not database.doorbell.event.is_set())
        assert len(phone.arrived) == 1
        phone.answer, phone.headers = (lambda arrived: 200), {}
        clock.pass_(seconds=11)
        database.doorbell.ring()
        wait_for_page(database, incident.id, status="DELIVERED", tries=1)
        wait_for_page(database, held.id, status="DELIVERED")


def test_k055_a_hung_receiver_delays_no_other(database: Database, phone: Receiver) -> None:
    hung = factories.channel(database, f"{phone.url}/hung")
    go = threading.Event()
    phone.answer = lambda arrived: 200 if go.wait(25) else 500
    patient = {"network": replace(NETWORK, read_timeout=30, deadline=30), "settings": Settings(lease=40, deadline=30)}
    with receiver() as other, running_engine(database.url, database.doorbell, senders=4, **patient):
        sound = factories.channel(database, f"{other.url}/ops", name="sound")
        for name, channel in (("a", hung), ("b", sound)):
            factories.service(database, factories.policy(database, (3600, [("channel", channel)]), name=name), name)
        ids = dict(factories.run(database, "select name, id from service"))
        for number in range(5):
            factories.open_incident(database, ids["a"], f"k{number}")
        phone.wait(2)
        factories.open_incident(database, ids["b"])
        try:
            other.wait(1)
            assert len(phone.arrived) == 2, "both still hang, and one host takes no more than its share of the senders"
        finally:
            go.set()


def test_many_hanging_hosts_together_keep_no_healthy_one_waiting(database: Database, phone: Receiver) -> None:
    """Each is tried one at a time, and all of them together have half of the lane."""
    go = threading.Event()
    phone.answer = lambda arrived: 200 if arrived.path == "/sound" or go.wait(25) else 500
    network = replace(NETWORK, read_timeout=30, deadline=30)
    patient = {"network": network, "settings": Settings(lease=40, deadline=30)}
    policies = {}
    for number in range(12):
        # Names that lead to the same receiver, but are destinations of their own.
        channel = factories.channel(database, f"{phone.url}/hung", name=f"bad{number}")
        factories.run(database, "update channel set destination = %s where id = %s", f"webhook:bad{number}", channel)
        name = f"bad{number}"
        policies[name] = factories.policy(database, (3600, [("channel", channel)]), name=name)
        factories.run(
            database,
            "insert into destination values (%s, 3, now() - interval '1 minute', 'It hangs.', now())",
            f"webhook:bad{number}",
        )
    sound = factories.channel(database, f"{phone.url}/sound", name="sound")
    policies["sound"] = factories.policy(database, (3600, [("channel", sound)]), name="sound")
    services = {name: factories.service(database, policy, name) for name, policy in policies.items()}
    for name, service in services.items():
        if name != "sound":
            factories.open_incident(database, service)
    with running_engine(database.url, database.doorbell, senders=8, **patient):
        phone.wait(3)
        factories.open_incident(database, services["sound"])
        try:
            phone.wait(1, "/sound")
            assert len(phone.to("/hung")) == 3, "half of the seven senders of the lane, and no more"
        finally:
            go.set()
