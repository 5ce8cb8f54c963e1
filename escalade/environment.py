"""The table of settings. `config.py` reads the environment by it; docs/configuration.md lists the same rows."""

from dataclasses import dataclass

from escalade import values
from escalade.values import Value, choice, seconds, whole


@dataclass(frozen=True, slots=True)
class Setting:
    """One environment variable. A secret's value never appears in a message.

    `default` is as the document says it: a text that `value` parses, "unset", or "derived" where it follows
    from other settings or from the host.
    """

    name: str
    value: Value
    default: str
    help: str
    secret: bool = False

    @property
    def field(self) -> str:
        """The name of the attribute of `Config` that holds it."""
        return self.name.removeprefix("ESCALADE_").lower()

    def default_value(self) -> object:
        """The default as a value; None where it is unset or derived."""
        return None if self.default in ("unset", "derived") else self.value.parse(self.default)


_DATABASE = "The database. Unset: Postgres in the data directory, refused where the disk is not kept."
_HOST = "The address to serve on: 127.0.0.1, or 0.0.0.0 when PORT is set."
_BASE = (
    "The only source of absolute links, as in `https://pager.example.com`. Derived from what Heroku, Render,"
    " Railway or Fly say, else `http://127.0.0.1:PORT` while HOST is loopback; else `serve` is refused."
)
_KEY = "Signs links, and encrypts secrets at rest. Unset: made once and kept in the database, and nothing is encrypted."
_OLD_KEY = "The key before the present one: what it signed still verifies, what it encrypted still opens."
_DATA = (
    "Where the embedded Postgres keeps its data: `.data` beside app.py, wherever a command is run from. A relative"
    " path counts from the current directory."
)
_ADMIN = "The first admin, made while no user has a password."
_PASSWORD = "The first admin's password; needs ESCALADE_ADMIN_EMAIL."
_SENDERS = "How many messages may be under way at once."
_POOL = "Connections in the pool; a process never holds more than that and 3."
_POLL = "How often the queue is looked at: 5 while the doorbell (LISTEN) works, 1 without it."
_LISTEN = "The doorbell by LISTEN and NOTIFY; off behind a transaction pooler."
_CONNECT = "How long a receiver may take to accept the connection."
_READ = "How long a receiver may be silent."
_DEADLINE = "How long one message may take in all."
_LEASE = "After this, another process may take over a message under way; at least the send deadline and 5."
_TRIES = "Tries before a message counts as failed."
_PRIVATE = "Addresses off the public internet that messages may go to, as in `10.0.0.0/8,127.0.0.1/32`."
_PROXIES = (
    "How many proxies stand in front and set X-Forwarded-For and -Proto: 1 on Heroku, Render, Railway and Fly, else 0."
)
_RATE = "Alerts a second per integration; 50 times that may come in one burst."
_OPEN = "Open incidents per service; past it, alerts join the flood incident."
_ARCHIVE = "Days after which finished messages leave the queue's table."
_KEEP = "Days that incidents, events, attempts, payloads and the audit are kept."
_SMTP = "The mail server, as in `smtp://user:pass@host:587?starttls=required`. Unset: no mail."
_FROM = "The sender of mail: escalade at the base URL's host."
_DEADMAN = "Pinged while pages can go out, so that another service notices when they cannot."
_LATE = "A page that starts this much after its time counts as late."
_LOG = "The form of the log, one line a record."

SETTINGS: tuple[Setting, ...] = (
    Setting("DATABASE_URL", values.DATABASE_URL, "unset", _DATABASE, secret=True),
    Setting("PORT", whole(1, 65_535), "8000", "The port to serve on."),
    Setting("HOST", values.HOST, "derived", _HOST),
    Setting("ESCALADE_BASE_URL", values.BASE_URL, "derived", _BASE),
    Setting("ESCALADE_SECRET_KEY", values.SECRET_KEY, "unset", _KEY, secret=True),
    Setting("ESCALADE_SECRET_KEY_OLD", values.TEXT, "unset", _OLD_KEY, secret=True),
    Setting("ESCALADE_DATA_DIR", values.DIRECTORY, "derived", _DATA),
    Setting("ESCALADE_ADMIN_EMAIL", values.LONE_ADDRESS, "unset", _ADMIN),
    Setting("ESCALADE_ADMIN_PASSWORD", values.PASSWORD, "unset", _PASSWORD, secret=True),
    Setting("ESCALADE_SENDERS", whole(4, 256), "16", _SENDERS),
    Setting("ESCALADE_DB_POOL", whole(2, 200), "5", _POOL),
    Setting("ESCALADE_POLL_SECONDS", seconds(0.05, 60), "derived", _POLL),
    Setting("ESCALADE_LISTEN", choice("auto", "on", "off"), "auto", _LISTEN),
    Setting("ESCALADE_CONNECT_TIMEOUT", seconds(0.1, 60), "3", _CONNECT),
    Setting("ESCALADE_READ_TIMEOUT", seconds(0.1, 60), "5", _READ),
    Setting("ESCALADE_SEND_DEADLINE", seconds(0.5, 300), "10", _DEADLINE),
    Setting("ESCALADE_LEASE_SECONDS", seconds(5, 3600), "20", _LEASE),
    Setting("ESCALADE_MAX_TRIES", whole(1, 100), "8", _TRIES),
    Setting("ESCALADE_ALLOW_PRIVATE_ADDRESSES", values.NETWORKS, "off", _PRIVATE),
    Setting("ESCALADE_TRUSTED_PROXIES", whole(0, 10), "derived", _PROXIES),
    Setting("ESCALADE_HOOK_RATE", whole(1), "100", _RATE),
    Setting("ESCALADE_MAX_OPEN", whole(1), "5000", _OPEN),
    Setting("ESCALADE_ARCHIVE_AFTER_DAYS", whole(1, 36_500), "7", _ARCHIVE),
    Setting("ESCALADE_KEEP_DAYS", whole(1, 36_500), "365", _KEEP),
    Setting("SMTP_URL", values.SMTP_URL, "unset", _SMTP, secret=True),
    Setting("ESCALADE_MAIL_FROM", values.MAIL_ADDRESS, "derived", _FROM),
    Setting("ESCALADE_DEADMAN_URL", values.WEB_URL, "unset", _DEADMAN, secret=True),
    Setting("ESCALADE_LATE_SECONDS", seconds(1, 86_400), "60", _LATE),
    Setting("ESCALADE_LOG", choice("text", "json"), "text", _LOG),
)
