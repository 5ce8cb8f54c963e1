"""The command line as people and scripts use it, on a real database: in processes of its own where that matters."""

import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import escalade
from escalade import cli, embedded, passwords, postmaster, tokens
from escalade.cli.parser import parse
from escalade.db import Database
from escalade.web.api import schemas
from tests import factories
from tests.commands import ROOT, Run, bare_url, command, environment, free_port, inside, never, read_only, refused, said
from tests.receiver import Receiver, receiver, wait_for

__all__ = ["bare_url"]

CONFIGURATION = """
users: [{email: alice@example.com, contact_methods: [{name: log, kind: log, address: a}]}]
policies: [{name: default, steps: [{targets: ["user:alice@example.com"], wait: 5m}]}]
services: [{name: api, policy: default, integrations: [{name: prom, kind: generic}]}]
"""


@pytest.fixture
def run(clean_url: str) -> Run:
    """Runs a command on an empty database."""
    return lambda *words, given="", **more: inside(*words, given=given, DATABASE_URL=clean_url, **more)


@pytest.fixture
def process(clean_url: str) -> Run:
    """Runs a command on an empty database, in a process of its own."""
    return lambda *words, given="", **more: command(*words, given=given, DATABASE_URL=clean_url, **more)


@pytest.fixture
def hands() -> Iterator[Receiver]:
    """Where pages arrive."""
    with receiver() as found:
        yield found


# Configuration


