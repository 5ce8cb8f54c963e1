"""What a form of Setup is made of: fields, and lists of lines with fields of their own."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Option = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Ask:
    """One field. `box` is a checkbox beside a secret or key that is stored: its name and label. `again` says that what
    stands here decides what else is asked."""

    path: str
    label: str
    form: str
    value: Any
    hint: str = ""
    faults: Sequence[str] = ()
    options: Sequence[Option] = ()
    required: bool = False
    placeholder: str = ""
    box: Option | None = None
    boxed: bool = False
    focus: bool = False
    again: bool = False

    @property
    def id(self) -> str:
        """For labels and links."""
        return id_of(self.path)


@dataclass(frozen=True, slots=True)
class Item:
    """One line of a list. `name` is what a person would call it; `was` what it is called in the database."""

    path: str
    name: str
    parts: Sequence[Any]
    faults: Sequence[str]
    was: str | None
    first: bool
    last: bool
    stored: Any = None
    draft: Any = None

    @property
    def id(self) -> str:
        """For links."""
        return id_of(self.path)


@dataclass(frozen=True, slots=True)
class Several:
    """A list. `kinds` are what one can be added of, where that decides what is asked. `plain` is one of names."""

    path: str
    label: str
    hint: str
    one: str
    items: Sequence[Item]
    faults: Sequence[str]
    plain: bool
    kinds: Sequence[Option] = ()
    focus: bool = False

    @property
    def id(self) -> str:
        """For links."""
        return id_of(self.path)


def id_of(path: str) -> str:
    """The element of a path."""
    return "f-" + re.sub(r"[^\w]+", "-", path).strip("-") if path else "top"
