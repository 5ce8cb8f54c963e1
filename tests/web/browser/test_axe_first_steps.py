"""axe-core on the screens that only some moments show: the first steps, a test page on its way, push."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from escalade import first_steps
from tests import factories
from tests.web.browser.conftest import Site
from tests.web.browser.test_axe import AXE, faults
from tests.web.screens import engine_ran

HOSTILE = "<img src=x onerror=alert(1)> " + "W" * 300


@pytest.fixture
def page(browser: Browser, site: Site) -> Iterator[Page]:
    """Root the admin, in the first steps."""
    context = browser.new_context(base_url=site.url, service_workers="block", reduced_motion="reduce")
    context.add_init_script(path=AXE)
    context.route("**/static/*.js*", lambda route: route.abort())
    site.log_in(context, "root", "admin")
    with site.db.begin() as tx:
        first_steps.begin(tx, site.screens.people["root"])
    found = context.new_page()
    yield found
    context.close()


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name).click()


def test_the_first_steps_in_each_state(page: Page, site: Site) -> None:
    found = []
    page.goto("/welcome")
    found += faults(page)
    page.get_by_label("Webhook").check()
    page.get_by_label("Its address").fill("nowhere")
    press(page, "Reach me there")
    page.get_by_text("The address does not begin with").wait_for()
    found += faults(page)
    page.get_by_label("Its address").fill("http://127.0.0.1:9/x")
    press(page, "Reach me there")
    found += faults(page)
    page.get_by_label("Name of the service").fill("W" * 200)
    press(page, "Create it")
    found += faults(page)
    press(page, "Send the alert from here")
    page.get_by_text("Incident opened").wait_for()
    factories.run(site.db, "update incident set title = %s", HOSTILE)
    factories.run(site.db, "update notification_attempt set tries = 1, last_error = %s where kind = 'PAGE'", HOSTILE)
    page.goto("/welcome")
    found += faults(page)
    engine_ran(site.db)
    factories.run(
        site.db,
        "update notification_attempt set status = 'DELIVERED', delivered_at = now(), finished_at = now()"
        " where kind = 'PAGE'",
    )
    page.goto("/welcome")
    found += faults(page)
    assert found == []


def test_a_test_page_in_each_state_and_push(page: Page, site: Site) -> None:
    person = site.screens.client("root", "admin")
    method = factories.contact(site.db, site.screens.people["root"], "root@example.com", kind="email", name=HOSTILE)
    path = person.post("/setup/tests", method=str(method)).headers["Location"]
    found = []
    for change in (
        "tries = 0",
        "tries = 1, last_error = 'The mail server answered 451.'",
        "status = 'FAILED', finished_at = now()",
        "status = 'DELIVERED', delivered_at = now()",
    ):
        factories.run(site.db, f"update notification_attempt set {change}")
        page.goto(path)
        found += faults(page)
    for path in ("/setup/tests", "/account/push", "/setup/checks"):
        page.goto(path)
        found += faults(page)
    assert found == []
