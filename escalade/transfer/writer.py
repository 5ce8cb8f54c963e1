"""Writes the difference between what is stored and what a file says, and tells of each change in one line."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from escalade.db import Tx
from escalade.transfer import shape
from escalade.transfer.model import Thing, by_identity
from escalade.transfer.records import Field, Fields


@dataclass(frozen=True, slots=True)
class Change:
    """One change: `noun` and `name` say of what, `what` what happened to it."""

    noun: str
    name: str
    what: str

    @property
    def line(self) -> str:
        """The change as it is printed."""
        return f"{self.noun} {self.name}: {self.what}" if self.name else f"{self.noun}: {self.what}"


@dataclass(frozen=True, slots=True)
class Noun:
    """A kind of thing that has rows: what it is called, its fields in a file, and its three queries."""

    word: str
    fields: Fields
    insert: str
    update: str
    delete: str


USER = Noun("user", shape.USER, "transfer_insert_user", "transfer_update_user", "transfer_delete_user")
CONTACT_METHOD = Noun(
    "contact method",
    shape.CONTACT,
    "transfer_insert_contact_method",
    "transfer_update_contact_method",
    "transfer_delete_contact_method",
)
CHANNEL = Noun(
    "channel", shape.CONTACT, "transfer_insert_channel", "transfer_update_channel", "transfer_delete_channel"
)
SCHEDULE = Noun(
    "schedule", shape.SCHEDULE, "transfer_insert_schedule", "transfer_update_schedule", "transfer_delete_schedule"
)
ROTATION = Noun(
    "rotation", shape.ROTATION, "transfer_insert_rotation", "transfer_update_rotation", "transfer_delete_rotation"
)
POLICY = Noun("policy", shape.POLICY, "transfer_insert_policy", "transfer_update_policy", "transfer_delete_policy")
SERVICE = Noun(
    "service", shape.SERVICE, "transfer_insert_service", "transfer_update_service", "transfer_delete_service"
)
INTEGRATION = Noun(
    "integration",
    shape.INTEGRATION,
    "transfer_insert_integration",
    "transfer_update_integration",
    "transfer_delete_integration",
)
HEARTBEAT = Noun(
    "heartbeat", shape.HEARTBEAT, "transfer_insert_heartbeat", "transfer_update_heartbeat", "transfer_delete_heartbeat"
)


class Writer:
    """Collects the changes and, unless it is a dry run, writes them. `ids` are those of rows, by noun and name."""

    def __init__(self, tx: Tx, dry_run: bool) -> None:
        self.tx = tx
        self.dry_run = dry_run
        self.changes: list[Change] = []
        self.ids: dict[tuple[str, str], int] = {}

    def tell(self, noun: Noun, name: str, what: str) -> None:
        """Note a change."""
        self.changes.append(Change(noun.word, name, what))

    def run(self, query: str, **params: Any) -> None:
        """Execute, unless this is a dry run."""
        if not self.dry_run:
            self.tx.run(query, **params)

    def insert(self, query: str, **params: Any) -> int:
        """Execute; the id of the new row, 0 in a dry run."""
        return 0 if self.dry_run else int(self.tx.value(query, **params))

    def put(
        self,
        noun: Noun,
        name: str,
        old: Thing | None,
        new: Thing,
        columns: dict[str, Any],
        *,
        part_of_new: bool = False,
        moved: bool = False,
    ) -> tuple[int, bool]:
        """Write a thing if it is new, moved or differs; its id, and whether it was written.

        That a part of something new is new as well goes without saying.
        """
        if old is None:
            if not part_of_new:
                self.tell(noun, name, "created")
            return self.insert(noun.insert, **columns), True
        changes = differences(noun.fields, old, new)
        for what in changes:
            self.tell(noun, name, what)
        if changes or moved:
            self.run(noun.update, id=old.id, **columns)
        return old.id, bool(changes or moved)

    def remove(self, noun: Noun, name: str, old: Thing) -> None:
        """Delete a thing."""
        self.tell(noun, name, "removed")
        self.run(noun.delete, id=old.id)

    def remove_others(self, noun: Noun, owner: str, old: Iterable[Thing], new: Iterable[Thing]) -> None:
        """Delete what `owner` has and shall not have any more."""
        wanted = by_identity(new)
        for name, thing in by_identity(old).items():
            if name not in wanted:
                self.remove(noun, f"{owner}/{name}", thing)


def moved(old: Iterable[Thing], new: Iterable[Thing]) -> bool:
    """Whether the things of a list stand at other places than before."""
    return list(by_identity(old)) != list(by_identity(new))


def reordered(old: Iterable[Thing], new: Iterable[Thing]) -> bool:
    """Whether those that stay have another order than before."""
    before, after = by_identity(old), by_identity(new)
    return [name for name in before if name in after] != [name for name in after if name in before]


def differences(fields: Fields, old: Any, new: Any) -> list[str]:
    """What changes between two things, field by field; items with rows of their own speak for themselves."""
    found = []
    for name, field in fields.items():
        before, after = (getattr(thing, field.attribute or name) for thing in (old, new))
        if before != after and not field.own:
            found.append(f"{name} changed{_values(field, before, after)}")
    return found


def _values(field: Field, before: Any, after: Any) -> str:
    return f" from {_shown(field, before)} to {_shown(field, after)}" if field.kind.told else ""


def _shown(field: Field, value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    words = " ".join(str(field.kind.show(value)).split())
    return f"{words[:80]}…" if len(words) > 80 else words
