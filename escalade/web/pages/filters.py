"""The filter of the list of attempts, as an address or a form carries it: every action and every link hands it on."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeVar

from escalade import clean, oncall, overview
from escalade.errors import Invalid
from escalade.listing import Filter, Place
from escalade.web.pages import words

T = TypeVar("T")
NAMES = ("status", "transport", "who", "service", "from", "until", "page")
LONGEST = 400
LARGEST_ID = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked for. `typed` are the fields as they came, for links and forms; `faults` says of a field why it
    cannot be read, and then nothing is listed."""

    filter: Filter
    place: Place | None
    typed: Mapping[str, str]
    faults: Mapping[str, str] = field(default_factory=dict)

    @property
    def whole(self) -> dict[str, str]:
        """The filter without its page: where the list begins."""
        return {name: text for name, text in self.typed.items() if name != "page"}

    def with_(self, **changed: str) -> dict[str, str]:
        """The fields for another status or page."""
        return self.whole | changed


def read(values: Mapping[str, str]) -> Asked:
    """The filter in an address or a form. Times are read in the zone the page is shown in."""
    typed = carried(values)
    # Whatever status somebody writes into the address, one is shown, and it is the one the list is of.
    typed["status"] = typed.get("status", "") if typed.get("status") in overview.STATUSES else "FAILED"
    faults: dict[str, str] = {}
    since = _tried("from", typed, faults, local_time)
    until = _tried("until", typed, faults, local_time)
    if since is not None and until is not None and until <= since:
        faults["until"] = "Until must come after from."
    place = _tried("page", typed, faults, _place)
    wanted = Filter(typed["status"], typed.get("transport"), typed.get("who"), typed.get("service"), since, until)
    return Asked(wanted, place, typed, faults)


def carried(values: Mapping[str, str]) -> dict[str, str]:
    """The fields of a filter as a form brought them, for the address that it goes back to."""
    return {name: text for name in NAMES if (text := clean.text(values.get(name, ""), LONGEST)[0].strip())}


def page_name(place: Place) -> str:
    """A place as an address carries it."""
    return f"{words.utc_exact(place.at)},{place.id}"


def local_time(text: str) -> datetime:
    """A time as a browser's field gives it, in the zone of the page. Raises Invalid."""
    try:
        at = datetime.fromisoformat(text)
        # A year's room at each end, for offsets.
        if at.tzinfo is not None or not oncall.FIRST_YEAR < at.year < oncall.LAST_YEAR:
            raise ValueError(text)
    except ValueError:
        raise Invalid("This must be a date and a time, such as 2026-01-31T20:00.") from None
    return oncall.instant(at.date(), at.time(), words.zone())


def _place(text: str) -> Place:
    at, _, number = text.partition(",")
    try:
        moment, number_ = datetime.fromisoformat(at), int(number)
        if moment.tzinfo is None or not 0 < number_ <= LARGEST_ID or not 1900 < moment.year < 9000:
            raise ValueError(text)
        return Place(moment.astimezone(UTC), number_)
    except ValueError:
        raise Invalid("This page of the list cannot be found again: begin at its first.") from None


def _tried(name: str, typed: Mapping[str, str], faults: dict[str, str], parse: Callable[[str], T]) -> T | None:
    text = typed.get(name)
    if text is None:
        return None
    try:
        return parse(text)
    except Invalid as refusal:
        faults[name] = refusal.message
        return None
