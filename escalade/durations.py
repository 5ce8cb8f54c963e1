"""Durations as people write them: 30s, 5m, 2h, 1d."""

import re

from escalade.errors import Invalid

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
LONGEST = 366 * 86400


def seconds(text: object, field: str, least: int = 1, most: int = LONGEST, label: str | None = None) -> int:
    """The duration in seconds. Raises Invalid, naming the field, to people by its label where it has one."""
    name = label or field
    found = re.fullmatch(r"(\d{1,9})([smhd])", text.strip()) if isinstance(text, str) else None
    if found is None:
        raise Invalid(f"{name} must be a duration such as 30s, 5m, 2h or 1d.", field)
    value = int(found[1]) * UNITS[found[2]]
    if not least <= value <= most:
        raise Invalid(f"{name} must be from {words(least)} to {words(most)}.", field)
    return value


def words(value: int) -> str:
    """Seconds as the shortest such text: 300 is 5m."""
    for unit in ("d", "h", "m"):
        if value and value % UNITS[unit] == 0:
            return f"{value // UNITS[unit]}{unit}"
    return f"{value}s"
