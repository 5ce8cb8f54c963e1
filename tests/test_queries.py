"""Every named query works on the migrated schema, is used, and leaves the clock to the one that asks for it."""

import ast
import re
from pathlib import Path

import pytest
from psycopg._queries import MAX_CACHED_STATEMENT_LENGTH

from escalade import db
from escalade.db import Database, connect

ROOT = Path(__file__).resolve().parent.parent
NAMES = sorted(db.queries())
# PREPARE takes no utility statements. Every migration, listener and apply runs these.
UTILITIES = ("create_migration_table", "listen_for_others", "lock_configuration", "undo")
SOURCES = [*sorted((ROOT / "escalade").rglob("*.py")), ROOT / "app.py"]
# The look at an alert's key brings the time, which opening its incident would ask for next.
CLOCK_READERS = ("clock", "integration_by_key")
CLOCKS = re.compile(
    r"\b(now|clock_timestamp|statement_timestamp|transaction_timestamp|timeofday)\s*\("
    r"|\b(current_timestamp|current_date|current_time|localtimestamp|localtime)\b",
    re.IGNORECASE,
)
STATEMENT = re.compile(
    r"\s*(select\s|with\s+\w+\s+as\b|insert\s+into\s|update\s+\w+\s+set\s|delete\s+from\s|create\s+(table|index|view)\s"
    r"|alter\s+(table|database|role)\s|drop\s+(table|index|view)\s|truncate\s|listen\s+\w+$|notify\s+\w+$"
    r"|vacuum\s|lock\s+table\s)",
    re.IGNORECASE,
)


def numbered(query: str) -> str:
    """The query with $1, $2 for its named parameters, as PREPARE wants it: a number for each place, because a value
    that is given its type by psycopg may stand where Postgres would infer two."""
    parts = re.split(r"%\(\w+\)s", query.replace("%%", "%"))
    return parts[0] + "".join(f"${number}{part}" for number, part in enumerate(parts[1:], 1))


def strings(source: Path) -> list[tuple[int, str]]:
    """Every string of a module with its line, docstrings left out."""
    tree = ast.parse(source.read_text(encoding="utf-8"))
    documented = [
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    ]
    return [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in documented
    ]


def test_every_query_prepares_on_the_migrated_schema(database_url: str) -> None:
    with connect(database_url) as conn:
        for name in NAMES:
            if name not in UTILITIES:
                conn.execute(f'prepare "{name}" as {numbered(db.queries()[name])}')


def test_every_query_is_named_by_some_module() -> None:
    named = {text for source in SOURCES for _, text in strings(source)}
    assert [name for name in NAMES if name not in named] == []


def test_every_name_a_module_asks_for_is_a_query() -> None:
    methods = {"many", "maybe", "one", "value", "values", "run"}
    asked = []
    for source in SOURCES:
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in methods:
                place = 1 if node.func.attr in ("many", "maybe", "one") else 0
                if _on_tx(node.func.value) and len(node.args) > place and isinstance(node.args[place], ast.Constant):
                    asked.append((source.name, node.args[place].value))
    assert len(asked) > 50
    assert [item for item in asked if item[1] not in NAMES] == []


def _on_tx(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "tx" or isinstance(node, ast.Call) and "Tx" in ast.dump(node.func)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in CLOCK_READERS])
def test_only_the_clock_asks_for_the_time(name: str) -> None:
    assert not CLOCKS.search(re.sub(r"--.*", "", db.queries()[name]))


def test_the_clock_asks_for_the_time_that_passes_inside_a_transaction(database: Database) -> None:
    with database.begin() as tx:
        first = tx.now
        tx.reread_clock()
        assert tx.now > first
        assert first.tzinfo is not None and first.utcoffset() is not None


def test_no_module_has_sql_in_it() -> None:
    found = [(source.name, line, text) for source in SOURCES for line, text in strings(source) if STATEMENT.match(text)]
    assert found == []


def test_only_the_database_layer_executes_anything() -> None:
    found = set()
    for source in SOURCES:
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                if node.func.attr in ("execute", "executemany"):
                    found.add(source.name)
    assert found <= {"db.py", "migrate.py"}


@pytest.mark.parametrize(
    "text", ["select 1", "WITH x AS (select 1)", "update incident set title = ''", "delete from x"]
)
def test_sql_in_a_module_would_be_found(text: str) -> None:
    assert STATEMENT.match(text)


@pytest.mark.parametrize("text", ["select now()", "set at = CURRENT_TIMESTAMP", "clock_timestamp ()"])
def test_a_query_that_asks_for_the_time_would_be_found(text: str) -> None:
    assert CLOCKS.search(text)


@pytest.mark.parametrize("path", sorted((ROOT / "sql" / "queries").glob("*.sql")), ids=lambda path: path.stem)
def test_every_query_says_what_it_is_for(path: Path) -> None:
    for block in re.split(r"^-- name: ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        name, first = block.splitlines()[:2]
        assert first.startswith("-- "), f"{name} has no comment"


def test_no_query_is_longer_than_what_the_driver_keeps() -> None:
    """Past 4,096 characters psycopg takes the text apart anew each time."""
    assert {name: len(text) for name, text in db.queries().items() if len(text) > MAX_CACHED_STATEMENT_LENGTH} == {}
