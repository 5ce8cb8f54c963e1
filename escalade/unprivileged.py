"""Running Postgres from an app that runs as root: Postgres refuses root, so somebody else has to run it."""

import logging
import os
import pwd
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

from escalade.errors import Refusal

log = logging.getLogger("escalade.embedded")

# A user of its own where the administrator made one; else one that every system has.
_CANDIDATES = ("escalade", "postgres", "nobody")


@dataclass(frozen=True, slots=True)
class Account:
    """Whom the programs of Postgres run as; no ids means as whoever runs us."""

    uid: int | None = None
    gid: int | None = None

    def command(self, *args: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a program to its end; its output is in the answer, none on the console."""
        return subprocess.run(  # type: ignore[call-overload, no-any-return]
            [str(arg) for arg in args],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            **self.surroundings(),
        )

    def surroundings(self) -> dict[str, object]:
        """What Popen needs to run a program as this account, with none of our secrets in its environment."""
        kept = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
        identity = {} if self.uid is None else {"user": self.uid, "group": self.gid, "extra_groups": ()}
        return {"cwd": "/", "umask": 0o077, "env": {**kept, "LC_ALL": "C"}, **identity}

    def give(self, path: Path) -> None:
        """Make a file or directory this account's own."""
        if self.uid is not None and self.gid is not None:
            os.chown(path, self.uid, self.gid)

    def take(self, tree: Path) -> None:
        """Make a tree this account's own where it is not, as after a copy made by root."""
        if self.uid is not None and tree.stat().st_uid != self.uid:
            for path in [tree, *tree.rglob("*")]:
                os.chown(path, self.uid, self.gid or 0, follow_symlinks=False)

    def let_through(self, path: Path) -> None:
        """Let this account pass the directories above a path: pass, not list them."""
        for directory in path.parents if self.uid is not None else ():
            mode = directory.stat()
            if mode.st_uid != self.uid and not mode.st_mode & stat.S_IXOTH:
                log.info("letting other users pass through %s (chmod o+x), as Postgres cannot run as root", directory)
                directory.chmod(stat.S_IMODE(mode.st_mode) | stat.S_IXOTH)

    def let_read(self, tree: Path) -> None:
        """Let this account read and run what is in a tree."""
        self.let_through(tree)
        for path in [tree, *tree.rglob("*")]:
            if not path.is_symlink():
                mode = stat.S_IMODE(path.stat().st_mode)
                path.chmod(mode | stat.S_IROTH | (stat.S_IXOTH if mode & stat.S_IXUSR else 0))


def account_for(data: Path) -> Account:
    """Whoever owns the data, where there is some; for new data made by root, an ordinary user of the system."""
    owner = data.stat().st_uid if data.exists() else None
    if os.geteuid() != 0:
        if owner not in (None, os.geteuid()):
            raise Refusal(
                f"{data} belongs to another user (id {owner}): run as that user or as root, or set DATABASE_URL"
            )
        return Account()
    if owner:
        return Account(owner, data.stat().st_gid)
    for name in _CANDIDATES:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        if entry.pw_uid != 0:
            return Account(entry.pw_uid, entry.pw_gid)
    raise Refusal(
        "Postgres cannot run as root and there is no user to run it as: run as another user, or set DATABASE_URL"
    )
