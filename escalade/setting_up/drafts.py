"""What stands in a form: the fields of a thing as texts, named by their path as faults name them.

A draft is a mapping shaped like the file's, whose lists hold what the form has rows for. Beside its fields a row
says what it was called when the form was made, and whether its secret is to go or its key to be made anew.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from escalade.transfer import model, shape
from escalade.transfer.kinds import Kind
from escalade.transfer.records import REQUIRED, Fields
from escalade.transports import TRANSPORTS

Draft = dict[str, Any]
Given = Mapping[str, Sequence[str]]

WAS, DROP, RENEW = "_was", "_drop_secret", "_new_key"
# Texts that nobody types, or that are as they are.
CHOSEN = ("choice", "method", "policy", "secret", "user")
# Whatever somebody sends: a form of ours has far fewer.
MOST_ROWS = 500


def blank(fields: Fields) -> Draft:
    """A new thing: everything at its default."""
    return {
        name: _shown(field.kind, None if field.default is REQUIRED else field.default) for name, field in fields.items()
    }


def of(fields: Fields, thing: Any) -> Draft:
    """A stored thing as its form shows it. Secrets, keys and addresses that are secret stay where they are."""
    draft = {name: _shown(field.kind, getattr(thing, field.attribute or name)) for name, field in fields.items()}
    if isinstance(thing, model.Contact):
        draft["address"] = "" if _is_secret(thing.kind) else thing.address
        draft["pace"] = "" if thing.pace == shape.default_pace(thing.kind) else draft["pace"]
    if isinstance(thing, model.Thing):
        draft[WAS] = model.identity(thing)
    return draft


def _is_secret(kind: str) -> bool:
    transport = TRANSPORTS.get(kind)
    return transport is not None and transport.secret_address


def _shown(kind: Kind, value: Any) -> Any:
    if kind.item is not None:
        parts = kind.item.parts
        if parts is not None:
            return [of(parts, one) for one in value or ()]
        return [str(kind.item.show(one)) for one in value or ()]
    if kind.form == "switch":
        return "on" if value else "off"
    return "" if value is None or kind.form in ("secret", "key") else str(kind.show(value))


def read(fields: Fields, given: Given, at: str = "") -> Draft:
    """What was typed, by the paths that the form names its fields with. Blank items of lists of names are left out."""
    draft: Draft = {}
    for name, field in fields.items():
        path, kind = at + name, field.kind
        if kind.item is None:
            draft[name] = _typed(kind, given.get(path, ()))
        elif kind.item.parts is not None:
            draft[name] = [read(kind.item.parts, given, f"{path}[{index}].") for index in _indices(given, path)]
        elif kind.item.words is not None:
            draft[name] = list(given.get(path, ()))
        else:
            typed = (_typed(kind.item, given[f"{path}[{index}]"]) for index in _indices(given, path))
            draft[name] = [text for text in typed if text]
    for name in (WAS, DROP, RENEW):
        if given.get(at + name):
            draft[name] = given[at + name][0]
    return draft


def _typed(kind: Kind, texts: Sequence[str]) -> str:
    text = texts[0] if texts else ""
    if kind.form == "switch":
        return "on" if text else "off"
    # A text area sends the line ends of the old telegraph.
    return text.replace("\r\n", "\n")


def tidy(fields: Fields, draft: Draft, old: Any) -> None:
    """Take away the spaces around what was typed, as YAML does, and phones add. What is as it was stays so."""
    before = {} if old is None else of(fields, old)
    for name, field in fields.items():
        kind, value = field.kind, draft[name]
        if kind.item is not None and kind.item.parts is not None:
            stored = getattr(old, field.attribute or name, None) if field.own else None
            known = model.by_identity(stored or ())
            for row in value:
                tidy(kind.item.parts, row, known.get(row.get(WAS, "")))
        elif kind.item is None and kind.form not in CHOSEN and value != before.get(name):
            draft[name] = value.strip()


def _indices(given: Given, path: str) -> list[int]:
    """The rows of a list, in the order in which they stand in the form."""
    pattern = re.compile(re.escape(path) + r"\[([0-9]{1,4})\](?:$|\.)")
    found = {int(match[1]) for name in given if (match := pattern.match(name))}
    return sorted(found)[:MOST_ROWS]


def rows_at(fields: Fields, draft: Draft, path: str) -> tuple[list[Any], Kind] | None:
    """The list in the draft that a path such as `rotations[0].restrictions` leads to, and the kind of its items."""
    name, _, rest = path.partition(".")
    match = re.fullmatch(r"(\w+)(?:\[([0-9]{1,4})\])?", name)
    kind = fields[match[1]].kind if match is not None and match[1] in fields else None
    if match is None or kind is None or kind.item is None:
        return None
    rows = draft[match[1]]
    if not rest:
        return (rows, kind.item) if match[2] is None else None
    if match[2] is None or kind.item.parts is None or int(match[2]) >= len(rows):
        return None
    return rows_at(kind.item.parts, rows[int(match[2])], rest)


def rearranged(fields: Fields, draft: Draft, order: str) -> str | None:
    """Do what a button of the form asks for: `add:steps`, or `up:`, `down:` or `remove:` and a row such as
    `steps[1]`. The path of the row to go on with, None where the form has no such list or row."""
    verb, _, path = order.partition(":")
    if verb == "add":
        return _add(fields, draft, *path.partition(":")[::2])
    match = re.fullmatch(r"(.+)\[([0-9]{1,4})\]", path)
    found = rows_at(fields, draft, match[1]) if match is not None else None
    if match is None or found is None or int(match[2]) >= len(found[0]):
        return None
    rows, index = found[0], int(match[2])
    if verb == "remove":
        del rows[index]
        return match[1]
    to = index + {"up": -1, "down": 1}.get(verb, 0)
    if 0 <= to < len(rows):
        rows[index], rows[to] = rows[to], rows[index]
    return f"{match[1]}[{max(0, min(to, len(rows) - 1))}]"


def _add(fields: Fields, draft: Draft, path: str, kind: str) -> str | None:
    found = rows_at(fields, draft, path)
    if found is None or len(found[0]) >= MOST_ROWS:
        return None
    rows, item = found
    if item.parts is not None:
        # The form always has one more line for a name than there are.
        rows.append({**blank(item.parts), **({"kind": kind} if kind and "kind" in item.parts else {})})
        return f"{path}[{len(rows) - 1}]"
    return f"{path}[{len(rows)}]"
