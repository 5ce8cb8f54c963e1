"""The configuration as it stands in the database. Names of people and things that are gone are left out."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from escalade import sealing, settings
from escalade.db import Tx
from escalade.transfer import model, rosters

Groups = dict[int, list[dict[str, Any]]]


def load(tx: Tx) -> model.Configuration:
    """Everything a file can say, in an order that is the same on every machine."""
    users = _users(tx)
    emails = {user.id: model.identity(user) for user in users}
    channels = tuple(model.Contact(**opened(tx, row)) for row in tx.many(dict, "transfer_channels"))
    schedules = rosters.load(tx, emails)
    names = {("user", user_id): email for user_id, email in emails.items()}
    names |= {("schedule", schedule.id): schedule.name for schedule in schedules}
    names |= {("channel", channel.id): channel.name for channel in channels}
    return model.Configuration(_settings(tx, names), users, channels, schedules, _policies(tx), _services(tx))


def _settings(tx: Tx, names: dict[tuple[str, int], str]) -> model.Settings:
    targets = [(target.kind, names.get((target.kind, target.id))) for target in settings.fallback(tx)]
    fallback = tuple(f"{kind}:{name}" for kind, name in targets if name is not None)
    return model.Settings(fallback, settings.repage_exhausted_after(tx))


def _users(tx: Tx) -> tuple[model.User, ...]:
    methods = _grouped(tx.many(dict, "transfer_contact_methods"), "user_id")
    rules = _grouped(tx.many(dict, "transfer_rules"), "user_id")
    return tuple(
        model.User(
            **row,
            contact_methods=tuple(model.Contact(**opened(tx, method)) for method in methods[row["id"]]),
            notification_rules=tuple(model.Rule(**rule) for rule in rules[row["id"]]),
        )
        for row in tx.many(dict, "transfer_users")
    )


def _policies(tx: Tx) -> tuple[model.Policy, ...]:
    steps = _grouped(tx.many(dict, "transfer_steps"), "policy_id")
    return tuple(
        model.Policy(**row, steps=tuple(model.Step(tuple(step["targets"]), step["wait"]) for step in steps[row["id"]]))
        for row in tx.many(dict, "transfer_policies")
    )


def _services(tx: Tx) -> tuple[model.Service, ...]:
    integrations = _grouped(tx.many(dict, "transfer_integrations"), "service_id")
    heartbeats = _grouped(tx.many(dict, "transfer_heartbeats"), "service_id")
    return tuple(
        model.Service(
            **row,
            integrations=tuple(model.Integration(**opened(tx, _keyed(item))) for item in integrations[row["id"]]),
            heartbeats=tuple(model.Heartbeat(**_keyed(item)) for item in heartbeats[row["id"]]),
        )
        for row in tx.many(dict, "transfer_services")
    )


def _grouped(rows: Iterable[dict[str, Any]], parent: str) -> Groups:
    groups: Groups = defaultdict(list)
    for row in rows:
        groups[row.pop(parent)].append(row)
    return groups


def _keyed(row: dict[str, Any]) -> dict[str, Any]:
    key = model.Key(row.pop("key_hash"), row.pop("key_prefix"))
    return {**row, "key": key}


def opened(tx: Tx, row: dict[str, Any]) -> dict[str, Any]:
    """A row whose secrets can be read. One sealed under a key that is gone stays as it is kept: nothing but a new
    secret changes it."""
    return {**row, **{name: _opened(tx, row[name]) for name in ("address", "secret") if name in row}}


def _opened(tx: Tx, kept: str | None) -> str | None:
    try:
        return sealing.opened(tx.limits.sealing_keys, kept)
    except sealing.Unreadable:
        return kept
