"""What every view works with, handed over by app.py."""

from dataclasses import dataclass
from typing import cast

from flask import current_app

from escalade.config import Config
from escalade.db import Database
from escalade.health import Health
from escalade.tokens import Signer


@dataclass(frozen=True, slots=True)
class Context:
    """The configuration, the database, the signer of links, and the engine's health."""

    config: Config
    db: Database
    signer: Signer
    health: Health


def context() -> Context:
    """The context of the application that serves this request."""
    return cast(Context, current_app.extensions["escalade"])
