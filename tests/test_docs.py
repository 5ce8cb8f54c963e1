"""What the documents name exists: tests, metrics, files, settings, dependencies, commands, fields, addresses."""

import ast
import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from escalade import transfer
from escalade.cli.parser import parse
from escalade.config import Config
from escalade.db import Database
from escalade.environment import SETTINGS
from escalade.inbound import PARSERS, generic
from escalade.inbound.base import Request
from escalade.serve import DRAIN_SECONDS
from escalade.transfer import shape
from escalade.transfer.records import Field
from escalade.transports import TRANSPORTS, webhook
from escalade.transports.base import AttemptRef, IncidentBrief, Message
from escalade.web.api.openapi import PATHS
from escalade.web.errors import STATUSES

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
each = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
# Where a document names a module without its folder, it means one of these.
FOLDERS = (ROOT, ROOT / "escalade", ROOT / "escalade/transfer", ROOT / "escalade/web/api")


def code(text: str) -> Iterator[str]:
    """Every piece of code in a document: between backticks, and indented or fenced lines."""
    without_fences = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    yield from re.findall(r"`([^`\n]+)`", without_fences)
    yield from re.findall(r"^    (.+)$", text, re.M)
    for block in fenced(text):
        yield from block.splitlines()


def fenced(text: str, language: str = "") -> list[str]:
    """The fenced blocks of a language, or all."""
    return re.findall(rf"^```{language or '[a-z]*'}\n(.*?)^```$", text, re.M | re.S)


def row_names(text: str) -> list[str]:
    """What the first cells of the tables name, between backticks."""
    return [name for row in re.findall(r"^\| (`[^|]+) \|", text, re.M) for name in re.findall(r"`([^`]+)`", row)]


def read(name: str) -> str:
    """The text of a document."""
    return (ROOT / name).read_text(encoding="utf-8")


@each
def test_links_lead_somewhere(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'src="([^"]+)"', text):
        if not re.match(r"https?://", link):
            path, _, heading = link.partition("#")
            target = document.parent / path if path else document
            assert target.exists(), link
            assert not heading or heading in headings(target.read_text(encoding="utf-8")), link


def headings(text: str) -> list[str]:
    """The anchors of a document's headings, as GitHub makes them."""
    return [re.sub(r"[^\w -]", "", found.lower()).replace(" ", "-") for found in re.findall(r"^#+ (.+)$", text, re.M)]


@each
def test_tests_that_are_named_exist(document: Path) -> None:
    for path, name in re.findall(r"\b(tests/[\w/]+\.py)::(\w+)", document.read_text(encoding="utf-8")):
        assert name in functions(path), f"{path}::{name}"


@cache
def functions(path: str) -> frozenset[str]:
    """The functions of a file."""
    tree = ast.parse(read(path))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


@each
def test_metrics_that_are_named_exist(document: Path) -> None:
    for name in re.findall(r"\bescalade_[a-z_]+\b", document.read_text(encoding="utf-8")):
        assert re.sub(r"_(bucket|count|sum)$", "", name) in metrics() or name in metrics(), name


@cache
def metrics() -> frozenset[str]:
    """Every metric, by the texts that are its name in the code."""
    found = set()
    for path in ("escalade/metrics.py", "escalade/web/metrics.py"):
        for node in ast.walk(ast.parse(read(path))):
            if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
                name = str(node.args[0].value)
                found.add(name if name.startswith("escalade_") else f"escalade_{name}")
    return frozenset(found)


@each
def test_settings_that_are_named_exist(document: Path) -> None:
    names = {setting.name for setting in SETTINGS}
    for name in re.findall(r"\bESCALADE_[A-Z][A-Z_]*\b|\b[A-Z]+_URL\b", document.read_text(encoding="utf-8")):
        assert name in names, name


@each
def test_commands_that_are_named_exist(document: Path) -> None:
    targets = re.findall(r"^([a-z-]+):.*##", read("Makefile"), re.M)
    for piece in code(document.read_text(encoding="utf-8")):
        command = said(piece)
        for target in re.findall(r"\bmake ([a-z]+)", command):
            assert target in targets, piece
        if re.search(r"python app\.py \w", command):
            parse(arguments(command))


