"""Why a page that waits does so: its destination, its contact's pace, or others to the same receiver before it."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from escalade.db import Tx

# After so many failures in a row a destination is tried once at a time.
TRUST = 3


@dataclass(frozen=True, slots=True)
class Hold:
    """What stands in the way of one attempt: `reason` is the destination's last error, None while all is well there;
    `contact_until` the end of its contact's turn; `in_flight` counts attempts to the same destination in the air, of
    which the first must be back at `back_at`."""

    id: int
    due_at: datetime
    pace: int
    failures: int
    not_before: datetime | None
    reason: str | None
    turn_until: datetime | None
    contact_until: datetime | None
    in_flight: int
    back_at: datetime | None

    def why(self, now: datetime) -> tuple[datetime | None, str | None]:
        """Until when at most it waits (None: nobody can say), and why; twice None where nothing holds it."""
        # What is not due before a hold ends is not held by it.
        ends = [hold for hold in self._with_an_end() if hold[0] > max(now, self.due_at)]
        if ends:
            return max(ends)
        if self.due_at > now:
            return None, None
        if self.failures >= TRUST:
            return None, self._failing()
        if self.in_flight:
            return self.back_at, f"{self.in_flight} to the same receiver are in the air"
        return None, None

    def _with_an_end(self) -> Iterable[tuple[datetime, str]]:
        if self.not_before is not None:
            yield self.not_before, self.reason or ""
        if self.turn_until is not None and self.failures >= TRUST:
            yield self.turn_until, self._failing()
        if self.contact_until is not None:
            yield self.contact_until, f"one message in {self.pace} s to this contact"

    def _failing(self) -> str:
        return f"its receiver failed {self.failures} times in a row, so one at a time is tried: {self.reason}"


def read(tx: Tx, ids: Iterable[int]) -> dict[int, Hold]:
    """What stands in the way of these attempts."""
    wanted = list(ids)
    rows = tx.many(Hold, "holds", ids=wanted, now=tx.now) if wanted else []
    return {row.id: row for row in rows}
