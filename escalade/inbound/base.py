"""What a parser of alerts answers: a list of events, in the body's order."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Request:
    """An alert as it arrived, without anything of the web framework. Header names are in lower case."""

    body: bytes
    content_type: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    query: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Event:
    """One thing an alert says: `action` is trigger, acknowledge, resolve or ignore.

    `dedup_key` is None where the sender named none (every such trigger opens an incident). `severity` is
    critical, error, warning or info. `link` is http or https, or None. `group` is kept for display only.
    `sanitized` says that bytes which cannot be stored were replaced by U+FFFD.
    """

    action: str
    title: str = ""
    details: str = ""
    severity: str = "error"
    dedup_key: str | None = None
    link: str | None = None
    group: dict[str, Any] | None = None
    sanitized: bool = False
