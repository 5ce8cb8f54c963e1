"""One thing at a time: whatever a file can say, its form says too, and saved as it is it changes nothing."""

from typing import Any

import yaml
from hypothesis import HealthCheck, Phase, given, settings

from escalade.db import Database, Tx, connect
from escalade.setting_up import changing, drafts
from escalade.setting_up.drafts import Draft
from escalade.setting_up.uses import uses
from escalade.transfer import apply, export, model, shape, stored
from tests import factories
from tests.factories import run
from tests.transfer.example import FULL, applied
from tests.transfer.strategies import configurations


def sent(draft: Draft, at: str = "") -> dict[str, list[str]]:
    """What a browser sends of a form that shows this draft."""
    found: dict[str, list[str]] = {}
    for name, value in draft.items():
        path = at + name
        if isinstance(value, str):
            # A text area sends other line ends than it was given; a box that is not ticked sends nothing.
            found |= {path: [value.replace("\n", "\r\n")]} if value != "off" else {}
        elif name == "days":
            found[path] = value
        else:
            for index, one in enumerate(value):
                here = f"{path}[{index}]"
                found |= {here: [one]} if isinstance(one, str) else sent(one, here + ".")
    return found


def resaved(tx: Tx) -> list[str]:
    """Save every thing by its form, as it is; what that changes."""
    changes = []
    for section, noun in changing.SECTIONS.items():
        for thing in getattr(stored.load(tx), section):
            draft = drafts.read(noun.fields, sent(drafts.of(noun.fields, thing)))
            made_from = changing.fingerprint(noun.fields, thing)
            changes += changing.save(tx, section, thing.id, draft, made_from).changes
    there = stored.load(tx).settings or model.Settings()
    draft = drafts.read(shape.SETTINGS, sent(drafts.of(shape.SETTINGS, there)))
    changes += changing.save_settings(tx, draft, changing.fingerprint(shape.SETTINGS, there))
    return [change.line for change in changes]


def test_the_forms_of_the_example_change_nothing(database: Database) -> None:
    applied(database, FULL)
    with database.begin() as tx:
        assert resaved(tx) == []


@settings(
    max_examples=40,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(configurations())
def test_whatever_a_file_says_its_forms_change_nothing(clean_url: str, told: dict[str, Any]) -> None:
    with connect(clean_url) as conn, conn.transaction(force_rollback=True):
        tx = Tx(conn)
        apply(tx, yaml.safe_dump(told, allow_unicode=True))
        before = export(tx, secrets=True)
        assert resaved(tx) == []
        assert export(tx, secrets=True) == before


def test_spaces_around_what_was_typed_are_not_meant(database: Database) -> None:
    applied(database, FULL)
    with database.begin() as tx:
        thing = stored.load(tx).users[0]
        draft = drafts.of(shape.USER, thing) | {"name": " Al ", "timezone": "Asia/Kolkata "}
        draft["contact_methods"][0]["name"] = "post "
        draft["notification_rules"][1]["contact_method"] = "post "
        changing.save(tx, "users", thing.id, draft, changing.fingerprint(shape.USER, thing))
        saved = stored.load(tx).users[0]
    assert (saved.name, saved.timezone, saved.contact_methods[0].name) == ("Al", "Asia/Kolkata", "post")
    assert saved.notification_rules[1].contact_method == "post"


def test_uses_name_every_place(database: Database) -> None:
    applied(database, FULL)
    factories.user(database, "carol")
    with database.begin() as tx:
        there = stored.load(tx)
    people = {user.email: [(use.section, use.where) for use in uses(there, "users", user)] for user in there.users}
    assert people == {
        "Alice@example.com": [
            ("settings", "told when a policy is exhausted"),
            ("schedules", "rotation weekly"),
            ("schedules", "an override until 2026-01-08 16:00 UTC"),
        ],
        "bob@example.com": [
            ("policies", "step 2"),
            ("schedules", "rotation weekly"),
            ("schedules", "a roster change of rotation weekly"),
            ("schedules", "an override until 2026-01-07 16:00 UTC"),
            ("schedules", "an override until 2026-01-08 16:00 UTC"),
        ],
        "carol@example.com": [],
    }
    assert run(database, "select count(*) from service") == [(1,)] and uses(there, "services", there.services[0]) == []
