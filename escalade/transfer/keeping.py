"""Fills in what a file leaves to the database: secrets and keys that stay, and addresses and keys marked `kept`."""

from dataclasses import replace
from typing import TypeVar

from escalade.transfer.faults import Place
from escalade.transfer.model import (
    KEPT,
    Configuration,
    Contact,
    Heartbeat,
    Integration,
    Key,
    Schedule,
    Service,
    User,
    by_identity,
    identity,
)
from escalade.transports import TRANSPORTS

K = TypeVar("K", Integration, Heartbeat)
NOTHING = "nothing is kept here"


def filled(given: Configuration, stored: Configuration) -> Configuration:
    """The file's configuration with what stays; a fault where a file says `kept` and nothing is."""
    users, channels = by_identity(stored.users), by_identity(stored.channels)
    schedules, services = by_identity(stored.schedules), by_identity(stored.services)
    return replace(
        given,
        users=tuple(_user(user, users.get(identity(user))) for user in given.users),
        channels=tuple(_contact(channel, channels.get(channel.name)) for channel in given.channels),
        schedules=tuple(_schedule(schedule, schedules.get(schedule.name)) for schedule in given.schedules),
        services=tuple(_service(service, services.get(service.name)) for service in given.services),
    )


def _user(user: User, old: User | None) -> User:
    methods = by_identity(old.contact_methods if old else ())
    return replace(
        user, contact_methods=tuple(_contact(method, methods.get(method.name)) for method in user.contact_methods)
    )


def _contact(contact: Contact, old: Contact | None) -> Contact:
    transport = TRANSPORTS.get(contact.kind)
    if transport is None:
        return contact
    if transport.secret_address and contact.address == KEPT:
        if old is None or old.kind != contact.kind:
            contact.place.at("address").fault(NOTHING)
        else:
            contact = replace(contact, address=old.address)
    kept = old.secret if old and transport.takes_secret else None
    return replace(contact, secret=_secret(contact.secret, kept, contact.place))


def _secret(given: str | None, kept: str | None, place: Place) -> str | None:
    if given == KEPT and kept is None:
        place.at("secret").fault(NOTHING)
    return kept if given in (None, KEPT) else given or None


def _schedule(schedule: Schedule, old: Schedule | None) -> Schedule:
    if schedule.overrides is not None:
        return schedule
    return replace(schedule, overrides=old.overrides if old else ())


def _service(service: Service, old: Service | None) -> Service:
    integrations = by_identity(old.integrations if old else ())
    heartbeats = by_identity(old.heartbeats if old else ())
    return replace(
        service,
        integrations=tuple(_integration(one, integrations.get(one.name)) for one in service.integrations),
        heartbeats=tuple(_keyed(one, heartbeats.get(one.name)) for one in service.heartbeats),
    )


def _integration(integration: Integration, old: Integration | None) -> Integration:
    secret = _secret(integration.secret, old.secret if old else None, integration.place)
    return replace(_keyed(integration, old), secret=secret)


def _keyed(thing: K, old: K | None) -> K:
    if isinstance(thing.key, Key):
        return thing
    if thing.key == KEPT and old is None:
        thing.place.at("key").fault(NOTHING)
    return replace(thing, key=old.key if old else None)
