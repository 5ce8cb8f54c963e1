"""What is written down during a campaign, as plain data. All times are Unix seconds of the one machine's clock."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf


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
    """Something that was broken. `hit` names the processes it struck, by pid; None: the database, and so all of them.

    `mended` is when its cause was over: never, for a process that was killed. `ended` is when every process was ready
    again; `away_until`, where no process could reach the database, until when. `done` says that it was seen to have
    broken what it should, and `note` what was seen.
    """

    kind: str
    began: float
    ended: float = inf
    away_until: float | None = None
    hit: frozenset[int] | None = None
    mended: float = inf
    done: bool = False
    note: str = ""


@dataclass(frozen=True)
class Answer:
    """An incident acknowledged or resolved: when the server said so, and which attempts it said were under way."""

    incident: int
    at: float
    in_flight: frozenset[int]


@dataclass(frozen=True)
class Attempt:
    """A page as the database knows it at the end; `tries` are the outcomes recorded, by the number of the claim."""

    id: int
    incident: int
    key: str
    status: str
    first_due: float
    tries: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Move:
    """One change of an attempt's status or claim, as a trigger saw it.

    `seq`, `pid` and `lease_until` are those of the claim that holds the row after the change, or held it before; `by`
    is the process that made the change, where it came over a process's own wire.
    """

    attempt: int
    seq: int
    pid: int
    before: str
    after: str
    at: float
    lease_until: float
    by: int | None
    error: str = ""


@dataclass
class Record:
    """Everything the checker looks at; every alert pages so many people. `stopped` is when the database has it that an
    incident was acknowledged or resolved first; `processes` is how many served at the beginning."""

    people: int = 1
    processes: int = 0
    accepted: set[int] = field(default_factory=set)
    requests: list[Request] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    stopped: dict[int, float] = field(default_factory=dict)
    attempts: list[Attempt] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
