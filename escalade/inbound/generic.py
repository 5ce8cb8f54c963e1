"""Alerts from anything that can POST: JSON, a form, the query string or plain text.

What curl sends without being told a content type is labelled as a form, whatever it is, so the body itself
has the last word there.
"""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl

from escalade import clean
from escalade.errors import Invalid, Unreadable
from escalade.inbound.base import Event, Request

Source = dict[str, Any]

TITLE = ("title", "summary", "message")
# A message or summary that is not the title says more than nothing.
DETAILS = ("details", "description", "message", "summary")
ACTION = ("action", "state", "status")
KEY = ("dedup_key", "dedup", "alert_uid")
LINK = ("link", "link_to_upstream_details")
NAMES = frozenset({*TITLE, *DETAILS, *ACTION, *KEY, *LINK, "severity"})

SEVERITIES = ("critical", "error", "warning", "info")
ACTIONS = {
    "acknowledge": "acknowledge",
    "ack": "acknowledge",
    "resolve": "resolve",
    "resolved": "resolve",
    "close": "resolve",
    "closed": "resolve",
    "ok": "resolve",
}

_PART_NAME = re.compile(r';[ \t]*name="([^"]*)"', re.IGNORECASE)
_BOUNDARY = re.compile(r'boundary="?([^";]+)', re.IGNORECASE)


def _untitled(sources: tuple[Source, ...]) -> str:
    if any(isinstance(source.get("alerts"), list) for source in sources):
        return "An alert needs a title, as text. This looks like Alertmanager's: give the integration that kind."
    return "An alert needs a title, as text."


def parse(request: Request) -> list[Event]:
    """The one event in a request; where body and query name the same thing, the body wins."""
    sources = _sources(request)
    action = ACTIONS.get(_word(_first(sources, ACTION)[1]), "trigger")
    title, details = _title_and_details(sources)
    key = _key(sources)
    if action == "trigger" and not title:
        raise Invalid(_untitled(sources), "title")
    if action != "trigger" and not key:
        raise Invalid(f"To {action} an alert, name it by its dedup_key.", "dedup_key")
    return [
        Event(
            action=action,
            severity=severity(_first(sources, ("severity",))[1]),
            link=clean.link(_first(sources, LINK)[1]),
            **clean.fields(title=title, details=details, dedup_key=key),
        )
    ]


def severity(value: object) -> str:
    """The severity a word stands for; an unknown or missing one is error, so that it pages."""
    word = _word(value)
    return word if word in SEVERITIES else "error"


def _word(value: object) -> str:
    return clean.words(value).strip().lower()


def _title_and_details(sources: tuple[Source, ...]) -> tuple[str, Any]:
    """The title, and what is left to say; a text without a title is titled by its first line."""
    titles = (clean.words(value) for _, value in _said(sources, TITLE) if not isinstance(value, dict | list))
    title = next(titles, "")
    details = next((value for _, value in _said(sources, DETAILS) if not _same(value, title)), "")
    if not title and isinstance(details, str) and details:
        title = clean.details_text(details)[0].splitlines()[0]
        details = "" if _same(details, title) else details
    if len(title) > clean.TITLE_LIMIT and not details:
        details = title
    return title, details


def _same(value: Any, title: str) -> bool:
    return clean.words(value).strip() == title.strip()


def _key(sources: tuple[Source, ...]) -> str | None:
    """The key as sent; a list or an object cannot be one."""
    name, value = _first(sources, KEY)
    if isinstance(value, dict | list):
        raise Invalid(f"{name} must be text, not {'an object' if isinstance(value, dict) else 'a list'}.", name)
    return clean.words(value) or None


def _first(sources: tuple[Source, ...], names: tuple[str, ...]) -> tuple[str, Any]:
    return next(_said(sources, names), (names[0], None))


def _said(sources: tuple[Source, ...], names: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """The named fields that say something, best first; null, blank text and empty lists say nothing."""
    for source in sources:
        for name in names:
            value = source.get(name)
            if value != [] and value != {} and clean.one_line(clean.words(value)):
                yield name, value


def _sources(request: Request) -> tuple[Source, ...]:
    """The fields of body and query, the more telling first."""
    query: Source = dict(request.query)
    text = clean.decode(request.body).strip()
    kind = request.content_type.partition(";")[0].strip().lower()
    boundary = _BOUNDARY.search(request.content_type)
    if not text:
        return (query,)
    if kind.endswith(("/json", "+json")):
        return _object(clean.json_value(text)), query
    if kind == "multipart/form-data" and boundary:
        return _parts(text, boundary[1].strip()), query
    found = _json_in_text(text) if kind == "text/plain" else _fields_in_unlabelled(text)
    # A text without field names is the title, or explains the title that the query gives.
    return (query, _lines(text)) if found is None else (found, query)


def _object(value: Any) -> Source:
    if not isinstance(value, dict):
        raise Invalid("The body must be a JSON object with a title, or plain text.", "title")
    return value


def _json_in_text(text: str) -> Source | None:
    """The fields of a body that is labelled as text and is a JSON object all the same."""
    try:
        value = clean.json_value(text)
    except Unreadable:
        return None
    return value if isinstance(value, dict) else None


def _fields_in_unlabelled(text: str) -> Source | None:
    """The fields of a body whose label says form or nothing useful; None where it is plain text."""
    try:
        return _object(clean.json_value(text))
    except Unreadable:
        if text.startswith("{"):
            raise
    form: Source = dict(parse_qsl(text, keep_blank_values=True, errors="surrogateescape"))
    # An encoded form has no spaces: "disk usage=97% on web1" is a sentence, "usage=97" a form without title.
    is_form = NAMES & form.keys() or ("=" in text and not re.search(r"\s", text))
    return form if is_form else None


def _lines(text: str) -> Source:
    return {"title": text.splitlines()[0], "details": text}


def _parts(text: str, boundary: str) -> Source:
    """The fields of a multipart form, as `curl -F title=...` sends it."""
    found: Source = {}
    for part in f"\r\n{text}".split(f"\r\n--{boundary}")[1:]:
        head, gap, value = part.partition("\r\n\r\n")
        name = _PART_NAME.search(head)
        if gap and name:
            found[name[1]] = value
    return found
