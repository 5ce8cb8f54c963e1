"""Hands that step verbs by hand."""

from collections.abc import Iterator

import pytest

from escalade.db import Database
from tests.interleavings.hands import Hands


@pytest.fixture
def hands(database: Database) -> Iterator[Hands]:
    """Starts verbs in threads; all are ended with the test."""
    found = Hands(database)
    yield found
    found.close()
