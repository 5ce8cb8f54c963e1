"""What the templates and the static files may hold."""

import gzip
import hashlib
import re
from pathlib import Path

import pytest

from escalade.db import ROOT

TEMPLATES = sorted(Path(ROOT, "templates").rglob("*.html"))
VENDOR = Path(ROOT, "static", "vendor")
BANNED = {
    "an inline script": r"<script(?![^>]*\bsrc=)",
    "an inline style": r"<style|\sstyle\s*=",
    "an inline handler": r"\son[a-z]+\s*=",
    "hx-on": r"hx-on",
    "a script in a value": r"[\"']\s*(js|javascript):",
    "a filter of a trigger": r"hx-trigger=\"[^\"]*\[",
    "text that is not escaped": r"\|\s*safe|autoescape|Markup",
    "a swap that loses typed text": r"hx-swap=\"(outerHTML|innerHTML)",
    "hx-boost": r"hx-boost",
}


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_template_holds_nothing_that_runs_or_trusts(path: Path) -> None:
    text = path.read_text()
    for what, pattern in BANNED.items():
        assert re.search(pattern, text, re.IGNORECASE) is None, what


def test_every_template_is_escaped() -> None:
    assert TEMPLATES and all(path.suffix == ".html" for path in TEMPLATES)


def test_htmx_is_the_file_its_readme_names() -> None:
    readme = (VENDOR / "README.md").read_text()
    [(name, digest)] = re.findall(r"\| `(htmx-[^`]+\.min\.js)` .*`([0-9a-f]{64})`", readme)
    assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == digest
    assert f"vendor/{name}" in Path(ROOT, "templates", "base.html").read_text()


def test_what_a_page_loads_stays_small() -> None:
    def packed(name: str) -> int:
        return len(gzip.compress(Path(ROOT, "static", name).read_bytes()))

    assert packed("app.js") <= 3_000
    assert packed("app.css") <= 10_000
    assert packed("ack.css") <= 1_000
