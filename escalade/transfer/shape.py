"""What a configuration file may say: every mapping of it with its fields, their kinds and their defaults."""

from dataclasses import replace

from escalade import oncall
from escalade.inbound import PARSERS
from escalade.transfer import kinds, model
from escalade.transfer.faults import Place, did_you_mean, quoted
from escalade.transfer.kinds import choice, duration, one_of, whole
from escalade.transfer.records import TARGET, Field, Fields, many, named, record, user_as
from escalade.transports import TRANSPORTS

LONGEST_PACE = 3600


def _contact(contact: model.Contact, place: Place) -> model.Contact:
    transport = TRANSPORTS.get(contact.kind)
    if transport is None:
        return contact
    if contact.address and not (transport.secret_address and contact.address == model.KEPT):
        fault = transport.check_address(contact.address)
        if fault is not None:
            place.at("address").fault(fault)
    if contact.secret and not transport.takes_secret:
        place.at("secret").fault(f"{contact.kind} takes no secret")
    return contact if contact.pace is not None else replace(contact, pace=default_pace(contact.kind))


def default_pace(kind: str) -> int:
    """The least seconds between two messages by this kind of transport where the file names none."""
    transport = TRANSPORTS.get(kind)
    return int(transport.default_pace) if transport is not None else 0


def _user(user: model.User, place: Place) -> model.User:
    names = [method.name for method in user.contact_methods]
    first: dict[model.Rule, int] = {}
    for index, rule in enumerate(user.notification_rules):
        at = place.at("notification_rules").item(index)
        if rule.contact_method and rule.contact_method not in names:
            hint = did_you_mean(rule.contact_method, names)
            at.at("contact_method").fault(f"no contact method {quoted(rule.contact_method)}{hint}")
        earlier = first.setdefault(rule, index)
        if earlier != index and rule.contact_method and rule.after is not None:
            at.fault(f"the same contact method, urgency and delay as notification_rules[{earlier}]")
    return user if user.name is not None else replace(user, name=user.email)


def _rotation(rotation: model.Rotation, place: Place) -> model.Rotation:
    changes = [change for change in rotation.roster_changes if change.at is not None]
    return replace(rotation, roster_changes=tuple(sorted(changes, key=lambda change: change.at)))


def _override(override: model.Override, place: Place) -> model.Override:
    if override.kind == "replace" and override.replaces is None:
        place.at("replaces").fault("required where kind is replace")
    if override.kind in ("take", "remove") and override.replaces is not None:
        place.at("replaces").fault(f"has no meaning where kind is {override.kind}")
    if None not in (override.start, override.end) and override.end <= override.start:
        place.at("end").fault("must be after start")
    return override


SETTINGS: Fields = {
    "fallback": Field(many(TARGET), ()),
    "repage_exhausted_after": Field(duration(), None),
}
CONTACT: Fields = {
    "name": Field(kinds.NAME),
    "kind": Field(one_of("transport", lambda: list(TRANSPORTS))),
    "address": Field(kinds.ADDRESS),
    "secret": Field(kinds.SECRET, None),
    "updates": Field(kinds.SWITCH, False),
    "pace": Field(duration(0, LONGEST_PACE), None),
}
RULE: Fields = {
    "contact_method": Field(kinds.METHOD),
    "after": Field(duration(0), 0),
    "urgency": Field(choice("high", "low"), None),
}
USER: Fields = {
    "email": Field(kinds.EMAIL),
    "name": Field(kinds.NAME, None),
    "role": Field(choice("admin", "responder", "viewer"), "responder"),
    "timezone": Field(kinds.ZONE, "UTC"),
    "contact_methods": Field(many(record(model.Contact, CONTACT, _contact), "name"), (), own=True),
    "notification_rules": Field(many(record(model.Rule, RULE)), ()),
}
WINDOW: Fields = {
    "days": Field(many(choice(*oncall.DAYS))),
    "from": Field(kinds.TIME, attribute="start"),
    "to": Field(kinds.TIME, attribute="end"),
}
ROSTER_CHANGE: Fields = {
    "at": Field(kinds.INSTANT),
    "participants": Field(many(user_as("a participant"))),
}
ROTATION: Fields = {
    "name": Field(kinds.NAME),
    "participants": Field(many(user_as("a participant"))),
    "unit": Field(choice(*oncall.UNITS)),
    "length": Field(whole(1, 10_000), 1),
    "start_date": Field(kinds.DATE),
    "handoff_time": Field(kinds.TIME),
    "restrictions": Field(many(record(model.Window, WINDOW)), ()),
    "roster_changes": Field(many(record(model.RosterChange, ROSTER_CHANGE)), ()),
}
OVERRIDE: Fields = {
    "kind": Field(choice(*oncall.KINDS)),
    "user": Field(user_as("the user of an override")),
    "replaces": Field(user_as(""), None),
    "start": Field(kinds.INSTANT),
    "end": Field(kinds.INSTANT),
}
SCHEDULE: Fields = {
    "name": Field(kinds.NAME),
    "timezone": Field(kinds.ZONE, "UTC"),
    "rotations": Field(many(record(model.Rotation, ROTATION, _rotation), "name"), (), own=True),
    "overrides": Field(many(record(model.Override, OVERRIDE, _override)), None),
}
STEP: Fields = {
    "targets": Field(many(TARGET)),
    "wait": Field(duration()),
}
POLICY: Fields = {
    "name": Field(kinds.NAME),
    "repeat": Field(whole(0, 1_000), 0),
    "steps": Field(many(record(model.Step, STEP)), ()),
}
INTEGRATION: Fields = {
    "name": Field(kinds.NAME),
    "kind": Field(one_of("integration kind", lambda: list(PARSERS))),
    "key": Field(kinds.KEY, None),
    "secret": Field(kinds.SECRET, None),
    "verify": Field(kinds.SWITCH, False),
}
HEARTBEAT: Fields = {
    "name": Field(kinds.NAME),
    "interval": Field(duration()),
    "grace": Field(duration(0), 0),
    "key": Field(kinds.KEY, None),
    "paused": Field(kinds.REASON, None),
}
SERVICE: Fields = {
    "name": Field(kinds.NAME),
    "policy": Field(named("policy")),
    "urgency": Field(choice("high", "low", "severity"), "severity"),
    "ack_timeout": Field(duration(), None),
    "auto_resolve": Field(duration(), None),
    "integrations": Field(many(record(model.Integration, INTEGRATION), "name"), (), own=True),
    "heartbeats": Field(many(record(model.Heartbeat, HEARTBEAT), "name"), (), own=True),
}
CONFIGURATION: Fields = {
    "settings": Field(record(model.Settings, SETTINGS), None),
    "users": Field(many(record(model.User, USER, _user), "email"), ()),
    "channels": Field(many(record(model.Contact, CONTACT, _contact), "name"), ()),
    "schedules": Field(many(record(model.Schedule, SCHEDULE), "name"), ()),
    "policies": Field(many(record(model.Policy, POLICY), "name"), ()),
    "services": Field(many(record(model.Service, SERVICE), "name"), ()),
}
FILE = record(model.Configuration, CONFIGURATION)
