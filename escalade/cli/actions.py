"""What the commands do that work on a current database: each goes through the verbs that the web uses."""

import getpass
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from escalade import (
    api_tokens,
    attempts,
    audit,
    clean,
    demo,
    doctor,
    logs,
    opening,
    overview,
    replays,
    resealing,
    shown,
    targets,
    transfer,
    users,
)
from escalade.cli import lists
from escalade.cli.parser import QUEUE
from escalade.config import Config
from escalade.db import Database
from escalade.errors import Conflict, NotFound, Refusal
from escalade.inbound.base import Event

# Who acted, in timelines: whoever can run a command here is not asked for a name.
ACTOR = "command-line"


def apply(db: Database, config: Config, options: Namespace) -> None:
    """apply FILE"""
    try:
        document = transfer.read(_text_of(options.file))
    except transfer.NotYaml as fault:
        raise Refusal(f"{_named(options.file)} {fault.reason}") from None
    with db.begin() as tx:
        changes = transfer.apply(tx, document, prune=options.prune, dry_run=options.dry_run)
    for line in [logs.escape(change.line) for change in changes] or ["no changes"]:
        print(line)
    if changes and not options.dry_run:
        _warn(db, config)


def _warn(db: Database, config: Config) -> None:
    """What keeps pages from going out as the configuration is now: better heard here than from a page that fails."""
    sys.stdout.flush()
    with db.read() as tx:
        for finding in doctor.unwell(tx.conn, config):
            print(logs.escape(logs.redact(f"warning: {finding.check}: {finding.text}")), file=sys.stderr)


def _named(file: str) -> str:
    return "Standard input" if file == "-" else file


def _text_of(file: str) -> str:
    try:
        raw = _standard_input().read() if file == "-" else Path(file).read_bytes()
        return raw.decode("utf-8")
    except OSError as fault:
        raise Refusal(f"Cannot read {'standard input' if file == '-' else file}: {fault.strerror or fault}") from None
    except UnicodeDecodeError:
        raise Refusal(f"{_named(file)} is not UTF-8") from None


def _standard_input() -> BinaryIO:
    """Standard input. Raises Refusal where it was closed."""
    if sys.stdin is None:
        raise Refusal("Standard input is closed.")
    return sys.stdin.buffer


def export(db: Database, config: Config, options: Namespace) -> None:
    """export"""
    with db.begin() as tx:
        text = transfer.export(tx, secrets=options.secrets)
    print(text, end="" if text.endswith("\n") else "\n")


def reencrypt(db: Database, config: Config, options: Namespace) -> None:
    """reencrypt"""
    if config.secret_key is None:
        raise Refusal("ESCALADE_SECRET_KEY is not set: a key in the database would lie beside what it encrypts.")
    with db.begin() as tx:
        before = resealing.reseal(tx)
    if before.unreadable:
        names = ", ".join(kept.label for kept in before.unreadable)
        raise Refusal(
            f"{len(before.outdated)} encrypted anew; not readable under any key, so left as they are: {names}."
        )
    print(f"{len(before.outdated)} encrypted anew, {len(before.all) - len(before.outdated)} as they should be")


def create_token(db: Database, config: Config, options: Namespace) -> None:
    """token create"""
    with db.begin() as tx:
        secret = api_tokens.create(tx, options.name, options.role, options.days)
    print(secret)


def list_tokens(db: Database, config: Config, options: Namespace) -> None:
    """token list"""
    with db.read() as tx:
        found = api_tokens.every(tx)
    if options.json:
        lists.show_json({"tokens": [shown.token(one) for one in found]})
    else:
        lists.show(lists.token_lines(found), None, "no tokens")


def revoke_token(db: Database, config: Config, options: Namespace) -> None:
    """token revoke"""
    with db.begin() as tx:
        api_tokens.revoke(tx, options.name)
    print(f"{options.name}: ended")


def remove_user(db: Database, config: Config, options: Namespace) -> None:
    """user remove"""
    with db.begin() as tx:
        person = users.by_email(tx, options.email)
        if person is None:
            raise NotFound(f"There is no person with the e-mail {options.email}.")
        users.remove(tx, person.id)
    print(f"{person.email}: removed")


def create_user(db: Database, config: Config, options: Namespace) -> None:
    """user create"""
    password = _password()
    with db.begin() as tx:
        known = users.by_email(tx, options.email)
        person = known or users.create(tx, options.email, options.role)
        users.set_password(tx, person.id, password)
    stays = f"; the role stays {person.role}" if person.role != options.role else ""
    print(f"{person.email}: new password set{stays}" if known else f"{person.email}: created as {person.role}")


