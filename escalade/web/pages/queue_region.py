"""What the live part of the list of attempts shows, and what a replay of some of it would do."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from escalade import listing, overview
from escalade.db import Tx
from escalade.errors import Invalid
from escalade.ladder import Target
from escalade.listing import Unneeded
from escalade.overview import AttemptView
from escalade.web.pages import filters, regions
from escalade.web.pages.filters import Asked

PAGE = 50
NAMED = 200


@dataclass(frozen=True, slots=True)
class Recipient:
    """Whom a replay tells, by what, and how many pages that are."""

    who: str
    transport: str
    address: str
    pages: int


@dataclass(frozen=True, slots=True)
class Plan:
    """A replay before it is done: exactly these pages, whom they tell, and those that would be skipped now."""

    pages: Sequence[AttemptView]
    recipients: Sequence[Recipient]
    unneeded: Mapping[int, Unneeded]
    skipped: int
    more: bool

    @property
    def sent(self) -> int:
        """How many would be sent again."""
        return len(self.pages) - self.skipped

    @property
    def ids(self) -> str:
        """Exactly these, for the form."""
        return ",".join(str(view.id) for view in self.pages)


def attempts(tx: Tx, values: Mapping[str, str]) -> dict[str, Any]:
    """A page of the list for the filter in an address or a form."""
    seen = regions.frame(tx)
    asked = filters.read(values)
    found, faults = _page(tx, asked)
    shown, more = found[:PAGE], len(found) > PAGE
    return seen | {
        "asked": asked,
        "faults": faults,
        "statuses": regions.STATUSES,
        "attempts": regions.queue(found, PAGE),
        "next_page": asked.with_(page=filters.page_name(listing.place_of(shown[-1]))) if more else None,
        "transports": _with(listing.transports(tx), asked.filter.transport),
        "services": _with(tx.values("service_names"), asked.filter.service),
        "people": _with(_people(tx), asked.filter.who),
    }


def attempt(tx: Tx, attempt_id: int) -> dict[str, Any]:
    """One attempt with every try of it. Raises NotFound."""
    seen = regions.frame(tx)
    [view] = overview.with_who(tx, [overview.attempt(tx, attempt_id)])
    return seen | {"attempt": view, "tries": overview.tries(tx, view)}


def _people(tx: Tx) -> list[str]:
    return [one.label for one in tx.many(Target, "pageable_targets") if one.kind != "schedule"]


def _page(tx: Tx, asked: Asked) -> tuple[list[AttemptView], Mapping[str, str]]:
    if asked.faults:
        return [], asked.faults
    try:
        return listing.page(tx, asked.filter, asked.place, PAGE + 1), {}
    except Invalid as refusal:
        return [], {refusal.field or "who": refusal.message}


def _with(offered: Sequence[str], chosen: str | None) -> list[str]:
    """What a list offers; what is chosen stays in it, also once it is gone."""
    return [*offered, *([chosen] if chosen and chosen not in offered else [])]


def plan(tx: Tx, found: Sequence[AttemptView], more: bool) -> Plan:
    """What a replay of these would do now; `more`: there are more than these."""
    unneeded = listing.unneeded(tx, found)
    sent = [view for view in found if not view.gone and view.incident_id not in unneeded]
    told = Counter((view.who, view.transport or "", view.address or "") for view in sent)
    recipients = [Recipient(*key, pages) for key, pages in sorted(told.items())]
    return Plan(found, recipients, unneeded, len(found) - len(sent), more)
