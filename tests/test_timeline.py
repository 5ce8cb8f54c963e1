"""The append-only record: in order, with a sentence for everything that can happen."""

import re
import string
from datetime import UTC, datetime
from pathlib import Path

import pytest

from escalade import incidents, timeline
from escalade.db import Database
from escalade.timeline import SENTENCES, Entry
from tests import factories
from tests.acting import ALICE, BOB, do
from tests.clock import MovedClock

ROOT = Path(__file__).resolve().parent.parent
AT = datetime(2026, 1, 5, 9, tzinfo=UTC)


def entry(event: str, actor: str | None = None, **data: object) -> Entry:
    """One event as it comes from the database."""
    return Entry(1, AT, event, actor, data)


def recorded() -> set[str]:
    """Every event that the code writes, by its literal name."""
    code = "\n".join(path.read_text() for path in sorted((ROOT / "escalade").rglob("*.py")))
    queries = "\n".join(path.read_text() for path in sorted((ROOT / "sql" / "queries").glob("*.sql")))
    found = set(re.findall(r'timeline\.record\(\s*tx,\s*[\w.]+,\s*"(\w+)"', code))
    found |= set(re.findall(r'_stopped\(tx, after, "(\w+)"', code))
    found |= set(re.findall(r":now, \'(\w+)\', null, jsonb", queries))
    return found | {"delivered", "retry", "failed", "cancelled", "snooze_ended", "repaged"}


def test_every_event_has_a_sentence_of_its_own() -> None:
    assert {"triggered", "acknowledged", "lease_expired", "left_without_end"} <= recorded()
    assert recorded() - set(SENTENCES) == set()


@pytest.mark.parametrize("event", sorted(SENTENCES))
def test_a_sentence_with_its_data_leaves_no_gap(event: str) -> None:
    fields = {name for _, name, _, _ in string.Formatter().parse(SENTENCES[event]) if name}
    data = {name: f"<{name}>" for name in fields - {"actor"}}
    said = timeline.sentence(entry(event, ALICE, **data))
    assert "?" not in said
    assert all(value in said for value in data.values())


def test_a_sentence_bears_what_is_missing_and_what_is_unknown() -> None:
    assert timeline.sentence(entry("acknowledged")) == "Acknowledged by Escalade"
    assert timeline.sentence(entry("retry", attempt=7)) == "Attempt 7, try ?: ?; it will be tried again"
    assert timeline.sentence(entry("failed", attempt=7, error=None, **{"try": 3})).endswith("no reason given")
    assert timeline.sentence(entry("from_a_later_version")) == "from a later version"


def test_times_are_readable_in_utc_and_left_as_times_for_pages() -> None:
    moment = datetime(2026, 11, 30, 21, 35, 6, tzinfo=UTC)
    for event in ("snoozed", "still_silent"):
        one = entry(event, ALICE, until="2026-11-30T22:35:06+01:00")
        assert timeline.sentence(one).endswith(" until 30 Nov 21:35:06 UTC")
        assert moment in timeline.pieces(one)
    assert timeline.sentence(entry("snoozed", ALICE)).endswith(" until ?")
    assert timeline.sentence(entry("snoozed", ALICE, until="some day")).endswith(" until some day")


def test_braces_in_a_text_are_text() -> None:
    assert timeline.sentence(entry("note", ALICE, text="{actor} {0} {text.__class__}")).startswith("{actor} {0}")


def test_the_timeline_is_in_order_and_names_who_acted(database: Database, clock: MovedClock) -> None:
    incident = factories.open_incident(database, factories.ladder(database, "http://127.0.0.1:1"))
    clock.pass_(minutes=1)
    do(database, incidents.acknowledge, incident.id, ALICE)
    clock.pass_(minutes=1)
    do(database, incidents.resolve, incident.id, BOB)
    found = do(database, timeline.of_incident, incident.id)
    assert [(item.event, item.actor) for item in found] == [
        ("triggered", "integration:api/prom"),
        ("step_reached", None),
        ("acknowledged", ALICE),
        ("resolved", BOB),
    ]
    assert [item.at for item in found] == sorted(item.at for item in found)
    assert all(item.at.utcoffset() is not None for item in found)


def test_an_event_is_undone_with_the_change_it_tells_of(database: Database) -> None:
    incident = factories.open_incident(database, factories.ladder(database, "http://127.0.0.1:1"))
    with pytest.raises(ZeroDivisionError), database.begin() as tx:
        incidents.acknowledge(tx, incident.id, ALICE)
        raise ZeroDivisionError
    assert "acknowledged" not in factories.events(database, incident.id)
