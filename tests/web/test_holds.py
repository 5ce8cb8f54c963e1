"""Why is this page late: the dashboard and the API say the same, whatever holds it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from escalade import overview, shown
from escalade.holds import Hold
from tests import factories
from tests.web.screens import Screens

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
DUE = NOW - timedelta(seconds=30)
SOON, LATER = NOW + timedelta(seconds=10), NOW + timedelta(minutes=5)
FREE = Hold(1, DUE, 10, 0, None, None, None, None, 0, None)
FAILING = "its receiver failed 4 times in a row, so one at a time is tried: It hangs."


@pytest.mark.parametrize(
    ("hold", "until", "reason"),
    [
        (FREE, None, None),
        (replace(FREE, in_flight=3, back_at=SOON), SOON, "3 to the same receiver are in the air"),
        (replace(FREE, contact_until=SOON), SOON, "one message in 10 s to this contact"),
        (replace(FREE, failures=1, not_before=LATER, reason="It answered 429."), LATER, "It answered 429."),
        (replace(FREE, failures=2, not_before=DUE, reason="It hangs."), None, None),
        (replace(FREE, failures=4, not_before=DUE, reason="It hangs."), None, FAILING),
        (replace(FREE, failures=4, not_before=DUE, reason="It hangs.", turn_until=SOON), SOON, FAILING),
        (replace(FREE, failures=1, not_before=LATER, reason="Wait.", contact_until=SOON), LATER, "Wait."),
        (replace(FREE, due_at=LATER, contact_until=SOON, in_flight=3, back_at=SOON), None, None),
        (replace(FREE, due_at=LATER, failures=4, not_before=DUE, reason="It hangs."), None, None),
    ],
)
def test_what_holds_a_page_longest_is_said(hold: Hold, until: datetime | None, reason: str | None) -> None:
    assert hold.why(NOW) == (until, reason)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (
            "insert into destination (name, failures, not_before, reason, changed_at)"
            " select destination, 0, now() + interval '1 minute', 'It answered 429.', now() from one_page",
            "It answered 429.",
        ),
        (
            "insert into destination (name, failures, not_before, reason, changed_at, turn_owner, turn_until)"
            " select destination, 5, now(), 'It hangs.', now(), 'one', now() + interval '9 seconds' from one_page",
            "its receiver failed 5 times in a row, so one at a time is tried: It hangs.",
        ),
        (
            "insert into contact_turn select bundle, 'one', now() + interval '20 seconds' from one_page",
            "one message in 30 s to this contact",
        ),
        (
            "update notification_attempt set status = 'IN_FLIGHT', claimed_at = now(),"
            " lease_until = now() + interval '20 s'"
            " where id = (select max(id) from notification_attempt where kind = 'PAGE')",
            "1 to the same receiver are in the air",
        ),
    ],
    ids=["asked to wait", "failing", "pace", "in the air"],
)
def test_the_dashboard_and_the_api_say_why_a_page_waits(screens: Screens, statement: str, words: str) -> None:
    service = factories.ladder(screens.db, "http://127.0.0.1:9/hook")
    factories.run(screens.db, "update contact_method set pace_seconds = 30")
    first = factories.open_incident(screens.db, service, "first")
    factories.open_incident(screens.db, service, "second")
    page = "with one_page as (select * from notification_attempt where incident_id = %s and kind = 'PAGE') "
    factories.run(screens.db, page + statement, first.id)
    with screens.db.read() as tx:
        [seen, _] = [shown.attempt(view) for view in overview.of_incident(tx, first.id)]
    assert seen["held_reason"] == words and seen["held_until"] is not None
    client = screens.client()
    for path in ("/", "/attempts?status=PENDING", f"/incidents/{first.id}"):
        assert f"waits: {words}, until" in client.get(path).text.replace("&#39;", "'"), path
