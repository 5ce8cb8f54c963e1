"""Send a test page: who may, and what the page shows of it."""

import pytest

from tests import factories
from tests.engines import make_engine
from tests.receiver import receiver, wait_for
from tests.web.screens import Screens, engine_ran


def alices_method(screens: Screens, address: str = "http://127.0.0.1:9/alice") -> int:
    screens.session("alice")
    return factories.contact(screens.db, screens.people["alice"], address)


def sent(screens: Screens, who: str = "alice", role: str = "responder", **fields: object) -> str:
    """The address of the page that shows how it goes."""
    answer = screens.client(who, role).post("/setup/tests", **{name: str(value) for name, value in fields.items()})
    assert answer.status_code == 303, answer.text
    return answer.headers["Location"]


def set_row(screens: Screens, change: str) -> None:
    factories.run(screens.db, f"update notification_attempt set {change}")


def test_the_page_follows_it_from_pending_to_delivered(screens: Screens) -> None:
    engine_ran(screens.db)
    path = sent(screens, method=alices_method(screens))
    alice = screens.client()
    page = alice.get(path).text
    assert "It waits for a sender" in page and "Pending" in page and "Look again" in page
    set_row(screens, "status = 'IN_FLIGHT', tries = 1, claimed_at = now(), lease_owner = 'x', lease_until = now()")
    assert "On its way, try 1 of 8" in alice.get(path).text
    set_row(screens, "status = 'DELIVERED', lease_until = null, delivered_at = now(), finished_at = now()")
    page = alice.get(path).text
    assert "the receiver took it" in page and "Send another test" in page and "hx-get" not in page


def test_a_try_that_failed_shows_the_error_and_when_the_next_is(screens: Screens) -> None:
    engine_ran(screens.db)
    path = sent(screens, method=alices_method(screens))
    engine = make_engine(screens.db.url)
    engine.start()
    wait_for(lambda: "Try 1 of 8 failed" in screens.client().get(path).text)
    engine.stop(10)
    page = screens.client().get(path).text
    assert "No connection to http://127.0.0.1:9/..." in page and "The next try is" in page
    set_row(screens, "status = 'FAILED', finished_at = now()")
    assert "It failed for good: No connection" in screens.client().get(path).text


def test_it_arrives(screens: Screens) -> None:
    with receiver() as phone:
        path = sent(screens, method=alices_method(screens, f"{phone.url}/alice"))
        engine = make_engine(screens.db.url)
        engine.start()
        phone.wait(1)
        wait_for(lambda: "Delivered" in screens.client().get(path).text)
        engine.stop(10)


def test_the_live_part_answers_204_while_nothing_changes(screens: Screens) -> None:
    path = sent(screens, method=alices_method(screens))
    page = screens.client().get(path).text
    mark = page.split("/live?v=")[1].split('"')[0]
    assert screens.client().get(f"{path}/live?v={mark}").status_code == 204
    engine_ran(screens.db)
    changed = screens.client().get(f"{path}/live?v={mark}")
    assert changed.status_code == 200 and "<html" not in changed.text


def test_without_an_engine_the_page_says_so(screens: Screens) -> None:
    assert (
        "No engine runs, so nothing is sent" in screens.client().get(sent(screens, method=alices_method(screens))).text
    )


def test_one_may_test_oneself_and_an_admin_everybody(screens: Screens) -> None:
    method = alices_method(screens)
    channel = factories.channel(screens.db, "http://127.0.0.1:9/ops")
    bob = screens.client("bob")
    for form in ({"method": str(method)}, {"channel": str(channel)}):
        answer = bob.post("/setup/tests", **form)
        assert answer.status_code == 403 and "You may send tests to yourself" in answer.text
    assert "alice@example.com" not in bob.get("/setup/tests").text
    path = sent(screens, "root", "admin", method=method)
    assert bob.get(path).status_code == 404
    assert screens.client("root", "admin").get(path).status_code == 200
    assert "#ops" in screens.client("root", "admin").get("/setup/tests").text
    sent(screens, "root", "admin", channel=channel)
    assert screens.client("vic", "viewer").get("/setup/tests").status_code == 403


@pytest.mark.parametrize("fields", [{}, {"method": "1", "channel": "1"}, {"method": "x"}])
def test_a_test_goes_to_one_contact(screens: Screens, fields: dict[str, str]) -> None:
    assert screens.client("root", "admin").post("/setup/tests", **fields).status_code == 422


@pytest.mark.parametrize("fields", [{"method": "999"}, {"channel": "999"}])
def test_somebody_who_is_gone_cannot_be_tested(screens: Screens, fields: dict[str, str]) -> None:
    answer = screens.client("root", "admin").post("/setup/tests", **fields)
    assert answer.status_code == 404 and "no such contact method or channel any more" in answer.text


def test_a_page_about_an_incident_is_no_test(screens: Screens) -> None:
    service = factories.ladder(screens.db, "http://127.0.0.1:9")
    factories.open_incident(screens.db, service)
    [[attempt]] = factories.run(screens.db, "select min(id) from notification_attempt where kind = 'PAGE'")
    assert screens.client("root", "admin").get(f"/setup/tests/{attempt}").status_code == 404


def test_what_may_be_silent_is_marked(screens: Screens) -> None:
    alices_method(screens)
    factories.contact(screens.db, screens.people["alice"], "alice@example.com", kind="email")
    assert screens.client().get("/setup/tests").text.count("may be silent") == 1


def test_hostile_names_are_shown_as_text(screens: Screens) -> None:
    method = alices_method(screens)
    evil = "<img src=x onerror=alert(1)>"
    factories.run(screens.db, "update contact_method set name = %s", evil)
    factories.run(screens.db, "update app_user set name = %s", evil)
    path = sent(screens, method=method)
    set_row(screens, "last_error = '<script>alert(1)</script>', status = 'FAILED', finished_at = now()")
    for page in (screens.client().get(path).text, screens.client().get("/setup/tests").text):
        assert "<img src=x" not in page and "<script>alert" not in page and "&lt;img" in page
