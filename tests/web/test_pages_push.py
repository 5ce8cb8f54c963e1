"""Web Push in one's account: a browser is added by its subscription, and taken off again."""

import os

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from escalade import first_steps
from escalade.transports import push
from escalade.web.pages.push import called
from tests import factories
from tests.transports.test_push import Browser
from tests.web.screens import Screens

PHONE = "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Mobile Safari/537.36"


def subscription(endpoint: str = "https://push.example/secret-1") -> str:
    return Browser(ec.generate_private_key(ec.SECP256R1()), os.urandom(16)).subscription(endpoint)


def methods(screens: Screens) -> list[str]:
    return [row[0] for row in factories.run(screens.db, "select name from contact_method where kind = 'push'")]


def test_a_browser_is_added_and_taken_off(screens: Screens) -> None:
    alice = screens.client()
    page = alice.get("/account/push").text
    assert "may be silent" in page and "data-key=" in page and "push.js" in page and "Nowhere yet" in page
    assert alice.post("/account/push", subscription=subscription()).status_code == 303
    assert methods(screens) == ["push browser"]
    page = alice.get("/account/push").text
    assert "Send a test to push browser" in page and "secret-1" not in page
    [[method]] = factories.run(screens.db, "select id from contact_method")
    assert alice.post(f"/account/push/{method}/remove").status_code == 303
    assert alice.post(f"/account/push/{method}/remove").status_code == 303
    assert methods(screens) == []


def test_nobody_takes_off_what_is_not_theirs(screens: Screens) -> None:
    screens.client().post("/account/push", subscription=subscription())
    screens.session("alice")
    webhook = factories.contact(screens.db, screens.people["alice"], "http://127.0.0.1:9/x")
    [[method]] = factories.run(screens.db, "select id from contact_method where kind = 'push'")
    screens.client("bob").post(f"/account/push/{method}/remove")
    screens.client().post(f"/account/push/{webhook}/remove")
    assert factories.run(screens.db, "select count(*) from contact_method") == [(2,)]


@pytest.mark.parametrize("text", ["", "{}", "<script>alert(1)</script>", '{"endpoint": 1}'])
def test_what_is_no_subscription_is_refused_in_a_sentence(screens: Screens, text: str) -> None:
    answer = screens.client().post("/account/push", subscription=text)
    assert answer.status_code == 422 and "switch push on" in answer.text and "<script>alert" not in answer.text
    assert methods(screens) == []


def test_without_the_package_the_page_says_what_to_install(screens: Screens, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(push, "is_installed", lambda: False)
    page = screens.client().get("/account/push").text
    assert "python -m pip install pywebpush" in page and "push.js" not in page
    answer = screens.client().post("/account/push", subscription=subscription())
    assert answer.status_code == 422 and "Web Push needs a package that is not installed" in answer.text


def test_a_viewer_has_nothing_to_be_pushed(screens: Screens) -> None:
    answer = screens.client("vic", "viewer").post("/account/push", subscription=subscription())
    assert answer.status_code == 422 and "A viewer is never paged" in answer.text


def test_in_the_first_steps_it_leads_on(screens: Screens) -> None:
    root = screens.client("root", "admin")
    with screens.db.begin() as tx:
        first_steps.begin(tx, screens.people["root"])
    assert root.post("/account/push", subscription=subscription()).headers["Location"] == "/welcome"
    assert "What is watched?" in root.get("/welcome").text


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        (PHONE, "Chrome Android"),
        (PHONE + " Edg/140.0", "Edge Android"),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Safari/604.1",
            "Safari iPhone",
        ),
        ("Mozilla/5.0 (Windows NT 10.0; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox Windows"),
        ("", "browser"),
    ],
)
def test_a_browser_is_called_as_people_know_it(agent: str, name: str) -> None:
    assert called(agent) == name
