"""Writes the difference between what is stored and what a file says, and tells of each change in one line."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from escalade import audit, sealing
from escalade.db import Tx
from escalade.transfer import shape
from escalade.transfer.model import Thing, by_identity
from escalade.transfer.records import Field, Fields
from escalade.transports import mask


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

    def record(self, word: str, name: str, of: Fields, old: Any, new: Any) -> None:
        """Write a change down for the audit: all fields of what comes or goes, else those that differ."""
        if self.dry_run:
            return
        action = "created" if old is None else "removed" if new is None else "changed"
        names = changed(of, old, new)
        before, after = (None if thing is None else _audited(of, thing, names) for thing in (old, new))
        audit.record(self.tx, f"{word} {action}", name, before, after)

    def sealed(self, secret: str | None) -> str | None:
        """A secret as it is kept."""
        return sealing.seal(self.tx.limits.sealing_keys, secret)

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
            self.record(noun.word, name, noun.fields, None, new)
            return self.insert(noun.insert, **columns), True
        changes = differences(noun.fields, old, new)
        for what in changes:
            self.tell(noun, name, what)
        if changes:
            self.record(noun.word, name, noun.fields, old, new)
        if changes or moved:
            self.run(noun.update, id=old.id, **columns)
        return old.id, bool(changes or moved)

    def remove(self, noun: Noun, name: str, old: Thing) -> None:
        """Delete a thing."""
        self.tell(noun, name, "removed")
        self.record(noun.word, name, noun.fields, old, None)
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


def changed(fields: Fields, old: Any, new: Any) -> list[str]:
    """The fields that differ; of what comes or goes, those not at their defaults. Items with rows of their own speak
    for themselves."""
    found = []
    for name, field in fields.items():
        given = [getattr(thing, field.attribute or name) for thing in (old, new) if thing is not None]
        before, after = given if len(given) == 2 else (field.default, given[0])
        if before != after and not field.own:
            found.append(name)
    return found


def differences(fields: Fields, old: Any, new: Any) -> list[str]:
    """What changes between two things, field by field, in words."""
    found = []
    for name in changed(fields, old, new):
        before, after = (getattr(thing, fields[name].attribute or name) for thing in (old, new))
        found.append(f"{name} changed{_values(fields[name], before, after)}")
    return found


def _audited(of: Fields, thing: Any, names: list[str]) -> dict[str, Any]:
    """What the audit says of these fields: where a contact leads is masked here, keys and secrets over there."""
    values = {name: (of[name], getattr(thing, of[name].attribute or name)) for name in names}
    shown = {name: None if value is None else field.kind.show(value) for name, (field, value) in values.items()}
    if "address" in shown:
        shown["reaches"] = mask(thing.kind, str(shown.pop("address")))
    return shown


def _values(field: Field, before: Any, after: Any) -> str:
    return f" from {_shown(field, before)} to {_shown(field, after)}" if field.kind.told else ""


def _shown(field: Field, value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    words = " ".join(str(field.kind.show(value)).split())
    return f"{words[:80]}…" if len(words) > 80 else words
