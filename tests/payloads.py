"""What tools really send, as files: how one is read, and what it must come to."""

from dataclasses import dataclass
from pathlib import Path

from escalade.inbound import parse
from escalade.inbound.base import Event, Request

# curl labels plain text as a form too.
FORM = "application/x-www-form-urlencoded"
CONTENT_TYPES = {".json": "application/json", ".form": FORM, ".txt": FORM}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a file must come to; a title that ends with … is a beginning, a key that does too."""

    action: str
    title: str
    key: str | None
    severity: str = "error"
    link: str | None = None


def read(root: Path, name: str) -> list[Event]:
    """The events of one sample."""
    path = root / name
    request = Request(path.read_bytes(), CONTENT_TYPES[path.suffix])
    return parse(path.parent.name, request)


def shortened(value: str | None, like: str | None) -> str | None:
    """The value cut to the length of the expectation, where that is only a beginning."""
    return value[: len(like) - 1] + "…" if value and like and like.endswith("…") else value


def check(events: list[Event], wanted: list[Wanted]) -> None:
    """Assert that the events are those that are wanted."""
    found = [
        Wanted(
            event.action,
            str(shortened(event.title, want.title)),
            shortened(event.dedup_key, want.key),
            event.severity,
            event.link,
        )
        for event, want in zip(events, wanted, strict=True)
    ]
    assert found == wanted
    assert not any(event.sanitized for event in events)


def present(root: Path, kind: str) -> set[str]:
    """The samples of one kind that are there."""
    return {f"{kind}/{path.name}" for path in (root / kind).iterdir() if path.is_file()}
