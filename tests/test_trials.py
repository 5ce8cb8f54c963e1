"""Test pages: sent by the engine like any other, once however often somebody presses the button."""

import threading

import pytest

from escalade import trials
from escalade.db import Database
from escalade.errors import NotFound
from tests import factories
from tests.engines import running_engine
from tests.receiver import receiver, wait_for


def begin(db: Database, method_id: int) -> int:
    with db.begin() as tx:
        return trials.begin(tx, trials.contact_method(tx, method_id))


def status(db: Database, attempt_id: int) -> str:
    [[found]] = factories.run(db, "select status from notification_attempt where id = %s", attempt_id)
    return str(found)


def test_a_test_arrives_as_a_test_without_an_incident(database: Database) -> None:
    with receiver() as phone, running_engine(database.url, database.doorbell):
        alice = factories.user(database)
        attempt = begin(database, factories.contact(database, alice, f"{phone.url}/alice"))
        [arrived] = phone.wait(1)
        assert arrived.body["type"] == arrived.body["event"] == "test"
        assert arrived.body["incidents"] == [] and arrived.body["ack_url"] is None
        assert arrived.body["user"] == "alice@example.com"
        wait_for(lambda: status(database, attempt) == "DELIVERED")


def test_a_channel_is_tested_too(database: Database) -> None:
    with receiver() as phone, running_engine(database.url, database.doorbell):
        channel = factories.channel(database, f"{phone.url}/ops")
        with database.begin() as tx:
            trials.begin(tx, trials.channel(tx, channel))
        assert phone.wait(1, "/ops")[0].body["user"] is None


def test_pressing_twice_sends_one(database: Database) -> None:
    method = factories.contact(database, factories.user(database), "http://127.0.0.1:9/x")
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(begin(database, method))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6 and len(set(found)) == 1
    factories.run(
        database, "update notification_attempt set status = 'CANCELLED', finished_at = now() where id = %s", found[0]
    )
    assert begin(database, method) != found[0]


def test_what_is_gone_cannot_be_tested(database: Database) -> None:
    method = factories.contact(database, factories.user(database), "http://127.0.0.1:9/x")
    with database.read() as tx:
        to = trials.contact_method(tx, method)
        with pytest.raises(NotFound):
            trials.channel(tx, method)
    factories.run(database, "delete from contact_method")
    with database.begin() as tx, pytest.raises(NotFound):
        trials.begin(tx, to)


def test_a_test_is_written_down(database: Database) -> None:
    begin(database, factories.contact(database, factories.user(database), "http://127.0.0.1:9/x"))
    assert factories.run(database, "select action, subject from audit") == [
        ("test page sent", "alice@example.com/webhook")
    ]
