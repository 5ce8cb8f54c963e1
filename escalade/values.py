"""What a setting may hold: each `Value` turns a text into a value, or raises ValueError saying what it must be."""

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parseaddr
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from psycopg import ProgrammingError, conninfo

from escalade import passwords
from escalade.transports.smtp import parse_server

EMAIL_LIMIT = 254
Networks = tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]


@dataclass(frozen=True, slots=True)
class Value:
    """A kind of value: what the document calls it, and how a text becomes one."""

    kind: str
    parse: Callable[[str], object]


def split_url(text: str, *schemes: str) -> SplitResult:
    """The parts of a URL with one of the schemes, a host, and a port that can be; else ValueError."""
    wanted = " or ".join(f"{scheme}://" for scheme in schemes)
    if not text.isprintable() or " " in text:
        raise ValueError("must not hold spaces or control characters")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError(f"must be a {wanted} URL with a port from 1 to 65535, if any") from None
    if parts.scheme not in schemes or not parts.hostname or port == 0:
        raise ValueError(f"must be a {wanted} URL with a host")
    return parts


def whole(least: int, most: int = 1_000_000) -> Value:
    """A whole number from `least` to `most`."""

    def parse(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,12}", text):
            raise ValueError("must be a whole number")
        if int(text) < least:
            raise ValueError(f"must be at least {least}")
        if int(text) > most:
            raise ValueError(f"must be at most {most}")
        return int(text)

    return Value("whole number" + (f", at least {least}" if least > 1 else ""), parse)


def seconds(least: float, most: float) -> Value:
    """Seconds from `least` to `most`, also with decimals."""

    def parse(text: str) -> float:
        if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,6})?", text):
            raise ValueError("must be a number of seconds, without a unit")
        if not least <= float(text) <= most:
            raise ValueError(f"must be from {least:g} to {most:g} seconds")
        return float(text)

    return Value("seconds", parse)


def choice(*words: str) -> Value:
    """One of a few words."""

    def parse(text: str) -> str:
        if text.lower() not in words:
            raise ValueError(f"must be {', '.join(words[:-1])} or {words[-1]}")
        return text.lower()

    return Value(", ".join(words), parse)


def _text(text: str) -> str:
    if not text.isprintable():
        raise ValueError("must not hold control characters")
    return text


def _host(text: str) -> str:
    if not re.fullmatch(r"[0-9A-Za-z.:_-]+", text):
        raise ValueError("must be an address or a host name, without scheme, brackets or port")
    return text


def _database_url(text: str) -> str:
    if not re.match(r"postgres(ql)?://", text):
        raise ValueError("must be a postgres:// or postgresql:// URL")
    try:
        conninfo.conninfo_to_dict(text)
    except ProgrammingError:
        raise ValueError("is no URL that Postgres can read (are special characters in it encoded?)") from None
    return text


def _base_url(text: str) -> str:
    parts = split_url(text, "http", "https")
    if parts.path not in ("", "/") or parts.query or parts.fragment or parts.username is not None:
        raise ValueError("must be scheme and host alone, as in https://pager.example.com")
    try:
        (parts.hostname or "").encode("idna")
    except UnicodeError:
        raise ValueError("must name a host by parts of 1 to 63 letters, as in https://pager.example.com") from None
    return f"{parts.scheme}://{parts.netloc}"


def _web_url(text: str) -> str:
    split_url(text, "http", "https")
    return text


def _smtp_url(text: str) -> str:
    split_url(text, "smtp", "smtps")
    try:
        parse_server(text)
    except ValueError as fault:
        raise ValueError(str(fault).removeprefix("SMTP_URL ").rstrip(".")) from None
    return text


def _secret_key(text: str) -> str:
    if len(text) < 16:
        raise ValueError("must have at least 16 characters")
    return text


def _address(text: str) -> str:
    name, address = parseaddr(_text(text))
    if not re.fullmatch(r"[^\s@<>]+@[^\s@<>]+", address) or (address != text and f"<{address}>" not in text):
        raise ValueError("must be a mail address")
    return text


def _lone_address(text: str) -> str:
    if "<" in _address(text) or len(text) > EMAIL_LIMIT:
        raise ValueError(f"must be a mail address alone, in at most {EMAIL_LIMIT} characters")
    return text


def _password(text: str) -> str:
    if not passwords.SHORTEST <= len(text) <= passwords.LONGEST:
        raise ValueError(f"must have from {passwords.SHORTEST} to {passwords.LONGEST:,} characters")
    return _text(text)


def _networks(text: str) -> bool | Networks:
    if text.lower() in ("on", "off"):
        return True if text.lower() == "on" else ()
    try:
        return tuple(ipaddress.ip_network(part) for part in re.split(r"[,\s]+", text) if part)
    except ValueError as fault:
        raise ValueError(f"must be off, on, or networks such as 10.0.0.0/8 ({fault})") from None


TEXT = Value("text", _text)
HOST = Value("address", _host)
DIRECTORY = Value("directory", lambda text: Path(_text(text)))
DATABASE_URL = Value("postgres:// URL", _database_url)
BASE_URL = Value("URL", _base_url)
WEB_URL = Value("URL", _web_url)
SMTP_URL = Value("smtp:// or smtps:// URL", _smtp_url)
SECRET_KEY = Value("text, at least 16 characters", _secret_key)
MAIL_ADDRESS = Value("mail address", _address)
LONE_ADDRESS = Value("mail address", _lone_address)
PASSWORD = Value(f"text, at least {passwords.SHORTEST} characters", _password)
NETWORKS = Value("off, on, networks", _networks)
