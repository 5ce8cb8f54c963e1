"""Kinds of values: how each is read from a file, and how it is written into one."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from typing import Any
from zoneinfo import available_timezones

import yaml

from escalade import durations, oncall, tokens
from escalade.errors import Invalid
from escalade.transfer.faults import Place, did_you_mean, quoted
from escalade.transfer.model import KEPT, Key
from escalade.transports.addresses import check_mail

NAME_LIMIT = 250
TEXT_LIMIT = 2_000
KEY_LENGTH = 20
PREFIX_LENGTH = 8
SWITCHES = {"on": True, "true": True, "yes": True, "off": False, "false": False, "no": False}

_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_UNFIT_IN_LINES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of value. `read` notes what is wrong at the place and answers `blank` then.

    `show` gives what a file says for a value; `told` is whether a change of it may be printed with its values.
    How a form asks for it: `parts` are the fields of a mapping, `item` the kind of what a list holds, `words` the
    words to choose from, and `form` says what the text is (a date, say, or the name of a policy).
    """

    read: Callable[[Any, Place], Any]
    show: Callable[[Any], Any] = lambda value: value
    blank: Any = None
    told: bool = True
    form: str = "text"
    words: Callable[[], list[str]] | None = None
    parts: Mapping[str, Any] | None = None
    item: "Kind | None" = None


def scalar(
    parse: Callable[[str], Any],
    show: Callable[[Any], Any] = lambda value: value,
    blank: Any = None,
    told: bool = True,
    form: str = "text",
) -> Kind:
    """One text; `parse` turns it into the value or raises ValueError with what it must be."""

    def read(value: Any, place: Place) -> Any:
        try:
            if not isinstance(value, str):
                raise ValueError(f"must be one value, not {_called(value)}")
            return parse(value)
        except ValueError as fault:
            place.fault(str(fault))
            return blank

    return Kind(read, show, blank, told, form)


def _called(value: Any) -> str:
    return "a mapping" if isinstance(value, dict) else "a list" if isinstance(value, list) else "nothing"


def text(limit: int = NAME_LIMIT, told: bool = True, empty: bool = False, lines: bool = False) -> Kind:
    """Text that can be stored, on one line unless `lines`."""

    def parse(value: str) -> str:
        if not value and not empty:
            raise ValueError("must not be empty")
        if len(value) > limit:
            raise ValueError(f"must have at most {limit} characters")
        if (_UNFIT_IN_LINES if lines else _UNFIT).search(value):
            raise ValueError("must not hold control characters")
        return value

    return scalar(parse, blank="", told=told, form="lines" if lines else "text")


def choice(*words: str) -> Kind:
    """One of a few words."""

    def parse(value: str) -> str:
        if value not in words:
            raise ValueError(f"must be {', '.join(words[:-1])} or {words[-1]}, not {quoted(value)}")
        return value

    return replace(scalar(parse, blank="", form="choice"), words=lambda: list(words))


def one_of(noun: str, known: Callable[[], list[str]]) -> Kind:
    """The name of something this program has built in."""

    def parse(value: str) -> str:
        if value not in known():
            hint = did_you_mean(value, known()) or f"; there are {', '.join(sorted(known()))}"
            raise ValueError(f"no {noun} {quoted(value)}{hint}")
        return value

    return replace(scalar(parse, blank="", form="choice"), words=known)


def whole(least: int, most: int) -> Kind:
    """A whole number."""

    def parse(value: str) -> int:
        if not re.fullmatch(r"-?[0-9]{1,9}", value) or not least <= int(value) <= most:
            raise ValueError(f"must be a whole number from {least} to {most:,}, not {quoted(value)}")
        return int(value)

    return scalar(parse, form="number")


def duration(least: int = 1, most: int = durations.LONGEST) -> Kind:
    """Seconds, written as 30s, 5m, 2h or 1d."""

    def parse(value: str) -> int:
        try:
            return durations.seconds(value, "it", least, most)
        except Invalid as fault:
            raise ValueError(fault.message.removeprefix("it ")) from None

    return scalar(parse, durations.words, form="duration")


