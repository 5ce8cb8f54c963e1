"""Receivers' addresses: whether one can work, how it is shown without its secrets, and which gate it shares."""

import base64
import ipaddress
import json
import re
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import quote, unquote

from urllib3.exceptions import LocationParseError
from urllib3.util import parse_url

from escalade.transports.base import DeliveryError

_MAIL = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@(?P<domain>[^\s@<>,;:\\\"()\[\]]{1,253})")
_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_UNFIT = re.compile(r"[\s\\\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_PORTS = {"http": 80, "https": 443}
# Shorter pieces of a path ("hooks", "api") say nothing and would blank out ordinary words of an answer.
_SECRET_LENGTH = 8


@dataclass(frozen=True, slots=True)
class WebAddress:
    """An http or https address taken apart. `host` is ASCII without brackets; `target` is path and query.

    `user` and `password` are None where the address holds none.
    """

    scheme: Literal["http", "https"]
    host: str
    port: int
    target: str
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)

    @property
    def authority(self) -> str:
        """Host and port as a Host header has them: the default port is left out."""
        return self.bracketed if self.port == _PORTS[self.scheme] else f"{self.bracketed}:{self.port}"

    @property
    def shown(self) -> str:
        """The address as logs and errors may show it: no login, path or query."""
        return f"{self.scheme}://{self.authority}" + ("/..." if self.target != "/" else "")

    @property
    def origin(self) -> str:
        """Scheme, login, host and port: the address up to its path."""
        login = "" if self.user is None else f"{quote(self.user, '')}:{quote(self.password or '', '')}@"
        return f"{self.scheme}://{login}{self.authority}"

    @property
    def bare(self) -> str:
        """The address as a request has it: no login and no fragment."""
        return f"{self.scheme}://{self.authority}{self.target}"

    @property
    def bracketed(self) -> str:
        """The host as it stands in an address: IPv6 in brackets."""
        return f"[{self.host}]" if ":" in self.host else self.host


def parse_web(address: str) -> WebAddress:
    """Take an http or https address apart; ValueError, one sentence without secrets, where it is none."""
    if _UNFIT.search(address):
        raise ValueError("The address holds spaces, backslashes or control characters.")
    try:
        url = parse_url(address)
    except LocationParseError:
        raise ValueError("The address cannot be read as a web address.") from None
    scheme = url.scheme
    if scheme != "http" and scheme != "https":
        raise ValueError("The address does not begin with http:// or https://.")
    host = (url.host or "").strip("[]")
    if not _is_host(host):
        raise ValueError("The address names no valid host.")
    user, _, password = url.auth.partition(":") if url.auth is not None else (None, "", "")
    return WebAddress(
        scheme,  # type: ignore[arg-type]
        host,
        url.port or _PORTS[scheme],
        url.request_uri,
        None if user is None else unquote(user),
        None if user is None else unquote(password),
    )


def take_apart(address: str) -> WebAddress:
    """The same for a sender: DeliveryError (permanent) where the address is none."""
    try:
        return parse_web(address)
    except ValueError as fault:
        raise DeliveryError(str(fault), permanent=True) from None


def _is_host(host: str) -> bool:
    # What holds a colon is IPv6, which the parser has checked; names are checked because the resolver raises
    # errors of its own kind for labels that are empty or too long, and requests for a * at the beginning.
    labels = host.removesuffix(".").split(".")
    if host.startswith("*"):
        return False
    return ":" in host or (len(host) <= 253 and all(0 < len(label) <= 63 for label in labels))


def basic_login(web: WebAddress) -> str | None:
    """The value of an Authorization header for the login in the address (RFC 7617), None where it has none."""
    if web.user is None:
        return None
    return "Basic " + base64.b64encode(f"{web.user}:{web.password}".encode()).decode("ascii")


def check_web(address: str) -> str | None:
    """What is wrong with an http or https address, in one sentence, or None."""
    try:
        parse_web(address)
    except ValueError as fault:
        return str(fault)
    return None


def check_mail(address: str) -> str | None:
    """What is wrong with a mail address, in one sentence, or None. The part before the @ must be ASCII."""
    match = _MAIL.fullmatch(address)
    if match is None or ".." in address or address.startswith(".") or ".@" in address:
        return "The address is no e-mail address such as alice@example.com."
    try:
        labels = match["domain"].encode("idna").decode("ascii").split(".")
    except UnicodeError:
        labels = [""]
    if not all(_LABEL.fullmatch(label) for label in labels):
        return "The part after the @ is no valid domain."
    return None


def mask(kind: str, address: str) -> str:
    """The address as logs, errors and pages may show it: no path, query, login or full mailbox name."""
    if kind == "log":
        return address
    if kind == "push":
        return mask("web", push_endpoint(address) or "")
    if kind == "email":
        name, _, domain = address.rpartition("@")
        return f"{name[:1]}***@{domain}" if name else "***"
    try:
        return parse_web(address).shown
    except ValueError:
        return "***"


def destination(kind: str, address: str) -> str:
    """The gate a web address shares with others of its kind and host: `webhook:example.com:443`."""
    try:
        web = parse_web(address)
    except ValueError:
        return kind
    return f"{kind}:{web.bracketed}:{web.port}"


def push_endpoint(address: str) -> str | None:
    """Where a browser's subscription is reached: the endpoint in its JSON. None where it is no such JSON."""
    try:
        found = json.loads(address)
    except (ValueError, RecursionError):
        return None
    endpoint = found.get("endpoint") if isinstance(found, dict) else None
    return endpoint if isinstance(endpoint, str) else None


def is_loopback(host: str) -> bool:
    """Whether this host is always this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def secret_parts(address: str) -> tuple[str, ...]:
    """The pieces of a web address that must not appear in a log, longest first; empty for any other address."""
    try:
        web = parse_web(address)
    except ValueError:
        return ()
    path, _, query = web.target.partition("?")
    pieces = {web.target, path, query, *re.split(r"[/?&=]", web.target)}
    pieces |= {unquote(piece) for piece in pieces}
    secrets = {piece for piece in pieces if len(piece) >= _SECRET_LENGTH}
    if web.password:
        secrets |= {web.password, (basic_login(web) or "").removeprefix("Basic ")}
    return tuple(sorted(secrets, key=len, reverse=True))
