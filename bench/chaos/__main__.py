"""`make chaos`: runs one campaign and prints what was counted; exit code 1 where anything is wrong, or missing."""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bench.chaos import disk, evidence, phone
from bench.chaos.alerts import Alerts
from bench.chaos.check import Verdict, check
from bench.chaos.faults import Breaker
from bench.chaos.plan import FULL, SHORT, Size, plan
from bench.chaos.record import Record
from bench.chaos.size import missing
from bench.chaos.stage import LEASE, Stage

RATE = 25.0
# Whom every alert pages: see the configuration in stage.py.
PEOPLE = 2
QUIET = 4 * LEASE


def main(arguments: list[str]) -> int:
    """Run as the arguments say."""
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000), help="the same seed, the same faults")
    parser.add_argument("--short", action="store_true", help="200 pages and a few faults")
    parser.add_argument("--pages", type=int, help="how many pages go out")
    parser.add_argument("--kills", type=int, help="how many processes are killed")
    parser.add_argument("--full-disks", type=int, help="how often the disk is full: 0 where none can be mounted")
    parser.add_argument("--processes", type=int, help="how many processes serve the database")
    chosen = parser.parse_args(arguments)
    size = SHORT if chosen.short else FULL
    size = replace(size, pages=chosen.pages or size.pages, processes=chosen.processes or size.processes)
    size = replace(size, kills=size.kills if chosen.kills is None else chosen.kills)
    size = replace(size, full_disks=size.full_disks if chosen.full_disks is None else chosen.full_disks)
    started = time.monotonic()
    record = campaign(size, chosen.seed)
    verdict = check(record, LEASE)
    print(f"seed {chosen.seed}, {time.monotonic() - started:.0f} s, {size.processes} processes")
    report(record, verdict)
    short = list(missing(record, verdict, size))
    for line in short:
        print(f"  did not happen: {line}")
    return 1 if verdict.faults or short else 0


def campaign(size: Size, seed: int) -> Record:
    """Everything that happened."""
    record, rng = Record(people=PEOPLE), random.Random(seed)
    kinds = plan(size, rng)
    with tempfile.TemporaryDirectory(prefix="escalade-chaos-") as name, disk.mounted(Path(name) / "disk") as own:
        Path(name).chmod(0o755)
        stage = Stage(Path(name) / "disk", size.processes, standby=size.failover)
        try:
            with phone.running() as receiver:
                token = stage.configure(receiver.url)
                stage.start()
                record.processes = len(stage.apps)
                alerts = Alerts(stage, record, token, size.pages // PEOPLE, RATE)
                alerts.start()
                breaker = Breaker(stage, receiver, alerts, record, rng, own)
                strike_all(breaker, alerts, kinds)
                with stage.connect() as conn:
                    evidence.wait_until_quiet(conn, QUIET)
                    evidence.read(conn, record, stage.apps)
                record.requests = list(receiver.requests)
        finally:
            stage.close()
    return record


def strike_all(breaker: Breaker, alerts: Alerts, kinds: Sequence[str]) -> None:
    """The faults one after the other, evenly spread over the alerts, which go on meanwhile."""
    for number, kind in enumerate(kinds, 1):
        alerts.wait(alerts.count * number // (len(kinds) + 1))
        alerts.limit = alerts.count * (number + 1) // (len(kinds) + 1)
        breaker.strike(kind)
    alerts.finish()


def report(record: Record, verdict: Verdict) -> None:
    """One line a count, then every single fault found."""
    kinds = Counter(fault.kind for fault in record.faults if fault.done)
    print("broken: " + ", ".join(f"{count} x {kind}" for kind, count in sorted(kinds.items())))
    for fault in record.faults:
        if fault.note:
            print(f"  {fault.kind}: {fault.note}")
    stopped, longest = len(record.answers), verdict.longest
    counts = {
        "alerts accepted": f"{len(record.accepted)} ({stopped} acknowledged or resolved)",
        "pages sent": verdict.sent,
        "lost": len(verdict.lost),
        "claimed twice at once": len(verdict.double_claims),
        "sent without a claim": len(verdict.unclaimed),
        "duplicates with known outcome": len(verdict.known),
        "duplicates with unknown outcome": verdict.unknown,
        "late past lease + 2 s": f"{len(verdict.late)} (the longest wait that counts: {longest:.1f} s)",
        "paged after it was stopped": len(verdict.after_acknowledge),
    }
    for what, count in counts.items():
        print(f"{what:<37}{count}")
    for line in verdict.faults[:40]:
        print(f"  {line}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
