"""Whom an incident is given to, as people write it: user:..., schedule:... or channel:..."""

from escalade import schedules, users
from escalade.db import Tx
from escalade.errors import Invalid, NotFound
from escalade.ladder import Target


def resolve(tx: Tx, text: str, field: str = "target") -> Target:
    """The target that this text names. Raises Invalid, naming the field."""
    kind, colon, name = text.partition(":")
    if not colon or kind not in ("user", "schedule", "channel"):
        raise Invalid(f"{field} must be user:E-MAIL, schedule:NAME or channel:NAME.", field)
    if kind == "user":
        person = pageable(tx, name, field)
        return Target("user", person.id, person.email)
    if kind == "schedule":
        try:
            schedule = schedules.find(tx, name)
        except NotFound as refusal:
            raise Invalid(refusal.message, field) from None
        return Target("schedule", schedule.id, schedule.name)
    channel = tx.maybe(dict, "channel_by_name", name=name)
    if channel is None:
        raise Invalid(f"There is no channel {name!r}.", field)
    return Target("channel", channel["id"], channel["name"])


def pageable(tx: Tx, email: str, field: str) -> users.User:
    """The person with this e-mail, who must be one that can be paged. Raises Invalid, naming the field."""
    person = users.by_email(tx, email)
    if person is None:
        raise Invalid(f"There is no user {email!r}.", field)
    if person.role == "viewer":
        raise Invalid(f"{person.email} is a viewer, and viewers are not paged.", field)
    return person
