"""A command that was ever documented is one still: scripts and cron tables of people's machines hold on to it."""

import subprocess
import sys

import pytest

from escalade.cli.parser import parse
from escalade.db import ROOT

# Add to it, and take nothing out: where a command gets another name, the old one has to go on working beside it.
DOCUMENTED = """serve | serve --no-engine | serve --demo | migrate | apply - | export | doctor | demo --remove
    token create x --role viewer | token list | token revoke x | user create a@example.com --role admin
    user remove a@example.com | incident list | attempt list | attempt replay 7 | attempt replay --failed
    incident open api Title"""
COMMANDS = [" ".join(command.split()) for line in DOCUMENTED.splitlines() for command in line.split("|")]


@pytest.mark.parametrize("command", COMMANDS)
def test_k097_every_command_that_was_ever_documented_is_taken(command: str) -> None:
    assert parse(command.split()).command == command.split()[0]


@pytest.mark.parametrize(("command", "named"), [("aply team.yaml", "'apply'"), ("token make x", "'create'")])
def test_k097_a_command_that_does_not_exist_says_which_do(command: str, named: str) -> None:
    ended = subprocess.run(
        [sys.executable, "app.py", *command.split()], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2 and "choose from" in ended.stderr and named in ended.stderr
