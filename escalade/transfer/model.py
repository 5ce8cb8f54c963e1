"""The configuration as values, the same whether read from a file or from the database.

Things name each other as the file does: users by their e-mail in lower case, targets as `schedule:primary`. What is
compared is the configuration alone; `id` is a row's (0 in a file), `place` where it stands in the file.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, time
from typing import TypeVar

from escalade.transfer.faults import Place

KEPT = "kept"


@dataclass(frozen=True, slots=True)
class Settings:
    """What holds for the whole installation."""

    fallback: tuple[str, ...] = ()
    repage_exhausted_after: int | None = None


@dataclass(frozen=True, slots=True)
class Contact:
    """A contact method of a user, or a channel. `pace` None: the default of its kind.

    In a file `secret` is None where it is left out and "" where it is to go; `address` and `secret` may be `kept`.
    """

    name: str
    kind: str
    address: str
    secret: str | None = field(default=None, repr=False)
    updates: bool = False
    pace: int | None = None
    verified: bool = field(default=True, compare=False)
    id: int = field(default=0, compare=False)
    place: Place = field(default_factory=Place, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Rule:
    """When a contact method is used; `urgency` None: for both."""

    contact_method: str
    after: int
    urgency: str | None = None


@dataclass(frozen=True, slots=True)
class User:
    """A person. `email` is spelled as given."""

    email: str
    name: str | None
    role: str
    timezone: str
    contact_methods: tuple[Contact, ...] = ()
    notification_rules: tuple[Rule, ...] = ()
    can_log_in: bool = field(default=False, compare=False)
    id: int = field(default=0, compare=False)
    place: Place = field(default_factory=Place, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Window:
    """On each of `days` from `start` to `end`, wall clock."""

    days: tuple[str, ...]
    start: time
    end: time


@dataclass(frozen=True, slots=True)
class RosterChange:
    """From `at` on, these participants."""

    at: datetime
    participants: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rotation:
    """People who take turns."""

    name: str
    participants: tuple[str, ...]
    unit: str
    length: int
    start_date: date
    handoff_time: time
    restrictions: tuple[Window, ...] = ()
    roster_changes: tuple[RosterChange, ...] = ()
    id: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Override:
    """A change of who is on call between two instants."""

    kind: str
    user: str
    start: datetime
    end: datetime
    replaces: str | None = None
    id: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Schedule:
    """Rotations and overrides. `overrides` are those that came from YAML, None in a file that leaves them out;
    `stand_ins` those that people made and that have not ended, which no file holds."""

    name: str
    timezone: str
    rotations: tuple[Rotation, ...] = ()
    overrides: tuple[Override, ...] | None = None
    stand_ins: tuple[Override, ...] = field(default=(), compare=False)
    id: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Step:
    """A rung of a policy."""

    targets: tuple[str, ...]
    wait: int


@dataclass(frozen=True, slots=True)
class Policy:
    """Whom an incident climbs to."""

    name: str
    repeat: int
    steps: tuple[Step, ...] = ()
    id: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Key:
    """What is stored of a key."""

    digest: str
    prefix: str


@dataclass(frozen=True, slots=True)
class Integration:
    """A way in for alerts. `key` None: left out of the file."""

    name: str
    kind: str
    key: Key | str | None = field(default=None, repr=False)
    secret: str | None = field(default=None, repr=False)
    verify: bool = False
    id: int = field(default=0, compare=False)
    place: Place = field(default_factory=Place, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Something that must call in once per `interval`; `paused` is the reason while it need not."""

    name: str
    interval: int
    grace: int = 0
    key: Key | str | None = field(default=None, repr=False)
    paused: str | None = None
    id: int = field(default=0, compare=False)
    place: Place = field(default_factory=Place, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Service:
    """What alerts are about."""

    name: str
    policy: str
    urgency: str
    ack_timeout: int | None = None
    auto_resolve: int | None = None
    integrations: tuple[Integration, ...] = ()
    heartbeats: tuple[Heartbeat, ...] = ()
    id: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Configuration:
    """A whole configuration. `settings` None: left out of the file."""

    settings: Settings | None = None
    users: tuple[User, ...] = ()
    channels: tuple[Contact, ...] = ()
    schedules: tuple[Schedule, ...] = ()
    policies: tuple[Policy, ...] = ()
    services: tuple[Service, ...] = ()


Thing = User | Contact | Schedule | Rotation | Policy | Service | Integration | Heartbeat
T = TypeVar("T", bound=Thing)


def identity(thing: Thing) -> str:
    """What makes it the same thing in the file and in the database: its name, or the e-mail whatever its case."""
    return thing.email.lower() if isinstance(thing, User) else thing.name


def by_identity(things: Iterable[T]) -> dict[str, T]:
    """The things by what identifies them."""
    return {identity(thing): thing for thing in things}