def said(piece: str) -> str:
    """The command in a line of code; two spaces after it, documents say what it does."""
    return re.split(r"\s{2,}", piece.strip())[0]


def arguments(command: str) -> list[str]:
    """The words after app.py, up to a redirection."""
    words = re.split(r"\s[<>|]", command.split("app.py", 1)[1])[0]
    samples = {"ROLE": "viewer", "ID": "1"}
    return [samples.get(word, word) for word in shlex.split(words)]


def test_a_command_that_does_not_exist_would_be_found() -> None:
    assert arguments("DATABASE_URL=x .venv/bin/python app.py export > team.yaml") == ["export"]
    with pytest.raises(SystemExit):
        parse(arguments("python app.py aply team.yaml"))


@each
def test_files_that_are_named_exist(document: Path) -> None:
    for piece in code(document.read_text(encoding="utf-8")):
        if re.fullmatch(r"[\w./-]+\.(py|sql|md|js|html|json|css)|(\w+/)+", piece) and piece[0] != "/":
            assert any((folder / piece).exists() for folder in FOLDERS) or piece in MADE, piece


# Made by running, or names of what a page of a folder is called.
MADE = {".data/", ".venv/", "_live.html"}


def test_every_dependency_has_its_row_and_every_row_its_dependency() -> None:
    project = tomllib.loads(read("pyproject.toml"))["project"]
    wanted = [
        *project["dependencies"],
        *(name for extra in project["optional-dependencies"].values() for name in extra),
    ]
    assert sorted(row_names(read("docs/dependencies.md"))) == sorted(re.split(r"[\[<>=]", name)[0] for name in wanted)


def test_every_field_of_the_yaml_is_in_its_document() -> None:
    text = read("docs/yaml.md")
    named = set(re.findall(r"`(\w+)`", text))
    for section in (fields for fields in vars(shape).values() if is_section(fields)):
        assert set(section) <= named, set(section) - named
    for kind in (*TRANSPORTS, *PARSERS):
        assert re.search(rf"\b{kind}\b", text), kind


def is_section(value: object) -> bool:
    """Whether it is the fields of a mapping of the YAML."""
    return isinstance(value, dict) and all(isinstance(field, Field) for field in value.values())


@pytest.mark.parametrize("name", ["README.md", "docs/yaml.md"])
def test_the_yaml_of_a_document_applies(database: Database, name: str) -> None:
    [text] = fenced(read(name), "yaml")
    with database.begin() as tx:
        assert transfer.apply(tx, text)
    with database.begin() as tx:
        assert not transfer.apply(tx, text)


def test_the_message_of_its_document_has_the_fields_of_a_message() -> None:
    [text] = fenced(read("docs/messages.md"), "json")
    shown = json.loads(text)
    brief = IncidentBrief(1, "t", "", "TRIGGERED", "critical", "s", "k", "u", "l")
    message = Message("page", "triggered", "k", "a", None, "u", "r", (AttemptRef(7, 1),), (brief,), "u")
    sent = webhook.payload(message)
    assert list(shown) == list(sent) == [name for name in row_names(read("docs/messages.md")) if name in sent]
    assert [list(item) for item in shown["incidents"]] == [list(item) for item in sent["incidents"]]


@pytest.mark.parametrize("secret", ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "any other text"])
def test_the_signature_is_checked_as_its_document_says(secret: str) -> None:
    [source] = fenced(read("docs/messages.md"), "python")
    made: dict[str, Any] = {}
    exec(source, made)
    headers = webhook.signed_headers("key", 1_700_000_000, b"{}", secret)
    assert made["is_genuine"](headers, b"{}", secret)
    assert not made["is_genuine"](headers, b"{ }", secret)


@dataclass(frozen=True)
class Curl:
    """A request as a line of a document makes it."""

    method: str
    address: str
    content_type: str
    body: str


def curls(name: str) -> list[Curl]:
    """The requests of a document's lines of code; a command may go on over several lines."""
    text = re.sub(r"^```.*?^```$", "", read(name), flags=re.M | re.S)
    blocks = re.findall(r"(?:^    .+\n)+", text, re.M)
    commands = [part for block in blocks for part in re.split(r"\n(?=    \w)", block) if "curl" in part]
    return [curl(shlex.split(command[command.index("curl") :])[1:]) for command in commands]


