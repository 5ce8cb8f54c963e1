"""What a caller of the API asks for: strict bodies, query parameters, and cursors."""

import base64
import json
import re
from datetime import UTC, datetime
from typing import Any

from flask import request

from escalade import clean, oncall
from escalade.errors import Invalid

LIMIT, MOST = 50, 500
LARGEST_ID = 2**63 - 1
# A plus sign in a query is a space, and few people encode the one of a time zone.
_SPACE_FOR_PLUS = re.compile(r"(T\d\d:\d\d(?::\d\d(?:\.\d+)?)?) (\d\d:?\d\d)$")

Body = dict[str, Any]


def body(*known: str) -> Body:
    """The JSON object in the body, its texts cleaned; no body is an empty one. Raises Invalid for a field that is not
    known, and Unreadable for what is no JSON."""
    raw = request.get_data(cache=False)
    value = clean.tree(clean.json_body(raw))[0] if raw.strip() else {}
    if not isinstance(value, dict):
        raise Invalid("The body must be a JSON object.")
    unknown = [name for name in value if name not in known]
    if unknown:
        takes = f"; known are {', '.join(known)}" if known else "; this takes none"
        raise Invalid(f"Unknown field: {', '.join(name[:100] for name in unknown[:10])}{takes}.", unknown[0][:100])
    return value


def text(fields: Body, name: str, most: int, required: bool = True) -> str:
    """A text of at most `most` characters. Raises Invalid; one that is not required is empty where it is absent."""
    value = fields.get(name)
    if value is None and not required:
        return ""
    if not isinstance(value, str):
        raise Invalid(f"{name} must be text.", name)
    if required and not value.strip():
        raise Invalid(f"{name} must not be empty.", name)
    if len(value) > most:
        raise Invalid(f"{name} must have at most {most:,} characters.", name)
    return value


def ids(fields: Body, name: str, most: int = 10_000) -> list[int] | None:
    """A list of ids, or None where it is absent."""
    value = fields.get(name)
    if value is None:
        return None
    if not isinstance(value, list) or len(value) > most:
        raise Invalid(f"{name} must be a list of at most {most:,} ids.", name)
    if not all(type(item) is int and 0 < item <= LARGEST_ID for item in value):
        raise Invalid(f"{name} must hold whole numbers.", name)
    return value


def instant(value: object, name: str) -> datetime:
    """A time with its zone, in UTC. Raises Invalid, naming the field."""
    try:
        at = datetime.fromisoformat(_SPACE_FOR_PLUS.sub(r"\1+\2", value.strip()) if isinstance(value, str) else "")
        if at.utcoffset() is None:
            raise Invalid(f"{name} must say its time zone, as in 2026-01-07T09:00:00Z.", name)
        # A year's room at each end, for offsets and for what is added to it.
        if not oncall.FIRST_YEAR < at.year < oncall.LAST_YEAR:
            raise Invalid(f"{name} must lie between the years {oncall.FIRST_YEAR} and {oncall.LAST_YEAR}.", name)
        return at.astimezone(UTC)
    except ValueError:
        raise Invalid(f"{name} must be a time such as 2026-01-07T09:00:00Z.", name) from None


def query(name: str) -> str | None:
    """A query parameter, cleaned; None where it is absent or empty."""
    return clean.text(request.args.get(name, ""), 1_000)[0] or None


def query_instant(name: str) -> datetime | None:
    """A time in the query, or None."""
    value = query(name)
    return None if value is None else instant(value, name)


def query_id(name: str) -> int | None:
    """An id in the query, or None."""
    value = query(name)
    return None if value is None else _whole(value, name, 1, LARGEST_ID)


def limit() -> int:
    """How many are wanted."""
    value = query("limit")
    return LIMIT if value is None else _whole(value, "limit", 1, MOST)


def _whole(value: str, name: str, least: int, most: int) -> int:
    if not re.fullmatch(r"[0-9]{1,19}", value) or not least <= int(value) <= most:
        raise Invalid(f"{name} must be a whole number from {least} to {most:,}.", name)
    return int(value)


def statuses(known: tuple[str, ...]) -> list[str] | None:
    """The statuses asked for, or None for all."""
    value = query("status")
    if value is None:
        return None
    wanted = [word.strip() for word in value.split(",")]
    if unknown := [word for word in wanted if word not in known]:
        raise Invalid(f"There is no status {unknown[0]!r}; there are {', '.join(known)}.", "status")
    return wanted


def cursor(*parts: Any) -> str:
    """The opaque value of `next`."""
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


def before(*kinds: type) -> list[Any] | None:
    """What `cursor` made, from the query: values of these types, or None. Raises Invalid for anything else."""
    value = query("before")
    if value is None:
        return None
    try:
        parts = json.loads(base64.urlsafe_b64decode(value + "=" * (-len(value) % 4)))
        if [type(part) for part in parts] == list(kinds):
            if all(abs(part) <= LARGEST_ID for part in parts if isinstance(part, int)):
                return list(parts)
    except (ValueError, TypeError, RecursionError):
        pass
    raise Invalid("before must be the value of next, as an earlier answer gave it.", "before")
