"""Wrong variants of the queue: a named query or a function with one piece of it replaced.

A scene is played twice, each in a test of its own: as things are it reports nothing, and with the wrong variant in
place it reports what breaks. A guard whose scene goes well without it is one that no test would miss.
"""

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from escalade import db
from escalade.db import Database
from tests.clock import MovedClock
from tests.interleavings.hands import Hands

Scene = Callable[[Database, Hands, MovedClock], list[str]]


def _unindented(text: str) -> str:
    """As queries are sent: lines without their indentation."""
    return "\n".join([text.split("\n")[0], *(line.strip() for line in text.split("\n")[1:])])


@dataclass(frozen=True, slots=True)
class Query:
    """A named query in which `instead` stands for `guard`."""

    name: str
    guard: str
    instead: str = ""

    def put(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Have everybody run the wrong query."""
        real = db.queries
        guard, instead = _unindented(self.guard), _unindented(self.instead)
        assert guard in real()[self.name], f"{self.name} no longer says {guard!r}"
        wrong = real()[self.name].replace(guard, instead)
        # Read anew each time: the moved clock is a query too.
        monkeypatch.setattr(db, "queries", lambda: {**real(), self.name: wrong})


@dataclass(frozen=True, slots=True)
class Whole:
    """A named query with another text altogether."""

    name: str
    text: str

    def put(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Have everybody run the other one."""
        real = db.queries
        monkeypatch.setattr(db, "queries", lambda: {**real(), self.name: self.text})


@dataclass(frozen=True, slots=True)
class Code:
    """A function of a module or class in which `instead` stands for `guard`."""

    owner: Any
    name: str
    guard: str
    instead: str

    def put(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Have everybody call the wrong function."""
        real = getattr(self.owner, self.name)
        source = textwrap.dedent(inspect.getsource(real))
        assert self.guard in source, f"{self.name} no longer says {self.guard!r}"
        made: dict[str, Any] = {}
        exec(source.replace(self.guard, self.instead), real.__globals__, made)  # its globals: those of its module
        monkeypatch.setattr(self.owner, self.name, made[self.name])


class Play:
    """Plays a scene as things are, or broken."""

    def __init__(self, broken: bool, stage: tuple[Database, Hands, MovedClock], patch: pytest.MonkeyPatch) -> None:
        self.broken = broken
        self.stage = stage
        self.patch = patch

    def __call__(self, scene: Scene, *wrong: Query | Whole | Code, reports: str) -> None:
        """The scene reports nothing as things are, and this word with the wrong variants in place."""
        assert wrong
        for variant in wrong if self.broken else ():
            variant.put(self.patch)
        found = reported(scene, self.stage)
        if not self.broken:
            assert found == []
            return
        print(f"\n{', '.join(variant.name for variant in wrong)}: {found}")
        assert any(reports in line for line in found), found


def reported(scene: Scene, stage: tuple[Database, Hands, MovedClock]) -> list[str]:
    """What a scene reports; what the database refuses is part of that."""
    try:
        return scene(*stage)
    except psycopg.Error as error:
        return [f"refused by the database: {error.sqlstate} {type(error).__name__} {error.diag.constraint_name or ''}"]
