"""Rotations without the people who are gone, so that those who are left keep their turns.

A person who was deleted stays in the lists of the past, which no file can say. So the past is left out: the
rotation begins with the turn of today.
"""

from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from escalade import oncall

_TICK = timedelta.resolution
_LATEST = datetime(oncall.LAST_YEAR, 1, 1, tzinfo=UTC)


def without(
    rotation: oncall.Rotation[int], timezone: str, gone: Collection[int], now: datetime
) -> oncall.Rotation[int]:
    """The rotation without these people: from `now` on the same people are on call as before."""
    past = [change for change in rotation.roster_changes if change.at <= now]
    current = past[-1].participants if past else rotation.participants
    left = _left(current, gone)
    later = [
        oncall.RosterChange(change.at, _left(change.participants, gone))
        for change in rotation.roster_changes
        if change.at > now
    ]
    shorter = replace(rotation, participants=left, roster_changes=tuple(later))
    calm = replace(rotation, restrictions=(), roster_changes=(*past, oncall.RosterChange(now, left)))
    return _anchored(shorter, calm, timezone, now)


def _left(participants: tuple[int, ...], gone: Collection[int]) -> tuple[int, ...]:
    return tuple(user for user in participants if user not in gone)


def _anchored(
    shorter: oncall.Rotation[int], calm: oncall.Rotation[int], timezone: str, now: datetime
) -> oncall.Rotation[int]:
    """`shorter`, begun at the latest boundary that a local date and time can name, with the turns of `calm`."""
    tz, turn = oncall.zone(timezone), oncall.UNITS[calm.unit] * calm.length
    first = oncall.instant(calm.start_date, calm.handoff_time, tz)
    people = _turns(calm, timezone, now) if first <= now else []
    if not people:
        return shorter
    begun = oncall.handoffs(calm, timezone, now - min(4 * turn, now - first), now + _TICK)
    for turns_ago, boundary in enumerate(reversed(begun)):
        local = boundary.astimezone(tz)
        at = local.time() if calm.unit == "hour" else calm.handoff_time
        if oncall.instant(local.date(), at, tz) == boundary:
            start = -turns_ago % len(people)
            order = tuple(people[start:] + people[:start])
            return replace(shorter, participants=order, start_date=local.date(), handoff_time=at)
    return shorter


def _turns(calm: oncall.Rotation[int], timezone: str, now: datetime) -> list[int]:
    """Everybody in the order of their turns, from the present one on; nobody where that cannot be seen."""
    count = len(calm.roster_changes[-1].participants)
    ahead = min((count + 1) * oncall.UNITS[calm.unit] * calm.length, _LATEST - now)
    boundaries = [now, *oncall.handoffs(calm, timezone, now + _TICK, now + ahead)][:count]
    schedule = oncall.Schedule(timezone, (calm,))
    people = [user for at in boundaries for user in oncall.who(schedule, at)]
    return people if len(people) == count else []
