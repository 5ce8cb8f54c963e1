"""What failed for good is in the log: a line each, and never a flood of them."""

import pytest

from escalade import failures
from escalade.db import Database
from escalade.failures import Failures
from tests import factories
from tests.engines import running_engine
from tests.interleavings.scenes import all_failed, opened
from tests.receiver import receiver, wait_for


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was said of failures."""
    return [record.getMessage() for record in caplog.records if record.name == "escalade.failures"]


def test_a_page_that_fails_for_good_is_a_warning(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    with receiver() as phone:
        phone.answer = lambda arrived: 410
        incident = factories.open_incident(database, factories.ladder(database, phone.url))
        with running_engine(database.url):
            wait_for(lambda: lines(caplog))
    query = "select id, last_error from notification_attempt where status = 'FAILED' order by id limit 1"
    [[page, reason]] = factories.run(database, query)
    head = f"incident {incident.id}: attempt {page} to alice@example.com by webhook failed: "
    assert lines(caplog)[0] == head + reason and "410" in reason
    assert {record.levelname for record in caplog.records} == {"WARNING"}


def test_of_many_in_a_minute_twenty_are_named_and_the_rest_counted(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    ids = all_failed(database, opened(database, people=23))
    told = Failures()
    told.tell_rest()
    with database.read() as tx:
        for one in ids[:3], ids[3:], ids[:2]:
            told.tell(tx, one)
        told.tell_rest()
        assert len(lines(caplog)) == failures.LINES == len(set(lines(caplog)))
        told.began -= failures.MINUTE
        told.tell(tx, ids[:1])
    assert lines(caplog)[-2] == "and 5 more attempts failed; all are at /attempts?status=FAILED"
    assert lines(caplog)[-1] == lines(caplog)[0]


def test_a_failure_of_somebody_who_is_gone_is_told_as_well(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    incident = opened(database, people=1)
    ids = all_failed(database, incident)
    factories.run(database, "update notification_attempt set last_error = null, user_id = null where kind = 'PAGE'")
    with database.read() as tx:
        Failures().tell(tx, ids)
    assert lines(caplog) == [
        f"incident {incident.id}: attempt {ids[0]} to somebody who is gone by webhook failed: no reason is known"
    ]
