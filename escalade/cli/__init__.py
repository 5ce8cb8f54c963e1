"""The command line: `python app.py COMMAND`. Exit codes are 0 done, 1 a fault, 2 wrong usage."""

import os
import sys
from collections.abc import Sequence

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
