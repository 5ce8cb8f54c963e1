"""What can be wrong with a file only in view of what is stored: names, viewers, keys, the last login."""

from collections.abc import Iterator

from escalade.transfer.document import Document
from escalade.transfer.faults import Faults, Place, Reference, did_you_mean, quoted
from escalade.transfer.keeping import filled
from escalade.transfer.model import Configuration, Key, Rotation, Service, by_identity, identity


def checked(document: Document, stored: Configuration, prune: bool) -> Configuration:
    """The whole configuration the file asks for. Raises Faults with everything that is wrong with it."""
    given = document.configuration
    rest = Configuration() if prune else _others(stored, given)
    _check_references(document.root.references, given, rest)
    whole = filled(given, stored)
    _check_keys(whole, stored, rest)
    _check_new_viewers(given, stored, rest)
    _check_logins(given, stored, prune, document.root)
    if document.root.faults:
        raise Faults(document.faults)
    return whole


def _others(stored: Configuration, given: Configuration) -> Configuration:
    """What is stored and the file does not name."""
    users, channels = by_identity(given.users), by_identity(given.channels)
    schedules, policies = by_identity(given.schedules), by_identity(given.policies)
    services = by_identity(given.services)
    return Configuration(
        stored.settings if given.settings is None else None,
        tuple(one for one in stored.users if identity(one) not in users),
        tuple(one for one in stored.channels if one.name not in channels),
        tuple(one for one in stored.schedules if one.name not in schedules),
        tuple(one for one in stored.policies if one.name not in policies),
        tuple(one for one in stored.services if one.name not in services),
    )


def _check_references(references: list[Reference], given: Configuration, rest: Configuration) -> None:
    roles = {identity(user): user.role for user in (*rest.users, *given.users)}
    known = {
        "user": set(roles),
        "channel": {one.name for one in (*rest.channels, *given.channels)},
        "schedule": {one.name for one in (*rest.schedules, *given.schedules)},
        "policy": {one.name for one in (*rest.policies, *given.policies)},
    }
    for reference in references:
        name, names = reference.name, known[reference.noun]
        if name not in names:
            reference.place.fault(f"no {reference.noun} {quoted(name)}{did_you_mean(name, names)}")
        elif reference.noun == "user" and reference.use and roles[name] == "viewer":
            reference.place.fault(f"{name} is a viewer and cannot be {reference.use}")


def _check_keys(whole: Configuration, stored: Configuration, rest: Configuration) -> None:
    for noun, keys in (("integration", _integration_keys), ("heartbeat", _heartbeat_keys)):
        before = {label: digest for label, digest, _ in keys(stored.services)}
        holders = {digest: label for label, digest, _ in keys(rest.services)}
        # Those that keep their key come first: at fault is who takes it.
        wanted = sorted(keys(whole.services), key=lambda one: before.get(one[0]) != one[1])
        for label, digest, place in wanted:
            holder = holders.setdefault(digest, label)
            if holder != label:
                place.at("key").fault(f"{noun} {holder} has this key")


def _integration_keys(services: tuple[Service, ...]) -> Iterator[tuple[str, str, Place]]:
    for service in services:
        for one in service.integrations:
            if isinstance(one.key, Key):
                yield f"{service.name}/{one.name}", one.key.digest, one.place


def _heartbeat_keys(services: tuple[Service, ...]) -> Iterator[tuple[str, str, Place]]:
    for service in services:
        for one in service.heartbeats:
            if isinstance(one.key, Key):
                yield f"{service.name}/{one.name}", one.key.digest, one.place


def _check_new_viewers(given: Configuration, stored: Configuration, rest: Configuration) -> None:
    """Whoever becomes a viewer must not be left in what stays as it is stored."""
    roles = {identity(user): user.role for user in stored.users}
    holders = set(_holders(given, stored, rest))
    for user in given.users:
        if user.role == "viewer" and roles.get(identity(user), "viewer") != "viewer":
            for holder in sorted(holder for holder, target in holders if target == f"user:{identity(user)}"):
                user.place.at("role").fault(f"a viewer cannot be in {holder}")


def _holders(given: Configuration, stored: Configuration, rest: Configuration) -> Iterator[tuple[str, str]]:
    """Which targets stay in what: pairs such as `policy "default"` and `user:alice@example.com`."""
    yield from (("the fallback", target) for target in (rest.settings.fallback if rest.settings else ()))
    for policy in rest.policies:
        yield from ((f"policy {quoted(policy.name)}", target) for step in policy.steps for target in step.targets)
    named = by_identity(given.schedules)
    for schedule in (*rest.schedules, *(one for one in stored.schedules if one.name in named)):
        emails = [override.user for override in schedule.stand_ins]
        if schedule.name not in named or named[schedule.name].overrides is None:
            emails += [override.user for override in schedule.overrides or ()]
        if schedule.name not in named:
            emails += [email for rotation in schedule.rotations for email in _people(rotation)]
        yield from ((f"schedule {quoted(schedule.name)}", f"user:{email}") for email in emails)


def _people(rotation: Rotation) -> Iterator[str]:
    yield from rotation.participants
    for change in rotation.roster_changes:
        yield from change.participants


def _check_logins(given: Configuration, stored: Configuration, prune: bool, root: Place) -> None:
    users = by_identity(given.users)
    admins = [user for user in stored.users if user.role == "admin" and user.can_log_in]
    lost = []
    for admin in admins:
        user = users.get(identity(admin))
        if user is not None and user.role in ("responder", "viewer"):
            lost.append((user.place.at("role"), f"{admin.email} would be no admin any more"))
        elif user is None and prune:
            lost.append((root.at("users"), f"--prune would remove {admin.email}"))
    if len(lost) == len(admins):
        for place, what in lost:
            place.fault(f"{what}, and no admin who can log in would be left")
