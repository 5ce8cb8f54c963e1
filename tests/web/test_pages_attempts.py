"""The list of attempts."""

import pytest

from escalade import incidents
from tests import factories
from tests.web.screens import Person, Screens, fail


@pytest.fixture
def failed(screens: Screens) -> list[int]:
    service = factories.ladder(screens.db, "http://127.0.0.1:9/hook")
    return [fail(screens.db, factories.open_incident(screens.db, service, key).id, f"error of {key}") for key in "ab"]


@pytest.fixture
def alice(screens: Screens, failed: list[int]) -> Person:
    return screens.client()


def test_a_filter_by_status(screens: Screens, alice: Person) -> None:
    assert "error of a" in alice.get("/attempts?status=FAILED").text
    assert "error of a" in alice.get("/attempts").text
    pending = alice.get("/attempts?status=PENDING").text
    assert "error of a" not in pending and "Step 2: Bob" in pending
    for status in ("IN_FLIGHT", "DELIVERED", "CANCELLED", "nonsense"):
        assert alice.get(f"/attempts?status={status}").status_code == 200


def test_what_has_ended_shows_the_latest_first(screens: Screens, alice: Person, failed: list[int]) -> None:
    factories.run(
        screens.db,
        "update notification_attempt set status = 'CANCELLED', finished_at = now() + make_interval(secs => id)"
        " where status = 'PENDING'",
    )
    text = alice.get("/attempts?status=CANCELLED").text
    ids = [int(part.split('"')[0]) for part in text.split('<li id="attempt-')[1:]]
    assert len(ids) >= 2 and ids == sorted(ids, reverse=True)


def test_the_address_shows_no_secret(screens: Screens, alice: Person) -> None:
    assert "/hook/alice" not in alice.get("/attempts").text


@pytest.mark.parametrize("live", [False, True])
def test_a_replay_keeps_the_filter(screens: Screens, alice: Person, failed: list[int], live: bool) -> None:
    answer = alice.post(f"/attempts/{failed[0]}/replay", live=live, back="attempts", status="FAILED")
    if not live:
        assert answer.status_code == 303
        answer = alice.get(answer.headers["Location"])
    assert "1 page sent again." in answer.text and "error of b" in answer.text and "error of a" not in answer.text
    assert 'aria-current="true">Failed' in answer.text


def test_what_nobody_needs_is_refused(screens: Screens, alice: Person, failed: list[int]) -> None:
    [(incident_id,)] = factories.run(
        screens.db, "select incident_id from notification_attempt where id = %s", failed[0]
    )
    with screens.db.begin() as tx:
        incidents.acknowledge(tx, incident_id, "bob@example.com")
    answer = alice.post(f"/attempts/{failed[0]}/replay", live=True, back="attempts")
    assert answer.status_code == 409 and "acknowledged" in answer.text
    assert alice.post("/attempts/999/replay").status_code == 404
    assert alice.post("/attempts/replay", ids="").status_code == 422


def test_the_live_part(screens: Screens, alice: Person) -> None:
    text = alice.get("/attempts?status=FAILED").text
    path = text.split('hx-get="')[1].split('"')[0].replace("&amp;", "&")
    assert path.startswith("/attempts/live?") and "status=FAILED" in path
    assert alice.get(path).status_code == 204
    changed = alice.get("/attempts/live?status=FAILED&v=old")
    assert changed.status_code == 200 and "error of a" in changed.text and "<html" not in changed.text
