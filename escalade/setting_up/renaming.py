"""Another name for something that stays the same. A file cannot say that: what it names anew is new."""

from collections.abc import Iterator
from typing import Any

from escalade import audit, settings
from escalade.db import Tx
from escalade.setting_up.drafts import WAS, Draft
from escalade.transfer import model
from escalade.transfer.model import Thing, identity
from escalade.transfer.writer import (
    CHANNEL,
    CONTACT_METHOD,
    HEARTBEAT,
    INTEGRATION,
    POLICY,
    ROTATION,
    SCHEDULE,
    SERVICE,
    USER,
)

QUERIES = {
    "users": (USER.word, "rename_user"),
    "channels": (CHANNEL.word, "rename_channel"),
    "schedules": (SCHEDULE.word, "rename_schedule"),
    "policies": (POLICY.word, "rename_policy"),
    "services": (SERVICE.word, "rename_service"),
    "contact_methods": (CONTACT_METHOD.word, "rename_contact_method"),
    "rotations": (ROTATION.word, "rename_rotation"),
    "integrations": (INTEGRATION.word, "rename_integration"),
    "heartbeats": (HEARTBEAT.word, "rename_heartbeat"),
}
OWN = ("contact_methods", "rotations", "integrations", "heartbeats")


def follow(draft: Draft) -> None:
    """Rules that name a contact method by what it was called go with its new name."""
    methods = draft.get("contact_methods", ())
    names = {row["name"] for row in methods}
    renamed = {row[WAS]: row["name"] for row in methods if row.get(WAS) and row[WAS] not in names}
    for rule in draft.get("notification_rules", ()):
        name = rule["contact_method"]
        rule["contact_method"] = name if name in names else renamed.get(name, name.strip())


def rename(tx: Tx, section: str, old: Thing, wanted: Thing, draft: Draft) -> None:
    """Give the thing, and what it holds, the names that are wanted; all else is as it was."""
    new = identity(wanted)
    if identity(old) != new:
        _tell(tx, section, identity(old), new)
        _set(tx, section, old.id, wanted.email if isinstance(wanted, model.User) else new)
        _rename_in_fallback(tx, section.removesuffix("s"), old.id, new)
        if section == "users":
            # Whoever is logged in as them was let in by another e-mail, and links went there too.
            tx.run("end_sessions_of", user_id=old.id)
            tx.run("drop_login_links", user_id=old.id)
    for part in OWN:
        if hasattr(old, part):
            _rename_parts(tx, part, new, model.by_identity(getattr(old, part)), list(_pairs(part, wanted, draft)))


def _pairs(part: str, wanted: Thing, draft: Draft) -> Iterator[tuple[str, str]]:
    """What each row was called, and shall be."""
    for row, thing in zip(draft[part], getattr(wanted, part), strict=True):
        if row.get(WAS):
            yield row[WAS], thing.name


def _rename_parts(tx: Tx, part: str, owner: str, known: dict[str, Any], pairs: list[tuple[str, str]]) -> None:
    left = dict(known)
    changes = [(left.pop(was).id, was, name) for was, name in pairs if was in left]
    changes = [change for change in changes if change[1] != change[2]]
    taken = {name for _, _, name in changes}
    for name, thing in left.items():
        if name in taken:
            _set(tx, part, thing.id, f"{name} (removed)")  # the file's way removes it in a moment
    # Two things may swap their names.
    for thing_id, was, _ in changes:
        _set(tx, part, thing_id, f"{was} (renamed {thing_id})")
    for thing_id, was, name in changes:
        _tell(tx, part, f"{owner}/{was}", f"{owner}/{name}")
        _set(tx, part, thing_id, name)


def _set(tx: Tx, part: str, thing_id: int, name: str) -> None:
    tx.run(QUERIES[part][1], id=thing_id, name=name)


def _tell(tx: Tx, part: str, before: str, after: str) -> None:
    audit.record(tx, f"{QUERIES[part][0]} renamed", after, {"name": before}, {"name": after})


def _rename_in_fallback(tx: Tx, kind: str, thing_id: int, name: str) -> None:
    targets = settings.get(tx, "fallback") or []
    same = [(item["kind"], item["id"]) == (kind, thing_id) for item in targets]
    if any(same):
        renamed = [{**item, "name": name} if its else item for item, its in zip(targets, same, strict=True)]
        settings.put(tx, "fallback", renamed)
