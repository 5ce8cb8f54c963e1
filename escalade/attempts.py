"""The queue: claim, settle, reap, recover, replay. Claim, settle and reap lock attempts only, never an incident.

What exists once for each page is a NamedTuple: a frozen dataclass takes eight times as long to make.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from escalade import incidents, timeline
from escalade.db import Tx
from escalade.errors import Conflict, NotFound


class Claimed(NamedTuple):
    """A row this process holds: `head` is the first row of the message it leaves in."""

    id: int
    head: int
    claim_seq: int
    tries: int
    kind: str
    event: str
    transport: str
    destination: str
    bundle: str | None
    idempotency_key: str
    first_due_at: datetime
    due_at: datetime
    claimed_at: datetime


class Outcome(NamedTuple):
    """What became of one claimed row.

    `outcome` is DELIVERED, RETRY, LIMITED (asked to wait: uses no try), UNKNOWN (may have been delivered), FAILED,
    CANCELLED (not sent: nobody needs it any more) or RELEASE (given back unsent). `delay` is in seconds.
    """

    id: int
    seq: int
    outcome: str
    started_at: datetime
    ended_at: datetime
    delay: float = 0.0
    error: str | None = None
    request: str = ""
    answer: str = ""


class Settled(NamedTuple):
    """What a settle made of one outcome: the status before and after, or `lost` when the row was claimed again."""

    id: int
    seq: int
    was: str | None
    status: str | None
    kind: str | None
    transport: str | None
    lost: bool


@dataclass(frozen=True, slots=True)
class Due:
    """What the idle poll saw: what is due now, and when the next thing comes (None: nothing waits). `assumed`: nobody
    looked, the queue was full a moment ago."""

    high: bool
    low: bool
    step: bool
    lease: bool
    recheck: bool
    wake: bool
    beat: bool
    next_at: datetime | None
    assumed: bool = False

    @property
    def anything(self) -> bool:
        """Whether any verb has work."""
        return self.high or self.low or self.step or self.lease or self.recheck or self.wake or self.beat


@dataclass(frozen=True, slots=True)
class Room:
    """What a claim may take: destinations that are closed, contacts that must wait, and free places per
    destination (`each` for one that is not named). The `failing` ones are tried by one process at a time."""

    closed: Sequence[str]
    held: Sequence[str]
    free: Mapping[str, int]
    each: int
    failing: Sequence[str] = ()


# As many as fit the link of one message: chat tools take about 3,000 characters of it.
BUNDLE_LIMIT = 400


def whats_due(tx: Tx) -> Due:
    """What is due and what comes next, in one statement."""
    return tx.one(Due, "whats_due", now=tx.now)


def claim(tx: Tx, lane: str, owner: str, lease: float, n: int, room: Room) -> list[Claimed]:
    """Take at most n due messages of a lane, for `lease` seconds; one statement, committed at once."""
    return tx.many(
        Claimed,
        "claim",
        lane=lane,
        now=tx.now,
        owner=owner,
        lease=lease,
        n=n,
        more=BUNDLE_LIMIT,
        closed=list(room.closed),
        held=list(room.held),
        destinations=list(room.free),
        free=list(room.free.values()),
        each=room.each,
        failing=list(room.failing),
    )


def settle(tx: Tx, owner: str, outcomes: Sequence[Outcome]) -> list[Settled]:
    """Record outcomes in one statement, and say of those it refused why. It is safe to repeat."""
    settled = tx.many(
        Settled,
        "settle",
        owner=owner,
        now=tx.now,
        late=tx.limits.late_seconds,
        outcomes=settled_rows(outcomes),
    )
    recorded = {(row.id, row.seq) for row in settled}
    stale = [outcome for outcome in outcomes if (outcome.id, outcome.seq) not in recorded]
    if stale:
        ids, seqs = [outcome.id for outcome in stale], [outcome.seq for outcome in stale]
        settled += tx.many(Settled, "stale_outcomes", owner=owner, ids=ids, seqs=seqs)
    return settled


def not_locked(tx: Tx, ids: Sequence[int]) -> set[int]:
    """Of these attempts, those that can be settled without waiting for somebody who holds a lock."""
    return set(tx.values("attempts_not_locked", ids=list(ids)))


def settled_rows(outcomes: Sequence[Outcome]) -> str:
    """Outcomes as settle takes them, in JSON: to write nine arrays costs the driver many times as much."""
    return json.dumps([_as_row(outcome) for outcome in outcomes])


def _as_row(outcome: Outcome) -> dict[str, Any]:
    return {
        "id": outcome.id,
        "seq": outcome.seq,
        "outcome": outcome.outcome,
        "delay": outcome.delay,
        "error": outcome.error,
        "started_at": outcome.started_at.isoformat(),
        "ended_at": outcome.ended_at.isoformat(),
        "request": outcome.request,
        "answer": outcome.answer,
    }


def reap(tx: Tx, known: Sequence[int] = ()) -> int:
    """Take back the rows whose lease ran out, but for those whose outcome is known here; how many."""
    return len(tx.many(dict, "reap", now=tx.now, known=list(known)))


def recover(tx: Tx, owner: str, known: Iterable[tuple[int, int]]) -> int:
    """Give back the rows this owner holds and does not know: pairs of id and claim number are known; how many."""
    pairs = list(known)
    ids, seqs = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    return len(tx.values("recover", owner=owner, now=tx.now, ids=ids, seqs=seqs))


def replay(tx: Tx, incident_id: int, ids: Sequence[int], actor: str) -> list[int]:
    """Send FAILED pages of one incident again, with a new key; the ids that were, without those whose contact method
    or channel is gone. Raises Conflict unless the incident is TRIGGERED and not snoozed."""
    incident = incidents.lock(tx, incident_id)
    if incident.status != "TRIGGERED":
        raise Conflict(f"Incident {incident_id} is {incident.status.lower()}: nobody needs to be paged for it.")
    if incident.snoozed_until is not None:
        raise Conflict(f"Incident {incident_id} is snoozed: escalate it to page people now.")
    done: list[int] = tx.values(
        "replay_attempts", incident_id=incident_id, ids=list(ids), now=tx.now, more=tx.limits.max_tries
    )
    for attempt_id in done:
        timeline.record(tx, incident_id, "replayed", actor, attempt=attempt_id)
    tx.ring()
    return done


def replay_one(tx: Tx, attempt_id: int, actor: str) -> None:
    """Send one FAILED page again. Raises NotFound, or Conflict where it is not failed or not needed."""
    row = tx.maybe(dict, "attempt_incident", id=attempt_id)
    if row is None:
        raise NotFound(f"There is no attempt {attempt_id}.")
    if row["kind"] != "PAGE" or row["incident_id"] is None:
        raise Conflict(f"Attempt {attempt_id} is no page, so it cannot be sent again.")
    if row["status"] == "FAILED" and not row["reachable"]:
        raise Conflict(f"What attempt {attempt_id} was sent to no longer exists; escalate the incident to page others.")
    if not replay(tx, row["incident_id"], [attempt_id], actor):
        raise Conflict(f"Attempt {attempt_id} has not failed, so there is nothing to send again.")


def failed_by_incident(tx: Tx, transport: str | None = None, ids: Sequence[int] | None = None) -> dict[int, list[int]]:
    """The FAILED pages, by incident: what a replay of many goes through, one transaction an incident."""
    found: dict[int, list[int]] = {}
    after = 0
    while True:
        rows = tx.many(
            dict, "failed_attempts", transport=transport, ids=None if ids is None else list(ids), after=after
        )
        for row in rows:
            found.setdefault(row["incident_id"], []).append(row["id"])
        if not rows:
            return found
        after = rows[-1]["id"]


def archive(tx: Tx, days: int, n: int = 2000) -> int:
    """Move finished rows of incidents resolved more than `days` ago out of the hot table, at most n; how many."""
    before = tx.now - timedelta(days=days)
    return len(tx.values("archive_attempts", before=before, n=n))
