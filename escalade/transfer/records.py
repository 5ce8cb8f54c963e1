"""The kinds that hold other kinds: mappings with fields, lists, and the names of other things in the file."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from escalade.transfer.faults import Place, did_you_mean, quoted
from escalade.transfer.kinds import EMAIL, NAME, Kind

REQUIRED: Any = object()
TARGETS = ("user", "schedule", "channel")


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a mapping. `attribute` is its name in our values where that differs from the file's.

    `own` says that its items have rows of their own, which stay while they keep their names.
    """

    kind: Kind
    default: Any = REQUIRED
    attribute: str = ""
    own: bool = False

    def read(self, value: Any, place: Place) -> Any:
        """The value of the field; what is left out or null takes the default."""
        if value is not None:
            return self.kind.read(value, place)
        if self.default is REQUIRED:
            place.fault("required")
            return self.kind.blank
        return self.default


Fields = Mapping[str, Field]


def record(cls: type, of: Fields, finish: Callable[[Any, Place], Any] = lambda thing, place: thing) -> Kind:
    """A mapping that becomes `cls`; `finish` looks at several of its fields together."""
    placed = "place" in {known.name for known in fields(cls)}

    def read(value: Any, place: Place) -> Any:
        if not isinstance(value, dict):
            place.fault("must be a mapping of fields")
            return cls(**{field.attribute or name: field.kind.blank for name, field in of.items()})
        for name in value:
            if name not in of:
                place.at(name).fault(f"unknown field{did_you_mean(name, of)}")
        found = {field.attribute or name: field.read(value.get(name), place.at(name)) for name, field in of.items()}
        return finish(cls(**found, place=place) if placed else cls(**found), place)

    return Kind(read, lambda thing: show(of, thing), told=False, parts=of)


def show(of: Fields, thing: Any) -> dict[str, Any]:
    """What a file says for the thing: its fields other than those at their defaults."""
    values = {name: (field, getattr(thing, field.attribute or name)) for name, field in of.items()}
    return {name: field.kind.show(value) for name, (field, value) in values.items() if value != field.default}


def many(item: Kind, unique: str = "") -> Kind:
    """A list. No two of its items may have the same value of the field `unique`, whatever its case for e-mails."""

    def read(value: Any, place: Place) -> Any:
        if not isinstance(value, list):
            place.fault("must be a list")
            return ()
        found = tuple(item.read(member, place.item(index)) for index, member in enumerate(value))
        if unique:
            _check_unique(unique, found, place)
        return found

    return Kind(read, lambda things: [item.show(thing) for thing in things], (), told=False, item=item)


def _check_unique(name: str, found: tuple[Any, ...], place: Place) -> None:
    first: dict[str, int] = {}
    for index, thing in enumerate(found):
        value = getattr(thing, name)
        earlier = first.setdefault(value.lower() if name == "email" else value, index)
        if value and earlier != index:
            place.item(index).at(name).fault(f"the same as {place.item(earlier).at(name).path}")


def named(noun: str) -> Kind:
    """The name of something that must be in the file or in the database."""

    def read(value: Any, place: Place) -> str:
        name = str(NAME.read(value, place))
        if name:
            place.refer(noun, name)
        return name

    return Kind(read, blank="", form=noun)


def user_as(use: str) -> Kind:
    """A user's e-mail, in lower case; `use` says what a viewer cannot be."""

    def read(value: Any, place: Place) -> str:
        email = str(EMAIL.read(value, place)).lower()
        if email:
            place.refer("user", email, use)
        return email

    return Kind(read, blank="", form="user")


def _target(value: Any, place: Place) -> str:
    found = str(NAME.read(value, place))
    noun, colon, name = found.partition(":")
    if not found:
        return ""
    if not colon or noun not in TARGETS:
        hint = did_you_mean(noun, TARGETS) if colon else ""
        place.fault(f"must be user:..., schedule:... or channel:..., not {quoted(found)}{hint}")
        return ""
    name = name.lower() if noun == "user" else name
    place.refer(noun, name, "a target")
    return f"{noun}:{name}"


TARGET = Kind(_target, blank="", form="target")
