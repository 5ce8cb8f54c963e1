"""A PgBouncer in transaction mode before a database: what many hosts put into DATABASE_URL."""

import os
import pwd
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from tests.commands import free_port

SETTINGS = """[databases]
* = host={host} port={port} user={user}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
max_client_conn = 200
server_login_retry = 1
logfile = {log}
"""


def program() -> str | None:
    """Where PgBouncer is, or None."""
    return shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")


@contextmanager
def bouncing(url: str, directory: Path) -> Iterator[str]:
    """The URL of the same database through a pooler that hands out a few backends, transaction by transaction."""
    known = conninfo_to_dict(url)
    own, log, settings = free_port(), directory / "bouncer.log", directory / "bouncer.ini"
    settings.write_text(
        SETTINGS.format(host=known["host"], port=known.get("port", 5432), user=known["user"], own=own, log=log)
    )
    through = f"postgresql://{known['user']}@127.0.0.1:{own}/{known['dbname']}"
    running = subprocess.Popen([str(program()), "-q", str(settings)], **_surroundings(directory))  # type: ignore[call-overload]
    try:
        _wait(through, running, log)
        yield through
    finally:
        running.terminate()
        running.wait(10)


def _surroundings(directory: Path) -> dict[str, object]:
    """PgBouncer refuses to run as root; whoever runs the server's sockets may reach them."""
    if os.geteuid() != 0:
        return {}
    for path in (directory, *directory.parents):
        path.chmod(path.stat().st_mode | 0o011)
    directory.chmod(0o777)
    for name in ("escalade", "postgres", "nobody"):
        with_name = [entry for entry in pwd.getpwall() if entry.pw_name == name and entry.pw_uid]
        if with_name:
            return {"user": with_name[0].pw_uid, "group": with_name[0].pw_gid, "extra_groups": ()}
    raise AssertionError("no user to run PgBouncer as")


def _wait(url: str, running: "subprocess.Popen[bytes]", log: Path) -> None:
    end = time.monotonic() + 10
    while True:
        try:
            psycopg.connect(url, connect_timeout=2).close()
            return
        except psycopg.OperationalError as error:
            said = log.read_text() if log.exists() else ""
            assert running.poll() is None and time.monotonic() < end, f"PgBouncer does not answer: {error} {said}"
            time.sleep(0.05)
