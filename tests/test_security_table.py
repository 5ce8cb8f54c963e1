"""SECURITY.md answers for every attack: by tests that are there, or by why there is nothing to attack."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# What is not built cannot be attacked, and the row says so.
ABSENT = {3, 14, 18, 21, 27}
ROWS = re.findall(
    r"^\| (\d+) \| (.+?) \| (.+?) \| (.*?) ?\|$", (ROOT / "SECURITY.md").read_text(encoding="utf-8"), re.M
)


def test_every_attack_has_its_row_in_order() -> None:
    assert [int(number) for number, *_ in ROWS] == list(range(1, 29))


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_row_names_tests_that_are_there_or_says_why_none_is_needed(row: tuple[str, str, str, str]) -> None:
    number, _, answer, cell = row
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", cell)
    assert len(named) == cell.count("`") / 2
    assert answer.startswith("not there: ") == (int(number) in ABSENT) == (not named)
    for path, name in named:
        assert re.search(rf"^def {name}\(", (ROOT / path).read_text(encoding="utf-8"), re.M), f"{path}::{name}"
