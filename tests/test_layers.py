"""Who may import whom, read from the sources; and that files and functions stay small."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path.read_text(encoding="utf-8")
    for path in [*sorted((ROOT / "escalade").rglob("*.py")), ROOT / "app.py"]
}
RULES = ["oncall", "ladder", "retry", "durations", "clean", "incident", "inbound"]
# What a rule may use of the standard library: nothing that reads, waits, draws or sends.
PURE = """__future__ abc bisect collections collections.abc dataclasses datetime email.utils enum functools hashlib html
    itertools json math operator re string types typing unicodedata urllib.parse zoneinfo""".split()
SENDING = ["engine", "senders", "dispatch", "delivery", "gates", "listener", "climbing"]


@cache
def tree(source: str) -> ast.Module:
    """A source, parsed once."""
    return ast.parse(source)


@cache
def imports(source: str) -> set[str]:
    """The dotted names of what a source imports, wherever in it."""
    found = set()
    for node in ast.walk(tree(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, "imports are absolute"
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def ours(source: str) -> set[str]:
    """The modules of ours that a source imports."""
    return {name for name in imports(source) if name in SOURCES and name != "escalade"}


def inside(name: str, packages: list[str]) -> bool:
    """Whether a module is one of these of escalade, or inside one."""
    return any(name == f"escalade.{package}" or name.startswith(f"escalade.{package}.") for package in packages)


def modules(*packages: str) -> Iterator[tuple[str, str]]:
    """The sources of these modules and packages of escalade."""
    found = [(name, source) for name, source in SOURCES.items() if inside(name, list(packages))]
    assert found
    return iter(found)


def offenders(among: Iterator[tuple[str, str]], forbidden: list[str]) -> list[tuple[str, str]]:
    """Who among these imports what they must not."""
    return [(name, other) for name, source in among for other in ours(source) if inside(other, forbidden)]


def test_the_web_never_imports_what_sends() -> None:
    assert offenders(modules("web"), [*SENDING, "cli", "serve"]) == []


def test_the_web_never_sends() -> None:
    calls = [
        name
        for name, source in modules("web")
        for node in ast.walk(tree(source))
        if isinstance(node, ast.Attribute) and node.attr == "send"
    ]
    assert calls == []


def test_transports_know_neither_the_database_nor_the_web() -> None:
    for name, source in modules("transports"):
        assert not {"flask", "psycopg", "psycopg_pool"} & {one.split(".")[0] for one in imports(source)}, name
        assert all(inside(other, ["transports", "retry"]) for other in ours(source)), name


@pytest.mark.parametrize("rule", RULES)
def test_rules_do_no_input_or_output(rule: str) -> None:
    for name, source in modules(rule):
        for node in ast.walk(tree(source)):
            if isinstance(node, ast.Import):
                assert all(alias.name in PURE for alias in node.names), name
            elif isinstance(node, ast.ImportFrom):
                assert node.module in PURE or inside(node.module or "", [*RULES, "errors"]) or ours_only(node), name


def ours_only(node: ast.ImportFrom) -> bool:
    """`from escalade import ...` of rules and errors."""
    return node.module == "escalade" and all(inside(f"escalade.{a.name}", [*RULES, "errors"]) for a in node.names)


@pytest.mark.parametrize("rule", RULES)
def test_rules_read_no_clock(rule: str) -> None:
    for name, source in modules(rule):
        read = [node.attr for node in ast.walk(tree(source)) if isinstance(node, ast.Attribute)]
        assert not {"now", "utcnow", "today"} & set(read), name


def test_nobody_imports_the_composition_root() -> None:
    assert [name for name, source in SOURCES.items() if "app" in {one.split(".")[0] for one in imports(source)}] == []


def test_only_the_composition_root_imports_the_engine_and_the_listener() -> None:
    found = {
        name for name, source in SOURCES.items() for other in ours(source) if inside(other, ["engine", "listener"])
    }
    assert found == {"app"}


def test_only_the_web_and_the_composition_root_import_the_web() -> None:
    found = {name for name, source in SOURCES.items() for other in ours(source) if inside(other, ["web"])}
    assert "app" in found
    assert all(name == "app" or inside(name, ["web"]) for name in found), found


def test_only_the_engine_and_what_it_works_with_import_the_senders() -> None:
    found = {
        name for name, source in SOURCES.items() for other in ours(source) if inside(other, ["senders", "dispatch"])
    }
    assert found <= {"app", "escalade.engine", "escalade.dispatch"}


def test_flask_stays_in_the_web_and_the_server_around_it() -> None:
    found = {name for name, source in SOURCES.items() if "flask" in {one.split(".")[0] for one in imports(source)}}
    assert all(inside(name, ["web", "serve"]) for name in found), found


def test_the_database_layer_stands_on_nothing_but_refusals() -> None:
    assert ours(SOURCES["escalade.db"]) == {"escalade.errors", "escalade.doorbell"}
    assert ours(SOURCES["escalade.doorbell"]) == set()
    assert ours(SOURCES["escalade.errors"]) == set()


def test_no_two_modules_import_each_other() -> None:
    graph = {name: ours(source) - {name} for name, source in SOURCES.items()}
    mutual = {(one, other) for one, others in graph.items() for other in others if one in graph[other]}
    # A package and its parts: `from escalade.web import headers` names the package first.
    assert {pair for pair in mutual if not pair[0].startswith(pair[1]) and not pair[1].startswith(pair[0])} == set()


@pytest.mark.parametrize("name", SOURCES)
def test_files_and_functions_stay_small(name: str) -> None:
    assert len(SOURCES[name].splitlines()) <= 400
    for node in ast.walk(tree(SOURCES[name])):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno < 50, node.name


@pytest.mark.parametrize(
    "text",
    ["from escalade import engine", "import escalade.engine", "def f():\n    from escalade.engine import Engine"],
)
def test_an_import_of_the_engine_would_be_found(text: str) -> None:
    assert offenders(iter([("escalade.web.x", text)]), SENDING) == [("escalade.web.x", "escalade.engine")]
