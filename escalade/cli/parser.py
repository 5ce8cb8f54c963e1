"""The commands and their arguments, as the contract lists them."""

import argparse
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NoReturn

from escalade import __version__, clean
from escalade.api_tokens import LONGEST_DAYS
from escalade.inbound.generic import SEVERITIES
from escalade.overview import INCIDENT_STATUSES, STATUSES
from escalade.users import ROLES

LARGEST_ID = 2**63 - 1
MOST = 1_000
QUEUE = ["PENDING", "IN_FLIGHT", "FAILED"]


def parse(argv: Sequence[str]) -> Namespace:
    """The command and its arguments, `serve` where none is named. Raises SystemExit with 2 on wrong usage."""
    words = list(argv)
    if not words or (words[0].startswith("-") and words[0] not in ("-h", "--help", "--version")):
        words.insert(0, "serve")
    parser = _parser(words)
    found = parser.parse_args(words)
    if getattr(found, "transport", None) and not found.failed:
        parser.error("--transport goes with --failed")
    for name, value in vars(found).items():
        # Bytes that are no text become visible marks; a file's name has to stay as it is.
        if isinstance(value, str) and name != "file":
            setattr(found, name, clean.text(value)[0])
    return found


class Parser(ArgumentParser):
    """argparse, with an exit code that tells of wrong usage even where nothing can be printed."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and exit with 2. Python before 3.11.5 raises where that cannot be written."""
        with suppress(OSError):
            super().error(message)
        raise SystemExit(2)


def _parser(words: Sequence[str]) -> ArgumentParser:
    parser = Parser(
        prog="app.py",
        allow_abbrev=False,
        description="Escalade pages people. Without a command it serves."
        " The environment configures it: see docs/configuration.md.",
        epilog="Exit codes: 0 done, 1 a fault, 2 wrong usage.",
    )
    parser.add_argument("--version", action="version", version=f"Escalade {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    add = _adder(commands)
    serve = add("serve", "the one process: web and engine; migrates first")
    serve.add_argument("--no-engine", action="store_true", help="web alone: this process sends nothing")
    serve.add_argument("--demo", action="store_true", help="load the demo into an empty database first")
    add("migrate", "bring the database's schema up to date, and exit")
    _configuration(add)
    _access(_group(add, "token", "tokens of the API"), _group(add, "user", "people who log in"))
    _incident(_group(add, "incident", "incidents"), words)
    _attempt(_group(add, "attempt", "the queue"))
    doctor = add("doctor", "check configuration, database, clocks, transports and the queue's health")
    _json(doctor)
    demo = add("demo", "load demo data into an empty database")
    demo.add_argument("--remove", action="store_true", help="take the demo data out again")
    return parser


Add = Callable[[str, str], Parser]


def _adder(commands: "argparse._SubParsersAction[Parser]") -> Add:
    def add(name: str, does: str) -> Parser:
        sentence = does[:1].upper() + does[1:]  # capitalize() would make Yaml of YAML
        return commands.add_parser(name, help=does, description=sentence, allow_abbrev=False)

    return add


def _group(add: Add, noun: str, does: str) -> Add:
    verbs = add(noun, does).add_subparsers(dest="verb", metavar="VERB", required=True)
    return _adder(verbs)


def _configuration(add: Add) -> None:
    apply = add("apply", "make the configuration what a YAML file says, all or nothing")
    apply.add_argument("file", metavar="FILE", help="the file, or - for standard input")
    apply.add_argument("--dry-run", action="store_true", help="only print what would change")
    apply.add_argument("--prune", action="store_true", help="remove what the file does not name")
    export = add("export", "print the configuration as YAML")
    export.add_argument("--secrets", action="store_true", help="print the secrets that can be printed")
    add("reencrypt", "encrypt every secret in the database under the ESCALADE_SECRET_KEY of now")


def _access(token: Add, user: Add) -> None:
    new = token("create", "make a token of the API and print it alone")
    new.add_argument("name", metavar="NAME")
    new.add_argument("--role", choices=ROLES, required=True)
    new.add_argument("--days", type=_days, metavar="N", help="it ends after so many days (default: never)")
    _json(token("list", "tokens, without their secrets"))
    token("revoke", "end a token").add_argument("name", metavar="NAME")
    gone = user("remove", "a person leaves: from now on they are in no rotation, and nothing pages them")
    gone.add_argument("email", metavar="EMAIL")
    new = user("create", "make a login, or give an existing one a new password")
    new.add_argument("email", metavar="EMAIL")
    new.add_argument("--role", choices=ROLES, required=True)


def _incident(add: Add, words: Sequence[str]) -> None:
    new = add("open", "open an incident on a service, or with --target for one user, schedule or channel")
    new.add_argument("--target", metavar="user:EMAIL|schedule:NAME|channel:NAME", help="instead of SERVICE")
    # argparse cannot leave out the first of two arguments when options stand between them.
    if not any(word.split("=")[0] == "--target" for word in words):
        new.add_argument("service", metavar="SERVICE")
    new.add_argument("title", metavar="TITLE")
    new.add_argument("--severity", choices=SEVERITIES, default="error")
    new.add_argument("--details", default="", help="more than fits the title")
    _json(new)
    listing = add("list", "incidents, the newest first")
    listing.add_argument("--status", type=_statuses(INCIDENT_STATUSES), metavar="STATUS,...", help="default: all")
    listing.add_argument("--service", metavar="NAME")
    _page(listing)


def _attempt(add: Add) -> None:
    listing = add("list", "what waits, is in the air and has failed, by due time")
    listing.add_argument(
        "--status",
        type=_statuses(STATUSES),
        metavar="STATUS,...",
        help=f"default: {','.join(QUEUE)}, or all of one incident",
    )
    listing.add_argument("--incident", type=_id, metavar="ID")
    _page(listing)
    replay = add("replay", "send a failed page again, or all that failed")
    which = replay.add_mutually_exclusive_group(required=True)
    which.add_argument("id", type=_id, nargs="?", metavar="ID")
    which.add_argument("--failed", action="store_true", help="everything that failed")
    replay.add_argument("--transport", metavar="KIND", help="with --failed: only of this kind, such as slack")
    _json(replay)


def _page(listing: ArgumentParser) -> None:
    listing.add_argument("--limit", type=_limit, default=50, metavar="N", help="at most so many (default 50)")
    listing.add_argument("--before", type=_id, metavar="NEXT", help="go on with the value of next of the list before")
    _json(listing)


def _json(command: ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print JSON, as the API answers")


def _whole(text: str, most: int) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:30]) <= most):
        raise ArgumentTypeError(f"must be a whole number from 1 to {most}, not {text[:60]!r}")
    return int(text)


def _days(text: str) -> int:
    return _whole(text, LONGEST_DAYS)


def _id(text: str) -> int:
    return _whole(text, LARGEST_ID)


def _limit(text: str) -> int:
    return _whole(text, MOST)


def _statuses(known: tuple[str, ...]) -> Callable[[str], list[str]]:
    def read(text: str) -> list[str]:
        wanted = [word.strip().upper() for word in text.split(",")]
        if unknown := [word for word in wanted if word not in known]:
            raise ArgumentTypeError(f"there is no status {unknown[0][:60]!r}; there are {', '.join(known)}")
        return wanted

    return read
