"""A week of a schedule as a strip: seven days of the reader's zone, and where in them each turn lies."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from escalade import oncall
from escalade.rota import Turn

DAYS = 7
COLOURS = 6


@dataclass(frozen=True, slots=True)
class Week:
    """Monday to Monday in a zone. `starts` are the beginnings of its days and of the next week: a day on which clocks
    change is shorter or longer than others, and as wide as they."""

    monday: date
    starts: Sequence[datetime]

    @property
    def start(self) -> datetime:
        """Its first instant."""
        return self.starts[0]

    @property
    def end(self) -> datetime:
        """The first instant of the next week."""
        return self.starts[-1]

    def place(self, at: datetime) -> float:
        """How far into the week a time is, from 0 to 100."""
        for number, (begin, until) in enumerate(zip(self.starts, self.starts[1:], strict=False)):
            if at < until:
                return 100 / DAYS * (number + max(0.0, (at - begin) / (until - begin)))
        return 100.0


@dataclass(frozen=True, slots=True)
class Bar:
    """One turn on the strip: from `x`, `width` wide, in percent; a gap has nobody. `begins` and `ends` say whether it
    does so in this week."""

    turn: Turn
    x: str
    width: str
    colour: int
    begins: bool
    ends: bool

    @property
    def gap(self) -> bool:
        """Whether nobody is on call."""
        return not self.turn.people

    @property
    def who(self) -> str:
        """The people, as words."""
        return ", ".join(person.name for person in self.turn.people) or "Nobody"


def of(day: date, zone: ZoneInfo) -> Week:
    """The week that a day lies in."""
    monday = day - timedelta(days=day.weekday())
    return Week(monday, [oncall.instant(monday + timedelta(days=n), time(0), zone) for n in range(DAYS + 1)])


def bars(week: Week, turns: Sequence[Turn]) -> list[Bar]:
    """The turns of a week as they stand on its strip. Each set of people keeps its colour through the week."""
    colours: dict[tuple[int, ...], int] = {}
    found = []
    for turn in turns:
        colour = colours.setdefault(tuple(person.id for person in turn.people), len(colours) % COLOURS + 1)
        x = week.place(turn.start)
        width = f"{week.place(turn.end) - x:.3f}%"
        found.append(Bar(turn, f"{x:.3f}%", width, colour, turn.start > week.start, turn.end < week.end))
    return found
