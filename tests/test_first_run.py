"""The lines that say how to begin."""

import pytest

from escalade import first_run
from escalade.config import Config
from escalade.db import Database
from tests import factories


def lines(database: Database, **environ: str) -> list[str]:
    """What is printed where this is set."""
    return first_run.prepare(database, Config.read(environ), with_demo=False)


@pytest.mark.parametrize(
    ("environ", "line"),
    [
        ({}, "Escalade serves http://127.0.0.1:8000"),
        ({"PORT": "443", "ESCALADE_BASE_URL": "https://p.example.com"}, "Escalade serves https://p.example.com"),
        (
            {"PORT": "5000", "ESCALADE_BASE_URL": "https://p.example.com"},
            "Escalade serves https://p.example.com (listening on port 5000)",
        ),
        (
            {"PORT": "5000", "ESCALADE_BASE_URL": "http://p.example.com:80"},
            "Escalade serves http://p.example.com:80 (listening on port 5000)",
        ),
    ],
)
def test_where_it_serves(database: Database, environ: dict[str, str], line: str) -> None:
    assert lines(database, **environ)[0] == line


def test_each_process_prints_a_link_while_nobody_can_log_in(database: Database) -> None:
    links = {lines(database)[1].split("/start/")[1] for _ in range(2)}
    assert len(links) == 2
    [[kept]] = factories.run(database, "select value from setting where name = 'start_token'")
    assert len(kept) == 2


def test_commands_are_named_as_they_work_here(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.executable", str(first_run.Path.cwd() / ".own" / "bin" / "python3"))
    first_run.announce(["python app.py doctor"])
    monkeypatch.setenv("DYNO", "web.1")
    first_run.announce(["python app.py doctor"])
    assert capsys.readouterr().out == ".own/bin/python3 app.py doctor\npython app.py doctor\n"