def curl(words: list[str]) -> Curl:
    """What curl makes of its arguments, as far as the documents use it."""
    left, data, headers = list(words), [], []
    method = address = ""
    while left:
        word = left.pop(0)
        if word in ("-d", "--data-binary"):
            data.append(left.pop(0))
        elif word == "-H":
            headers.append(left.pop(0))
        elif word == "-X":
            method = left.pop(0)
        elif word in ("-m", "--retry"):
            left.pop(0)
        elif not word.startswith("-"):
            address = word
    kinds = [header.split(": ")[1] for header in headers if header.startswith("Content-Type")]
    label = kinds[0] if kinds else "application/x-www-form-urlencoded" if data else ""
    return Curl(method or ("POST" if data else "GET"), address, label, "&".join(data))


@pytest.mark.parametrize("name", ["README.md", "docs/alerts.md"])
def test_the_alerts_of_a_document_are_taken(name: str) -> None:
    alerts = [one for one in curls(name) if "/beat/" not in one.address]
    assert alerts
    for one in alerts:
        query = tuple(parse_qsl(urlsplit(one.address).query))
        [event] = generic.parse(Request(one.body.encode(), one.content_type, query=query))
        assert one.method == "POST", one
        assert event.title if event.action == "trigger" else f"action={event.action}" in one.body, one


def test_every_field_and_word_of_a_generic_alert_is_in_its_document() -> None:
    text = read("docs/alerts.md")
    named = set(re.findall(r"`(\w+)`", text))
    words = {*generic.NAMES, *generic.SEVERITIES, *generic.ACTIONS}
    assert words <= named, words - named


def test_every_refusal_of_an_alert_is_in_its_document() -> None:
    refusals = {str(status) for _, status in STATUSES} | {"405", "413"}
    shown = set(re.findall(r"^\| (\d{3}) \|", read("docs/alerts.md"), re.M))
    # Nobody is logged in here, so no role is too low, and nothing stands in the way of an alert.
    assert shown == refusals - {"403", "409"}


def test_the_requests_of_the_api_s_document_are_those_of_its_description() -> None:
    asked = curls("docs/api.md")
    assert asked
    for one in asked:
        address = urlsplit(one.address.replace("$API", "/api/v1"))
        operation = operation_at(address.path, one.method.lower())
        known = {item["name"] for item in operation.get("parameters", []) if item["in"] == "query"}
        assert {name for name, _ in parse_qsl(address.query)} <= known, one
        if one.body:
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            sent = json.loads(one.body).keys()
            assert set(schema["required"]) <= sent <= set(schema["properties"]), one


def operation_at(path: str, method: str) -> dict[str, Any]:
    """The operation of the API that an address leads to; a path without variables comes first."""
    for template in sorted(PATHS, key=lambda item: item.count("{")):
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path) and method in PATHS[template]:
            found: dict[str, Any] = PATHS[template][method]
            return found
    raise AssertionError(f"the API has no {method} {path}")


def test_the_unit_of_its_document_starts_what_is_there() -> None:
    [unit] = fenced(read("docs/running.md"), "ini")
    assert "ExecStart=/opt/escalade/.venv/bin/python app.py\n" in unit
    # The process stops by itself before systemd would kill it.
    [seconds] = re.findall(r"^TimeoutStopSec=(\d+)$", unit, re.M)
    assert int(seconds) > DRAIN_SECONDS


def test_settings_that_a_document_sets_are_taken() -> None:
    [text] = fenced(read("docs/running.md"), "sh")
    pairs = dict(line.split("=", 1) for line in text.splitlines())
    config = Config.read({name: value.strip("'") for name, value in pairs.items()})
    assert not config.serve_faults()
    assert config.trusted_proxies == 1


@each
def test_no_piece_of_code_is_broken_by_a_line_end(document: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", document.read_text(encoding="utf-8"), flags=re.M | re.S)
    assert [line for line in text.splitlines() if line.count("`") % 2] == []
