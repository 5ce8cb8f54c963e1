"""The self-check: what is wrong comes first, with what to do."""

from escalade import first_steps
from escalade.web.pages import checks
from tests import factories
from tests.web.screens import Screens, engine_ran


def page(screens: Screens) -> str:
    answer = screens.client().get("/setup/checks")
    assert answer.status_code == 200
    return answer.text


def test_faults_come_before_warnings_and_these_before_the_rest(screens: Screens) -> None:
    screens.session("alice")
    factories.service(screens.db, factories.policy(screens.db, (60, [("user", screens.people["alice"])])))
    text = page(screens)
    places = [text.index(title) for title in checks.TITLES.values()]
    assert places == sorted(places)
    assert "alice@example.com: to be paged, but without a verified contact method; give each at least one" in text
    assert "without integration or heartbeat, so no alert comes in; add one" in text


def test_every_check_is_on_the_page(screens: Screens) -> None:
    engine_ran(screens.db)
    text = page(screens)
    names = """configuration | base URL | secret key | database | schema | clocks | engines | transports | people |
        schedules | policies | services | queue | version | silence | pooler | dead man""".split("|")
    missing = [name.strip() for name in names if f"<strong>{name.strip()}</strong>" not in text]
    assert missing == []
    assert "none stands before the database" in text


def test_people_without_a_loud_channel_are_named(screens: Screens) -> None:
    screens.session("alice")
    factories.contact(screens.db, screens.people["alice"], "alice@example.com", kind="email")
    assert "alice@example.com: reached only by what may be silent" in page(screens)
    factories.contact(screens.db, screens.people["alice"], "https://ntfy.sh/topic", kind="ntfy")
    assert "reached only by what may be silent" not in page(screens)


def test_gaps_of_the_next_two_weeks_are_named(screens: Screens) -> None:
    screens.session("alice")
    primary = factories.schedule(screens.db, [screens.people["alice"]])
    assert "none in the next 14 days" in page(screens)
    factories.run(
        screens.db,
        "update rotation set restrictions = %s::jsonb where schedule_id = %s",
        '[{"days": ["mon", "tue", "wed", "thu", "fri"], "from": "09:00", "to": "17:00"}]',
        primary,
    )
    assert "primary: nobody is on call from" in page(screens)


def test_signs_of_life_of_each_service(screens: Screens) -> None:
    service = factories.ladder(screens.db, "http://127.0.0.1:9")
    assert "last alert none lately" in " ".join(page(screens).split())
    factories.open_incident(screens.db, service)
    factories.run(
        screens.db,
        "update notification_attempt set status = 'DELIVERED', delivered_at = now(), finished_at = now()"
        " where kind = 'PAGE'",
    )
    assert page(screens).count("ago</span>") == 2


def test_first_steps_that_are_not_ended_are_named(screens: Screens) -> None:
    screens.session("root", "admin")
    with screens.db.begin() as tx:
        first_steps.begin(tx, screens.people["root"])
    assert "not finished; an admin goes on at" in page(screens)


def test_a_viewer_sees_no_checks(screens: Screens) -> None:
    assert screens.client("vic", "viewer").get("/setup/checks").status_code == 403


def test_addresses_and_secrets_are_not_on_it(screens: Screens) -> None:
    screens.session("alice")
    factories.contact(screens.db, screens.people["alice"], "http://127.0.0.1:9/secret-token-1", secret="whsec_secret")
    assert "secret-token-1" not in page(screens) and "whsec_secret" not in page(screens)
