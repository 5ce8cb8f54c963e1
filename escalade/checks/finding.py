"""What a check finds."""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass

from escalade.config import Config
from escalade.db import Tx


@dataclass(frozen=True, slots=True)
class Finding:
    """`level` is ok, warning or fault; `check` says of what; `text` what was found and, unless ok, what to do."""

    level: str
    check: str
    text: str

    @property
    def line(self) -> str:
        """The finding as it is printed."""
        return f"{self.level}: {self.check}: {self.text}"

    @property
    def shown(self) -> dict[str, str]:
        """The finding as JSON."""
        return asdict(self)


Check = Callable[[Tx, Config], Iterable[Finding]]


def ok(check: str, text: str) -> Finding:
    """All is well."""
    return Finding("ok", check, text)


def warning(check: str, text: str) -> Finding:
    """Pages go out, but somebody should look at this."""
    return Finding("warning", check, text)


def fault(check: str, text: str) -> Finding:
    """Pages do not go out, or some of them will not."""
    return Finding("fault", check, text)


def listed(names: Iterable[str], most: int = 10) -> str:
    """The names on one line, at most so many of them."""
    known = list(names)
    more = f" and {len(known) - most} more" if len(known) > most else ""
    return ", ".join(known[:most]) + more


def ago(seconds: float) -> str:
    """A duration in words, rounded."""
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
