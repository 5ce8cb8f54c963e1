"""Reads the record of a campaign and counts what must not have happened. Pure: made-up records can test it."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import inf

from bench.chaos.holds import MARGIN, WIRE, Hold, holds_of, matched, struck
from bench.chaos.lateness import GRACE, counted
from bench.chaos.record import Attempt, Fault, Move, Record, Request

# How long after its answer a page is recorded, at the latest, where nothing breaks, in seconds.
SETTLE = 2.0
# A claim reads the clock so long before it is made, at the most, in seconds: its lease counts from there.
READING = 1.0


@dataclass
class Verdict:
    """What was found; everything but the numbers must be empty. `longest` is for how many seconds a page waited at the
    most, but for what excuses it."""

    sent: int = 0
    unknown: int = 0
    longest: float = 0.0
    lost: list[str] = field(default_factory=list)
    double_claims: list[str] = field(default_factory=list)
    unclaimed: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    after_acknowledge: list[str] = field(default_factory=list)

    @property
    def faults(self) -> list[str]:
        """Everything that is wrong, a line each."""
        found = (self.lost, self.double_claims, self.unclaimed, self.known, self.late, self.after_acknowledge)
        return [line for lines in found for line in lines]


@dataclass(frozen=True)
class Case:
    """One page with all that is known of it."""

    attempt: Attempt
    requests: Sequence[Request]
    holds: Sequence[Hold]
    faults: Sequence[Fault]
    lease: float

    @property
    def answered(self) -> bool:
        """Whether the receiver has it."""
        return any(request.answered for request in self.requests)

    def counted(self, start: float, end: float) -> float:
        """For how many of these seconds nothing excuses that it waited."""
        return counted(self.faults, self.holds, start, end, self.lease)

    def overdue(self, start: float, end: float) -> float:
        """How long it waited, where that was too long, else 0."""
        return end - start if self.counted(start, end) > self.lease + GRACE else 0.0

    @property
    def waits(self) -> Iterator[tuple[float, float]]:
        """From when to when it waited to be sent, and, where it was in doubt, to be sent again."""
        starts = (self.attempt.first_due, *(request.arrived for request in self.requests))
        return zip(starts, (request.arrived for request in self.requests), strict=False)


def check(record: Record, lease: float) -> Verdict:
    """Count. `lease` is in seconds."""
    cases = list(cases_of(record, lease))
    verdict = Verdict(sent=sum(case.answered for case in cases))
    verdict.lost = [*unpaged(record), *(line for case in cases for line in lost(case, record))]
    verdict.double_claims = list(double_claims(record.moves))
    verdict.after_acknowledge = [line for case in cases for line in after_acknowledge(case, record)]
    for case in cases:
        verdict.double_claims += [*taken_early(case), *together(case)]
        verdict.late += late(case)
        verdict.longest = max([verdict.longest, *(case.counted(*wait) for wait in case.waits)])
        repeats(case, verdict)
    return verdict


def cases_of(record: Record, lease: float) -> Iterator[Case]:
    """Every page of the database, and every one that came without being there."""
    came: dict[int, list[Request]] = defaultdict(list)
    for request in sorted(record.requests, key=lambda item: item.arrived):
        came[request.attempt].append(request)
    holds = holds_of(record.moves)
    attempts = {attempt.id: attempt for attempt in record.attempts}
    for number, requests in came.items():
        first = requests[0]
        attempts.setdefault(
            number, Attempt(number, first.incident, first.key, "unknown to the database", first.arrived)
        )
    for number, attempt in attempts.items():
        yield Case(attempt, came.get(number, []), holds.get(number, []), record.faults, lease)


def unpaged(record: Record) -> Iterator[str]:
    """Alerts that were accepted and paged nobody, or not everybody."""
    pages = Counter(attempt.incident for attempt in record.attempts)
    for incident in sorted(record.accepted):
        if pages[incident] < record.people:
            yield f"incident {incident} has {pages[incident]} pages for {record.people} people"


def lost(case: Case, record: Record) -> Iterator[str]:
    """A page that came to no end, or to one that it must not have. One that was never sent may only be cancelled by
    what was recorded while there still was time to send it."""
    attempt = case.attempt
    if attempt.status not in ("DELIVERED", "CANCELLED"):
        yield f"attempt {attempt.id} is {attempt.status} at the end"
    elif attempt.status == "DELIVERED":
        if not case.answered:
            yield f"attempt {attempt.id} is said to be delivered, and never arrived"
    elif attempt.incident not in {answer.incident for answer in record.answers}:
        yield f"attempt {attempt.id} was cancelled, and nobody had stopped it"
    elif not case.requests:
        stopped = record.stopped.get(attempt.incident, inf)
        if waited := case.overdue(attempt.first_due, stopped):
            yield f"attempt {attempt.id} never left in the {waited:.1f} s before its incident was stopped"


def double_claims(moves: Sequence[Move]) -> Iterator[str]:
    """Attempts claimed while somebody else held them, or twice under one number."""
    claims = [move for move in moves if move.after == "IN_FLIGHT"]
    for claim in claims:
        if claim.before == "IN_FLIGHT":
            yield f"attempt {claim.attempt} was claimed by {claim.pid} while it was in flight"
    for (attempt, seq), count in Counter((claim.attempt, claim.seq) for claim in claims).items():
        if count > 1:
            yield f"claim {seq} of attempt {attempt} was made {count} times"


def taken_early(case: Case) -> Iterator[str]:
    """Pages taken from their holder before its lease was over, or held under one that was too short."""
    for hold in case.holds:
        if (early := hold.taken_back_early()) > WIRE:
            yield f"claim {hold.seq} of attempt {hold.attempt} was taken back {early:.1f} s before its lease ended"
        lasts = hold.lease_until - hold.claimed
        if lasts < case.lease - READING and not any(struck(hold, fault) for fault in case.faults):
            yield f"claim {hold.seq} of attempt {hold.attempt} had a lease of {lasts:.1f} s"


def together(case: Case) -> Iterator[str]:
    """A page that came while it was on the wire already. Only a sender that stood still past its lease may do so."""
    stood = any(fault.kind == "pause" and struck(hold, fault) for hold in case.holds for fault in case.faults)
    under_way = 0.0
    for request in case.requests:
        if request.arrived < under_way and not stood:
            yield f"attempt {request.attempt} was on the wire twice at once"
        under_way = max(under_way, request.answered or inf)


def repeats(case: Case, verdict: Verdict) -> None:
    """Every arrival but the last needs a claim of its own that is recorded as in doubt, and what broke to excuse it."""
    last = True
    for request, hold in matched(case.requests, case.holds):
        if hold is None:
            verdict.unclaimed.append(f"attempt {request.attempt} arrived and nobody had claimed it for that")
        elif not last:
            why = known(case, request, hold)
            verdict.known += [f"attempt {request.attempt} was sent twice: {why}"] if why else []
            verdict.unknown += not why
        last = False


def known(case: Case, request: Request, hold: Hold) -> str | None:
    """Why another arrival after this one was not to be; None where it was."""
    if len({one.key for one in case.requests}) > 1:
        return "under two keys"
    if (outcome := case.attempt.tries.get(hold.seq)) != "unknown":
        return f"its claim {hold.seq} is recorded as {outcome}, and not in doubt"
    # A sender that stood still may send after its page has been taken from it.
    arrived = min(request.arrived, hold.ended) - MARGIN
    recorded = (request.answered or inf) + SETTLE
    if not any(
        struck(hold, fault) and fault.began <= recorded and fault.mended + MARGIN >= arrived for fault in case.faults
    ):
        return f"nothing had broken when its claim {hold.seq} was to be recorded"
    return None


def late(case: Case) -> Iterator[str]:
    """A first arrival, or that of a page in doubt, later than a lease and two seconds."""
    for number, (start, end) in enumerate(case.waits):
        if waited := case.overdue(start, end):
            what = "was sent again only after" if number else "came late, after"
            yield f"attempt {case.attempt.id} {what} {waited:.1f} s; {story(case)}"


def story(case: Case) -> str:
    """Who held a page, and what was broken meanwhile, in seconds since it was due."""
    due, last = case.attempt.first_due, case.requests[-1].arrived
    told = [f"held by {hold.pid} from {hold.claimed - due:.1f} to {hold.ended - due:.1f}" for hold in case.holds]
    told += [
        f"{fault.kind} from {fault.began - due:.1f} to {fault.ended - due:.1f}"
        for fault in case.faults
        if fault.began < last and fault.ended > due
    ]
    return ", ".join(told) or "nobody held it and nothing was broken"


def after_acknowledge(case: Case, record: Record) -> Iterator[str]:
    """Pages that arrived after the server had said that their incident is acknowledged or resolved, unnamed by it."""
    for answer in record.answers:
        if answer.incident == case.attempt.incident and case.attempt.id not in answer.in_flight:
            for request in case.requests:
                if request.arrived > answer.at + WIRE:
                    yield f"attempt {request.attempt} arrived after incident {request.incident} had been stopped"
