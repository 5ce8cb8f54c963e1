"""The queue by every filter that people choose, a page at a time, and what a replay of it would do.

Everything here only reads. Waiting attempts stand in the order they are due, ended ones the latest first.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from escalade import targets, users
from escalade.db import Tx
from escalade.errors import Invalid
from escalade.overview import AttemptView, views, with_who

# As many ids as a form can carry, and as one person can oversee.
MOST_REPLAYED = 5_000
WAITING = ("PENDING", "IN_FLIGHT")


@dataclass(frozen=True, slots=True)
class Filter:
    """Which attempts are wanted. `who` is user:E-MAIL or channel:NAME; times are aware: of waiting ones when they are
    due, of ended ones when they ended."""

    status: str
    transport: str | None = None
    who: str | None = None
    service: str | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page goes on: behind the attempt with this id, whose time that is."""

    at: datetime
    id: int


@dataclass(frozen=True, slots=True)
class Unneeded:
    """An incident that nobody needs to be paged for: acknowledged, resolved or snoozed."""

    id: int
    status: str
    by: str | None
    snoozed_until: datetime | None


def page(tx: Tx, wanted: Filter, after: Place | None, n: int) -> list[AttemptView]:
    """The next n attempts of a filter. Raises Invalid for a person or channel that is not there."""
    user_id, channel_id = _ids(tx, wanted.who)
    rows = tx.many(
        dict,
        "find_waiting" if wanted.status in WAITING else "find_ended",
        status=wanted.status,
        transport=wanted.transport,
        user_id=user_id,
        channel_id=channel_id,
        service=wanted.service,
        since=wanted.since,
        until=wanted.until,
        at=None if after is None else after.at,
        id=None if after is None else after.id,
        n=n,
    )
    return with_who(tx, views(tx, rows))


def place_of(view: AttemptView) -> Place:
    """Where the page after this attempt goes on."""
    return Place(view.due_at if view.status in WAITING else view.finished_at or view.due_at, view.id)


def _ids(tx: Tx, who: str | None) -> tuple[int | None, int | None]:
    if who is None:
        return None, None
    kind, _, name = who.partition(":")
    if kind == "user" and (person := users.by_email(tx, name)) is not None:
        return person.id, None
    if kind == "channel":
        return None, targets.resolve(tx, who, "who").id
    raise Invalid(f"There is nobody {name!r}.", "who")


def to_replay(tx: Tx, wanted: Filter) -> tuple[list[AttemptView], bool]:
    """The failed pages of a filter, those of later pages included, the latest first; and whether there are more than
    the MOST_REPLAYED attempts that were looked at."""
    found = page(tx, wanted, None, MOST_REPLAYED + 1)
    return [view for view in found[:MOST_REPLAYED] if view.kind == "PAGE"], len(found) > MOST_REPLAYED


def chosen(tx: Tx, ids: Sequence[int]) -> list[AttemptView]:
    """The failed pages among these attempts."""
    found = views(tx, tx.many(dict, "attempts_by_ids", ids=list(ids)))
    return [view for view in found if view.kind == "PAGE" and view.status == "FAILED"]


def unneeded(tx: Tx, found: Sequence[AttemptView]) -> dict[int, Unneeded]:
    """The incidents of these attempts that nobody needs to be paged for any more."""
    ids = {view.incident_id for view in found if view.incident_id is not None}
    return {row.id: row for row in tx.many(Unneeded, "who_is_on", ids=list(ids))}


def transports(tx: Tx) -> list[str]:
    """What the filter offers."""
    return tx.values("transports_in_use")