def _password() -> str:
    """A password typed twice, or the first line of standard input where nobody types."""
    given = _standard_input()
    if not given.isatty():
        try:
            return given.readline().decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            raise Refusal("The password is not UTF-8.") from None
    try:
        password = getpass.getpass("Password: ")
        if getpass.getpass("The same again: ") != password:
            raise Refusal("The two passwords differ.")
    except EOFError:
        raise Refusal("No password was given.") from None
    return password


def open_incident(db: Database, config: Config, options: Namespace) -> None:
    """incident open"""
    fields = clean.fields(title=options.title, details=options.details)
    if not fields["title"]:
        raise Refusal("An incident needs a title.")
    event = Event("trigger", severity=options.severity, **fields)
    with db.begin() as tx:
        if options.target is not None:
            incident = opening.trigger_target(tx, targets.resolve(tx, options.target), event, ACTOR)
        else:
            incident, _ = opening.trigger(tx, opening.service(tx, options.service, ACTOR), event)
        [row] = shown.incidents(tx, [incident], config.base_url)
    if options.json:
        lists.show_json({"incident": row})
    else:
        print(f"incident {incident.id}: {row['url']}")


def list_incidents(db: Database, config: Config, options: Namespace) -> None:
    """incident list"""
    with db.begin() as tx:
        rows = overview.incidents(tx, options.status, options.service, options.before, options.limit + 1)
        page, following = lists.cut(rows, options.limit)
        found = shown.incidents(tx, page, config.base_url)
    if options.json:
        lists.show_json({"incidents": found, "next": following})
    else:
        lists.show(lists.incident_lines(found), following, "no incidents")


def list_attempts(db: Database, config: Config, options: Namespace) -> None:
    """attempt list"""
    statuses = options.status or (QUEUE if options.incident is None else None)
    with db.begin() as tx:
        after = None if options.before is None else overview.attempt(tx, options.before)
        place = None if after is None else overview.After(after.due_at, after.id)
        rows = overview.listing(tx, statuses, options.incident, None, place, options.limit + 1)
        page, following = lists.cut(overview.with_who(tx, rows), options.limit)
    if options.json:
        lists.show_json({"attempts": [shown.attempt(view) for view in page], "next": following})
    else:
        lists.show(lists.attempt_lines(page), following, "no attempts")


def replay(db: Database, config: Config, options: Namespace) -> None:
    """attempt replay"""
    if options.failed:
        done = replays.replay_failed(db.begin, ACTOR, options.transport)
        if options.json:
            lists.show_json({"replayed": done.replayed, "skipped": done.skipped})
        else:
            print(f"{done.replayed} sent again, {done.skipped} skipped")
        return
    with db.begin() as tx:
        if overview.attempt(tx, options.id).archived:
            raise Conflict(f"Attempt {options.id} is in the archive: its incident ended long ago.")
        attempts.replay_one(tx, options.id, ACTOR)
        view = overview.attempt(tx, options.id)
    if options.json:
        lists.show_json({"attempt": shown.attempt(view)})
    else:
        print(f"attempt {options.id}: sent again")


def load_demo(db: Database, config: Config, options: Namespace) -> None:
    """demo"""
    with db.begin() as tx:
        lines = _remove_demo(demo.remove(tx)) if options.remove else demo.load(tx, config.base_url)
        if lines:
            audit.record(tx, "demo removed" if options.remove else "demo loaded", "demo")
        if not lines and demo.loaded(tx):
            raise Conflict("The demo is loaded already; to take it out: python app.py demo --remove")
    if not lines:
        raise Conflict("The demo goes into an empty database only, and something is set up in this one.")
    for line in lines:
        print(line)


def _remove_demo(done: demo.Removal) -> list[str]:
    removed, kept = [f"removed {line}" for line in done.removed], [f"kept {line}" for line in done.kept]
    return removed + kept or ["no demo data"]


ACTIONS: dict[str, Callable[[Database, Config, Namespace], None]] = {
    "apply": apply,
    "export": export,
    "reencrypt": reencrypt,
    "token create": create_token,
    "token list": list_tokens,
    "token revoke": revoke_token,
    "user create": create_user,
    "user remove": remove_user,
    "incident open": open_incident,
    "incident list": list_incidents,
    "attempt list": list_attempts,
    "attempt replay": replay,
    "demo": load_demo,
}