def _switch(value: str) -> bool:
    if value.lower() not in SWITCHES:
        raise ValueError(f"must be on or off, not {quoted(value)}")
    return SWITCHES[value.lower()]


def _email(value: Any, place: Place) -> str:
    # A bad one is kept as it is, so that whoever refers to it is not called wrong as well.
    found = str(NAME.read(value, place))
    if found and check_mail(found) is not None:
        place.fault(f"{quoted(found)} is no e-mail address such as alice@example.com")
    return found


def _zone(value: str) -> str:
    try:
        oncall.zone(value)
    except ValueError:
        known = filter(oncall.names_zone, available_timezones())
        raise ValueError(f"no time zone {quoted(value)}{did_you_mean(value, known)}") from None
    return value


def _date(value: str) -> date:
    try:
        found = date.fromisoformat(value)
    except ValueError:
        raise ValueError(f"{quoted(value)} is no date such as 2026-01-05") from None
    _check_year(found)
    return found


def _time(value: str) -> time:
    try:
        if not re.fullmatch(r"[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?", value):
            raise ValueError
        return time.fromisoformat(value.zfill(5 if value.count(":") == 1 else 8))
    except ValueError:
        raise ValueError(f'{quoted(value)} is no time such as "09:00"; midnight is "00:00"') from None


def _show_time(value: time) -> str:
    return value.isoformat("auto" if value.second or value.microsecond else "minutes")


def _instant(value: str) -> datetime:
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        found = _yaml_instant(value)
    if found.tzinfo is None:
        raise ValueError(f"{quoted(value)} has no time zone; write 2026-02-01T00:00:00Z or +01:00")
    _check_year(found)
    return found.astimezone(UTC)


def _yaml_instant(value: str) -> datetime:
    """An instant in one of the forms that YAML has beyond ISO 8601: `2026-2-1 9:00:00 +1`."""
    try:
        scalar_node = yaml.ScalarNode("tag:yaml.org,2002:timestamp", value)
        found = yaml.SafeLoader("").construct_yaml_timestamp(scalar_node)
        if isinstance(found, datetime):
            return found
    except (AttributeError, ValueError, OverflowError):
        pass
    raise ValueError(f"{quoted(value)} is no instant such as 2026-02-01T00:00:00Z")


def _check_year(found: date) -> None:
    if not oncall.FIRST_YEAR <= found.year < oncall.LAST_YEAR:
        raise ValueError(f"must lie in the years {oncall.FIRST_YEAR} to {oncall.LAST_YEAR - 1}")


def _show_instant(value: datetime) -> str:
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _key(value: str) -> Key | str:
    if value == KEPT:
        return KEPT
    if len(value) < KEY_LENGTH:
        raise ValueError(f"must have at least {KEY_LENGTH} characters")
    if len(value) > NAME_LIMIT:
        raise ValueError(f"must have at most {NAME_LIMIT} characters")
    # It is sent as a part of an address, where anything else means something or is written in several ways.
    if not re.fullmatch(r"[A-Za-z0-9_.~-]+", value):
        raise ValueError("must hold letters, digits and - _ . ~ only")
    return new_key(value)


def new_key(value: str) -> Key:
    """What is stored of a key."""
    return Key(tokens.digest(value), value[:PREFIX_LENGTH])


NAME = text()
ADDRESS = text(TEXT_LIMIT, told=False)
SECRET = replace(text(TEXT_LIMIT, told=False, empty=True), form="secret")
METHOD = replace(NAME, form="method")
REASON = text(TEXT_LIMIT, lines=True)
SWITCH = scalar(_switch, form="switch")
EMAIL = Kind(_email, blank="", form="email")
ZONE = scalar(_zone, form="zone")
DATE = scalar(_date, form="date")
TIME = scalar(_time, _show_time, form="time")
INSTANT = scalar(_instant, _show_instant, form="instant")
KEY = scalar(_key, lambda value: KEPT, told=False, form="key")
