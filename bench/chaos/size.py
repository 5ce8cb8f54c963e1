"""Whether a campaign was as large as it was asked to be: zeros of one that broke little say little."""

from collections import Counter
from collections.abc import Iterator

from bench.chaos.check import Verdict
from bench.chaos.plan import Size
from bench.chaos.record import Record

KILLS = ("kill", "kill_in_send")
RESTARTS = ("restart_fast", "restart_immediate")
CUTS = ("cut_one", "cut_all")


def missing(record: Record, verdict: Verdict, size: Size) -> Iterator[str]:
    """What was asked for and did not happen, a line each."""
    done = Counter(fault.kind for fault in record.faults if fault.done)
    asked = {
        "kills": (sum(done[kind] for kind in KILLS), size.kills),
        "kills during a send": (done["kill_in_send"], size.kills_in_send),
        "database restarts": (sum(done[kind] for kind in RESTARTS), size.restarts),
        "network cuts": (sum(done[kind] for kind in CUTS), size.cuts),
        "times all backends ended": (done["terminate"], size.terminations),
        "pauses": (done["pause"], size.pauses),
        "full disks": (done["full_disk"], size.full_disks),
        "failovers": (done["failover"], int(size.failover)),
        "processes": (record.processes, size.processes),
        "alerts accepted": (len(record.accepted), size.pages // record.people),
        # Of an incident that somebody stopped no page need have gone out.
        "pages sent": (verdict.sent, size.pages - record.people * len(record.answers)),
    }
    for what, (happened, wanted) in asked.items():
        if happened < wanted:
            yield f"{what}: {happened} of {wanted}"
    for fault in record.faults:
        if not fault.done:
            yield f"{fault.kind} broke nothing that could be seen{': ' if fault.note else ''}{fault.note}"
