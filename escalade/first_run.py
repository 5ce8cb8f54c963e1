"""What happens before the first request is served: the first admin, demo data, and the lines that say how to begin."""

import os
import secrets
import sys
from pathlib import Path
from urllib.parse import urlsplit

from escalade import demo, settings, tokens, users
from escalade.config import Config, on_a_host
from escalade.db import Database, Tx

DEMO_ADMIN = "admin@example.com"


def prepare(db: Database, config: Config, *, with_demo: bool) -> list[str]:
    """Make the first admin while nobody can log in, and load the demo into an empty database where it is asked for.
    The lines to print: a password or link among them is shown this once."""
    lines = [f"Escalade serves {config.base_url}{_elsewhere(config)}"]
    with db.begin() as tx:
        if not users.anybody_with_password(tx):
            lines += first_login(tx, config, generate=with_demo)
        elif with_demo:
            lines.append("Log in as before; a new password: python app.py user create E-MAIL --role admin")
    if with_demo:
        with db.begin() as tx:
            lines += demo.load(tx, config.base_url)
    return lines


def _elsewhere(config: Config) -> str:
    """Where it listens, when the address that people use does not say it."""
    parts = urlsplit(config.base_url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return "" if port == config.port else f" (listening on port {config.port})"


def first_login(tx: Tx, config: Config, *, generate: bool) -> list[str]:
    """The first admin: from the environment, or with a password made up here, or by a one-time link."""
    if config.admin_email and config.admin_password:
        create_admin(tx, config.admin_email, config.admin_password)
        return [f"Log in as {config.admin_email} with the password from ESCALADE_ADMIN_PASSWORD."]
    if generate:
        password = secrets.token_urlsafe(12)
        email = config.admin_email or DEMO_ADMIN
        create_admin(tx, email, password)
        return [f"Log in as {email} with the password {password} (shown only now)."]
    token = tokens.new_secret()
    settings.add_start_token(tx, tokens.digest(token))
    return [f"Make the first login here, once: {config.base_url}/start/{token}"]


def create_admin(tx: Tx, email: str, password: str) -> None:
    """An admin with a password; a person of that e-mail becomes one."""
    person = users.by_email(tx, email)
    if person is None:
        person = users.create(tx, email, "admin")
    elif person.role != "admin":
        person = users.change(tx, person.id, person.name, "admin", person.timezone)
    users.set_password(tx, person.id, password)


def announce(lines: list[str]) -> None:
    """Print how to begin, with commands as they work from here."""
    for line in lines:
        print(line.replace("python app.py", f"{interpreter()} app.py"), flush=True)


def interpreter() -> str:
    """What runs this program, as a person in this folder would type it. A host's own Python is in a folder of its
    own and simply called python."""
    if on_a_host(os.environ):
        return "python"
    here = Path.cwd()
    program = Path(sys.executable)
    return str(program.relative_to(here)) if program.is_relative_to(here) else "python"
