"""The log: one line a record, as text or JSON, without control characters and without secrets."""

import json
import logging
import re
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TextIO

# Set by the web for the length of a request; every record written meanwhile carries it.
request_id: ContextVar[str] = ContextVar("request_id", default="")

_LEVELS = {
    "werkzeug": logging.WARNING,
    "waitress": logging.WARNING,
    "waitress.queue": logging.ERROR,  # it warns of every burst, which the metrics show
    "urllib3": logging.ERROR,
    "psycopg.pool": logging.ERROR,  # it warns of every attempt to reconnect; readyz and doctor say it once
}
_MASK = "***"
# Redacting looks at twice as much as is shown, so that no secret is shown for being cut in two.
_SHOWN = 10_000
_START = r"""(?:^|(?<=[\s"'(=<\[,])|(?<=[a-z]://)[^\s/"'?#]+)"""
_SECRETS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, flags), replacement)
    for pattern, flags, replacement in (
        # Keys and tokens in our own paths.
        (rf"({_START}/(?:hooks|beat|a|start|invite|reset|ics)/)[^\s/?#\"'<>),\]]+", 0, rf"\1{_MASK}"),
        (rf"({_START}/callbacks/[\w-]+/)[^\s?#\"'<>),\]]+", 0, rf"\1{_MASK}"),
        # Headers: Authorization, cookies, and schemes on their own. Unquoted, they go to the end of the line.
        (
            r"\b((?:proxy-)?authorization|(?:set-)?cookie)([\"']?\s*[:=]\s*)(?:([\"'])[^\"']*|[^\s\"'][^\r\n]*)",
            re.I,
            rf"\1\2\3{_MASK}",
        ),
        (r"\b(bearer|basic|geniekey)\s+[\w.~+/=-]{8,}", re.I, rf"\1 {_MASK}"),
        # Passwords in URLs.
        (r"\b([a-z][a-z0-9+.-]{0,20}://[^\s:/@\"']*):[^\s/\"']*@", re.I, rf"\1:{_MASK}@"),
        # Addresses that are secrets as a whole.
        (r"(hooks\.slack\.com/)[^\s\"'<>)]+", re.I, rf"\1{_MASK}"),
        (r"(discord(?:app)?\.com/api/webhooks/)[^\s\"'<>)]+", re.I, rf"\1{_MASK}"),
        (r"(/bot)[0-9]+:[\w-]+", 0, rf"\1{_MASK}"),
        (r"\bwhsec_[\w+/=-]+", 0, _MASK),
        # Named values: password=x, "routing_key": "x", ?key=x.
        (
            r"\b((?:\w+_)?(?:password|passwd|secret|token|api_?key|routing_key|integration_key|signature))"
            r"([\"']?\s*[:=]\s*)(?:\"(?:\\.|[^\"\\])*\"?|'(?:\\.|[^'\\])*'?|[^\s\"'&,;})]+)",
            re.I,
            rf"\1\2{_MASK}",
        ),
        (r"([?&](?:key|sig|auth)=)[^\s\"'&#]+", re.I, rf"\1{_MASK}"),
    )
)


def setup(form: str = "text", stream: TextIO | None = None, level: int = logging.INFO) -> None:
    """Send every log record to the stream (standard error unless given), as "text" or "json"."""
    stream = stream or sys.stderr
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLine() if form == "json" else TextLine())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name, least in _LEVELS.items():
        logging.getLogger(name).setLevel(max(least, level))
    logging.captureWarnings(True)
    # A log that cannot be written must not stop a page: no traceback about it either.
    logging.raiseExceptions = False


def redact(text: str) -> str:
    """The text without the keys, tokens and passwords that can be told from it."""
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


def escape(text: str) -> str:
    """The text in one line: what is not printable, line ends too, as backslash escapes."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


class TextLine(logging.Formatter):
    """`2026-01-05T09:00:00.000Z INFO escalade.engine: what happened`, then where it failed."""

    def format(self, record: logging.LogRecord) -> str:
        """One line for a record."""
        request = request_id.get()
        where = f"{record.name} [{request}]" if request else record.name
        text = f"{_time(record)} {record.levelname} {where}: {_short(_message(record))}"
        if trace := _trace(self, record):
            text = f"{text} | {_short(trace)}"
        return escape(text)


class JsonLine(logging.Formatter):
    """An object with time, level, logger and message; request and trace where there are any."""

    def format(self, record: logging.LogRecord) -> str:
        """One line for a record."""
        fields = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _short(_message(record)),
            "request": request_id.get(),
            "trace": _short(_trace(self, record)),
        }
        return json.dumps({name: value for name, value in fields.items() if value or name == "message"})


def _short(text: str) -> str:
    text = redact(text[: 2 * _SHOWN])
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # a wrong number of arguments, say: the template still tells more than nothing
        return f"{record.msg!r} with {record.args!r}"


def _trace(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    parts = []
    if record.exc_info and record.exc_info[0]:
        parts.append(formatter.formatException(record.exc_info))
    if record.stack_info:
        parts.append(record.stack_info)
    return "\n".join(parts)
