"""What the forms of Setup call things: a label and a hint for each field of the configuration."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Section:
    """One list of the configuration: its heading, what one of it is called, and what deleting one does."""

    title: str
    one: str
    deleting: str


SECTIONS = {
    "users": Section("People", "person", "Their contact methods, rules and logins go with them."),
    "channels": Section("Channels", "channel", "Nothing is sent there any more."),
    "schedules": Section("Schedules", "schedule", "Its rotations and overrides go with it."),
    "policies": Section("Escalation policies", "policy", "Incidents under way keep the steps they began with."),
    "services": Section("Services", "service", "Its keys stop working at once; its incidents stay."),
}

KEY = "Leave it empty: a long one is made, and shown once after saving."
ZONED = "As 2026-02-01T09:00:00Z or +01:00; without a zone, in the zone of the schedule."
# By the path without numbers, or by the field's own name.
LABELS: dict[str, tuple[str, str]] = {
    "name": ("Name", ""),
    "users.name": ("Name", "What pages call them; empty: the e-mail."),
    "email": ("E-mail", "Who it is, and the login."),
    "role": ("Role", "A viewer reads and is never paged; a responder acts on incidents; an admin does everything."),
    "timezone": ("Time zone", "As Europe/Berlin."),
    "users.timezone": ("Time zone", "The times they see, as Europe/Berlin."),
    "schedules.timezone": ("Time zone", "The zone of its wall-clock times, as Europe/Berlin."),
    "contact_methods": ("Contact methods", "How they are reached. What an admin enters here counts as verified."),
    "notification_rules": ("Notification rules", "Which is used when. Without rules: all at once."),
    "kind": ("Kind", ""),
    "integrations.kind": ("Tool", "Which tool sends the alerts."),
    "overrides.kind": ("Kind", "take: alone on call. replace: in place of somebody. remove: not on call."),
    "address": ("Address", ""),
    "secret": ("Secret", ""),
    "integrations.secret": ("Secret", "What the tool proves itself with, where the next is on."),
    "updates": ("Also tell it that somebody acknowledged, or that it is over", ""),
    "pace": ("Least time between two messages", "From 0s to 1h; empty: as usual for its kind."),
    "contact_method": ("Contact method", ""),
    "after": ("After", "So long after the step that names the person, as 2m."),
    "urgency": ("Urgency", ""),
    "services.urgency": ("Urgency", "severity: critical and error are high, the rest is low."),
    "rotations": ("Rotations", "People who take turns. Whoever one of them names is on call."),
    "participants": ("Participants", "In the order of their turns."),
    "unit": ("Turns are counted in", ""),
    "length": ("A turn lasts so many of them", ""),
    "start_date": ("First day", ""),
    "handoff_time": ("Hand-off time", "Wall clock, as 09:00."),
    "restrictions": ("Restrictions", "Windows of the week outside which nobody is on call."),
    "days": ("Days", ""),
    "from": ("From", ""),
    "to": ("To", "Not later than From: on the next day."),
    "roster_changes": ("Roster changes", "From a moment on, other participants."),
    "at": ("From", ZONED),
    "overrides": ("Overrides", "Changes for a while. Those that people made on the On call page are not among them."),
    "user": ("Who", ""),
    "replaces": ("In place of", "Only for replace."),
    "start": ("Start", ZONED),
    "end": ("End", ""),
    "repeat": ("More rounds after the first", ""),
    "steps": ("Steps", "In their order."),
    "targets": ("Who is paged", "All of them at once."),
    "wait": ("Then wait", "Until the next step, the next round or the end, as 5m."),
    "policy": ("Escalation policy", ""),
    "ack_timeout": ("Page again after an acknowledgement", "As 30m, unless it is resolved by then; empty: never."),
    "auto_resolve": ("Resolve without another alert", "As 24h; empty: never."),
    "integrations": ("Integrations", "Ways in for alerts."),
    "key": ("Key", KEY),
    "verify": ("Refuse what does not bring the secret", ""),
    "heartbeats": ("Heartbeats", "Jobs that must call in; one that is late opens an incident."),
    "interval": ("Interval", "How often it calls in, as 1d."),
    "grace": ("Grace", "How much later it may be, as 10m."),
    "paused": ("Paused, because", "While there is a reason here, nobody is told that it is late."),
    "fallback": ("Fallback", "Paged once when the last round is over and nobody acknowledged."),
    "repage_exhausted_after": (
        "Page again when a repeated alert is exhausted",
        "An alert that repeats so long after that pages again from step one, as 1h; empty: never.",
    ),
}
# What one line of a list is called.
ONE = {
    "contact_methods": "contact method",
    "notification_rules": "rule",
    "rotations": "rotation",
    "participants": "participant",
    "restrictions": "restriction",
    "roster_changes": "roster change",
    "overrides": "override",
    "steps": "step",
    "targets": "target",
    "integrations": "integration",
    "heartbeats": "heartbeat",
    "fallback": "target",
}
# What the choice that is no choice is called.
NONE = {"notification_rules.urgency": "both", "overrides.replaces": "nobody"}


def label(path: str, section: str) -> tuple[str, str]:
    """Label and hint of a field, by its path without numbers."""
    owner, _, name = f"{section}.{path}".rpartition(".")
    return LABELS.get(f"{owner.rpartition('.')[2]}.{name}") or LABELS[name]
