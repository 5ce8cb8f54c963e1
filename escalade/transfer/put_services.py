"""Writes services with their integrations and heartbeats, and the settings. A new key is told once."""

from dataclasses import replace
from typing import Any, TypeVar

from escalade import settings, tokens
from escalade.transfer import shape
from escalade.transfer.kinds import new_key
from escalade.transfer.model import Heartbeat, Integration, Key, Service, Settings, by_identity
from escalade.transfer.writer import HEARTBEAT, INTEGRATION, SERVICE, Change, Noun, Writer, differences

K = TypeVar("K", Integration, Heartbeat)


def put_services(writer: Writer, stored: tuple[Service, ...], wanted: tuple[Service, ...]) -> None:
    """Make these services what the file says; others stay."""
    old = by_identity(stored)
    for service in wanted:
        before = old.get(service.name)
        columns = {
            "name": service.name,
            "policy_id": writer.ids.get(("policy", service.policy), 0),
            "urgency": service.urgency,
            "ack_timeout": service.ack_timeout,
            "auto_resolve": service.auto_resolve,
        }
        service_id, _ = writer.put(SERVICE, service.name, before, service, columns)
        _put_integrations(writer, service_id, before, service)
        _put_heartbeats(writer, service_id, before, service)


def release_keys(writer: Writer, stored: tuple[Service, ...], wanted: tuple[Service, ...]) -> None:
    """Free the keys that stored integrations and heartbeats do not keep: another may take one over."""
    keep = by_identity(wanted)
    for service in stored:
        new = keep.get(service.name)
        integrations = _changed(service.integrations, new.integrations if new else ())
        heartbeats = _changed(service.heartbeats, new.heartbeats if new else ())
        if integrations:
            writer.run("transfer_release_integration_keys", ids=integrations)
        if heartbeats:
            writer.run("transfer_release_heartbeat_keys", ids=heartbeats)


def put_settings(writer: Writer, stored: Settings, wanted: Settings) -> None:
    """Make the settings what the file says."""
    writer.changes += [Change("settings", "", what) for what in differences(shape.SETTINGS, stored, wanted)]
    if writer.dry_run:
        return
    if stored != wanted:
        writer.record("settings", "settings", shape.SETTINGS, stored, wanted)
    if stored.fallback != wanted.fallback:
        targets = [target.split(":", 1) for target in wanted.fallback]
        value = [{"kind": kind, "id": writer.ids[kind, name], "name": name} for kind, name in targets]
        settings.put(writer.tx, "fallback", value)
    if stored.repage_exhausted_after != wanted.repage_exhausted_after:
        settings.put(writer.tx, "repage_exhausted_after", wanted.repage_exhausted_after)


def _changed(old: tuple[K, ...], new: tuple[K, ...]) -> list[int]:
    keys = {one.name: one.key for one in new}
    return [one.id for one in old if keys.get(one.name) != one.key]


def _put_integrations(writer: Writer, service_id: int, old: Service | None, service: Service) -> None:
    stored = old.integrations if old else ()
    writer.remove_others(INTEGRATION, service.name, stored, service.integrations)
    others = by_identity(stored)
    for one in service.integrations:
        columns = {"service_id": service_id, "name": one.name, "kind": one.kind, "secret": writer.sealed(one.secret)}
        columns["verify"] = one.verify
        _put_keyed(writer, INTEGRATION, service.name, others.get(one.name), one, columns, old is None)


def _put_heartbeats(writer: Writer, service_id: int, old: Service | None, service: Service) -> None:
    stored = old.heartbeats if old else ()
    writer.remove_others(HEARTBEAT, service.name, stored, service.heartbeats)
    others = by_identity(stored)
    for one in service.heartbeats:
        before = others.get(one.name)
        columns = {"service_id": service_id, "name": one.name, "interval": one.interval, "grace": one.grace}
        columns["paused"] = one.paused
        if before is not None:
            columns["now"] = writer.tx.now
        _put_keyed(writer, HEARTBEAT, service.name, before, one, columns, old is None)


def _put_keyed(
    writer: Writer, noun: Noun, owner: str, old: K | None, new: K, columns: dict[str, Any], part_of_new: bool
) -> None:
    """Write a thing that has a key, making one where neither the file nor the database has it."""
    name, made = f"{owner}/{new.name}", "" if isinstance(new.key, Key) else f"k_{tokens.new_secret()}"
    key = new.key if isinstance(new.key, Key) else new_key(made)
    columns = {**columns, "key_hash": key.digest, "key_prefix": key.prefix}
    writer.put(noun, name, old, replace(new, key=key), columns, part_of_new=part_of_new)
    if made and not writer.dry_run:
        writer.tell(noun, name, f"key {made}")
