"""The configuration as the YAML that `apply` reads."""

import re
from dataclasses import replace
from typing import Any

import yaml

from escalade.db import Tx
from escalade.transfer import shape, stored
from escalade.transfer.model import KEPT, Configuration, Contact, Integration, Schedule, Service, User
from escalade.transfer.records import show
from escalade.transports import TRANSPORTS

WIDTH = 120


class _Dumper(yaml.SafeDumper):
    """Writes lists under their key with an indent, and everything in full instead of by alias."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def text(self, data: str) -> yaml.ScalarNode:
        # Other readers of YAML may take 17:30 for a number.
        style = '"' if re.fullmatch("[0-9:]+", data) else None
        return self.represent_scalar("tag:yaml.org,2002:str", data, style)

    def switch(self, data: bool) -> yaml.ScalarNode:
        return self.represent_scalar("tag:yaml.org,2002:bool", "on" if data else "off")


_Dumper.add_representer(str, _Dumper.text)
_Dumper.add_representer(bool, _Dumper.switch)


def export(tx: Tx, secrets: bool = False) -> str:
    """The whole configuration; applied as it is, it changes nothing.

    Secrets are written as `kept` unless `secrets`; keys always are, since the keys themselves are not stored.
    """
    return written(stored.load(tx), secrets)


def written(configuration: Configuration, secrets: bool = False) -> str:
    """A configuration, or a part of one, as YAML."""
    return yaml.dump(
        show(shape.CONFIGURATION, _shown(configuration, secrets)),
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=None,
        width=WIDTH,
    )


def _shown(configuration: Configuration, secrets: bool) -> Configuration:
    return replace(
        configuration,
        users=tuple(_user(user, secrets) for user in configuration.users),
        channels=tuple(_contact(channel, secrets) for channel in configuration.channels),
        schedules=tuple(_schedule(schedule) for schedule in configuration.schedules),
        services=tuple(_service(service, secrets) for service in configuration.services),
    )


def _user(user: User, secrets: bool) -> User:
    return replace(user, contact_methods=tuple(_contact(method, secrets) for method in user.contact_methods))


def _contact(contact: Contact, secrets: bool) -> Contact:
    transport = TRANSPORTS.get(contact.kind)
    hidden = transport is not None and transport.secret_address and not secrets
    return replace(
        contact,
        address=KEPT if hidden else contact.address,
        secret=_secret(contact.secret, secrets),
        pace=None if contact.pace == shape.default_pace(contact.kind) else contact.pace,
    )


def _secret(secret: str | None, secrets: bool) -> str | None:
    return secret if secret is None or secrets else KEPT


def _schedule(schedule: Schedule) -> Schedule:
    return replace(schedule, overrides=schedule.overrides or None)


def _service(service: Service, secrets: bool) -> Service:
    return replace(service, integrations=tuple(_integration(one, secrets) for one in service.integrations))


def _integration(integration: Integration, secrets: bool) -> Integration:
    return replace(integration, secret=_secret(integration.secret, secrets))
