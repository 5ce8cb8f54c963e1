"""Reads the record of a campaign and counts what must not have happened. Pure: made-up records can test it."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from bench.chaos.record import Attempt, Claim, Fault, Record, Request

# Recovery takes a lease and at most this long, in seconds.
GRACE = 2.0
# How long after its answer a page is recorded, at the latest, where nothing breaks, in seconds.
SETTLE = 2.0
# Between a send's start and its arrival, in seconds: what was acknowledged a moment ago may still be on the wire.
WIRE = 0.05


@dataclass
class Verdict:
    """What was found; everything but `sent` and `unknown` must be empty."""

    sent: int = 0
    unknown: int = 0
    lost: list[str] = field(default_factory=list)
    double_claims: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    after_acknowledge: list[str] = field(default_factory=list)

    @property
    def faults(self) -> list[str]:
        """Everything that is wrong, a line each."""
        return [*self.lost, *self.double_claims, *self.known, *self.late, *self.after_acknowledge]


def check(record: Record, lease: float) -> Verdict:
    """Count. `lease` is in seconds."""
    came: dict[int, list[Request]] = defaultdict(list)
    for request in sorted(record.requests, key=lambda item: item.arrived):
        came[request.attempt].append(request)
    verdict = Verdict(sent=sum(any(one.answered for one in requests) for requests in came.values()))
    verdict.lost = list(lost(record, came))
    verdict.double_claims = list(double_claims(record.claims))
    verdict.after_acknowledge = list(after_acknowledge(record, came))
    for attempt in record.attempts:
        requests = came.get(attempt.id, [])
        verdict.late += late(attempt, requests, record.faults, lease)
        verdict.late += late_again(requests, record.faults, lease)
        for earlier, later in zip(requests, requests[1:], strict=False):
            why = known(attempt, earlier, later, record.faults)
            verdict.known += [f"attempt {attempt.id} was sent twice: {why}"] if why else []
            verdict.unknown += not why
    return verdict


def lost(record: Record, came: dict[int, list[Request]]) -> Iterator[str]:
    """Alerts that were accepted and paged nobody, and pages that came to no end."""
    pages: dict[int, list[Attempt]] = defaultdict(list)
    for attempt in record.attempts:
        pages[attempt.incident].append(attempt)
    for incident in sorted(record.accepted):
        if len(pages[incident]) < record.people:
            yield f"incident {incident} has {len(pages[incident])} pages for {record.people} people"
    for attempt in record.attempts:
        answered = any(request.answered for request in came.get(attempt.id, []))
        if attempt.status == "DELIVERED" and not answered:
            yield f"attempt {attempt.id} is said to be delivered, and never arrived"
        elif attempt.status not in ("DELIVERED", "CANCELLED"):
            yield f"attempt {attempt.id} is {attempt.status} at the end"
        elif attempt.status == "CANCELLED" and attempt.incident not in {answer.incident for answer in record.answers}:
            yield f"attempt {attempt.id} was cancelled, and nobody had stopped it"


def double_claims(claims: Sequence[Claim]) -> Iterator[str]:
    """Attempts claimed while somebody else held them, or twice under one number."""
    for claim in claims:
        if claim.before == "IN_FLIGHT":
            yield f"attempt {claim.attempt} was claimed by {claim.owner} while it was in flight"
    for (attempt, seq), count in Counter((claim.attempt, claim.seq) for claim in claims).items():
        if count > 1:
            yield f"claim {seq} of attempt {attempt} was made {count} times"


def known(attempt: Attempt, earlier: Request, later: Request, faults: Sequence[Fault]) -> str | None:
    """Why a second arrival was not to be: nothing broke between the first and the second, or nobody was told that the
    first was in doubt, or it came under another key."""
    if earlier.key != later.key:
        return "under two keys"
    recorded = (earlier.answered or later.arrived) + SETTLE
    if not any(fault.began <= recorded and fault.ended >= earlier.arrived for fault in faults):
        return "and nothing had broken when the first was recorded"
    if "unknown" not in attempt.tries:
        return "and its tries do not say that the first was in doubt"
    return None


def late(attempt: Attempt, requests: Sequence[Request], faults: Sequence[Fault], lease: float) -> Iterator[str]:
    """A first arrival later than a lease and two seconds."""
    if requests and (waited := overdue(faults, attempt.first_due, requests[0].arrived, lease)):
        tries = ", ".join(attempt.tries)
        yield f"attempt {attempt.id} came {waited:.1f} s late; tries: {tries}"


def late_again(requests: Sequence[Request], faults: Sequence[Fault], lease: float) -> Iterator[str]:
    """A page in doubt that was not sent again within a lease and two seconds."""
    for earlier, later in zip(requests, requests[1:], strict=False):
        if waited := overdue(faults, earlier.arrived, later.arrived, lease):
            yield f"attempt {later.attempt} was sent again only after {waited:.1f} s"


def overdue(faults: Sequence[Fault], start: float, end: float, lease: float) -> float:
    """How long a page waited, where that was too long, else 0. The time in which the database was out of reach does not
    count, and one fault that strikes before the page had to be sent begins the time anew: it may hit whoever holds it.
    """
    last = start
    for fault in faults:
        in_time = fault.began - start - out_of_reach(faults, start, fault.began) <= lease + GRACE
        if start < fault.began < end and in_time:
            last = max(last, fault.began)
    waited = end - last
    return waited if waited - out_of_reach(faults, last, end) > lease + GRACE else 0.0


def out_of_reach(faults: Sequence[Fault], start: float, end: float) -> float:
    """For how many of these seconds no process could reach the database."""
    total, reached = 0.0, start
    for fault in sorted(faults, key=lambda item: item.began):
        if fault.away_until is None:
            continue
        begun, ended = max(fault.began, reached), min(fault.away_until, end)
        total += max(0.0, ended - begun)
        reached = max(reached, ended)
    return total


def after_acknowledge(record: Record, came: dict[int, list[Request]]) -> Iterator[str]:
    """Pages that arrived after the server had said that their incident is acknowledged or resolved, unnamed by it."""
    said = {answer.incident: answer for answer in record.answers}
    for requests in came.values():
        for request in requests:
            answer = said.get(request.incident)
            if answer and request.arrived > answer.at + WIRE and request.attempt not in answer.in_flight:
                yield f"attempt {request.attempt} arrived after incident {request.incident} had been stopped"
