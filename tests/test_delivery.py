"""From claimed rows to messages, and from what a transport answered to outcomes: no database, no network."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from escalade import delivery
from escalade.attempts import Claimed
from escalade.delivery import Content, Job, Links, Sent
from escalade.tokens import AckLink
from escalade.transports import DeliveryError, Receipt
from tests.engines import SIGNER

NOW = datetime(2026, 1, 5, 9, tzinfo=UTC)
LINKS = Links("https://escalade.example.com", SIGNER)


def claimed(number: int = 7, head: int | None = None, **more: Any) -> Claimed:
    """One page in hand."""
    values: dict[str, Any] = {
        "claim_seq": 3,
        "tries": 1,
        "kind": "PAGE",
        "event": "triggered",
        "transport": "webhook",
        "destination": "webhook:example.com:443",
        "bundle": None,
        "idempotency_key": f"key-{number}",
        "first_due_at": NOW,
        "due_at": NOW,
        "claimed_at": NOW,
    }
    return Claimed(number, head if head is not None else number, **(values | more))


def content(number: int = 7, incident: int | None = 1, **more: Any) -> Content:
    """What it says, to Alice."""
    values: dict[str, Any] = {
        "claim_seq": 3,
        "cancel_requested": False,
        "summary": "",
        "user_id": 5,
        "channel_id": None,
        "address": "https://example.com/alice",
        "secret": None,
        "user": "alice@example.com",
        "recipient": "Alice",
        "title": "Disk full",
        "details": "sda1",
        "incident_status": "TRIGGERED",
        "severity": "critical",
        "service": "api",
        "dedup_key": "disk",
        "link": None,
        "heard": True,
    }
    return Content(number, incident, **(values | more))


def sent(*rows: Claimed, **more: Any) -> Sent:
    """A message of these rows that is back after a second."""
    message = delivery.compose(rows, [content(row.id) for row in rows], LINKS)
    return Sent(Job(1, "high", message, rows, "webhook", "webhook:example.com:443", 0.0), 10.0, 11.0, **more)


def test_a_page_says_what_where_and_how_to_answer() -> None:
    message = delivery.compose([claimed()], [content()], LINKS)
    assert (message.type, message.event, message.key) == ("page", "triggered", "key-7")
    assert [(attempt.id, attempt.try_) for attempt in message.attempts] == [(7, 1)]
    assert message.incidents[0].url == "https://escalade.example.com/incidents/1"
    assert message.ack_url is not None
    prefix = "https://escalade.example.com/a/"
    assert message.ack_url.startswith(prefix)
    assert SIGNER.read(message.ack_url.removeprefix(prefix)) == AckLink(5, None, (1,))


def test_several_pages_are_one_message_that_acknowledges_them_all() -> None:
    rows = [claimed(7, 7), claimed(8, 7), claimed(9, 7)]
    message = delivery.compose(rows, [content(7, 1), content(8, 2), content(9, 2)], LINKS)
    assert [incident.id for incident in message.incidents] == [1, 2], "an incident is listed once"
    assert [attempt.id for attempt in message.attempts] == [7, 8, 9]
    assert message.ack_url is not None
    assert SIGNER.read(message.ack_url.rpartition("/")[2]).incident_ids == (1, 2)


def test_the_same_set_has_the_same_key_in_any_order_and_another_set_another() -> None:
    assert delivery.message_key(["a"]) == "a"
    assert delivery.message_key(["a", "b"]) == delivery.message_key(["b", "a"])
    assert len({delivery.message_key(keys) for keys in (["a"], ["a", "b"], ["a", "b", "c"], ["ab"])}) == 4


def test_k017_two_incidents_have_two_keys() -> None:
    keys = {delivery.compose([claimed(number)], [content(number, number)], LINKS).key for number in (7, 8)}
    assert len(keys) == 2


def test_a_notice_has_nothing_to_acknowledge() -> None:
    row = claimed(kind="NOTICE", event="resolved")
    message = delivery.compose([row], [content(summary="Resolved by bob@example.com")], LINKS)
    assert (message.type, message.ack_url) == ("notice", None)
    assert message.summary == "Resolved by bob@example.com"


def test_a_test_belongs_to_no_incident() -> None:
    message = delivery.compose([claimed(kind="NOTICE", event="test")], [content(incident=None)], LINKS)
    assert (message.type, message.incidents, message.ack_url) == ("test", (), None)


def test_a_channel_is_no_user_and_its_link_is_the_channels() -> None:
    item = content(user_id=None, user=None, channel_id=4, recipient="ops")
    message = delivery.compose([claimed()], [item], LINKS)
    assert (message.user, message.recipient) == (None, "ops")
    assert message.ack_url is not None
    assert SIGNER.read(message.ack_url.rpartition("/")[2]).channel_id == 4


def test_rows_are_grouped_by_the_row_that_leads_their_message() -> None:
    groups = delivery.by_message([claimed(9, 8), claimed(7), claimed(8, 8)])
    assert [[row.id for row in group] for group in groups] == [[7], [8, 9]]


@pytest.mark.parametrize(
    ("item", "verdict"),
    [
        (content(), None),
        (content(cancel_requested=True), "RELEASE"),
        (content(heard=False), "CANCELLED"),
        (content(cancel_requested=True, heard=False), "RELEASE"),
    ],
)
def test_what_nobody_needs_any_more_is_not_sent(item: Content, verdict: str | None) -> None:
    assert delivery.unneeded(item) == verdict


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (None, "DELIVERED"),
        (DeliveryError("no", permanent=True), "FAILED"),
        (DeliveryError("wait", limited=True), "LIMITED"),
        (DeliveryError("perhaps", unknown=True), "UNKNOWN"),
        (DeliveryError("later"), "RETRY"),
    ],
)
def test_what_a_transport_answers_is_one_outcome_for_each_row(error: DeliveryError | None, word: str) -> None:
    back = sent(claimed(7), claimed(8), receipt=None if error else Receipt("POST", "200"), error=error)
    found = delivery.outcomes(back, NOW, 12.0, random.Random(1))
    assert [(outcome.id, outcome.seq, outcome.outcome) for outcome in found] == [(7, 3, word), (8, 3, word)]
    assert found[0].started_at == NOW - timedelta(seconds=2)
    assert found[0].ended_at == NOW - timedelta(seconds=1)


def test_a_send_that_was_not_begun_is_given_back() -> None:
    [outcome] = delivery.outcomes(sent(claimed()), NOW, 12.0, random.Random(1))
    assert (outcome.outcome, outcome.delay) == ("RELEASE", 0.0)


def test_k069_what_was_shortened_is_in_the_record() -> None:
    receipt = Receipt("POST", "200", "shortened to fit")
    [outcome] = delivery.outcomes(sent(claimed(), receipt=receipt), NOW, 12.0, random.Random(1))
    assert (outcome.error, outcome.request, outcome.answer) == ("shortened to fit", "POST", "200")


@pytest.mark.parametrize("bad", ["\x00", "\ud800"])
def test_what_a_database_refuses_of_an_answer_keeps_nothing_from_being_recorded(bad: str) -> None:
    for back in (sent(claimed(), receipt=Receipt(bad, bad, bad)), sent(claimed(), error=DeliveryError(f"no {bad}"))):
        [outcome] = delivery.outcomes(back, NOW, 11.0, random.Random(1))
        assert bad not in f"{outcome.error}{outcome.request}{outcome.answer}" and "\ufffd" in (outcome.error or "")


def test_k055_waits_grow_with_the_tries_up_to_a_limit() -> None:
    waits = []
    for tries in range(1, 12):
        back = sent(claimed(tries=tries), error=DeliveryError("down"))
        waits.append(delivery.outcomes(back, NOW, 12.0, random.Random(1))[0].delay)
    assert 2.5 <= waits[0] <= 5
    assert waits[:6] == sorted(waits[:6])
    assert max(waits) <= 300


def test_k054_the_receivers_own_wait_is_obeyed() -> None:
    back = sent(claimed(), error=DeliveryError("wait", limited=True, retry_after=120.0))
    assert delivery.outcomes(back, NOW, 12.0, random.Random(1))[0].delay == 120.0
