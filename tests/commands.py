"""Commands in tests: in a process of their own, or in this one, and the databases they do not like."""

import io
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from escalade import cli

ROOT = Path(__file__).parents[1]
Run = Callable[..., subprocess.CompletedProcess[str]]


def environment(**more: str) -> dict[str, str]:
    """Ours without what configures Escalade or Python or says that this is a host, and with `more`."""
    known = ("ESCALADE_", "TEST_", "DATABASE_URL", "SMTP_URL", "PORT", "HOST", "DYNO", "RENDER", "RAILWAY_", "FLY_")
    known += ("PYTHON",)
    return {name: value for name, value in os.environ.items() if not name.startswith(known)} | more


def command(*words: str, given: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    """One command in a process of its own."""
    return subprocess.run(
        [sys.executable, "app.py", *words],
        cwd=ROOT,
        env=environment(**more),
        input=given,
        capture_output=True,
        text=True,
        timeout=60,
    )


def inside(*words: str, given: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    """One command in this process, which is quicker, with streams and an environment of its own."""
    out, err = (io.TextIOWrapper(io.BytesIO(), write_through=True) for _ in range(2))
    streams = {"stdin": io.TextIOWrapper(io.BytesIO(given.encode())), "stdout": out, "stderr": err}
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    with patch.multiple(sys, **streams), patch.dict(os.environ, environment(**more), clear=True):
        try:
            code = cli.main(words, never)
        finally:
            root.handlers[:] = handlers
            root.setLevel(level)
    printed = [stream.buffer.getvalue().decode() for stream in (out, err)]  # type: ignore[attr-defined]
    return subprocess.CompletedProcess(words, code, *printed)


def never(config: object, *, engine: bool, demo: bool) -> int:
    """Nobody may call this."""
    raise AssertionError("serve was called")


def said(done: subprocess.CompletedProcess[str]) -> str:
    """What a command printed; it must have gone well."""
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def refused(done: subprocess.CompletedProcess[str], code: int = 1) -> list[str]:
    """The lines of a command that was refused: on standard error alone, and no traceback."""
    assert (done.returncode, done.stdout) == (code, "")
    assert "Traceback" not in done.stderr
    return done.stderr.splitlines()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def bare_url(server_url: str, worker_name: str) -> Iterator[str]:
    """A database without our schema."""
    name = f"escalade_bare_{os.getpid()}_{worker_name}"
    with psycopg.connect(server_url, autocommit=True) as conn:
        conn.execute(f"create database {name}".encode())
        yield urlsplit(server_url)._replace(path=f"/{name}").geturl()
        conn.execute(f"drop database {name} with (force)".encode())


@contextmanager
def read_only(url: str) -> Iterator[None]:
    """New sessions on this database cannot write."""
    name = sql.Identifier(urlsplit(url).path.removeprefix("/"))
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(sql.SQL("alter database {} set default_transaction_read_only = on").format(name))
        try:
            yield
        finally:
            conn.execute(sql.SQL("alter database {} reset default_transaction_read_only").format(name))
