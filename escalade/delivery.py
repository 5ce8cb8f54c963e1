"""From claimed rows to messages, and from what a transport answered to outcomes. Nothing here touches the database."""

import hashlib
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from escalade import clean, retry, sealing
from escalade.attempts import Claimed, Outcome
from escalade.tokens import AckLink, Signer
from escalade.transports import DeliveryError, Message, Receipt
from escalade.transports.base import AttemptRef, IncidentBrief


class Content(NamedTuple):
    """What one claimed row says and to whom, as read after the claim."""

    id: int
    incident_id: int | None
    claim_seq: int
    cancel_requested: bool
    summary: str
    user_id: int | None
    channel_id: int | None
    address: str | None
    secret: str | None
    user: str | None
    recipient: str | None
    title: str | None
    details: str | None
    incident_status: str | None
    severity: str | None
    service: str | None
    dedup_key: str | None
    link: str | None
    heard: bool


class Job(NamedTuple):
    """One message on its way to a sender, numbered by the process. `start_by` is monotonic seconds: a send begun
    later could outlive its lease."""

    number: int
    lane: str
    message: Message
    rows: tuple[Claimed, ...]
    transport: str
    destination: str
    start_by: float


class Sent(NamedTuple):
    """What a sender brings back. `started` and `ended` are monotonic seconds; error None means delivered; both
    receipt and error None means that it was not begun."""

    job: Job
    started: float
    ended: float
    receipt: Receipt | None = None
    error: DeliveryError | None = None


@dataclass(frozen=True, slots=True)
class Links:
    """Where links in messages lead, and who signs them."""

    base_url: str
    signer: Signer

    def incident(self, incident_id: int) -> str:
        """The page of an incident."""
        return f"{self.base_url}/incidents/{incident_id}"

    def acknowledge(self, user_id: int | None, channel_id: int | None, incident_ids: Sequence[int]) -> str:
        """The signed link that acknowledges these incidents in the name of this recipient."""
        token = self.signer.sign(AckLink(user_id, channel_id, tuple(incident_ids)))
        return f"{self.base_url}/a/{token}"


def unneeded(content: Content) -> str | None:
    """Why a claimed row need not be sent after all, as an outcome; None where it must be."""
    if content.cancel_requested:
        return "RELEASE"
    return None if content.heard else "CANCELLED"


def by_message(rows: Sequence[Claimed]) -> list[list[Claimed]]:
    """The rows of each message, by the row that leads it."""
    groups: dict[int, list[Claimed]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row.id):
        groups[row.head].append(row)
    return list(groups.values())


def message_key(keys: Sequence[str]) -> str:
    """One attempt travels under its own key, a set under a hash of its members': the same set, the same key."""
    if len(keys) == 1:
        return keys[0]
    return hashlib.sha256("\n".join(sorted(keys)).encode()).hexdigest()


def opened(content: Content, keys: Sequence[str]) -> Content:
    """What the row says, with the secrets of its contact as they were given. Raises sealing.Unreadable."""
    address, secret = sealing.opened(keys, content.address), sealing.opened(keys, content.secret)
    return (
        content
        if (address, secret) == (content.address, content.secret)
        else content._replace(address=address, secret=secret)
    )


def compose(rows: Sequence[Claimed], contents: Sequence[Content], links: Links) -> Message:
    """The message of these rows, which share a recipient, a kind and an event."""
    first, row = contents[0], rows[0]
    incidents = {item.incident_id: brief(item, links) for item in contents if item.incident_id is not None}
    wants_answer = row.kind == "PAGE" and bool(incidents)
    return Message(
        type="test" if row.event == "test" else row.kind.lower(),
        event=row.event,
        key=message_key([row.idempotency_key for row in rows]),
        address=first.address or "",
        secret=first.secret,
        user=first.user,
        recipient=first.recipient or "",
        attempts=tuple(AttemptRef(row.id, row.tries) for row in rows),
        incidents=tuple(incidents.values()),
        ack_url=links.acknowledge(first.user_id, first.channel_id, list(incidents)) if wants_answer else None,
        summary=first.summary,
    )


def brief(content: Content, links: Links) -> IncidentBrief:
    """What a message says about the incident of one row."""
    incident_id = content.incident_id or 0
    return IncidentBrief(
        id=incident_id,
        title=content.title or "(the incident is gone)",
        details=content.details or "",
        status=content.incident_status or "RESOLVED",
        severity=content.severity or "error",
        service=content.service,
        dedup_key=content.dedup_key,
        url=links.incident(incident_id),
        link=content.link,
    )


def outcomes(sent: Sent, now: datetime, monotonic: float, rng: random.Random) -> list[Outcome]:
    """What became of each row of a message, in the database's time. `monotonic` is the moment of `now`."""
    started, ended = (now - timedelta(seconds=monotonic - moment) for moment in (sent.started, sent.ended))
    # Drawn once: what left together comes back together, under the same key where nothing new joins it.
    jitter = rng.random()
    return [_outcome(row, sent, started, ended, jitter) for row in sent.job.rows]


def _outcome(row: Claimed, sent: Sent, started: datetime, ended: datetime, jitter: float) -> Outcome:
    error = sent.error
    if error is None:
        word = "RELEASE" if sent.receipt is None else "DELIVERED"
        receipt = sent.receipt or Receipt()
        note = receipt.note or None
        made = Outcome(row.id, row.claim_seq, word, started, ended, 0.0, note, receipt.request, receipt.answer)
        return _storable(made)
    wait = retry.delay(row.tries, jitter, error.retry_after)
    text, word = error.message, verdict(error)
    return _storable(Outcome(row.id, row.claim_seq, word, started, ended, wait, text, error.request, error.answer))


def _storable(outcome: Outcome) -> Outcome:
    """The same in texts that Postgres takes: one that it refuses would keep all that is recorded with it."""
    error, request, answer = (clean.text(said or "")[0] for said in (outcome.error, outcome.request, outcome.answer))
    return outcome._replace(error=error or None, request=request, answer=answer)


def verdict(error: DeliveryError) -> str:
    """The outcome that a transport's refusal means."""
    if error.permanent:
        return "FAILED"
    if error.limited:
        return "LIMITED"
    return "UNKNOWN" if error.unknown else "RETRY"
