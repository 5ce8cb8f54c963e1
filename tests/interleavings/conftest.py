"""Hands that step verbs by hand, and a stage on which scenes are played as things are, and broken."""

from collections.abc import Iterator

import pytest

from escalade.db import Database
from tests.clock import MovedClock
from tests.interleavings.hands import Hands
from tests.interleavings.wrong import Play


@pytest.fixture
def hands(database: Database) -> Iterator[Hands]:
    """Starts verbs in threads; all are ended with the test."""
    found = Hands(database)
    yield found
    found.close()


@pytest.fixture(params=[False, True], ids=["as it is", "broken"])
def play(
    request: pytest.FixtureRequest,
    database: Database,
    hands: Hands,
    clock: MovedClock,
    monkeypatch: pytest.MonkeyPatch,
) -> Play:
    """Plays a scene; each test that asks for it runs twice."""
    return Play(request.param, (database, hands, clock), monkeypatch)
