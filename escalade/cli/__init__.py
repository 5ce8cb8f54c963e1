"""The command line: `python app.py COMMAND`. Exit codes are 0 done, 1 a fault, 2 wrong usage."""

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
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
        code = _run(argv, serve)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return 0  # whoever read our output has had enough
    except Exception as fault:
        _say(faults.lines(fault))
        return 1
    finally:
        _drop_what_cannot_be_written()


def _run(argv: Sequence[str], serve: commands.Serve) -> int:
    try:
        options = parse(argv)
        with _told_to_stop():
            return commands.run(options, serve)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0


def _say(lines: Sequence[str]) -> None:
    """Print faults; where even that cannot be written, the exit code has to tell."""
    with suppress(OSError):
        for line in lines:
            print(line, file=sys.stderr)


def _drop_what_cannot_be_written() -> None:
    """Python writes what is left when it ends; where that fails it would complain, and end with a code of its own."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


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
