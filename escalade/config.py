"""The configuration, read once from the environment: either a whole `Config`, or every fault at once."""

import dataclasses
import difflib
import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from escalade.environment import SETTINGS, Setting
from escalade.transports.base import Network
from escalade.values import BASE_URL, Networks

# What each host sets on its own: to know that it is one, and where the process is reached from outside.
_HOSTS = ("DYNO", "RENDER", "RAILWAY_ENVIRONMENT", "RAILWAY_PROJECT_ID", "FLY_APP_NAME")
_PUBLIC_NAMES = (
    ("RENDER_EXTERNAL_URL", "{}"),
    ("RAILWAY_PUBLIC_DOMAIN", "https://{}"),
    ("FLY_APP_NAME", "https://{}.fly.dev"),
    ("HEROKU_APP_DEFAULT_DOMAIN_NAME", "https://{}"),
    ("HEROKU_APP_NAME", "https://{}.herokuapp.com"),
)
_MASK = "***"
# Beside app.py, so that a command finds the same data from wherever it is run.
_DATA_DIR = Path(__file__).resolve().parents[1] / ".data"


class ConfigFaults(Exception):
    """What is wrong with the environment, one sentence each."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


@dataclass(frozen=True, slots=True, repr=False)
class Config:
    """Every setting. `database_url` is None for embedded Postgres, `poll_seconds` None where the doorbell decides.

    `base_url` has no slash at its end. It is a guess while `base_url_known` is False: then `serve_faults`
    says why serving is refused, and other commands go on.
    """

    database_url: str | None
    port: int
    host: str
    base_url: str
    base_url_known: bool
    secret_key: str | None
    secret_key_old: str | None
    data_dir: Path
    admin_email: str | None
    admin_password: str | None
    senders: int
    db_pool: int
    poll_seconds: float | None
    listen: str
    connect_timeout: float
    read_timeout: float
    send_deadline: float
    lease_seconds: float
    max_tries: int
    allow_private_addresses: bool | Networks
    trusted_proxies: int
    hook_rate: int
    max_open: int
    archive_after_days: int
    keep_days: int
    smtp_url: str | None
    mail_from: str
    deadman_url: str | None
    late_seconds: float
    log: str

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> "Config":
        """The configuration that the environment gives; raises ConfigFaults with all there are."""
        faults = list(_unknown(environ))
        texts = _texts(environ, faults)
        found = _parsed(texts, faults)
        faults.extend(_disagreements(found))
        if faults:
            raise ConfigFaults(faults)
        host = str(found["host"] or ("0.0.0.0" if "PORT" in texts else "127.0.0.1"))
        return cls(**{**found, **_derived(found, host, environ)})  # type: ignore[arg-type]

    def serve_faults(self) -> list[str]:
        """Why `serve` is refused, where other commands may go on; empty where it is not."""
        if self.base_url_known:
            return []
        return [
            f"ESCALADE_BASE_URL: must be set when HOST is {self.host}, as pages carry links to this address;"
            " say https://pager.example.com, or what you reach this server by"
        ]

    @property
    def sealing_keys(self) -> tuple[str, ...]:
        """What secrets at rest are sealed under, then what still opens them. The first is empty, and nothing is
        sealed, where the key would lie beside what it seals."""
        return tuple(key or "" for key in (self.secret_key, self.secret_key_old))

    def network(self) -> Network:
        """How transports may use the network."""
        return Network(
            connect_timeout=self.connect_timeout,
            read_timeout=self.read_timeout,
            deadline=self.send_deadline,
            allow_private=self.allow_private_addresses,
            smtp_url=self.smtp_url,
            mail_from=self.mail_from,
        )

    def __repr__(self) -> str:
        secret = {setting.field for setting in SETTINGS if setting.secret}
        pairs = ((field.name, getattr(self, field.name)) for field in dataclasses.fields(self))
        shown = (f"{name}={_MASK if name in secret and value else repr(value)}" for name, value in pairs)
        return f"Config({', '.join(shown)})"


def on_a_host(environ: Mapping[str, str]) -> bool:
    """Whether this runs on Heroku (or Dokku), Render, Railway or Fly."""
    return any(environ.get(name) for name in _HOSTS)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server on this address."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _unknown(environ: Mapping[str, str]) -> Iterator[str]:
    names = [setting.name for setting in SETTINGS]
    known = {name + end for name in names for end in ("", "_FILE")}
    for name in sorted(environ):
        if name.startswith("ESCALADE_") and name not in known:
            close = difflib.get_close_matches(name.removesuffix("_FILE"), names, n=1, cutoff=0.75)
            yield f"{name}: no such setting" + (f"; did you mean {close[0]}?" if close else "")


def _texts(environ: Mapping[str, str], faults: list[str]) -> dict[str, str]:
    """The text of each setting that is set, by its name. Empty counts as unset, as hosts set empty ones."""
    texts = {}
    for setting in SETTINGS:
        text, path = environ.get(setting.name, ""), environ.get(f"{setting.name}_FILE", "")
        if text and path:
            faults.append(f"{setting.name}: set twice, also as {setting.name}_FILE; keep one")
        elif path:
            try:
                text = Path(path).read_text(encoding="utf-8").rstrip("\r\n")
            except (OSError, ValueError) as fault:
                reason = (fault.strerror if isinstance(fault, OSError) else None) or "no UTF-8 text"
                faults.append(f"{setting.name}_FILE: cannot read {path}: {reason}")
        if text:
            texts[setting.name] = text
    return texts


def _parsed(texts: Mapping[str, str], faults: list[str]) -> dict[str, object]:
    """The value of each setting by its field, its default where it is unset or wrong."""
    found = {}
    for setting in SETTINGS:
        found[setting.field] = setting.default_value()
        if setting.name in texts:
            text = texts[setting.name]
            try:
                found[setting.field] = setting.value.parse(text)
            except ValueError as fault:
                faults.append(f"{setting.name}: {fault}{_given(setting, text)}")
    return found


def _given(setting: Setting, text: str) -> str:
    return "" if setting.secret else f", not {text[:60]!r}"


def _disagreements(found: Mapping[str, object]) -> Iterator[str]:
    lease, deadline = found["lease_seconds"], found["send_deadline"]
    assert isinstance(lease, float) and isinstance(deadline, float)
    if lease < deadline + 5:
        yield (
            f"ESCALADE_LEASE_SECONDS: must be at least ESCALADE_SEND_DEADLINE and 5, which is {deadline + 5:g},"
            f" not {lease:g}"
        )
    keep, archive = found["keep_days"], found["archive_after_days"]
    assert isinstance(keep, int) and isinstance(archive, int)
    if keep < archive:
        yield f"ESCALADE_KEEP_DAYS: must be at least ESCALADE_ARCHIVE_AFTER_DAYS, which is {archive}, not {keep}"
    if found["admin_password"] and not found["admin_email"]:
        yield "ESCALADE_ADMIN_PASSWORD: is set without ESCALADE_ADMIN_EMAIL"


def _derived(found: Mapping[str, object], host: str, environ: Mapping[str, str]) -> dict[str, object]:
    """What follows from other settings and from the host, where it was not set itself."""
    base = found["base_url"] or _public_address(environ)
    local = f"http://{'[::1]' if host == '::1' else '127.0.0.1'}:{found['port']}"
    name = urlsplit(str(base)).hostname if base else None
    proxies = found["trusted_proxies"]
    return {
        "host": host,
        "base_url": base or local,
        "data_dir": found["data_dir"] or _DATA_DIR,
        "base_url_known": bool(base) or is_loopback(host),
        "mail_from": found["mail_from"] or f"escalade@{name or 'localhost'}",
        "trusted_proxies": int(on_a_host(environ)) if proxies is None else proxies,
        "database_url": _with_tls(str(found["database_url"]), environ) if found["database_url"] else None,
    }


def _public_address(environ: Mapping[str, str]) -> str | None:
    for name, form in _PUBLIC_NAMES:
        if environ.get(name):
            try:
                return str(BASE_URL.parse(form.format(environ[name])))
            except ValueError:
                continue
    return None


def _with_tls(url: str, environ: Mapping[str, str]) -> str:
    """The URL, with TLS required on Heroku where it says nothing about it.

    Dokku sets DYNO too, and its databases are containers next door without TLS: their names have no dot.
    """
    parts = urlsplit(url)
    if not environ.get("DYNO") or "sslmode=" in parts.query or "." not in (parts.hostname or ""):
        return url
    if _is_private(parts.hostname or ""):
        return url
    return parts._replace(query="&".join(filter(None, (parts.query, "sslmode=require")))).geturl()


def _is_private(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return False
