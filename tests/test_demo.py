"""Demo data: what it shows, that it climbs for real, and that it leaves without a trace and without damage."""

import re
from datetime import timedelta
from typing import Any

import pytest

from escalade import demo, incidents, opening, overview, passwords, settings, tokens, transfer, users
from escalade.db import Database
from escalade.demo import Removal
from escalade.inbound.base import Event
from tests import factories
from tests.conftest import TABLES
from tests.engines import running_engine
from tests.receiver import wait_for

ALICE, BOB = "demo-alice@example.com", "demo-bob@example.com"
REAL = """
users: [{email: carol@example.com, contact_methods: [{name: log, kind: log, address: carol}]}]
policies: [{name: real, steps: [{targets: ["%s"], wait: 5m}]}]
services: [{name: real, policy: real}]
"""


def load(db: Database) -> list[str]:
    """Load the demo; the lines it prints."""
    with db.begin() as tx:
        return demo.load(tx, "https://pager.example.com")


def remove(db: Database) -> Removal:
    """Take the demo out; what it says."""
    with db.begin() as tx:
        return demo.remove(tx)


def apply(db: Database, text: str) -> None:
    """Apply a configuration file."""
    with db.begin() as tx:
        transfer.apply(tx, text)


def admin(db: Database) -> None:
    """An admin who can log in."""
    with db.begin() as tx:
        users.set_password(tx, users.create(tx, "root@example.com", "admin").id, "a long password")


def everything(db: Database) -> dict[str, list[Any]]:
    """All rows of all tables but the audit, which forgets nothing, as text."""
    return {
        table: factories.run(db, f"select t::text from {table} t order by 1") for table in TABLES if table != "audit"
    }


def key_of(lines: list[str]) -> str:
    """The integration's key, from the line with curl."""
    found = re.search(r"https://pager\.example\.com/hooks/(\S+)$", "\n".join(lines), re.M)
    assert found
    return found[1]


def alert(db: Database, key: str, title: str = "Try me") -> int:
    """An alert that the integration takes; its incident's id."""
    with db.begin() as tx:
        source = opening.integration(tx, tokens.digest(key)).source
        return opening.trigger(tx, source, Event("trigger", title, severity="critical"))[0].id


def real_incident(db: Database, service: str = "real") -> int:
    """An incident of a service that is not the demo's."""
    with db.begin() as tx:
        return opening.trigger(tx, opening.service(tx, service, "command-line"), Event("trigger", "Real"))[0].id


def names(db: Database) -> set[str]:
    """What bears a name."""
    tables = "channel schedule escalation_policy service".split()
    found = [row[0] for table in tables for row in factories.run(db, f"select name from {table}")]
    return {*found, *(row[0] for row in factories.run(db, "select email from app_user"))}


def test_it_shows_something_in_every_part(database: Database) -> None:
    load(database)
    with database.read() as tx:
        pages = [view for view in overview.pending(tx) if view.kind == "PAGE"]
        steps = [view for view in overview.pending(tx) if view.kind == "STEP"]
        [failed] = overview.failed(tx)
        open_ = overview.incident_counts(tx)
        tries = overview.tries(tx, failed)
        delivered = overview.listing(tx, ["DELIVERED"])
        now = tx.now
    assert [page.due_at - now > timedelta(minutes=4) for page in pages] == [True]
    assert [step.due_at - now > timedelta(minutes=4) for step in steps] == [True]
    assert "Alice" in steps[0].who and "Bob" in steps[0].who and "#demo-ops" in steps[0].who
    assert open_ == {"TRIGGERED": 1, "ACKNOWLEDGED": 1}
    assert [one.outcome for one in tries] == ["retry"] * 7 + ["failed"]
    assert failed.finished_at is not None and failed.finished_at < now
    assert len(delivered) == 3


def test_both_people_log_in_and_the_curl_line_opens_an_incident(database: Database) -> None:
    lines = load(database)
    password = re.search(r"password (\S+) \(shown only now\)", lines[0])
    assert password
    hashes = factories.run(database, "select email, role, password_hash from app_user order by email")
    assert [row[:2] for row in hashes] == [(ALICE, "admin"), (BOB, "responder")]
    assert all(passwords.fits(row[2], password[1]) for row in hashes)
    opened = alert(database, key_of(lines))
    assert ("PAGE", "PENDING") in factories.statuses(database, opened)
    stored = str(factories.run(database, "select value::text from setting"))
    assert password[1] not in stored and key_of(lines) not in stored


def test_it_climbs_for_real(database: Database, capfd: pytest.CaptureFixture[str]) -> None:
    load(database)
    with database.read() as tx:
        [climbing] = overview.incidents(tx, ["TRIGGERED"])
    with running_engine(database.url, database.doorbell):
        with database.begin() as tx:
            incidents.escalate(tx, climbing.id, "somebody")
        wait_for(lambda: delivered(database, climbing.id) >= 4, what="pages of the second step")
    assert factories.events(database, climbing.id).count("step_reached") == 2


