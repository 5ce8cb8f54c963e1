"""Makes what strangers send storable: text, keys, links and JSON. Bad bytes never cost a page.

Postgres takes no NUL and nothing takes a lone surrogate, so both become U+FFFD and the result is marked as
sanitized. Bytes that are not UTF-8 travel as lone surrogates from `decode` to `text`, which lets each field
say for itself whether it was touched.
"""

import hashlib
import json
import re
from typing import Any, NoReturn, TypedDict
from urllib.parse import urlsplit

from escalade.errors import Unreadable

TITLE_LIMIT = 1_000
DETAILS_LIMIT = 20_000
KEY_LIMIT = 1_000
# A btree entry holds at most about 2,700 bytes; a longer key could not be stored under a unique index.
KEY_BYTES = 2_000
LINK_LIMIT = 2_000
DEPTH_LIMIT = 32
NUMBER_LIMIT = 100
CUT = "… (cut)"

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
# Whatever a mail header or str.splitlines would take for the end of a line is in here; NUL is `text`'s.
_CONTROLS = re.compile("[\x01-\x1f\x7f-\x9f\u2028\u2029]+")
_CONTROLS_BUT_TAB_AND_NEWLINE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# The closing quote is optional: an unterminated string then ends the scan instead of being tried again and
# again from each quote in it.
_STRING_OR_BRACKET = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{}]', re.DOTALL)


class Fields(TypedDict):
    """The cleaned text of one event, named as in `inbound.base.Event`."""

    title: str
    details: str
    dedup_key: str | None
    group: dict[str, Any] | None
    sanitized: bool


def fields(
    title: str = "", details: Any = "", dedup_key: str | None = None, group: dict[str, Any] | None = None
) -> Fields:
    """Clean the texts of one event together: `Event(action=..., **fields(...))`."""
    one_line, title_touched = title_text(title)
    lines, details_touched = details_text(details)
    key, key_touched = (None, False) if dedup_key is None else key_text(dedup_key)
    shown, group_touched = tree(group)
    touched = title_touched or details_touched or key_touched or group_touched
    return Fields(title=one_line, details=lines, dedup_key=key, group=shown, sanitized=touched)


def text(value: str, limit: int | None = None) -> tuple[str, bool]:
    """The text without NUL and lone surrogates, cut visibly at the limit; True where something was replaced."""
    cleaned, replaced = _UNSTORABLE.subn("\ufffd", value)
    return cut(cleaned, limit), replaced > 0


def cut(value: str, limit: int | None) -> str:
    """The text, with its end replaced by a visible mark where it is longer than the limit."""
    if limit is None or len(value) <= limit:
        return value
    return value[: limit - len(CUT)] + CUT


def one_line(value: str) -> str:
    """The text with line ends and other control characters as spaces, and none around it."""
    return _CONTROLS.sub(" ", value).strip()


def title_text(value: str) -> tuple[str, bool]:
    """One line of at most 1,000 characters. See `text` for the mark."""
    cleaned, touched = text(value)
    return cut(one_line(cleaned), TITLE_LIMIT), touched


def details_text(value: Any) -> tuple[str, bool]:
    """Lines of at most 20,000 characters together; CR LF becomes a newline. See `text` for the mark.

    Takes any value from JSON; it is cleaned before it is written out, since JSON would hide a NUL as an escape.
    """
    cleaned, touched = tree(value)
    lines = words(cleaned).replace("\r\n", "\n").replace("\r", "\n")
    return cut(_CONTROLS_BUT_TAB_AND_NEWLINE.sub(" ", lines).strip(), DETAILS_LIMIT), touched


def key_text(value: str) -> tuple[str, bool]:
    """A dedup key, verbatim where it can be stored.

    One that is too long or holds unstorable characters becomes its beginning and a hash of the whole, so that
    equal keys stay equal and different keys stay different.
    """
    cleaned, touched = text(value)
    if not touched and len(value) <= KEY_LIMIT and len(value.encode()) <= KEY_BYTES:
        return value, False
    return f"{cleaned[:200]}… sha256:{sha256(value)}", touched


def sha256(value: str) -> str:
    """The hash of a text in hexadecimal; lone surrogates are no obstacle."""
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()


def link(value: object) -> str | None:
    """The value where it is an http or https address fit for a page or a message, else None."""
    if not isinstance(value, str):
        return None
    address = value.strip(" \t\r\n")
    if len(address) > LINK_LIMIT or _CONTROLS.search(address) or _UNSTORABLE.search(address):
        return None
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return None
    return address.replace(" ", "%20") if usable else None


def words(value: Any) -> str:
    """A value from JSON as a person would read it: null is nothing, lists and objects are indented JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, indent=2, ensure_ascii=False)


def tree(value: Any) -> tuple[Any, bool]:
    """A value from `json_body` with every text in it cleaned, object keys too; True where one was touched."""
    if isinstance(value, str):
        return text(value)
    if isinstance(value, list):
        items = [tree(item) for item in value]
        return [item for item, _ in items], any(touched for _, touched in items)
    if isinstance(value, dict):
        pairs = [(text(name), tree(item)) for name, item in value.items()]
        return {name[0]: item[0] for name, item in pairs}, any(name[1] or item[1] for name, item in pairs)
    return value, False


def decode(body: bytes) -> str:
    """The bytes as text, with or without a byte order mark; what is not UTF-8 becomes lone surrogates."""
    return body.decode("utf-8", "surrogateescape").removeprefix("\ufeff")


def json_body(body: bytes) -> Any:
    """The JSON value in a body; Unreadable where there is none, or one that cannot be stored.

    Texts in it may still hold NUL and lone surrogates: pass them through `text`, `tree` or `fields`.
    """
    return json_value(decode(body))


def json_value(source: str) -> Any:
    """The JSON value in a text, under the rules of `json_body`."""
    if not source.strip():
        raise Unreadable("The body is empty.")
    _check_depth(source)
    try:
        # Not strict: scripts put raw newlines into texts, and that is no reason to lose a page.
        return json.loads(source, strict=False, parse_int=_integer, parse_float=_float, parse_constant=_refuse_constant)
    except json.JSONDecodeError as fault:
        raise Unreadable(f"The body is not JSON: {fault.msg}, line {fault.lineno}, column {fault.colno}.") from None


def _check_depth(source: str) -> None:
    # Looked at before parsing: the parser recurses, and what it lets through later code would recurse over.
    depth = 0
    for match in _STRING_OR_BRACKET.finditer(source):
        token = match[0]
        if token in "[{":
            depth += 1
        elif token in "]}":
            depth -= 1
        if depth > DEPTH_LIMIT:
            raise Unreadable(f"The JSON is nested more than {DEPTH_LIMIT} levels deep.")


def _integer(digits: str) -> int:
    _check_length(digits)
    return int(digits)


def _float(digits: str) -> float:
    _check_length(digits)
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise Unreadable(f"The JSON holds a number that is too large: {digits}.")
    return number


def _check_length(digits: str) -> None:
    if len(digits) > NUMBER_LIMIT:
        raise Unreadable(f"The JSON holds a number of more than {NUMBER_LIMIT} characters.")


def _refuse_constant(name: str) -> NoReturn:
    raise Unreadable(f"The body is not JSON: {name} is not a JSON number.")
