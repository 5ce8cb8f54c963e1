"""The list of attempts."""

import pytest

from escalade import attempts, incidents
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


TRIES = """insert into attempt_try (attempt_id, claim_seq, try, started_at, ended_at, outcome, error, request, answer)
    values (%s, 1, 1, now(), now() + interval '1250 ms', 'retry', '503 busy', 'POST /hook
x: <b>1', 'busy & gone'),
    (%s, 2, 2, now(), now(), 'failed', '410 Gone', 'POST /again', '')"""


def test_one_attempt_shows_what_was_said_in_each_try(screens: Screens, alice: Person, failed: list[int]) -> None:
    factories.run(screens.db, TRIES, failed[0], failed[0])
    assert f'href="/attempts/{failed[0]}"' in alice.get("/attempts").text
    text = alice.get(f"/attempts/{failed[0]}").text
    for words in ("Alice by webhook", "8 of 8", "schedule:primary", "retry, 1250 ms", "503 busy", "410 Gone"):
        assert words in text
    assert "POST /hook\nx: &lt;b&gt;1</pre>" in text and "busy &amp; gone</pre>" in text and "/hook/alice" not in text
    assert text.index("Try 2") < text.index("Try 1")


def test_one_in_the_air_says_who_holds_it(screens: Screens, alice: Person, failed: list[int]) -> None:
    factories.run(
        screens.db,
        "update notification_attempt set status = 'IN_FLIGHT', finished_at = null, lease_owner = 'web-1:77',"
        " lease_until = now() + interval '20 s', claimed_at = now(), tries = 1, last_error = null where id = %s",
        failed[0],
    )
    assert "held by web-1:77 until <time" in alice.get("/attempts?status=IN_FLIGHT").text
    text = alice.get(f"/attempts/{failed[0]}").text
    assert "<dd>web-1:77, until <time" in text and "under way for <time" in text


def test_one_is_replayed_and_shown_again(screens: Screens, alice: Person, failed: list[int]) -> None:
    fields = {"back": "attempt", "attempt": str(failed[0])}
    answer = alice.post(f"/attempts/{failed[0]}/replay", **fields)
    text = alice.get(answer.headers["Location"]).text
    assert "1 page sent again." in text and f"attempt {failed[0]}" in text and "sent again 1 time" in text
    live = alice.post(f"/attempts/{failed[1]}/replay", live=True, **(fields | {"attempt": str(failed[1])}))
    assert live.status_code == 200 and 'id="attempt"' in live.text and "<html" not in live.text


def test_the_live_part_of_one(screens: Screens, alice: Person, failed: list[int]) -> None:
    path = alice.get(f"/attempts/{failed[0]}").text.split('hx-get="')[1].split('"')[0]
    assert alice.get(path).status_code == 204
    with screens.db.begin() as tx:
        attempts.replay_one(tx, failed[0], "bob@example.com")
    assert "Pending" in alice.get(path).text
    assert alice.get("/attempts/999").status_code == 404 and alice.get("/attempts/999/live?v=x").status_code == 404


def test_one_of_the_archive_is_shown_and_not_replayed(screens: Screens, alice: Person, failed: list[int]) -> None:
    [(incident_id,)] = factories.run(
        screens.db,
        "update notification_attempt set status = 'CANCELLED' where id = %s returning incident_id",
        failed[0],
    )
    with screens.db.begin() as tx:
        incidents.resolve(tx, incident_id, "bob@example.com")
    with screens.db.begin() as tx:
        assert attempts.archive(tx, 0) > 0
    text = alice.get(f"/attempts/{failed[0]}").text
    assert "its incident ended days ago" in text and ">Replay</button>" not in text


EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>{{7*7}}</template><hx-partial>"


def test_k081_hostile_texts_are_texts_on_every_page_of_the_queue(
    screens: Screens, alice: Person, failed: list[int]
) -> None:
    factories.run(screens.db, TRIES, failed[0], failed[0])
    factories.run(screens.db, "update attempt_try set error = %s, request = %s, answer = %s", EVIL, EVIL, EVIL)
    factories.run(
        screens.db,
        "update notification_attempt set last_error = %s, transport = %s, lease_owner = %s,"
        " idempotency_key = id || %s, event = %s, target = %s",
        *[EVIL] * 6,
    )
    for table, column in (
        ("app_user", "name"),
        ("incident", "title"),
        ("incident", "service_name"),
        ("service", "name"),
        ("schedule", "name"),
        ("contact_method", "name"),
        ("contact_method", "kind"),
    ):
        factories.run(screens.db, f"update {table} set {column} = %s", EVIL)
    number = factories.run(screens.db, "select id from schedule")[0][0]
    quoted = {"service": EVIL, "transport": EVIL, "who": f"user:{EVIL}", "from": EVIL, "until": EVIL, "page": EVIL}
    for path, query in (
        ("/", {}),
        ("/attempts", {}),
        ("/attempts", quoted),
        (f"/attempts/{failed[0]}", {}),
        ("/attempts/replay", {"id": failed[0]}),
        ("/incidents", {"service": EVIL}),
        ("/oncall", {"service": EVIL, "week": EVIL, "said": EVIL}),
        (f"/oncall/{number}/override", {"week": EVIL}),
    ):
        text = alice.client.get(path, query_string=query).text
        assert "<script>alert" not in text and "<img" not in text and "<hx-partial" not in text, path
        assert "&lt;script&gt;" in text and "{{7*7}}" in text, path
    typed = {"kind": EVIL, "user": EVIL, "replaces": EVIL, "start": EVIL, "end": EVIL, "week": EVIL}
    answer = alice.post(f"/oncall/{number}/override", **typed)
    assert answer.status_code == 422 and "<script>alert" not in answer.text and "&lt;script&gt;" in answer.text
