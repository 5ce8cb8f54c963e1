"""What hosts and fresh machines rely on: one lock file with hashes, the Procfile, the Makefile's targets."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
OTHER_LOCKS = ("Pipfile", "Pipfile.lock", "poetry.lock", "uv.lock", "pdm.lock", "runtime.txt", "environment.yml")


def lock_blocks() -> list[str]:
    """The entries of requirements.txt, each on one line."""
    text = (ROOT / "requirements.txt").read_text()
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line and not line.startswith("#")]
    return [" ".join(line.split()) for line in lines]


def project() -> dict[str, list[str]]:
    """The direct dependencies, and the extras, of pyproject.toml."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return {"": table["dependencies"], **table["optional-dependencies"]}


def name(requirement: str) -> str:
    """The normal form of a requirement's package name."""
    return re.sub(r"[-_.]+", "-", re.split(r"[\[=<>!~ ;]", requirement)[0]).lower()


def test_every_locked_package_has_a_version_and_hashes() -> None:
    blocks = lock_blocks()
    assert len(blocks) > 10
    for block in blocks:
        assert re.fullmatch(r"[a-z0-9-]+==[\w.]+( --hash=sha256:[0-9a-f]{64}){2,}", block), block[:80]


def test_the_lock_names_no_index_and_no_place_of_this_machine() -> None:
    text = (ROOT / "requirements.txt").read_text()
    assert not re.search(r"https?://|file:|--(extra-)?index-url|--find-links|--trusted-host| @ ", text)


def test_the_lock_holds_what_the_project_depends_on_and_no_tools() -> None:
    locked = {name(block) for block in lock_blocks()}
    assert {name(requirement) for requirement in project()[""]} <= locked
    assert not locked & {name(requirement) for requirement in project()["dev"] + project()["embedded"]}


def test_tools_are_pinned() -> None:
    for requirement in project()["dev"] + project()["embedded"]:
        assert re.fullmatch(r"[\w-]+==[\w.]+", requirement), requirement


def test_there_is_one_lock_file() -> None:
    assert [file for file in OTHER_LOCKS if (ROOT / file).exists()] == []
    assert [path.name for path in ROOT.glob("requirements*")] == ["requirements.txt"]


def test_procfile_and_python_version() -> None:
    assert (ROOT / "Procfile").read_text() == "release: python app.py migrate\nweb: python app.py serve\n"
    assert re.fullmatch(r"3\.1[1-4]\n", (ROOT / ".python-version").read_text())


def test_make_help_tells_every_target() -> None:
    told = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True, env=plain()).stdout
    targets = re.search(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(), re.M)
    assert targets
    for target in targets[1].split():
        assert f"make {target} " in told


def test_make_run_stays_on_this_machine() -> None:
    commands = subprocess.run(
        ["make", "--dry-run", "--always-make", "run"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        env=plain(),
    ).stdout
    assert "app.py serve --demo" in commands
    assert re.search(r"^run: export HOST \?= 127\.0\.0\.1$", (ROOT / "Makefile").read_text(), re.M)


def test_scripts_can_be_run() -> None:
    for path in (".ci/run", "scripts/setup.sh", "scripts/debian.sh"):
        assert os.access(ROOT / path, os.X_OK), path


def plain() -> dict[str, str]:
    """The environment without what an outer make hands down."""
    return {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
