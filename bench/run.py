"""The figures, all measured in one run on this machine: `make bench`.

Each figure stands beside what it is to be judged by: a floor of the same machine, or a target.
"""

import os
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import psycopg  # noqa: E402
from psycopg import sql  # noqa: E402

from bench import delivered, peers, process  # noqa: E402
from bench.drain import drain  # noqa: E402
from bench.latency import floor, latency, quantile  # noqa: E402
from escalade import embedded  # noqa: E402
from escalade.migrate import migrate  # noqa: E402

PAGES = int(os.environ.get("BENCH_PAGES", "400"))
ROWS = int(os.environ.get("BENCH_ROWS", "20000"))
BURST = int(os.environ.get("BENCH_BURST", "10000"))
IDLE_SECONDS = float(os.environ.get("BENCH_IDLE_SECONDS", "30"))


def main() -> None:
    """Measure and print; with --history what a long history costs, with --vacuum from how many dead rows on the queue
    is to be vacuumed, and nothing else."""
    if "--history" in sys.argv[1:]:
        from bench import history

        return history.main()
    if "--vacuum" in sys.argv[1:]:
        from bench import vacuum

        return vacuum.main()
    with tempfile.TemporaryDirectory(prefix="escalade-bench-") as name, embedded.running(Path(name), {}) as server:
        url = new_database(server, "bench")
        measure_process(url)
        measure_queue(url)
        measure_peers(url)
        measure_delivery(url)
        measure_rivals(url)


def new_database(server: str, name: str) -> str:
    """An empty, migrated database; its URL."""
    with psycopg.connect(server, autocommit=True) as conn:
        conn.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
    url = urlsplit(server)._replace(path=f"/{name}").geturl()
    migrate(url)
    return url


def measure_process(url: str) -> None:
    """What a person waits for: start, page latency, idle load, memory."""
    with process.phone() as phone:
        process.configure(url, phone.url)
        floors = floor(url, phone, PAGES)
        with process.app(url) as app:
            say("start to ready", f"{app.ready_after:.2f} s", "aim: under 2 s")
            pages = latency(app, phone, PAGES)
            ratio = quantile(pages, 0.5) / quantile(floors, 0.5)
            say("alert to page, p50", ms(quantile(pages, 0.5)), f"floor {ms(quantile(floors, 0.5))}, {ratio:.1f} times")
            say(
                "alert to page, p99", ms(quantile(pages, 0.99)), f"floor {ms(quantile(floors, 0.99))}; aim: under 25 ms"
            )
            process.quieten(url)
            say("resident memory", f"{app.resident_mb():.0f} MB", "aim: under 100 MB")
            rate = process.idle_statements(url, IDLE_SECONDS)
            say("queries while idle", f"{rate:.2f} a second", f"over {IDLE_SECONDS:.0f} s; aim: under 0.5")


def measure_queue(url: str) -> None:
    """Claim and settle, with nothing to send."""
    for senders, target in ((16, 4000), (64, 10_000)):
        done = drain(url, senders, ROWS)
        say(f"claim and settle, {senders} senders", f"{done.rate:,.0f} attempts a second", f"aim: {target:,}")


def measure_peers(url: str) -> None:
    """One queue, and more and more processes, each with 16 senders: with nothing to send, and over real HTTP."""
    for processes in (1, 2, 4, 8):
        done = peers.share(url, processes, ROWS)
        say(f"claim and settle, {processes} processes", f"{done.rate:,.0f} attempts a second", "each tried once")
    for processes in (1, 2, 4, 8):
        done = peers.delivered(url, processes, BURST // 2)
        say(f"delivered, {processes} processes", f"{done.rate:,.0f} pages a second", "each delivered once")


def measure_delivery(url: str) -> None:
    """Over real HTTP, beside a bare pool of threads; the burst meets a receiver that takes 50 ms."""
    for what, senders, pages, pause in (
        ("delivered, 16 senders", 16, BURST // 2, 0.0),
        ("delivered, 64 senders", 64, BURST // 2, 0.0),
        ("burst, 64 senders, 50 ms", 64, BURST, 0.05),
    ):
        ours = delivered.delivered(url, senders, pages, pause)
        fresh, kept = (delivered.bare(senders, pages, pause, keep=keep) for keep in (False, True))
        beside = f"bare pool {fresh:,.0f}, {ours / fresh:.0%}; with kept connections {kept:,.0f}, {ours / kept:.0%}"
        say(what, f"{ours:,.0f} pages a second", f"{beside}; aim: 80%")


def measure_rivals(url: str) -> None:
    """Other queues on the same server, each at the best of a sweep of its own settings. They are imported here: the
    tests of this module need none of them."""
    from bench import rivals

    ours, *others = rivals.all_three(url, ROWS)
    say(f"drain, Escalade, {ours.setting} senders", f"{ours.rate:,.0f} jobs a second", "best of its sweep")
    for other in others:
        ratio = ours.rate / other.rate
        say(f"drain, {other.name} {other.setting}", f"{other.rate:,.0f} jobs a second", f"ours {ratio:.2f} times")


def ms(seconds: float) -> str:
    """Seconds as milliseconds."""
    return f"{seconds * 1000:.1f} ms"


def say(what: str, figure: str, beside: str) -> None:
    """One line of the report."""
    print(f"{what:32} {figure:28} ({beside})", flush=True)


if __name__ == "__main__":
    main()