def test_apply_prints_each_change_and_each_new_key_once(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "escalade.yaml"
    path.write_text(CONFIGURATION)
    planned = said(run("apply", str(path), "--dry-run"))
    assert "service api: created" in planned
    printed = said(run("apply", str(path)))
    key = re.search(r"[\w-]{30,}$", printed, re.M)
    assert key and said(run("apply", "-", given=CONFIGURATION)) == "no changes\n"
    assert said(run("apply", str(path), "--dry-run")) == "no changes\n"


def test_what_export_prints_apply_takes_whatever_the_terminal_speaks(process: Run) -> None:
    said(process("apply", "-", given=CONFIGURATION.replace("users: [{", "users: [{name: Älice, ")))
    exported = said(process("export", LC_ALL="C", PYTHONUTF8="0", PYTHONIOENCODING="latin-1"))
    assert "Älice" in exported
    assert said(process("apply", "-", "--prune", given=exported, LC_ALL="C", PYTHONUTF8="0")) == "no changes\n"


def test_every_fault_of_a_file_is_a_line(run: Run, database: Database) -> None:
    text = CONFIGURATION.replace("user:alice", "user:alise").replace("wait: 5m", "wait: soon")
    lines = refused(run("apply", "-", given=text))
    assert len(lines) == 2
    assert any(line.startswith("policies[0].steps[0].targets[0]: no user") for line in lines)
    assert factories.run(database, "select count(*) from app_user") == [(0,)]


def test_a_file_that_cannot_be_read(run: Run, tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes("näme".encode("latin-1"))
    assert refused(run("apply", str(tmp_path / "gone"))) == [f"Cannot read {tmp_path}/gone: No such file or directory"]
    assert refused(run("apply", str(tmp_path))) == [f"Cannot read {tmp_path}: Is a directory"]
    assert refused(run("apply", str(tmp_path / "latin"))) == [f"{tmp_path}/latin is not UTF-8"]


BROKEN = """
users:
  - {email: alice@example.com, contact_methods: [{name: mail, kind: email, address: alice@example.com}]}
  - {email: bob@example.com}
channels: [{name: hook, kind: webhook, address: "http://127.0.0.1:9/x"}]
policies:
  - {name: default, steps: [{targets: ["user:bob@example.com"], wait: 5m}]}
services: [{name: api, policy: default}]
"""


def test_apply_warns_of_what_will_keep_pages_from_going_out(run: Run) -> None:
    assert said(run("apply", "-", "--dry-run", given=BROKEN)) != "no changes\n"
    done = run("apply", "-", given=BROKEN)
    lines = done.stderr.splitlines()
    assert done.returncode == 0 and "service api: created" in done.stdout and "warning" not in done.stdout
    assert [line.split(": ")[:2] for line in lines] == [
        ["warning", "transports"],
        ["warning", "transports"],
        ["warning", "people"],
        ["warning", "policies"],
        ["warning", "services"],
    ]
    assert "set SMTP_URL" in lines[0] and "channel hook" in lines[1] and "bob@example.com" in lines[2]
    assert "default pages nobody now" in lines[3] and "api: without integration" in lines[4]
    assert said(run("apply", "-", given=BROKEN)) == "no changes\n"


def test_a_warning_that_cannot_be_made_out_is_no_fault_of_apply(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(tx: object, config: object) -> None:
        raise ValueError("what\never")

    monkeypatch.setattr("escalade.doctor.SAID", (broken,))
    done = run("apply", "-", given=CONFIGURATION)
    assert (done.returncode, done.stderr) == (0, "warning: broken: could not be checked: what ever\n")


def test_a_file_that_is_not_yaml_is_named(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "team.yaml"
    path.write_text("users:\n\t- email: alice@example.com\n")
    [line] = refused(run("apply", str(path)))
    assert re.fullmatch(rf"{path} is not YAML: line 2, column \d+: there is a tab, and YAML takes only spaces .*", line)
    [line] = refused(run("apply", "-", given="users: ["))
    assert line.startswith("Standard input is not YAML: line ")
    [line] = refused(run("apply", "-", given="users: \x01"))
    assert line.startswith("Standard input is not YAML: ")


# Access


def test_a_token_is_printed_alone(run: Run, database: Database) -> None:
    secret = said(run("token", "create", "grafana", "--role", "viewer")).removesuffix("\n")
    kept = factories.run(database, "select name, role, token_hash from api_token")
    assert kept == [("grafana", "viewer", tokens.digest(secret))]
    assert refused(run("token", "create", "grafana", "--role", "viewer")) == ["There is a token named grafana already."]


def test_a_login_and_then_its_new_password(run: Run, database: Database) -> None:
    create = ("user", "create", "Alice@example.com", "--role")
    assert said(run(*create, "responder", given="a first password\n")) == "Alice@example.com: created as responder\n"
    changed = said(run("user", "create", "alice@example.com", "--role", "admin", given="a second one"))
    assert changed == "Alice@example.com: new password set; the role stays responder\n"
    [[kept]] = factories.run(database, "select password_hash from app_user")
    assert passwords.fits(kept, "a second one") and not passwords.fits(kept, "a first password")


def test_a_password_that_is_too_short_makes_nobody(run: Run, database: Database) -> None:
    for given in ("short", "", "\n"):
        lines = refused(run("user", "create", "alice@example.com", "--role", "admin", given=given))
        assert lines == ["A password has from 8 to 1,000 characters."]
    assert factories.run(database, "select count(*) from app_user") == [(0,)]


# Incidents and the queue


def test_an_incident_opened_by_hand(run: Run, database: Database, hands: Receiver) -> None:
    factories.ladder(database, hands.url)
    printed = said(run("incident", "open", "api", "Disk full"))
    assert re.fullmatch(r"incident (\d+): http://127\.0\.0\.1:8000/incidents/\1\n", printed)
    done = json.loads(said(run("incident", "open", "api", "--severity", "critical", "Disk\n full \udcff", "--json")))
    opened = done["incident"]
    assert (opened["title"], opened["severity"], opened["service"]) == ("Disk  full \ufffd", "critical", "api")
    assert factories.run(database, "select distinct actor from incident_event where event = 'triggered'") == [
        ("command-line",)
    ]
    assert ("PAGE", "PENDING") in factories.statuses(database, opened["id"])


@pytest.mark.parametrize("words", [("--target", "user:bob@example.com", "Hi"), ("Hi", "--target=user:bob@example.com")])
def test_an_incident_for_one_target(run: Run, database: Database, hands: Receiver, words: tuple[str, ...]) -> None:
    factories.ladder(database, hands.url)
    opened = json.loads(said(run("incident", "open", "--json", *words)))["incident"]
    assert (opened["service"], opened["policy"], opened["title"]) == (None, None, "Hi")
    assert refused(run("incident", "open", "--target", "user:zoe@example.com", "Hi"))[0].startswith("There is no user")


def test_refusals_are_one_line(run: Run) -> None:
    assert refused(run("incident", "open", "web", "Down")) == ["There is no service 'web'."]
    assert refused(run("incident", "open", "web", " \n")) == ["An incident needs a title."]
    assert refused(run("attempt", "replay", "7")) == ["There is no attempt 7."]
    assert refused(run("attempt", "list", "--before", "7")) == ["There is no attempt 7."]


def test_lists_go_on_where_they_ended(run: Run, database: Database, hands: Receiver) -> None:
    service = factories.ladder(database, hands.url)
    ids = [factories.open_incident(database, service, title=f"Number {number}").id for number in range(5)]
    seen: list[int] = []
    following: list[str] = []
    while following is not None:
        page = json.loads(said(run("incident", "list", "--limit", "2", "--json", *following)))
        seen += [incident["id"] for incident in page["incidents"]]
        following = ["--before", page["next"]] if page["next"] else None  # type: ignore[assignment]
    assert seen == ids[::-1]
    first = json.loads(said(run("attempt", "list", "--limit", "9", "--json")))
    rest = json.loads(said(run("attempt", "list", "--limit", "9", "--json", "--before", first["next"])))
    both = [attempt["id"] for attempt in first["attempts"] + rest["attempts"]]
    assert len(both) == len(set(both)) == 10 and rest["next"] is None


def test_json_has_the_fields_of_the_api(run: Run, database: Database, hands: Receiver) -> None:
    factories.open_incident(database, factories.ladder(database, hands.url))
    [incident] = json.loads(said(run("incident", "list", "--json")))["incidents"]
    attempts = json.loads(said(run("attempt", "list", "--json")))["attempts"]
    assert incident.keys() == schemas.INCIDENT["properties"].keys()
    assert {frozenset(attempt) for attempt in attempts} == {frozenset(schemas.ATTEMPT["properties"])}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", incident["escalates_at"])


def test_lists_as_tables(run: Run, database: Database, hands: Receiver) -> None:
    assert said(run("incident", "list")) == "no incidents\n"
    assert said(run("attempt", "list")) == "no attempts\n"
    service = factories.ladder(database, hands.url)
    opened = factories.open_incident(database, service, title="Färben \x1b[31m" + "x" * 200)
    with database.begin() as tx:
        tx.run("resolve", id=opened.id, now=tx.now, actor="a test")
    factories.open_incident(database, service)
    head, *rows = said(run("incident", "list")).splitlines()
    assert head.split()[:4] == ["ID", "STATUS", "SEVERITY", "SERVICE"]
    assert [row.split()[1] for row in rows] == ["TRIGGERED", "RESOLVED"]
    assert "\x1b" not in rows[1] and rows[1].endswith("…")
    assert len(said(run("incident", "list", "--status", "resolved,acknowledged")).splitlines()) == 2
    assert said(run("incident", "list", "--service", "other")) == "no incidents\n"
    queue = said(run("attempt", "list", "--incident", str(opened.id)))
    assert "webhook http://127.0.0.1" in queue and "/alice" not in queue


def fail_pages(db: Database) -> list[int]:
    """Every page that waits has failed; their ids."""
    statement = """update notification_attempt set status = 'FAILED', finished_at = now(), last_error = 'gone'
        where kind = 'PAGE' returning id"""
    return [row[0] for row in factories.run(db, statement)]


def test_replay_of_one_and_of_all_that_failed(run: Run, database: Database, hands: Receiver) -> None:
    service = factories.ladder(database, hands.url)
    for number in range(3):
        factories.open_incident(database, service, title=str(number))
    first, *_, last = fail_pages(database)
    factories.run(
        database,
        """update incident set status = 'RESOLVED', resolved_at = now()
            where id = (select incident_id from notification_attempt where id = %s)""",
        last,
    )
    assert said(run("attempt", "replay", str(first))) == f"attempt {first}: sent again\n"
    assert refused(run("attempt", "replay", str(first))) == [
        f"Attempt {first} has not failed, so there is nothing to send again."
    ]
    assert json.loads(said(run("attempt", "replay", "--failed", "--transport", "slack", "--json"))) == {
        "replayed": 0,
        "skipped": 0,
    }
    assert said(run("attempt", "replay", "--failed")) == "1 sent again, 1 skipped\n"
    assert "is resolved" in refused(run("attempt", "replay", str(last)))[0]


# A running server


@pytest.fixture
def serving(clean_url: str) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts `serve` on the test database, and ends it."""
    started: list[subprocess.Popen[str]] = []

    def start(*words: str, **more: str) -> subprocess.Popen[str]:
        settings = {"DATABASE_URL": clean_url, "PORT": str(free_port()), "HOST": "127.0.0.1", **more}
        process = subprocess.Popen(
            [sys.executable, "app.py", *words],
            cwd=ROOT,
            env=environment(PYTHONUNBUFFERED="1", **settings),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.terminate()
        process.wait(30)
        assert process.stdout
        process.stdout.close()


def test_a_command_wakes_the_engine_of_another_process(
    run: Run, serving: Callable[..., subprocess.Popen[str]], database: Database, hands: Receiver
) -> None:
    factories.ladder(database, hands.url)
    serving(ESCALADE_POLL_SECONDS="60", ESCALADE_ALLOW_PRIVATE_ADDRESSES="on")
    # Once the first page has come, the engine is up and has gone to sleep for a minute.
    said(run("incident", "open", "api", "First"))
    hands.wait(1, seconds=30)
    said(run("incident", "open", "api", "Second"))
    first, second = hands.wait(2, seconds=40)
    assert second.at - first.at < 45, "by then the engine may have woken by itself"


def test_serve_loads_the_demo_and_says_how_to_begin(serving: Callable[..., subprocess.Popen[str]], run: Run) -> None:
    process = serving("--demo")
    assert process.stdout
    lines = [process.stdout.readline() for _ in range(5)]
    assert lines[0].startswith("Escalade serves http://127.0.0.1:")
    assert "admin@example.com" in lines[1] and "demo-alice@example.com" in lines[2]
    assert f"{lines[0].split()[2]}/hooks/" in lines[3]
    assert len(said(run("incident", "list")).splitlines()) == 4


def test_serve_without_engine_sends_nothing(
    run: Run, serving: Callable[..., subprocess.Popen[str]], database: Database, hands: Receiver
) -> None:
    factories.ladder(database, hands.url)
    process = serving("serve", "--no-engine", ESCALADE_ALLOW_PRIVATE_ADDRESSES="on", ESCALADE_POLL_SECONDS="0.2")
    assert process.stdout
    assert "Escalade serves" in process.stdout.readline()
    said(run("incident", "open", "api", "Disk full"))
    time.sleep(1)
    assert hands.arrived == []


def test_serve_is_refused_in_one_line(process: Run) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert refused(process("serve", PORT=port, HOST="127.0.0.1")) == [
            f"Cannot serve on 127.0.0.1, port {port}: Address already in use. Choose another by PORT."
        ]
    [line] = refused(process(PORT="9", HOST="0.0.0.0"))
    assert line.startswith("ESCALADE_BASE_URL: must be set")


# Demo


def test_the_demo_comes_and_goes(run: Run) -> None:
    assert "demo-alice@example.com" in said(run("demo", ESCALADE_BASE_URL="https://pager.example.com"))
    [line] = refused(run("demo"))
    assert line.startswith("The demo is loaded already")
    assert "removed service demo-shop\n" in said(run("demo", "--remove"))
    assert said(run("demo", "--remove")) == "no demo data\n"
    said(run("apply", "-", given=CONFIGURATION))
    assert refused(run("demo")) == ["The demo goes into an empty database only, and something is set up in this one."]


# Faults, usage, and ends


@pytest.mark.parametrize(
    "words",
    [
        "nonsense",
        "incident",
        "incident open",
        "incident open api",
        "incident open --target user:a@b.c",
        "incident open --target user:a@b.c api Title",
        "incident open api Title --severity bad",
        "incident list --status OPEN",
        "incident list --limit 0",
        "attempt replay",
        "attempt replay 7 --failed",
        "attempt replay 7 --transport slack",
        "attempt replay seven",
        "attempt replay 9223372036854775808",
        "token create name",
        "token create name --role god",
        "user create alice@example.com",
        "apply",
        "serve --engine",
        "--no-engin",
        "export --secret",
        "doctor now",
    ],
)
def test_wrong_usage(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(words.split(), never) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.startswith("usage: app.py")


@pytest.mark.parametrize("words", ["--help", "-h", "serve --help", "incident open -h", "attempt replay --help"])
def test_help(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(words.split(), never) == 0
    assert capsys.readouterr().out.startswith("usage: app.py")


def test_help_leads_to_the_settings_and_keeps_the_case_of_acronyms(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["--help"], never)
    assert "docs/configuration.md" in capsys.readouterr().out
    for words, sentence in (("token create -h", "a token of the API"), ("apply -h", "what a YAML file says")):
        cli.main(words.split(), never)
        assert sentence in capsys.readouterr().out


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"], never) == 0
    assert capsys.readouterr().out == f"Escalade {escalade.__version__}\n"


def test_serve_is_the_default() -> None:
    assert (parse([]).command, parse([]).no_engine) == ("serve", False)
    assert (parse(["--demo"]).command, parse(["--demo"]).demo) == ("serve", True)


def test_every_fault_of_the_environment_is_a_line(run: Run) -> None:
    lines = refused(run("incident", "list", ESCALADE_SENDRES="8", PORT="x", ESCALADE_LISTEN="maybe"))
    assert len(lines) == 3
    assert lines[0] == "ESCALADE_SENDRES: no such setting; did you mean ESCALADE_SENDERS?"


def test_a_fault_of_a_secret_is_a_whole_sentence_without_the_secret(run: Run) -> None:
    given = {"ESCALADE_ADMIN_EMAIL": "a@example.com", "ESCALADE_ADMIN_PASSWORD": "s3same"}
    assert refused(run("export", ESCALADE_BASE_URL="https://me:s3same@example.com", **given)) == [
        "ESCALADE_BASE_URL: must be scheme and host alone, as in https://pager.example.com,"
        " not 'https://me:***@example.com'",
        "ESCALADE_ADMIN_PASSWORD: must have from 8 to 1,000 characters",
    ]
    text = "channels: [{name: a, kind: log, address: a, secret: s3same}]"
    assert refused(run("apply", "-", given=text)) == ["channels[0].secret: log takes no secret"]


COMMANDS = [
    "apply -",
    "export",
    "token create t --role viewer",
    "user create a@b.c --role viewer",
    "incident open api Title",
    "incident list",
    "attempt list",
    "attempt replay --failed",
    "demo",
    "demo --remove",
]


@pytest.mark.parametrize("words", [*COMMANDS, "migrate", "serve"])
def test_a_database_that_is_away_is_one_line(words: str) -> None:
    url = f"postgresql://escalade:hunter22@127.0.0.1:{free_port()}/pager"
    run = command if words in ("incident list", "serve") else inside
    [line] = refused(run(*words.split(), given=CONFIGURATION, DATABASE_URL=url))
    assert line.startswith("The database is away: ") and "refused" in line and "hunter22" not in line


def test_on_an_old_schema_every_command_says_what_to_run(bare_url: str) -> None:
    for words in COMMANDS:
        [line] = refused(inside(*words.split(), given=CONFIGURATION, DATABASE_URL=bare_url))
        assert line == "The database has no schema yet; run: python app.py migrate", words
    first = said(inside("migrate", DATABASE_URL=bare_url))
    assert first.startswith("applied 0001_initial\n")
    assert said(inside("migrate", DATABASE_URL=bare_url)) == "the schema is up to date\n"
    assert said(inside("incident", "list", DATABASE_URL=bare_url)) == "no incidents\n"
    with psycopg.connect(bare_url) as conn:
        conn.execute("delete from schema_migration where name <> '0001_initial'")
    for words in COMMANDS:
        [line] = refused(inside(*words.split(), given=CONFIGURATION, DATABASE_URL=bare_url))
        assert line == "The database's schema is older than this program; run: python app.py migrate", words


def test_a_read_only_database_is_one_line(run: Run, clean_url: str) -> None:
    with read_only(clean_url):
        [line] = refused(run("token", "create", "t", "--role", "viewer"))
    assert line == "The database is read-only, as a standby is: try again once the primary is back."


def test_a_reader_that_leaves_early_is_no_fault(run: Run, database: Database, hands: Receiver, clean_url: str) -> None:
    service = factories.ladder(database, hands.url)
    for number in range(200):
        factories.open_incident(database, service, title=f"{number} " + "x" * 900)
    process = subprocess.Popen(
        [sys.executable, "app.py", "incident", "list", "--json", "--limit", "200"],
        cwd=ROOT,
        env=environment(DATABASE_URL=clean_url),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout and process.stderr
    process.stdout.readline()
    process.stdout.close()
    assert (process.wait(30), process.stderr.read()) == (0, b"")
    process.stderr.close()


@pytest.mark.parametrize(
    ("words", "unbuffered"),
    [
        *((words, "") for words in ("export", "incident list --json", "doctor", "--help", "--version")),
        ("export", "1"),
    ],
)
def test_a_full_disk_is_one_line(clean_url: str, words: str, unbuffered: str) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "app.py", *words.split()],
            cwd=ROOT,
            env=environment(DATABASE_URL=clean_url, PYTHONUNBUFFERED=unbuffered),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert (done.returncode, done.stderr) == (1, "No space left on device\n")


@pytest.mark.parametrize("words", ["export", "incident list", "nonsense"])
def test_where_no_fault_can_be_printed_the_exit_code_tells(words: str) -> None:
    url = f"postgresql://127.0.0.1:{free_port()}/pager"
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "app.py", *words.split()],
            cwd=ROOT,
            env=environment(DATABASE_URL=url),
            stdout=full,
            stderr=full,
        )
    assert done.returncode == (2 if words == "nonsense" else 1)


def test_control_c_is_quiet(clean_url: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "app.py", "apply", "-"],
        cwd=ROOT,
        env=environment(DATABASE_URL=clean_url),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with psycopg.connect(clean_url, autocommit=True) as conn:
        # Connected, so it is reading what nobody sends.
        asks = "select 1 from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
        wait_for(lambda: conn.execute(asks).fetchone(), 30, "connection")
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    assert process.stdin
    assert process.communicate(timeout=30) == (b"", b"") and process.returncode == 130


def test_what_nobody_foresaw_is_one_line_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(argv: object) -> None:
        raise KeyError("what\never")

    monkeypatch.setattr(cli, "parse", broken)
    assert cli.main([], never) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("This is a fault of Escalade itself: KeyError: 'what\\never' (")


def test_closed_streams_are_no_traceback(clean_url: str) -> None:
    shell = f"exec {sys.executable} app.py user create a@example.com --role viewer <&-"
    done = subprocess.run(
        ["sh", "-c", shell], cwd=ROOT, env=environment(DATABASE_URL=clean_url), capture_output=True, text=True
    )
    assert refused(done) == ["Standard input is closed."]


def test_the_password_is_asked_twice_at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    from escalade.cli import actions

    class Terminal(io.BytesIO):
        def isatty(self) -> bool:
            return True

    answers = iter(["a password", "a password", "a password", "another one"])
    monkeypatch.setattr(actions, "_standard_input", Terminal)
    monkeypatch.setattr("getpass.getpass", lambda prompt: next(answers))
    assert actions._password() == "a password"
    with pytest.raises(actions.Refusal, match="differ"):
        actions._password()


# Embedded Postgres


@pytest.fixture
def folder() -> Iterator[Path]:
    """A data directory whose server is gone after the test."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="cli-") as made:
        os.chmod(made, 0o755)
        place = Path(made) / "data"
        yield place
        embedded.stop(place)
        postmaster.end(place / "postgres")


def test_without_database_url_a_command_starts_postgres_and_stops_it(folder: Path) -> None:
    here: dict[str, Any] = {"ESCALADE_DATA_DIR": str(folder)}
    assert said(command("migrate", **here)).startswith("applied")
    assert postmaster.find(folder / "postgres") is None
    assert said(command("incident", "list", **here)) == "no incidents\n"
    assert postmaster.find(folder / "postgres") is None
    assert (stopped_by(signal.SIGTERM, folder), stopped_by(signal.SIGINT, folder)) == (143, 130)
    # Where somebody else uses it, it stays.
    embedded.start(folder, {})
    assert said(command("attempt", "list", **here)) == "no attempts\n"
    assert postmaster.find(folder / "postgres") is not None


def stopped_by(number: signal.Signals, folder: Path) -> int:
    """The exit code of a command that was told to stop while it waited for its input; its Postgres went with it."""
    process = subprocess.Popen(
        [sys.executable, "app.py", "apply", "-"],
        cwd=ROOT,
        env=environment(ESCALADE_DATA_DIR=str(folder)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    wait_for(lambda: (server := postmaster.find(folder / "postgres")) and server.ready, 30, "server")
    time.sleep(1)
    process.send_signal(number)
    assert process.communicate(timeout=60) == (b"", b"")
    assert postmaster.find(folder / "postgres") is None
    return process.returncode


def test_where_the_disk_is_not_kept_there_is_one_line() -> None:
    for words in ("incident list", "serve", "migrate"):
        [line] = refused(command(*words.split(), DYNO="web.1", ESCALADE_BASE_URL="https://pager.example.com"))
        assert line.startswith("set DATABASE_URL: the disk is not kept on Heroku")


def test_on_a_dyno_serve_says_at_once_all_that_has_to_be_set() -> None:
    first, second = refused(command("serve", DYNO="web.1", PORT="5000"))
    assert first.startswith("ESCALADE_BASE_URL: must be set")
    assert second.startswith("set DATABASE_URL: the disk is not kept on Heroku")
    [line] = refused(command("migrate", DYNO="web.1", PORT="5000"))
    assert line == second


def test_tokens_are_listed_without_their_secrets_and_can_be_ended(run: Run) -> None:
    secret = said(run("token", "create", "ci", "--role", "viewer")).strip()
    assert "ci" in said(run("token", "list")) and secret not in said(run("token", "list", "--json"))
    assert said(run("token", "revoke", "ci")) == "ci: ended\n"
    assert said(run("token", "list")) == "no tokens\n"
    assert refused(run("token", "revoke", "ci")) == ["There is no token 'ci'."]


def test_a_person_who_is_removed_is_in_no_rotation_any_more(run: Run, database: Database) -> None:
    alice, bob = factories.user(database, "alice"), factories.user(database, "bob")
    factories.schedule(database, [alice, bob])
    assert said(run("user", "remove", "Alice@example.com")) == "alice@example.com: removed\n"
    assert factories.run(database, "select participants from roster_change") == [([bob],)]
    assert refused(run("user", "remove", "alice@example.com")) == [
        "There is no person with the e-mail alice@example.com."
    ]
