"""Every story begins with a running engine."""

from collections.abc import Iterator

import pytest

from escalade.db import Database
from tests.clock import MovedClock
from tests.stories.telling import Story, telling


@pytest.fixture
def story(database: Database, clock: MovedClock) -> Iterator[Story]:
    """An evening on call."""
    with telling(database, clock) as told:
        yield told
