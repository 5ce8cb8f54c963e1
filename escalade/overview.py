"""The queue as people see it: what pages next, what is in the air, what failed, and what changed.

Everything here only reads. An attempt carries the names of whom it tells and of what, its address is masked, and
one that waits says until when and why.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from escalade import holds, rota, sealing
from escalade.db import Tx
from escalade.errors import NotFound
from escalade.holds import Hold
from escalade.incident import Incident
from escalade.nextup import Lookup
from escalade.transports import mask

STATUSES = ("PENDING", "IN_FLIGHT", "DELIVERED", "FAILED", "CANCELLED")
INCIDENT_STATUSES = ("TRIGGERED", "ACKNOWLEDGED", "RESOLVED")
ENGINE_STALE = timedelta(seconds=30)
# More attempts than one incident has, unless its policy repeats for days.
ATTEMPTS_OF_ONE = 1_000


@dataclass(frozen=True, slots=True)
class AttemptView:
    """One attempt. `who` names whom it tells, for a step whom it would page when it is due; `held_until` and
    `held_reason` say why a due one waits. Times are aware, in UTC; `address` shows no secret."""

    archived: bool
    id: int
    incident_id: int | None
    incident_title: str | None
    incident_status: str | None
    kind: str
    event: str
    status: str
    lane: str
    step: int
    round: int
    target: str | None
    user_id: int | None
    user: str | None
    user_name: str | None
    channel: str | None
    transport: str | None
    address: str | None
    contact_method: str | None
    who: str
    due_at: datetime
    first_due_at: datetime
    held_until: datetime | None
    held_reason: str | None
    tries: int
    max_tries: int
    replays: int
    claimed_at: datetime | None
    lease_owner: str | None
    lease_until: datetime | None
    cancel_requested: bool
    idempotency_key: str
    summary: str
    last_error: str | None
    delivered_at: datetime | None
    finished_at: datetime | None

    @property
    def gone(self) -> bool:
        """Whether the contact method or channel it was sent to no longer exists: it cannot be sent again."""
        return self.kind == "PAGE" and self.contact_method is None and self.channel is None

    def late_by(self, now: datetime) -> float:
        """Seconds from when it was first due to when it left, or to now while it waits; 0 where it is not late."""
        left = self.claimed_at if self.status in ("IN_FLIGHT", "DELIVERED") else self.finished_at
        waits = self.status == "PENDING" and (self.tries == 0 or self.kind == "PAGE")
        if self.status == "CANCELLED" or not (waits or left):
            return 0.0
        return max(0.0, ((now if waits else left or now) - self.first_due_at).total_seconds())


@dataclass(frozen=True, slots=True)
class Try:
    """One try of an attempt; `ended_at` and `outcome` are None while it is under way."""

    try_: int
    started_at: datetime
    ended_at: datetime | None
    outcome: str | None
    error: str | None
    request: str
    answer: str


@dataclass(frozen=True, slots=True)
class After:
    """Where a list goes on: behind the attempt that was due at that time."""

    due_at: datetime
    id: int


def attempt(tx: Tx, attempt_id: int) -> AttemptView:
    """One attempt, also from the archive. Raises NotFound."""
    found = views(tx, tx.many(dict, "attempt_by_id", id=attempt_id))
    if not found:
        raise NotFound(f"There is no attempt {attempt_id}.")
    return found[0]


def tries(tx: Tx, seen: AttemptView) -> list[Try]:
    """Every try of an attempt, the one under way included."""
    rows = tx.many(dict, "tries_of", attempt_id=seen.id)
    found = [Try(row.pop("try"), **row) for row in rows]
    if seen.status == "IN_FLIGHT" and seen.claimed_at is not None:
        found.append(Try(seen.tries, seen.claimed_at, None, None, None, "", ""))
    return found


def listing(
    tx: Tx,
    statuses: Sequence[str] | None = None,
    incident_id: int | None = None,
    transport: str | None = None,
    after: After | None = None,
    n: int = 50,
) -> list[AttemptView]:
    """Attempts by due time, then id. The archive is part of one incident's attempts, and of nothing else."""
    where: dict[str, Any] = {
        "transport": transport,
        "due_at": None if after is None else after.due_at,
        "id": None if after is None else after.id,
        "n": n,
    }
    if incident_id is None:
        wanted = list(STATUSES if statuses is None else statuses)
        return views(tx, tx.many(dict, "attempts_by_status", statuses=wanted, **where))
    chosen = None if statuses is None else list(statuses)
    rows = tx.many(dict, "attempts_of_incident", incident_id=incident_id, statuses=chosen, **where)
    return views(tx, rows)


