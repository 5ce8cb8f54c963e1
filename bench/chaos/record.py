"""What is written down during a campaign, as plain data. All times are Unix seconds of the one machine's clock."""

from dataclasses import dataclass, field


@dataclass
class Request:
    """One page at the receiver: `answered` None means that the answer could not be given."""

    attempt: int
    incident: int
    key: str
    port: int
    arrived: float
    answered: float | None = None


@dataclass
class Fault:
    """Something that was broken: from when, until when every process was ready again, and, where no process could
    reach the database, until when (`away_until`)."""

    kind: str
    began: float
    ended: float = 0.0
    away_until: float | None = None


@dataclass(frozen=True)
class Answer:
    """An incident acknowledged or resolved: when the server said so, and which attempts it said were under way."""

    incident: int
    at: float
    in_flight: frozenset[int]


@dataclass(frozen=True)
class Attempt:
    """A page as the database knows it at the end."""

    id: int
    incident: int
    key: str
    status: str
    first_due: float
    tries: tuple[str, ...] = ()


@dataclass(frozen=True)
class Claim:
    """One change of an attempt's status to IN_FLIGHT, as a trigger saw it; `before` is the status it had."""

    attempt: int
    seq: int
    owner: str
    before: str


@dataclass
class Record:
    """Everything the checker looks at; every alert pages so many people."""

    people: int = 1
    accepted: set[int] = field(default_factory=set)
    requests: list[Request] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
