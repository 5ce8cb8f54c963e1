"""A small disk of its own for the database, which can be filled. Needs root, as mounting does."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SIZE = "1500m"
CHUNK = bytes(1024 * 1024)


class Disk:
    """A mounted file system in memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ballast = path / "ballast"

    def fill(self) -> None:
        """Leave no room."""
        with suppress(OSError), self.ballast.open("wb", buffering=0) as out:
            while out.write(CHUNK):
                pass

    def free(self) -> None:
        """Give the room back."""
        self.ballast.unlink(missing_ok=True)


@contextmanager
def mounted(path: Path) -> Iterator[Disk | None]:
    """The disk, mounted on this directory; None where that is not allowed here."""
    path.mkdir(mode=0o755)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=755", "tmpfs", str(path)], capture_output=True
    )
    try:
        yield Disk(path) if done.returncode == 0 else None
    finally:
        if done.returncode == 0:
            subprocess.run(["umount", "-l", str(path)], capture_output=True)
