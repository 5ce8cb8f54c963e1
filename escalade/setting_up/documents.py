"""Drafts as the document that a file would hold: what is blank is left out, what is hidden is kept."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from escalade import oncall, tokens
from escalade.setting_up.drafts import DROP, RENEW, WAS, Draft
from escalade.transfer import model, shape
from escalade.transfer.kinds import Kind
from escalade.transfer.records import Fields
from escalade.transports import TRANSPORTS

_WALL_CLOCK = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?")


@dataclass(frozen=True, slots=True)
class Made:
    """A key that nobody can read again: of an integration or a heartbeat (then `kind` is empty), by its name."""

    name: str
    kind: str
    key: str


@dataclass(frozen=True, slots=True)
class Writing:
    """What goes for the whole document: the zone of times without one, and the keys that were given or made."""

    zone: str
    keys: list[Made]


def document(fields: Fields, draft: Draft, old: Any, writing: Writing) -> dict[str, Any]:
    """What the file would say; `old` is the stored thing, None where it is new."""
    found: dict[str, Any] = {}
    for name, field in fields.items():
        kind, value = field.kind, draft[name]
        if kind.item is not None and kind.item.parts is not None:
            stored = getattr(old, field.attribute or name, None) if field.own else None
            known = model.by_identity(stored or ())
            found[name] = [document(kind.item.parts, row, known.get(row.get(WAS, "")), writing) for row in value]
        elif value or kind.item is not None:
            found[name] = _said(kind, value, writing.zone)
    if draft.get(DROP):
        found["secret"] = ""
    if fields is shape.CONTACT and "address" not in found and _keeps_address(draft, old):
        found["address"] = model.KEPT
    if "key" in fields:
        _key(found, draft, old, writing.keys)
    return found


def _keeps_address(draft: Draft, old: Any) -> bool:
    transport = TRANSPORTS.get(draft["kind"])
    return transport is not None and transport.secret_address and old is not None


def _key(found: dict[str, Any], draft: Draft, old: Any, keys: list[Made]) -> None:
    """A thing that had none gets a key, and so does one whose old key is to work no more."""
    if "key" not in found and (old is None or draft.get(RENEW)):
        found["key"] = f"k_{tokens.new_secret()}"
    if found.get("key", model.KEPT) != model.KEPT:
        keys.append(Made(draft["name"], draft.get("kind", ""), found["key"]))


def _said(kind: Kind, value: Any, zone: str) -> Any:
    if kind.form != "instant" or not _WALL_CLOCK.fullmatch(value):
        return value
    try:
        at = datetime.fromisoformat(value)
        return oncall.instant(at.date(), at.time(), oncall.zone(zone)).isoformat()
    except (ValueError, OverflowError):
        return value
