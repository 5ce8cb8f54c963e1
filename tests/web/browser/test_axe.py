"""axe-core on every screen, with all its rules: populated, empty and refused, in both themes, on a phone and a desk."""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from escalade.db import ROOT
from tests import factories
from tests.web.browser.conftest import Site
from tests.web.browser.every import paths, populate
from tests.web.screens import OWN

VENDOR = Path(ROOT, "tests", "vendor")
[AXE] = VENDOR.glob("axe-*.min.js")
WIDTHS = (1280, 320)
SCHEMES = ("light", "dark")
# What a finger has to hit: a box to tick counts with its label, and a link in a text is no target of its own.
TARGETS = """() => [...document.querySelectorAll(
    'button, .button, input:not([type=hidden]), select, textarea, summary, nav a, .jumps a, .tile')]
    .map((node) => [node, (node.matches('[type=checkbox], [type=radio]') && node.closest('label') || node)
      .getBoundingClientRect()])
    .filter(([node, box]) => box.width && !node.matches('.aside') && (box.height < 43.5 || box.width < 43.5))
    .map(([node, box]) => `${Math.round(box.width)} x ${Math.round(box.height)} ${node.outerHTML.slice(0, 160)}`)"""
# Rules that axe-core leaves off unless they are asked for. None is switched off.
MORE = ("target-size", "duplicate-id", "duplicate-id-active")
RUN = """async (more) => {
  document.querySelectorAll('details').forEach((node) => { node.open = true; });
  const rules = Object.fromEntries(more.map((name) => [name, {enabled: true}]));
  const found = await axe.run(document, {rules, resultTypes: ['violations']});
  return found.violations.map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160) + ' ' +
    node.any.concat(node.all, node.none).map((check) => check.message).join('; ')).join(' | ')}`);
}"""


@pytest.fixture
def page(browser: Browser, bare: Site) -> Iterator[Page]:
    """Ada the admin, without JavaScript of ours: what is looked at does not move meanwhile."""
    context = browser.new_context(base_url=bare.url, service_workers="block", reduced_motion="reduce")
    context.add_init_script(path=AXE)
    context.route("**/static/**/*.js*", lambda route: route.abort())
    context.route("**/static/*.js*", lambda route: route.abort())
    bare.log_in(context, "ada", "admin")
    yield context.new_page()
    context.close()


def faults(page: Page) -> list[str]:
    """What axe finds on the page as it is, in both themes and widths."""
    found = []
    # A form that was sent may have its answer, and not yet the answer's styles.
    page.wait_for_load_state("load")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 844})
        page.wait_for_function("width => innerWidth === width && document.styleSheets.length > 0", arg=width)
        if page.evaluate("document.documentElement.scrollWidth - innerWidth") > 0:
            found.append(f"{page.url} is wider than {width}")
        found += [f"{page.url} {width}: too small for a finger: {target}" for target in page.evaluate(TARGETS)]
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            found += [f"{page.url} {width} {scheme}: {fault}" for fault in page.evaluate(RUN, MORE)]
    return found


def screens(site: Site) -> list[str]:
    """The addresses that answer with a whole page."""
    ada, found = site.screens.client("ada"), []
    for path in sorted(set(paths(site, "GET"))):
        answer = ada.get(path)
        if answer.mimetype == "text/html" and "<main>" in answer.text:
            found.append(path)
    return found


def look(site: Site, page: Page) -> list[str]:
    """Axe on every screen."""
    found = []
    for path in screens(site):
        page.goto(path)
        found += faults(page)
    return found


def report(found: list[str]) -> None:
    assert found == [], "\n" + "\n".join(found[:40]) + f"\n{len(found)} faults"


def test_axe_is_the_file_its_readme_names() -> None:
    rows = re.findall(r"\| `(axe-[^`]+\.min\.js)` .*`([0-9a-f]{64})`", (VENDOR / "README.md").read_text())
    assert rows == [(AXE.name, hashlib.sha256(AXE.read_bytes()).hexdigest())]


def test_axe_finds_what_is_wrong(page: Page) -> None:
    page.goto("/login")
    page.evaluate("document.querySelector('label').replaceWith(document.querySelector('#email'))")
    assert any("label" in fault for fault in faults(page))


def test_axe_finds_nothing_on_any_screen(bare: Site, page: Page) -> None:
    populate(bare)
    found = screens(bare)
    assert {"/", "/attempts", "/incidents", "/oncall", "/queue", "/setup", "/login"} <= set(found)
    report(look(bare, page))


def test_axe_finds_nothing_where_there_is_nothing_yet(bare: Site, page: Page) -> None:
    """No engine has run either, so the warning that nobody is paged is looked at too."""
    report(look(bare, page))


def test_axe_finds_nothing_on_what_a_refused_form_answers(bare: Site, page: Page) -> None:
    populate(bare)
    ada, found, looked = bare.screens.client("ada"), list[str](), 0
    for path in sorted(set(paths(bare, "POST"))):
        if re.search("log-?out|sign-?out", path):
            continue  # what comes after it would only be the login page
        answer = ada.client.post(path, data={}, headers=OWN)
        if answer.status_code < 400 or answer.mimetype != "text/html":
            continue
        looked += 1
        page.goto("/login")
        page.evaluate(
            "(path) => { const form = document.createElement('form'); form.method = 'post'; form.action = path;"
            " document.body.append(form); form.submit(); }",
            path,
        )
        page.wait_for_url(f"**{path}")
        found += faults(page)
    assert looked >= 5
    report(found)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_with_a_theme_of_its_own(bare: Site, page: Page, theme: str) -> None:
    populate(bare)
    page.context.add_cookies([{"name": "theme", "value": theme, "url": bare.url}])
    found = []
    link = next(path for path in paths(bare, "GET") if path.startswith("/a/") and "unknown" not in path)
    for path in ("/", link):
        page.goto(path)
        assert page.evaluate("document.documentElement.dataset.theme") == theme
        found += faults(page)
    report(found)


def test_axe_finds_nothing_on_the_live_page_when_things_go_wrong(browser: Browser, site: Site) -> None:
    context = browser.new_context(base_url=site.url, service_workers="block")
    context.add_init_script(path=AXE)
    site.log_in(context)
    page = context.new_page()
    factories.open_incident(site.db, site.service, "k")
    page.goto("/")
    context.set_offline(True)
    page.get_by_role("button", name="Acknowledge", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("Not sent")
    found = faults(page)
    context.set_offline(False)
    page.locator("[data-unsent] button").click()
    expect(page.locator("#said")).to_be_visible()
    factories.run(site.db, "delete from session")
    expect(page.get_by_role("alert")).to_contain_text("You are signed out")
    found += faults(page)
    page.locator("#freshness").evaluate("node => { node.dataset.state = 'dead'; }")
    report(found + faults(page))
    context.close()
