"""YAML text to mappings, lists and texts. Which text is a number, a date or a switch, its field decides.

That avoids the traps of YAML 1.1: here 09:00 is no 540 and a service may be called `on`. Stricter than YAML is: one
document, keys that are plain texts, each given once, no tags; and what a text can grow to by its aliases is bounded.
"""

import re
from collections.abc import Iterator
from typing import Any

import yaml

from escalade.transfer.faults import Faults, NotYaml, Place

SIZE_LIMIT = 1024 * 1024
VALUE_LIMIT = 200_000
DEPTH_LIMIT = 20

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULLS = ("", "~", "null", "Null", "NULL")

Value = dict[str, Any] | list[Any] | str | None


def load(text: str, root: Place) -> Value:
    """The value of the text; repeated keys are noted at `root`. Raises Faults where the text cannot be read."""
    try:
        if len(text.encode("utf-8")) > SIZE_LIMIT:
            raise Faults(["the file is larger than 1 MiB"])
        return _Builder(text).document(root)
    except UnicodeEncodeError:
        raise Faults(["the file is not UTF-8"]) from None
    except yaml.MarkedYAMLError as fault:
        raise NotYaml(f"is not YAML: {_broken(text, fault)}") from None
    except yaml.YAMLError as fault:
        raise NotYaml(f"is not YAML: {' '.join(str(fault).split())}") from None


class _Builder:
    """Builds values from the parser's events, counting them: an alias counts as much as what it stands for."""

    def __init__(self, text: str) -> None:
        self.events: Iterator[Any] = iter(yaml.parse(text, Loader=_LOADER))
        self.anchors: dict[str, tuple[Value, int]] = {}
        self.count = 0

    def document(self, root: Place) -> Value:
        next(self.events)  # the stream begins
        if isinstance(next(self.events), yaml.StreamEndEvent):
            return None
        value = self.node(next(self.events), root, 0)
        next(self.events)  # the document ends
        if not isinstance(next(self.events), yaml.StreamEndEvent):
            raise Faults(["the file holds more than one YAML document"])
        return value

    def node(self, event: Any, place: Place, depth: int) -> Value:
        if isinstance(event, yaml.AliasEvent):
            return self.alias(event, place)
        if event.tag is not None:
            raise Faults([f"{_line(event)}: tags such as {event.tag} are not supported"])
        if depth > DEPTH_LIMIT:
            raise Faults([f"{_line(event)}: nested more than {DEPTH_LIMIT} levels deep"])
        before = self.count
        self.add(1)
        value = self.content(event, place, depth)
        if event.anchor is not None:
            self.anchors[event.anchor] = (value, self.count - before)
        return value

    def content(self, event: Any, place: Place, depth: int) -> Value:
        if isinstance(event, yaml.MappingStartEvent):
            return self.mapping(place, depth)
        if isinstance(event, yaml.SequenceStartEvent):
            return self.sequence(place, depth)
        plain = event.implicit[0]
        return None if plain and event.value in _NULLS else str(event.value)

    def mapping(self, place: Place, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise Faults([f"{_line(event)}: a key must be a plain word"])
            key = event.value
            value = self.node(next(self.events), place.at(key), depth + 1)
            if key in found:
                place.at(key).fault("given twice")
            found[key] = value
        return found

    def sequence(self, place: Place, depth: int) -> list[Any]:
        found: list[Any] = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            found.append(self.node(event, place.item(len(found)), depth + 1))
        return found

    def alias(self, event: Any, place: Place) -> Value:
        if event.anchor not in self.anchors:
            raise Faults([f"{_line(event)}: there is no anchor &{event.anchor} before this"])
        value, size = self.anchors[event.anchor]
        self.add(size)
        return value

    def add(self, values: int) -> None:
        self.count += values
        if self.count > VALUE_LIMIT:
            raise Faults([f"the file holds more than {VALUE_LIMIT:,} values, those repeated by aliases included"])


def _broken(text: str, fault: yaml.MarkedYAMLError) -> str:
    """Where the text breaks the rules of YAML, and how."""
    mark = fault.problem_mark or fault.context_mark
    reason = fault.problem or fault.context or "it cannot be read"
    if mark is None:
        return reason
    # Only these end a line here, as for the parser; splitlines() knows more.
    lines = re.split(r"\r\n|[\r\n\x85\u2028\u2029]", text)
    line = lines[mark.line] if mark.line < len(lines) else ""
    if "\t" in line[: len(line) - len(line.lstrip(" \t-"))]:
        reason = "there is a tab, and YAML takes only spaces at the start of a line"
    return f"line {mark.line + 1}, column {mark.column + 1}: {reason}"


def _line(event: Any) -> str:
    return f"line {event.start_mark.line + 1}"
