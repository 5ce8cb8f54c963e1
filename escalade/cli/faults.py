"""What a command says when it cannot do what was asked: one line for each reason."""

import traceback

import psycopg

from escalade import logs
from escalade.config import ConfigFaults
from escalade.errors import Refusal
from escalade.transfer.faults import Faults


def lines(fault: Exception) -> list[str]:
    """The fault as lines for standard error, without secrets and control characters."""
    return [logs.escape(_redacted(line)) for line in _sentences(fault)]


def _redacted(line: str) -> str:
    """The line without secrets. What stands before the first colon names a setting or a place of the file: after
    a name such as PASSWORD the next word would be taken for one."""
    name, colon, reason = line.partition(": ")
    return logs.redact(name) + colon + logs.redact(reason)


def _sentences(fault: Exception) -> list[str]:
    if isinstance(fault, ConfigFaults | Faults):
        return fault.faults
    if isinstance(fault, Refusal):
        return [fault.message]
    if isinstance(fault, psycopg.OperationalError):
        return [f"The database is away: {short(fault)}"]
    if isinstance(fault, psycopg.Error):
        return [f"The database refused: {short(fault)}"]
    if isinstance(fault, OSError):
        return [f"{fault.filename}: {fault.strerror}" if fault.filename else str(fault.strerror or fault)]
    # Nobody has foreseen this one, so it says where it comes from.
    last = traceback.extract_tb(fault.__traceback__)[-1:]
    where = "".join(f" ({frame.filename}, line {frame.lineno})" for frame in last)
    return [f"This is a fault of Escalade itself: {type(fault).__name__}: {fault}{where}"]


def short(fault: psycopg.Error) -> str:
    """The database's message on one line."""
    return " ".join(str(fault).split()) or type(fault).__name__
