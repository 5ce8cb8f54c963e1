"""Takes the demo out again: what it made and nothing else, and not what people have come to use since."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from escalade import settings
from escalade.db import Tx
from escalade.demo import content

Thing = tuple[str, int]
# Users before what they use, so that nothing is removed from under something else.
_ORDER = {
    "service": "transfer_delete_service",
    "policy": "transfer_delete_policy",
    "schedule": "transfer_delete_schedule",
    "channel": "transfer_delete_channel",
    "user": "transfer_delete_user",
}


@dataclass(frozen=True, slots=True)
class Removal:
    """What was removed, and what was kept with the reason, one line each."""

    removed: list[str]
    kept: list[str]


@dataclass(frozen=True, slots=True)
class Use:
    """That one thing uses another; `by_noun` is policy, service, schedule, integration, heartbeat, setting or
    open incident."""

    by_noun: str
    by_id: int
    by_name: str
    noun: str
    id: int


def remove(tx: Tx) -> Removal:
    """Take everything of the demo out, but what real objects use. What was kept is still known as the demo's."""
    tx.run("lock_configuration")
    made = settings.get(tx, content.SETTING)
    if made is None:
        return Removal([], [])
    names, renamed = _still_ours(tx, made)
    kept = dict(renamed)
    kept |= _in_use(tx, made, set(names) - set(kept))
    if admin := _last_admin(tx, set(names) - set(kept)):
        kept[admin] = "is the last admin who can log in"
        kept |= _in_use(tx, made, set(names) - set(kept))
    going = [thing for noun in _ORDER for thing in names if thing[0] == noun and thing not in kept]
    incidents = _remove_rows(tx, made, going)
    removed = [f"{noun} {names[noun, id_]}" for noun, id_ in going]
    if incidents:
        removed.append("1 incident" if incidents == 1 else f"{incidents} incidents")
    _remember(tx, made, [thing for thing in kept if thing not in renamed])
    return Removal(removed, [f"{thing[0]} {names[thing]}: {why}" for thing, why in kept.items()])


def _still_ours(tx: Tx, made: dict[str, Any]) -> tuple[dict[Thing, str], dict[Thing, str]]:
    """What the demo made and is still here, by name; and what of it has been renamed, which people did to keep it."""
    ids = {plural: made[plural] for plural in content.NOUNS.values()}
    rows = tx.many(dict, "demo_things", names=[], **ids)
    names = {(row["noun"], row["id"]): row["name"] for row in rows}
    renamed = {thing: "it was renamed" for thing, name in names.items() if name.lower() not in content.NAMES}
    return names, renamed


def _in_use(tx: Tx, made: dict[str, Any], going: set[Thing]) -> dict[Thing, str]:
    """What must stay because something that stays uses it, directly or by way of something else."""
    own = {name: made[name] for name in ("integrations", "services", "incidents")}
    uses = tx.many(Use, "demo_uses", now=tx.now, **own)
    uses += _of_fallback(tx)
    kept: dict[Thing, str] = {}
    while found := _used_by_others(uses, going - set(kept)):
        kept |= found
    return kept


def _used_by_others(uses: Iterable[Use], going: set[Thing]) -> dict[Thing, str]:
    found: dict[Thing, str] = {}
    for use in uses:
        if (use.noun, use.id) in going and (use.by_noun, use.by_id) not in going:
            found.setdefault((use.noun, use.id), f"{use.by_noun} {use.by_name} uses it")
    return found


def _of_fallback(tx: Tx) -> list[Use]:
    """The fallback's uses, unless it is still the one that the demo set."""
    targets = settings.fallback(tx)
    if [target.label for target in targets] == [content.FALLBACK]:
        return []
    return [Use("setting", 0, "fallback", target.kind, target.id) for target in targets]


def _last_admin(tx: Tx, going: set[Thing]) -> Thing | None:
    """The admin without whom others could log in, and nobody could change anything."""
    people = tx.many(dict, "people_with_password")
    staying = [row for row in people if ("user", row["id"]) not in going]
    leaving = [row for row in people if ("user", row["id"]) in going and row["role"] == "admin"]
    if not staying or not leaving or any(row["role"] == "admin" for row in staying):
        return None
    return "user", leaving[0]["id"]


def _remove_rows(tx: Tx, made: dict[str, Any], going: list[Thing]) -> int:
    """Delete these things and the demo's incidents; how many incidents."""
    services = _ids(going, "service")
    tx.values("lock_services", ids=services)
    incidents = tx.values("lock_demo_incidents", services=services, incidents=made["incidents"])
    tx.values("lock_attempts_of", ids=incidents)
    tx.run("delete_incidents", ids=incidents)
    people, channels = _ids(going, "user"), _ids(going, "channel")
    gates = tx.values("destinations_of", users=people, channels=channels)
    if channels and not _of_fallback(tx):
        tx.run("delete_setting", name="fallback")
    for noun, id_ in going:
        tx.run(_ORDER[noun], id=id_)
    tx.run("forget_destinations", names=gates)
    return len(incidents)


def _ids(things: Iterable[Thing], noun: str) -> list[int]:
    return [id_ for kind, id_ in things if kind == noun]


def _remember(tx: Tx, made: dict[str, Any], kept: list[Thing]) -> None:
    """Forget the demo, or know what is left of it; what was renamed is nobody's demo any more."""
    left = {plural: _ids(kept, noun) for noun, plural in content.NOUNS.items()}
    if any(left.values()):
        settings.put(tx, content.SETTING, {**made, **left, "incidents": []})
    else:
        tx.run("delete_setting", name=content.SETTING)
