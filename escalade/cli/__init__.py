"""The command line: `python app.py COMMAND`. Exit codes are 0 done, 1 a fault, 2 wrong usage."""

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from escalade.cli import commands, faults
from escalade.cli.parser import parse

__all__ = ["main"]

INTERRUPTED = 130


def main(argv: Sequence[str], serve: commands.Serve) -> int:
    """Run one command; its exit code. `serve` is what the command of that name calls. Never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        options = parse(argv)
        with _told_to_stop():
            code = commands.run(options, serve)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has had enough. Python would complain about it once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as fault:
        for line in faults.lines(fault):
            print(line, file=sys.stderr)
        return 1


@contextmanager
def _told_to_stop() -> Iterator[None]:
    """SIGTERM ends a command by way of its clean-up: a Postgres that it started must not stay behind. `serve` puts
    its own handler in this one's place."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _stop)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGTERM) is _stop:
            signal.signal(signal.SIGTERM, before)


def _stop(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
