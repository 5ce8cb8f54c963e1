"""Fixtures of the tests of the pages."""

import pytest

from escalade.config import Config
from escalade.db import Database
from tests.web.screens import Screens, make_screens


@pytest.fixture
def screens(database: Database) -> Screens:
    """The application on an empty database."""
    return make_screens(database, Config.read({}))
