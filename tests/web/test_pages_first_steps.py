"""The first steps: from the first login to an alert, step by step, each refusal a sentence, and never again."""

import pytest

from escalade import first_steps, tokens
from escalade.config import Config
from escalade.transports import push
from tests import factories
from tests.web.screens import Person, Screens


@pytest.fixture
def root(screens: Screens) -> Person:
    """The first admin, who has just logged in."""
    person = screens.client("root", "admin")
    with screens.db.begin() as tx:
        first_steps.begin(tx, screens.people["root"])
    return person


def reach(root: Person, address: str = "http://127.0.0.1:9/root") -> None:
    assert root.post("/welcome/reach", kind="webhook", address=address).headers["Location"] == "/welcome"


def key_on(page: str) -> str:
    return page.split("/hooks/")[1].split("<")[0]


def test_each_step_comes_when_the_one_before_is_done(screens: Screens, root: Person) -> None:
    assert "How do we reach you?" in root.get("/welcome").text
    reach(root)
    assert "What is watched?" in root.get("/welcome").text
    page = root.post("/welcome/service", name="shop").text
    assert "curl" in page and "Waiting for your alert" in page
    [[kept]] = factories.run(screens.db, "select key_hash from integration")
    assert kept == tokens.digest(key_on(page))
    assert factories.run(screens.db, "select repeat from escalation_policy where name = 'shop'") == [(2,)]
    # The key is kept nowhere, so the address alone does not show it.
    again = root.get("/welcome").text
    assert "The key was shown once" in again and "/hooks/k_" not in again


def test_the_key_stays_while_one_looks_again_and_no_other_is_shown(screens: Screens, root: Person) -> None:
    reach(root)
    key = key_on(root.post("/welcome/service", name="shop").text)
    assert key_on(root.post("/welcome/look", key=key).text) == key
    for wrong in ("", "k_made-up-by-somebody-else", "<script>alert(1)</script>"):
        assert "The key was shown once" in root.post("/welcome/look", key=wrong).text


def test_a_new_key_ends_the_old_one(screens: Screens, root: Person) -> None:
    reach(root)
    old = key_on(root.post("/welcome/service", name="shop").text)
    new = key_on(root.post("/welcome/key").text)
    assert new != old
    assert root.client.post(f"/hooks/{old}", json={"title": "x"}).status_code == 404
    assert root.client.post(f"/hooks/{new}", json={"title": "x"}).status_code == 202


def test_k090_what_cannot_be_shows_the_form_as_typed_and_why(screens: Screens, root: Person) -> None:
    for form, why in (
        ({"kind": "webhook", "address": "nowhere"}, "The address does not begin with http:// or https://."),
        ({"kind": "ntfy", "address": "https://ntfy.sh/"}, "The address names no topic"),
        ({"kind": "webhook", "address": ""}, "Must not be empty."),
        ({"kind": "pigeon", "address": "x"}, "Choose how you want to be reached."),
        ({"address": "kept"}, "Choose how you want to be reached."),
    ):
        answer = root.post("/welcome/reach", **form)
        assert answer.status_code == 422 and why in answer.text, form
        assert f'value="{form["address"]}"' in answer.text
    reach(root)
    answer = root.post("/welcome/service", name="")
    assert answer.status_code == 422 and "Must not be empty." in answer.text


def test_a_name_that_is_taken_changes_nothing(screens: Screens, root: Person) -> None:
    reach(root)
    factories.policy(screens.db, (60, []), name="shop")
    answer = root.post("/welcome/service", name="shop")
    assert answer.status_code == 422 and "There is something called shop already" in answer.text
    assert 'value="shop"' in answer.text
    assert factories.run(screens.db, "select count(*) from service") == [(0,)]


def test_two_who_make_the_service_make_one(screens: Screens, root: Person) -> None:
    reach(root)
    root.post("/welcome/service", name="shop")
    answer = root.post("/welcome/service", name="other")
    assert answer.status_code == 422
    assert factories.run(screens.db, "select name from service") == [("shop",)]


def test_a_log_needs_no_address(screens: Screens, root: Person) -> None:
    assert root.post("/welcome/reach", kind="log").status_code == 303
    assert factories.run(screens.db, "select name, kind from contact_method") == [("log", "log")]


def test_a_second_way_to_be_reached_is_added(screens: Screens, root: Person) -> None:
    reach(root)
    assert "How do we reach you?" in root.get("/welcome?step=reach").text
    reach(root, "http://127.0.0.1:9/other")
    assert factories.run(screens.db, "select name from contact_method order by position") == [
        ("webhook",),
        ("webhook 2",),
    ]


def test_only_what_works_here_is_offered(screens: Screens, root: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    page = root.get("/welcome").text
    assert 'value="ntfy"' in page and 'value="email"' not in page and "/account/push" in page
    monkeypatch.setattr(push, "is_installed", lambda: False)
    assert "/account/push" not in root.get("/welcome").text
    with_mail = Config.read({"SMTP_URL": "smtp://127.0.0.1:25"})
    assert [way.kind for way in first_steps.offered(with_mail)] == ["ntfy", "email", "webhook", "log"]


def test_the_live_part_answers_204_while_nothing_changes(screens: Screens, root: Person) -> None:
    reach(root)
    page = root.post("/welcome/service", name="shop").text
    mark = page.split("/welcome/live?v=")[1].split('"')[0]
    assert root.get(f"/welcome/live?v={mark}").status_code == 204
    root.post("/welcome/alert")
    changed = root.get(f"/welcome/live?v={mark}")
    assert changed.status_code == 200 and "Incident opened" in changed.text and "/hooks/" not in changed.text


def test_an_alert_that_pages_nobody_says_so(screens: Screens, root: Person) -> None:
    reach(root)
    root.post("/welcome/service", name="shop")
    factories.run(screens.db, "delete from escalation_target")
    page = root.post("/welcome/alert").text
    assert "Incident opened" in page and "Nobody was paged: add a way to reach you." in page


PATHS = ("/welcome/reach", "/welcome/service", "/welcome/key", "/welcome/look", "/welcome/alert")


def test_a_19_once_it_is_over_it_does_not_come_back(screens: Screens, root: Person) -> None:
    assert root.post("/welcome/done").headers["Location"] == "/"
    for path in ("/welcome", "/welcome/live"):
        assert root.get(path).status_code == 404
    for path in PATHS:
        answer = root.post(path, kind="log", name="x", key="x")
        assert answer.status_code == 404 and "The first steps are done" in answer.text, path
    assert factories.run(screens.db, "select count(*) from service") == [(0,)]
    assert root.post("/welcome/done").status_code == 303


def test_it_never_began_where_the_environment_made_the_admin(screens: Screens) -> None:
    assert screens.client("root", "admin").get("/welcome").status_code == 404


def test_only_an_admin_takes_the_steps(screens: Screens, root: Person) -> None:
    alice = screens.client("alice", "responder")
    assert alice.get("/welcome").status_code == 403
    assert {alice.post(path).status_code for path in (*PATHS, "/welcome/done")} == {403}
    assert root.get("/welcome").status_code == 200


def test_what_the_steps_change_is_written_down(screens: Screens, root: Person) -> None:
    reach(root)
    root.post("/welcome/service", name="shop")
    root.post("/welcome/key")
    root.post("/welcome/done")
    rows = factories.run(screens.db, "select distinct action, who from audit")
    actions = {action for action, _ in rows}
    assert {"contact method created", "service created", "integration key renewed", "first steps ended"} <= actions
    assert {who for _, who in rows} == {"root@example.com"}
