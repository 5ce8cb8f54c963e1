"""Writes users with their contact methods and rules, and channels."""

from dataclasses import asdict
from typing import Any

from escalade.transfer.model import Contact, User, by_identity, identity
from escalade.transfer.writer import CHANNEL, CONTACT_METHOD, USER, Writer, moved, reordered
from escalade.transports import TRANSPORTS


def put_users(writer: Writer, stored: tuple[User, ...], wanted: tuple[User, ...]) -> None:
    """Make these users what the file says; others stay. Passwords are never touched."""
    old = by_identity(stored)
    for user in wanted:
        _put_user(writer, old.get(identity(user)), user)


def remove_user(writer: Writer, user: User) -> None:
    """Delete a user. Nobody may refer to them any more; overrides that people made for them end."""
    writer.remove(USER, user.email, user)


def put_channels(writer: Writer, stored: tuple[Contact, ...], wanted: tuple[Contact, ...]) -> None:
    """Make these channels what the file says; others stay."""
    old = by_identity(stored)
    for channel in wanted:
        writer.ids["channel", channel.name], _ = writer.put(
            CHANNEL, channel.name, old.get(channel.name), channel, _contact_columns(writer, channel)
        )


def _put_user(writer: Writer, old: User | None, user: User) -> None:
    columns: dict[str, Any] = {
        "email": user.email,
        "name": user.name,
        "role": user.role,
        "timezone": user.timezone,
    }
    if old is None:
        columns["now"] = writer.tx.now
    user_id, _ = writer.put(USER, user.email, old, user, columns)
    writer.ids["user", identity(user)] = user_id
    if old is not None and (old.role, old.email) != (user.role, user.email):
        # Whoever is logged in as them was let in as somebody who may do other things.
        writer.run("end_sessions_of", user_id=user_id)
    _put_methods(writer, user_id, old, user)
    if user.notification_rules != (old.notification_rules if old else ()):
        writer.run("transfer_delete_rules", user_id=user_id)
        for position, rule in enumerate(user.notification_rules):
            writer.run("transfer_insert_rule", user_id=user_id, position=position, **asdict(rule))


def _put_methods(writer: Writer, user_id: int, old: User | None, user: User) -> None:
    stored = old.contact_methods if old else ()
    writer.remove_others(CONTACT_METHOD, user.email, stored, user.contact_methods)
    if reordered(stored, user.contact_methods):
        writer.tell(USER, user.email, "contact_methods reordered")
    others, shifted = by_identity(stored), moved(stored, user.contact_methods)
    for position, method in enumerate(user.contact_methods):
        before, name = others.get(method.name), f"{user.email}/{method.name}"
        unverified = before is not None and not before.verified
        if unverified:
            writer.tell(CONTACT_METHOD, name, "counts as verified")
        columns = {**_contact_columns(writer, method), "user_id": user_id, "position": position}
        writer.put(CONTACT_METHOD, name, before, method, columns, part_of_new=old is None, moved=shifted or unverified)


def _contact_columns(writer: Writer, contact: Contact) -> dict[str, Any]:
    transport = TRANSPORTS[contact.kind]
    return {
        "name": contact.name,
        "kind": contact.kind,
        "address": writer.sealed(contact.address) if transport.secret_address else contact.address,
        "secret": writer.sealed(contact.secret),
        "updates": contact.updates,
        "pace": contact.pace,
        "destination": transport.destination(contact.address),
    }
