"""The configuration as far as it needs no database."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from escalade.checks.finding import Finding, fault, ok, warning
from escalade.config import Config, is_loopback


def configuration(config: Config) -> Iterator[Finding]:
    """Where links lead, where the database is, and where the secret key is kept."""
    where = "DATABASE_URL" if config.database_url else f"Postgres of its own in {config.data_dir}"
    yield ok("configuration", f"serves {config.host}, port {config.port}; database: {where}")
    yield from _base_url(config)
    if config.secret_key is None:
        yield warning(
            "secret key",
            "kept in the database, so whoever reads a copy of it can sign links and log in; set ESCALADE_SECRET_KEY",
        )
    else:
        yield ok("secret key", "from the environment")


def _base_url(config: Config) -> Iterator[Finding]:
    loopback = is_loopback((urlsplit(config.base_url).hostname or "").strip("[]"))
    if faults := config.serve_faults():
        yield from (fault("base URL", text) for text in faults)
    elif loopback and not is_loopback(config.host):
        yield warning(
            "base URL",
            f"links in pages lead to {config.base_url}, which only this machine reaches, while HOST is {config.host};"
            " set ESCALADE_BASE_URL",
        )
    else:
        yield ok("base URL", config.base_url)