def delivered(db: Database, incident_id: int) -> int:
    """How many pages of an incident arrived."""
    return factories.statuses(db, incident_id).count(("PAGE", "DELIVERED"))


def test_it_is_loaded_beside_one_admin(database: Database) -> None:
    admin(database)
    assert load(database)
    assert load(database) == []
    with database.read() as tx:
        assert demo.loaded(tx)


@pytest.mark.parametrize("what", ["service", "responder", "two admins", "its own name"])
def test_it_is_not_loaded_where_something_is_set_up(database: Database, what: str) -> None:
    if what == "service":
        factories.service(database, factories.policy(database))
    elif what == "its own name":
        factories.user(database, "demo-alice", role="admin")
    else:
        factories.user(database, "alice", role="admin")
        factories.user(database, "bob", role="admin" if what == "two admins" else "responder")
    before = everything(database)
    assert load(database) == []
    assert everything(database) == before


def test_removing_it_leaves_no_trace(database: Database) -> None:
    admin(database)
    before = everything(database)
    key = key_of(load(database))
    alert(database, key)
    factories.run(
        database,
        "insert into destination values ('webhook:pager.demo.invalid:443', 3, now(), 'no such name', now())",
    )
    done = remove(database)
    assert everything(database) == before
    assert done.kept == []
    assert "service demo-shop" in done.removed and "4 incidents" in done.removed
    assert remove(database) == Removal([], [])


def test_what_real_objects_use_stays_until_they_do_not(database: Database) -> None:
    load(database)
    apply(database, REAL % "schedule:demo-primary")
    opened = real_incident(database)
    admin(database)
    done = remove(database)
    assert {"demo-primary", ALICE, BOB, "real"} <= names(database)
    assert "schedule demo-primary: policy real uses it" in done.kept
    assert f"user {ALICE}: schedule demo-primary uses it" in done.kept
    assert "demo-shop" not in names(database) and "demo-ops" not in names(database)
    apply(database, REAL % "user:carol@example.com")
    # The open incident climbs the policy as it was.
    assert "schedule demo-primary: open incident" in "\n".join(remove(database).kept)
    with database.begin() as tx:
        incidents.resolve(tx, opened, "somebody")
    assert remove(database).kept == []
    assert names(database) == {"real", "carol@example.com", "root@example.com"}
    assert [row[0] for row in factories.run(database, "select id from incident")] == [opened]


def test_what_was_renamed_is_nobodys_demo_any_more(database: Database) -> None:
    key = key_of(load(database))
    admin(database)
    factories.run(database, "update service set name = 'shop' where name = 'demo-shop'")
    done = remove(database)
    assert "service shop: it was renamed" in done.kept
    assert {"shop", "demo-default", "demo-primary", "demo-ops", ALICE, BOB} <= names(database)
    assert alert(database, key)
    factories.run(database, "delete from incident_event; delete from notification_attempt; delete from incident")
    factories.run(database, "delete from service")
    assert remove(database).kept == []
    assert names(database) == {"root@example.com"}


def test_a_service_that_somebody_else_posts_to_stays(database: Database) -> None:
    load(database)
    [[service]] = factories.run(database, "select id from service")
    factories.integration(database, service, name="ours")
    assert "service demo-shop: integration ours uses it" in remove(database).kept
    assert factories.run(database, "select count(*) from incident") == [(0,)]


def test_a_fallback_that_was_edited_keeps_its_channel(database: Database) -> None:
    load(database)
    apply(database, 'settings: {fallback: ["channel:demo-ops", "user:demo-bob@example.com"]}')
    admin(database)
    done = remove(database)
    assert done.kept == ["channel demo-ops: setting fallback uses it", f"user {BOB}: setting fallback uses it"]
    with database.read() as tx:
        assert [target.label for target in settings.fallback(tx)] == ["channel:demo-ops", f"user:{BOB}"]


def test_the_last_admin_stays_while_others_log_in(database: Database) -> None:
    load(database)
    with database.begin() as tx:
        users.set_password(tx, users.create(tx, "carol@example.com", "responder").id, "a long password")
    assert remove(database).kept == [f"user {ALICE}: is the last admin who can log in"]
    assert names(database) == {ALICE, "carol@example.com"}
    admin(database)
    assert remove(database) == Removal([f"user {ALICE}"], [])


def test_somebody_removed_part_of_it(database: Database) -> None:
    load(database)
    factories.run(database, "delete from service")
    factories.run(database, "delete from escalation_policy")
    assert remove(database).kept == []
    assert names(database) == set()
