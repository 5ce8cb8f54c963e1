"""Saves and removes one thing: checked as a file is, in one transaction, and only on top of what the form showed."""

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from escalade.db import Tx
from escalade.errors import Conflict, NotFound
from escalade.setting_up import drafts, renaming
from escalade.setting_up.documents import Made, Writing, document
from escalade.setting_up.drafts import Draft
from escalade.setting_up.uses import Use, uses
from escalade.tokens import digest
from escalade.transfer import Change, apply, model, shape, stored
from escalade.transfer.applying import lock
from escalade.transfer.document import Document
from escalade.transfer.exporting import written
from escalade.transfer.faults import Faults, Place, quoted
from escalade.transfer.model import Configuration, Settings, Thing, identity
from escalade.transfer.put_people import remove_user
from escalade.transfer.records import Fields
from escalade.transfer.writer import CHANNEL, POLICY, SCHEDULE, SERVICE, USER, Noun, Writer

# What can be made and deleted here: the file's lists, and what they hold.
SECTIONS: dict[str, Noun] = {
    "users": USER,
    "channels": CHANNEL,
    "schedules": SCHEDULE,
    "policies": POLICY,
    "services": SERVICE,
}


class Stale(Conflict):
    """Somebody else changed the thing after the form was made."""


class Gone(NotFound):
    """Somebody else deleted the thing after the form was made, or it was never there."""


class InUse(Conflict):
    """The thing cannot be deleted: `uses` says what would break."""

    def __init__(self, message: str, found: list[Use]) -> None:
        super().__init__(message)
        self.uses = found


@dataclass(frozen=True, slots=True)
class Saved:
    """What was saved: its id, the changes one by one, and the keys that are shown this once."""

    id: int
    changes: list[Change]
    keys: list[Made]


def find(configuration: Configuration, section: str, thing_id: int) -> Thing:
    """One thing of the configuration. Raises Gone."""
    for thing in getattr(configuration, section):
        if thing.id == thing_id:
            return thing  # type: ignore[no-any-return]
    raise Gone(f"There is no such {SECTIONS[section].word} any more.")


def fingerprint(fields: Fields, thing: Thing | Settings) -> str:
    """What a form was made from, in a few letters. Secrets are no part of it: a form does not show them, and what it
    leaves empty stays as it is."""
    return digest(json.dumps(drafts.of(fields, thing), sort_keys=True))


def as_yaml(section: str, thing: Thing | Settings) -> str:
    """The thing as `export` writes it, without its secrets."""
    value: Any = thing if section == "settings" else (thing,)
    return written(replace(Configuration(), **{section: value}))


def save(tx: Tx, section: str, thing_id: int | None, draft: Draft, made_from: str) -> Saved:
    """Make the thing what the draft says; without an id it is a new one. Raises Faults, and Stale or Gone where
    somebody else was there first."""
    lock(tx)
    before, noun = stored.load(tx), SECTIONS[section]
    old = None if thing_id is None else find(before, section, thing_id)
    if old is not None and made_from != fingerprint(noun.fields, old):
        raise Stale(f"Somebody else changed this {noun.word} since you opened it.")
    drafts.tidy(noun.fields, draft, old)
    renaming.follow(draft)
    keys: list[Made] = []
    told = document(noun.fields, draft, old, Writing(draft.get("timezone") or "UTC", keys))
    root = Place()
    given = Document(shape.FILE.read({section: [told]}, root), root)
    wanted: Thing = getattr(given.configuration, section)[0]
    _check_free(before, section, old, wanted, root)
    if root.faults:
        raise Faults(root.faults)
    if old is not None:
        renaming.rename(tx, section, old, wanted, draft)
    changes = apply(tx, given)
    saved = model.by_identity(getattr(stored.load(tx), section))[identity(wanted)]
    return Saved(saved.id, changes, keys)


def _check_free(before: Configuration, section: str, old: Thing | None, wanted: Thing, root: Place) -> None:
    """Two things cannot have one name: whoever saves the second would change the first."""
    name = identity(wanted)
    holder = model.by_identity(getattr(before, section)).get(name)
    if name and holder is not None and (old is None or holder.id != old.id):
        field = "email" if section == "users" else "name"
        root.at(section).item(0).at(field).fault(f"there is a {SECTIONS[section].word} {quoted(name)} already")


def save_settings(tx: Tx, draft: Draft, made_from: str) -> list[Change]:
    """Make the settings what the draft says. Raises Faults, or Stale."""
    lock(tx)
    old = stored.load(tx).settings or Settings()
    if made_from != fingerprint(shape.SETTINGS, old):
        raise Stale("Somebody else changed the settings since you opened them.")
    drafts.tidy(shape.SETTINGS, draft, old)
    root = Place()
    told = document(shape.SETTINGS, draft, None, Writing("UTC", []))
    return apply(tx, Document(shape.FILE.read({"settings": told}, root), root))


def remove(tx: Tx, section: str, thing_id: int) -> str:
    """Delete a thing that nothing uses; what it was called. Raises Gone, InUse, or Conflict for the last admin who can
    log in."""
    lock(tx)
    before, noun = stored.load(tx), SECTIONS[section]
    thing = find(before, section, thing_id)
    found = uses(before, section, thing)
    if found:
        raise InUse(f"This {noun.word} is used, so it cannot be deleted.", found)
    writer = Writer(tx, dry_run=False)
    if isinstance(thing, model.User):
        _keep_an_admin(before, thing)
        remove_user(writer, thing)
    else:
        writer.remove(noun, identity(thing), thing)
    return identity(thing)


def _keep_an_admin(before: Configuration, user: model.User) -> None:
    if [one.id for one in before.users if one.role == "admin" and one.can_log_in] == [user.id]:
        raise Conflict("This is the last admin who can log in; make somebody else one first.")


def placed(faults: Faults, section: str) -> dict[str, list[str]]:
    """The faults by the field of the form at which they stand, "" for those of the whole."""
    found: dict[str, list[str]] = {}
    start = section if section == "settings" else f"{section}[0]"
    for line in faults.faults:
        match = re.fullmatch(r"([\w.\[\]]+): (.*)", line, re.DOTALL)
        path, sentence = (match[1], match[2]) if match is not None and match[1].startswith(start) else ("", line)
        path = path.removeprefix(start).removeprefix(".")
        found.setdefault(path, []).append(sentence.replace(f"{start}.", ""))
    return found
