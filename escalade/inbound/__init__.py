"""Parsers of alerts, one module per tool: a request in, its events out, or a refusal that names the field."""

from collections.abc import Callable

from escalade.errors import Invalid
from escalade.inbound import alertmanager, generic
from escalade.inbound.base import Event, Request

Parser = Callable[[Request], list[Event]]

PARSERS: dict[str, Parser] = {
    "alertmanager": alertmanager.parse,
    "generic": generic.parse,
}


def parse(kind: str, request: Request) -> list[Event]:
    """The events in a request to an integration of this kind, in the body's order."""
    if kind not in PARSERS:
        raise Invalid(f"There is no integration kind {kind!r}; there are {', '.join(sorted(PARSERS))}.", "kind")
    return PARSERS[kind](request)
