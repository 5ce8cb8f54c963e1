"""Makes the configuration what a file says: everything is checked, then written, in the caller's transaction."""

from escalade.db import Tx
from escalade.transfer import model, stored
from escalade.transfer.checks import checked
from escalade.transfer.document import Document, read
from escalade.transfer.put_oncall import put_policies, put_schedules
from escalade.transfer.put_people import put_channels, put_users, remove_user
from escalade.transfer.put_services import put_services, put_settings, release_keys
from escalade.transfer.writer import CHANNEL, POLICY, SCHEDULE, SERVICE, Change, Noun, Writer

WAIT_MS = 8_000


def apply(tx: Tx, file: str | Document, *, prune: bool = False, dry_run: bool = False) -> list[Change]:
    """Apply the file, or what was read of it; the changes in the order they were made, none where all is as it says.

    What the file does not name stays unless `prune`. A dry run writes nothing, waits for nobody and makes no keys.
    Raises Faults, one line for everything that is wrong, before anything is written.
    """
    document = read(file) if isinstance(file, str) else file
    if not dry_run:
        lock(tx)
    before = stored.load(tx)
    wanted = checked(document, before, prune)
    writer = Writer(tx, dry_run)
    writer.ids = _ids(before)
    _put(writer, before, wanted, prune)
    if prune:
        _remove_unnamed(writer, before, wanted)
    return writer.changes


def lock(tx: Tx) -> None:
    """Until the end of the transaction nobody else changes the configuration: what was checked still holds when it is
    written. Waits for those who were first."""
    tx.run("wait_at_most", lock_ms=str(WAIT_MS))
    tx.run("lock_configuration")


def _ids(before: model.Configuration) -> dict[tuple[str, str], int]:
    things: dict[str, tuple[model.Thing, ...]] = {
        "user": before.users,
        "channel": before.channels,
        "schedule": before.schedules,
        "policy": before.policies,
    }
    return {(noun, model.identity(thing)): thing.id for noun, found in things.items() for thing in found}


def _put(writer: Writer, before: model.Configuration, wanted: model.Configuration, prune: bool) -> None:
    put_users(writer, before.users, wanted.users)
    put_channels(writer, before.channels, wanted.channels)
    put_schedules(writer, before.schedules, wanted.schedules)
    put_policies(writer, before.policies, wanted.policies)
    named = model.by_identity(wanted.services)
    release_keys(writer, tuple(one for one in before.services if prune or one.name in named), wanted.services)
    put_services(writer, before.services, wanted.services)
    if wanted.settings is not None or prune:
        put_settings(writer, before.settings or model.Settings(), wanted.settings or model.Settings())


def _remove_unnamed(writer: Writer, before: model.Configuration, wanted: model.Configuration) -> None:
    """Remove what the file does not name, the users of a thing before the thing."""
    _remove(writer, SERVICE, before.services, wanted.services)
    _remove(writer, POLICY, before.policies, wanted.policies)
    _remove(writer, SCHEDULE, before.schedules, wanted.schedules)
    _remove(writer, CHANNEL, before.channels, wanted.channels)
    named = model.by_identity(wanted.users)
    for user in before.users:
        if model.identity(user) not in named:
            remove_user(writer, user)


def _remove(writer: Writer, noun: Noun, before: tuple[model.Thing, ...], wanted: tuple[model.Thing, ...]) -> None:
    named = model.by_identity(wanted)
    for thing in before:
        if model.identity(thing) not in named:
            writer.remove(noun, model.identity(thing), thing)