def of_incident(tx: Tx, incident_id: int) -> list[AttemptView]:
    """All attempts of one incident, in the order they were due; steps that wait say whom they would page."""
    return with_who(tx, listing(tx, incident_id=incident_id, n=ATTEMPTS_OF_ONE))


def pending(tx: Tx, n: int = 50) -> list[AttemptView]:
    """What pages next, who, and when: waiting messages and steps, the next one first."""
    return with_who(tx, listing(tx, ["PENDING"], n=n))


def in_flight(tx: Tx, n: int = 50) -> list[AttemptView]:
    """What is in the air, the longest due first."""
    return listing(tx, ["IN_FLIGHT"], n=n)


def failed(tx: Tx, n: int = 50) -> list[AttemptView]:
    """What failed for good, the latest first."""
    return views(tx, tx.many(dict, "latest_failed", n=n))


def with_who(tx: Tx, seen: Sequence[AttemptView]) -> list[AttemptView]:
    """The same attempts; each step that waits says whom it would page at its time."""
    waiting = [view.incident_id for view in seen if view.kind == "STEP" and view.status == "PENDING"]
    if not waiting:
        return list(seen)
    known = {incident.id: incident for incident in tx.many(Incident, "incidents_by_id", ids=waiting)}
    lookup = Lookup(tx)
    return [_with_who(view, known, lookup) for view in seen]


def _with_who(view: AttemptView, known: dict[int, Incident], lookup: Lookup) -> AttemptView:
    incident = known.get(view.incident_id or 0)
    if view.kind != "STEP" or view.status != "PENDING" or incident is None:
        return view
    # A step that is late pages whoever is on call when it is taken, which is now.
    return replace(view, who=lookup.who(incident, view.step, max(view.due_at, lookup.tx.now)))


def open_incidents(tx: Tx, n: int = 200) -> list[Incident]:
    """Open incidents: exhausted ones first, then those nobody has acknowledged, the oldest first."""
    return tx.many(Incident, "open_incidents", n=n)


def incident_counts(tx: Tx) -> dict[str, int]:
    """How many incidents are open, by status."""
    rows = {row["status"]: row["n"] for row in tx.many(dict, "count_open_incidents")}
    return {status: rows.get(status, 0) for status in ("TRIGGERED", "ACKNOWLEDGED")}


def incidents(
    tx: Tx, statuses: Sequence[str] | None = None, service: str | None = None, before: int | None = None, n: int = 50
) -> list[Incident]:
    """Incidents, the newest first; `before` is the id to go on from."""
    chosen = None if statuses is None else list(statuses)
    return tx.many(Incident, "list_incidents", statuses=chosen, service=service, before=before, n=n)


def escalates_at(tx: Tx, incident_ids: Iterable[int]) -> dict[int, datetime]:
    """When the next step of each incident is due; one that has none is left out."""
    rows = tx.many(dict, "next_steps", ids=list(incident_ids))
    return {row["incident_id"]: row["due_at"] for row in rows}


def watermark(tx: Tx) -> str:
    """A short text that changes whenever something the dashboard shows has changed; hand-offs included."""
    state = tx.value("watermark", stale=tx.now - ENGINE_STALE)
    people = [(item.schedule.id, [user.name for user in item.people]) for item in rota.on_call(tx, tx.now)]
    return hashlib.sha256(f"{state} {people}".encode()).hexdigest()[:20]


def views(tx: Tx, rows: list[dict[str, Any]]) -> list[AttemptView]:
    """Rows of the view attempt_overview as people see them."""
    waiting = holds.read(tx, (row["id"] for row in rows if row["status"] == "PENDING" and row["kind"] != "STEP"))
    keys = tx.limits.sealing_keys
    return [_view(row, tx.now, waiting.get(row["id"]), keys) for row in rows]


def _view(row: dict[str, Any], now: datetime, hold: Hold | None, keys: Sequence[str]) -> AttemptView:
    until, reason = hold.why(now) if hold is not None else (None, None)
    for name in ("bundle", "pace_seconds", "gate_until", "gate_reason"):
        del row[name]
    if row["address"] is not None:
        row["address"] = shown_address(row["transport"], row["address"], keys)
    who = row["user_name"] or (f"#{row['channel']}" if row["channel"] else "") or row["target"] or ""
    return AttemptView(who=who, held_until=until, held_reason=reason, **row)


def shown_address(kind: str, kept: str, keys: Sequence[str]) -> str:
    """Where a contact leads, without what is secret in it."""
    try:
        return mask(kind, sealing.opened(keys, kept) or "")
    except sealing.Unreadable:
        return "***"
