"""Every screen there is, read from the URL map: a new page is looked at without anybody naming it."""

from collections.abc import Iterator
from itertools import product
from typing import Any

from werkzeug.routing import Rule

from escalade import demo, incidents, settings, tokens
from escalade.db import Database
from tests import factories
from tests.web.browser.conftest import Site
from tests.web.screens import engine_ran, fail

SECTIONS = {
    "users": "app_user",
    "channels": "channel",
    "schedules": "schedule",
    "policies": "escalation_policy",
    "services": "service",
}
IDS = """select array_agg(id) from (select distinct on (status) id from {} order by status, id) as found"""


def populate(site: Site) -> None:
    """Something of everything: the demo, and one incident in each state, with tries, notes and failures."""
    db = site.db
    with db.begin() as tx:
        demo.load(tx)
    engine_ran(db)
    service = factories.run(db, "select id from service order by id limit 1")[0][0]
    ids = [factories.open_incident(db, service, f"k{n}", f"Disk {n} is full").id for n in range(5)]
    with db.begin() as tx:
        incidents.acknowledge(tx, ids[0], "bob@example.com")
    with db.begin() as tx:
        incidents.resolve(tx, ids[1], "bob@example.com")
    with db.begin() as tx:
        incidents.note(tx, ids[2], "It is the disk.", "bob@example.com")
    factories.run(db, "update incident set details = %s", "a line\n" * 60)
    for number in ids[3:]:
        fail(db, number, "the receiver answered 500")


def tokens_of(site: Site, kind: str) -> list[str]:
    """Links that need no login, one that works and one that is refused."""
    found = ["unknown"]
    if kind == "a":
        opened = [row[0] for row in factories.run(site.db, "select id from incident order by id limit 3")]
        found.append(site.screens.link(*opened or [1], user_id=site.screens.people["ada"]).removeprefix("/a/"))
    if kind == "start":
        found.append("printed")
        with site.db.begin() as tx:
            settings.add_start_token(tx, tokens.digest("printed"))
    return found


def values(site: Site, rule: Rule) -> dict[str, list[Any]]:
    """What the arguments of a rule may stand for; a number that is not there for one that is not described here."""
    db = site.db
    known: dict[str, Any] = {
        "incident_id": lambda: ids(db, "incident"),
        "attempt_id": lambda: ids(db, "notification_attempt"),
        "schedule_id": lambda: first(db, "schedule"),
        "user_id": lambda: first(db, "app_user"),
        "section": lambda: list(SECTIONS),
        "thing_id": lambda: [1],
        "token": lambda: tokens_of(site, rule.rule.split("/")[1]),
        "filename": lambda: ["away.html"],
        "key": lambda: ["unknown"],
    }
    return {name: known.get(name, lambda: [999])() for name in sorted(rule.arguments)}


def ids(db: Database, table: str) -> list[int]:
    """One row of each status, or a number that is not there."""
    return factories.run(db, IDS.format(table))[0][0] or [999]


def first(db: Database, table: str) -> list[int]:
    """The first row, or a number that is not there."""
    return [row[0] for row in factories.run(db, f"select id from {table} order by id limit 1")] or [999]


def paths(site: Site, method: str) -> Iterator[str]:
    """Every address of the application that takes this method, with something put in for each argument."""
    adapter = site.screens.app.url_map.bind("")
    for rule in site.screens.app.url_map.iter_rules():
        if method not in (rule.methods or ()) or rule.rule.startswith(("/api/", "/v2/", "/callbacks/")):
            continue
        found = values(site, rule)
        for chosen in product(*found.values()):
            filled = dict(zip(found, chosen, strict=True))
            if "section" in filled and "thing_id" in filled:
                filled["thing_id"] = first(site.db, SECTIONS[filled["section"]])[0]
            yield adapter.build(rule.endpoint, filled, method=method)
