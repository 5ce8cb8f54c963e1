"""docs/states.md says what the code does: its arrows are the changes the hammer allows, its functions exist."""

import importlib
import re
from pathlib import Path

from escalade import db
from tests.interleavings.invariants import LOG_RULES

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "states.md").read_text(encoding="utf-8")
INCIDENT, ATTEMPT = re.findall(r"```mermaid\n(.*?)```", TEXT, re.DOTALL)


def arrows(diagram: str) -> set[tuple[str, str]]:
    """From and to."""
    return set(re.findall(r"(\w+) --> (\w+):", diagram))


def test_the_arrows_of_an_attempt_are_the_changes_the_hammer_allows() -> None:
    rule = LOG_RULES["a change of status that is on no diagram"]
    assert arrows(ATTEMPT) == set(re.findall(r"\('(\w+)', '(\w+)'\)", rule))


def test_every_arrow_names_functions_that_exist() -> None:
    for diagram in (INCIDENT, ATTEMPT):
        for line in re.findall(r"--> \w+: (.+)", diagram):
            names = re.findall(r"[a-z_]+\.[a-z_]+|insert_notices", line)
            assert names, line
            for module, _, function in (name.rpartition(".") for name in names):
                found = (
                    hasattr(importlib.import_module(f"escalade.{module}"), function)
                    if module
                    else function in db.queries()
                )
                assert found, f"{module}.{function}"


def test_every_rule_has_its_scene_and_its_row() -> None:
    sources = [path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_rules_*.py")]
    played = {
        int(number) for source in sources for number in re.findall(r"^def test_rule_(\d\d)_", source, re.MULTILINE)
    }
    assert played == set(range(1, 25))
    assert {int(number) for number in re.findall(r"^\| (\d+) \w", TEXT, re.MULTILINE)} == played
