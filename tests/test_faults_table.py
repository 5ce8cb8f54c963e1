"""docs/faults.md has a row for each of the 59 faults, and each row the test that would see it, or why there is none."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FAULTS = 59
TEXT = (ROOT / "docs" / "faults.md").read_text(encoding="utf-8")
ROWS = {int(cells[0]): cells[1:] for cells in re.findall(r"^\| (\d+) \| (.+) \| (.+) \| (.+) \|$", TEXT, re.MULTILINE)}


@cache
def names_of_tests() -> frozenset[str]:
    """The name of every test."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "tests").rglob("test_*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return frozenset(node.name for node in nodes if node.name.startswith("test_"))


def numbers(name: str) -> set[int]:
    """The faults in the name of a test: test_q4_q48_... is about two."""
    head = re.match(r"test_((?:[kq]\d+_)+)", name)
    return {int(number) for number in re.findall(r"q(\d+)_", head[1] if head else "")}


def test_every_fault_has_one_row_in_order() -> None:
    assert list(ROWS) == list(range(1, FAULTS + 1))
    assert len(re.findall(r"^\| \d+ \|", TEXT, re.MULTILINE)) == FAULTS


@pytest.mark.parametrize("number", range(1, FAULTS + 1))
def test_a_row_says_whose_fault_it_was_what_happens_here_and_which_test_sees_it(number: int) -> None:
    fault, here, last = ROWS[number]
    assert re.search(r"\([^()]+\)\.$", fault), fault
    assert here.endswith(".")
    named = re.findall(r"`(test_\w+)`", last)
    for name in named:
        assert name in names_of_tests(), f"there is no test {name}"
        assert number in numbers(name), f"{name} is not about fault {number}"
    assert named or re.fullmatch(r"cannot happen: .+\.", last), last


def test_every_test_with_the_number_of_a_fault_is_about_one_of_them() -> None:
    claimed = {number for name in names_of_tests() for number in numbers(name)}
    assert claimed <= set(range(1, FAULTS + 1))
