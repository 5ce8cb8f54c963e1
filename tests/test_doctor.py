"""The doctor: what it finds, at which level, and what it says to do."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

import psycopg
import pytest

from escalade import db as layer
from escalade import doctor, queue_health
from escalade.checks import database as database_checks
from escalade.checks import reach
from escalade.checks.finding import Finding, ok
from escalade.config import Config
from escalade.db import Database, Tx
from tests import factories
from tests.clock import MovedClock
from tests.commands import bare_url, command, free_port, inside, read_only
from tests.engines import running_engine
from tests.receiver import wait_for
from tests.test_demo import everything

__all__ = ["bare_url"]

Examine = Callable[..., list[Finding]]


@pytest.fixture
def examine(clean_url: str) -> Examine:
    """All findings on the test database."""
    return lambda **more: list(doctor.examine({"DATABASE_URL": clean_url, **more}))


def of(found: Iterable[Finding], check: str) -> list[tuple[str, str]]:
    """Level and text of what one check found."""
    return [(finding.level, finding.text) for finding in found if finding.check == check]


def levels(found: Iterable[Finding], check: str) -> list[str]:
    """How bad it is."""
    return [level for level, _ in of(found, check)]


@pytest.fixture
def person(database: Database) -> int:
    """Alice, reached by log."""
    alice = factories.user(database)
    factories.contact(database, alice, "", kind="log")
    return alice


def service(db: Database, *steps: tuple[int, list[tuple[str, int]]]) -> int:
    """A service with an integration."""
    made = factories.service(db, factories.policy(db, *steps))
    factories.integration(db, made)
    return made


@pytest.fixture(autouse=True)
def tidy(clean_url: str) -> None:
    """Other tests leave dead rows behind, of which the doctor rightly speaks."""
    with psycopg.connect(clean_url, autocommit=True) as conn:
        conn.execute("vacuum notification_attempt")


def test_all_is_well(database: Database, person: int, examine: Examine) -> None:
    service(database, (300, [("schedule", factories.schedule(database, [person]))]), (300, [("user", person)]))
    with running_engine(database.url):
        wait_for(lambda: factories.run(database, "select 1 from engine_instance"))
        found = examine(ESCALADE_SECRET_KEY="sixteen characters")
    assert [finding.line for finding in found if finding.level != "ok"] == []
    assert {finding.check for finding in found} >= {"configuration", "base URL", "database", "schema", "clocks"}
    assert {finding.check for finding in found} >= {"engines", "transports", "people", "schedules", "policies"}
    assert {finding.check for finding in found} >= {"services", "queue", "failed", "vacuum", "throughput"}


def test_it_changes_nothing(database: Database, examine: Examine) -> None:
    factories.open_incident(database, factories.ladder(database, "http://127.0.0.1:9"))
    before = everything(database)
    examine()
    assert everything(database) == before


# Configuration and database


def test_every_fault_of_the_environment(examine: Examine) -> None:
    found = examine(ESCALADE_SENDRES="9", PORT="x")
    assert [finding.level for finding in found] == ["fault", "fault"]
    assert found[0].line.startswith("fault: configuration: ESCALADE_SENDRES: no such setting")


@pytest.mark.parametrize(
    ("settings", "level"),
    [
        ({"HOST": "127.0.0.1"}, "ok"),
        ({"HOST": "::1"}, "ok"),
        ({"HOST": "0.0.0.0"}, "fault"),
        ({"HOST": "0.0.0.0", "ESCALADE_BASE_URL": "http://127.0.0.1:8000"}, "warning"),
        ({"HOST": "0.0.0.0", "ESCALADE_BASE_URL": "http://[::1]:8000"}, "warning"),
        ({"HOST": "0.0.0.0", "ESCALADE_BASE_URL": "https://pager.example.com"}, "ok"),
        ({"PORT": "5000", "RENDER_EXTERNAL_URL": "https://pager.onrender.com"}, "ok"),
    ],
)
def test_where_links_lead(examine: Examine, settings: dict[str, str], level: str) -> None:
    assert levels(examine(**settings), "base URL") == [level]


def test_where_the_secret_key_is(examine: Examine) -> None:
    assert levels(examine(), "secret key") == ["warning"]
    assert levels(examine(ESCALADE_SECRET_KEY="sixteen characters"), "secret key") == ["ok"]


def test_a_database_that_is_away(examine: Examine) -> None:
    found = examine(DATABASE_URL=f"postgresql://u:hunter22@127.0.0.1:{free_port()}/pager")
    [(level, text)] = of(found, "database")
    assert level == "fault" and "refused" in text and "\n" not in text and "hunter22" not in text
    assert found[-1].check == "database"


def test_a_disk_that_is_not_kept() -> None:
    found = list(doctor.examine({"DYNO": "web.1", "ESCALADE_BASE_URL": "https://pager.example.com"}))
    assert found[-1].line.startswith("fault: database: set DATABASE_URL: the disk is not kept on Heroku")


def test_an_old_schema(bare_url: str) -> None:
    found = list(doctor.examine({"DATABASE_URL": bare_url}))
    [(level, text)] = of(found, "schema")
    assert level == "fault" and text.endswith("run: python app.py migrate")
    assert "engines" not in {finding.check for finding in found}


def test_an_old_server_and_one_that_takes_no_writes(database: Database, config: Config, examine: Examine) -> None:
    old = SimpleNamespace(conn=SimpleNamespace(info=SimpleNamespace(server_version=130022)))
    [finding] = database_checks.server(cast(Tx, old), config)
    assert finding.line == "fault: database: Postgres 13.22 is too old; move to 14 or later"
    with read_only(database.url):
        found = examine()
    assert "takes no writes" in of(found, "database")[0][1]
    assert "queue" not in {finding.check for finding in found}


@pytest.mark.parametrize(("ahead", "level"), [(0, "ok"), (1, "ok"), (10, "warning"), (-10, "warning"), (40, "fault")])
def test_clocks_that_differ(examine: Examine, clock: MovedClock, ahead: int, level: str) -> None:
    clock.ahead = ahead
    [(found, text)] = of(examine(), "clocks")
    assert found == level
    assert ("behind" in text) == (ahead == -10) and ("ahead of" in text) == (ahead >= 10)


# Reach


def test_kinds_without_what_they_need(database: Database, person: int, examine: Examine) -> None:
    factories.contact(database, person, "alice@example.com", kind="email")
    factories.run(
        database,
        """insert into channel (name, kind, address, updates, pace_seconds, destination)
            values ('ops', 'pigeon', 'coop 7', false, 0, 'pigeon')""",
    )
    [(first, mail), (second, pigeon)] = of(examine(), "transports")
    assert (first, second) == ("fault", "fault")
    assert "alice@example.com/email" in mail and "set SMTP_URL" in mail
    assert "pigeon" in pigeon and "channel ops" in pigeon
    assert len(of(examine(SMTP_URL="smtp://127.0.0.1:25"), "transports")) == 1


def test_addresses_that_cannot_be_contacted(database: Database, person: int, examine: Examine) -> None:
    factories.contact(database, person, "http://10.1.2.3/alice")
    factories.contact(database, person, "http://127.0.0.1:9999/alice", number=2)
    factories.channel(database, "http://10.1.2.3/ops")
    found = of(examine(), "transports")
    assert [level for level, _ in found] == ["fault", "fault"]
    assert "alice@example.com/webhook, channel ops: http://10.1.2.3/..." in found[0][1]
    assert all("ESCALADE_ALLOW_PRIVATE_ADDRESSES" in text for _, text in found)
    assert levels(examine(ESCALADE_ALLOW_PRIVATE_ADDRESSES="10.0.0.0/8"), "transports") == ["fault"]
    assert levels(examine(ESCALADE_ALLOW_PRIVATE_ADDRESSES="on"), "transports") == ["ok"]


def test_a_name_that_cannot_be_looked_up(database: Database, person: int, examine: Examine) -> None:
    factories.contact(database, person, "https://pager.invalid/very-secret-path")
    [(level, text)] = of(examine(), "transports")
    assert level == "warning" and "look-up" in text and "very-secret-path" not in text


def test_name_servers_that_hang_do_not_hold_it_up(
    database: Database, person: int, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_time(host: str, shown: str, deadline: Any) -> list[Any]:
        assert deadline.seconds == reach.LOOK_UP_SECONDS
        seen.append(deadline)
        raise reach.DeliveryError(f"The look-up of the name in {shown} had no answer.")

    seen: list[Any] = []
    monkeypatch.setattr(reach, "find", no_time)
    for number in (1, 2):
        factories.contact(database, person, f"https://pager{number}.example.com/", number=number)
    with database.read() as tx:
        assert [finding.level for finding in reach.transports(tx, config)] == ["warning", "warning"]
    assert seen[0] is seen[1]


def test_an_address_that_is_none(database: Database, person: int, examine: Examine) -> None:
    factories.contact(database, person, "not an address")
    [(level, text)] = of(examine(), "transports")
    assert level == "fault" and text.startswith("alice@example.com/webhook: ") and text.endswith("correct its address")


# People


def test_people_who_cannot_be_reached(database: Database, examine: Examine) -> None:
    now = factories.now(database)
    names = ("target", "rotation", "future", "past", "override", "spare", "viewer", "well")
    ids = {name: factories.user(database, name, role="viewer" if name == "viewer" else "responder") for name in names}
    factories.contact(database, ids["well"], "", kind="log")
    factories.contact(database, ids["spare"], "", kind="log", verified=False)
    factories.policy(database, (60, [("user", ids["target"])]))
    factories.schedule(database, [ids["rotation"]])
    factories.schedule(database, [ids["past"]], name="other")
    other = "(select max(id) from rotation)"
    change = f"insert into roster_change (rotation_id, at, participants) values ({other}, %s, %s)"
    factories.run(database, change, now - timedelta(days=1), [ids["well"]])
    factories.run(database, change, now + timedelta(days=1), [ids["future"]])
    stand_in = """insert into override (schedule_id, kind, user_id, start_at, end_at, source, created_by)
        values ((select min(id) from schedule), 'take', %s, %s, %s, 'person', 'a test')"""
    factories.run(database, stand_in, ids["override"], now, now + timedelta(hours=1))
    factories.run(database, stand_in, ids["past"], now - timedelta(hours=2), now - timedelta(hours=1))
    [(first, wanted), (second, others)] = of(examine(), "people")
    assert (first, second) == ("fault", "warning")
    assert wanted.split(":")[0].replace("@example.com", "") == "future, override, rotation, target"
    assert others.split(":")[0].replace("@example.com", "") == "past, spare"


def test_schedules_with_nobody_on_call(database: Database, person: int, examine: Examine) -> None:
    factories.schedule(database, [person])
    factories.schedule(database, [], name="empty")
    assert of(examine(), "schedules")[0][1].startswith("empty: nobody is on call now")
    factories.schedule(database, [person], name="broken", timezone="Mars/Olympus")
    found = examine()
    assert levels(found, "schedules") == ["fault", "warning"]
    assert levels(found, "clocks") == ["ok"]


def test_policies_that_page_nobody(database: Database, person: int, examine: Examine) -> None:
    nobody = factories.schedule(database, [], name="empty")
    viewer = factories.user(database, "victor", role="viewer")
    factories.policy(database, (60, [("user", person)]), (60, [("schedule", nobody)]), name="gap")
    factories.policy(database, (60, [("user", viewer)]), name="unused")
    service(database)
    found = dict((text.split()[0].rstrip(","), (level, text)) for level, text in of(examine(), "policies"))
    assert found.keys() == {"default", "gap", "unused"}
    assert found["default"][0] == "fault"
    assert found["unused"][0] == "warning" and "is a viewer" in found["unused"][1]
    assert found["gap"][0] == "warning" and "step 2" in found["gap"][1] and "nobody is on call" in found["gap"][1]


def test_services_without_a_way_in(database: Database, examine: Examine) -> None:
    assert of(examine(), "services")[0][1].startswith("none, so")
    heard = service(database)
    assert levels(examine(), "services") == ["ok"]
    policy = factories.run(database, "select policy_id from service")[0][0]
    factories.service(database, policy, name="deaf")
    [(level, text)] = of(examine(), "services")
    assert level == "warning" and text.startswith("deaf: ")
    factories.run(database, "delete from integration where service_id = %s", heard)
    insert = """insert into heartbeat (service_id, name, interval_seconds, grace_seconds, key_hash, key_prefix)
        select id, 'nightly', 60, 0, name, '' from service"""
    factories.run(database, insert)
    assert levels(examine(), "services") == ["ok"]


# The queue


def test_engines(database: Database, examine: Examine) -> None:
    assert levels(examine(), "engines") == ["warning"]
    tick = "insert into engine_instance values (%s, now(), now() - %s * interval '1 second')"
    factories.run(database, tick, "killed", 3600)
    [(level, text)] = of(examine(), "engines")
    assert level == "fault" and "60 m" in text and "python app.py" in text
    factories.run(database, tick, "lives", 1)
    assert levels(examine(), "engines") == ["ok"]


def test_pages_that_are_late(database: Database, person: int, examine: Examine) -> None:
    made = service(database, (300, [("user", person)]))
    factories.open_incident(database, made)
    assert levels(examine(), "queue") == ["ok"]
    factories.run(database, "update notification_attempt set due_at = due_at - interval '10 minutes'")
    [(level, text)] = of(examine(), "queue")
    assert level == "fault" and text.startswith("2 due, the oldest for 10 m; no engine takes them")
    factories.run(database, "insert into engine_instance values ('lives', now(), now())")
    assert levels(examine(), "queue") == ["warning"]
    assert levels(examine(ESCALADE_LATE_SECONDS="3600"), "queue") == ["ok"]


def test_leases_that_ran_out(database: Database, person: int, examine: Examine) -> None:
    factories.open_incident(database, service(database, (300, [("user", person)])))
    factories.run(
        database,
        """update notification_attempt set status = 'IN_FLIGHT', lease_until = now() - interval '1 minute'
            where kind = 'PAGE'""",
    )
    assert levels(examine(), "leases") == ["warning"]


def test_what_failed(database: Database, person: int, examine: Examine) -> None:
    opened = factories.open_incident(database, service(database, (300, [("user", person)])))
    fail = "update notification_attempt set status = 'FAILED', finished_at = now() where kind = 'PAGE'"
    factories.run(database, fail)
    [(level, text)] = of(examine(), "failed")
    assert level == "warning" and text.startswith("1 of incidents") and text.endswith("attempt replay --failed")
    factories.run(database, "update incident set status = 'RESOLVED', resolved_at = now() where id = %s", opened.id)
    assert of(examine(), "failed") == [("ok", "none that anybody still needs; 1 in all")]


def test_incidents_that_nothing_moves(database: Database, person: int, examine: Examine) -> None:
    factories.open_incident(database, service(database, (300, [("user", person)])))
    factories.run(database, "update incident set opened_at = opened_at - interval '1 hour'")
    assert levels(examine(), "incidents") == []
    factories.run(database, "delete from notification_attempt where kind = 'STEP'")
    assert levels(examine(), "incidents") == ["fault"]


def test_every_sign_of_the_queues_health_is_said_beside_its_threshold(database: Database, examine: Examine) -> None:
    found = examine()
    with database.read() as tx:
        signs = queue_health.examine(tx, claims=False)
    for sign in signs:
        [(_, text)] = of(found, sign.limit.name)
        assert sign.limit.label in text and sign.threshold in text


def test_a_sign_past_its_threshold_is_a_warning_and_then_a_fault(
    database: Database, person: int, examine: Examine, clock: MovedClock
) -> None:
    factories.open_incident(database, service(database, (300, [("user", person)])))
    clock.pass_(seconds=90)
    assert levels(examine(), "oldest_due_seconds") == ["warning"]
    clock.pass_(seconds=600)
    assert levels(examine(), "oldest_due_seconds") == ["fault"]


def test_autovacuum_that_is_off(examine: Examine) -> None:
    changed: Mapping[str, str] = {**layer.queries(), "autovacuum_is_on": "select false"}
    with patch.object(layer, "queries", lambda: changed):
        assert levels(examine(), "vacuum") == ["fault"]


# As a whole


def test_a_check_that_raises_stops_no_other(examine: Examine, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(tx: Tx, config: Config) -> Iterator[Finding]:
        raise RuntimeError("of\nitself")

    def last(tx: Tx, config: Config) -> Iterator[Finding]:
        yield ok("last", "done")

    monkeypatch.setattr(doctor, "THEN", (broken, last))
    assert [finding.line for finding in examine()][-2:] == [
        "fault: broken: could not be checked: of itself",
        "ok: last: done",
    ]


def test_a_database_that_goes_away_meanwhile(examine: Examine, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(tx: Tx, config: Config) -> Iterator[Finding]:
        tx.conn.execute("select pg_terminate_backend(pg_backend_pid())")
        yield ok("killed", "never")

    monkeypatch.setattr(doctor, "THEN", (killed, *doctor.THEN))
    found = examine()
    assert found[-1].level == "fault" and found[-1].check == "killed"


def test_exit_codes_and_streams(clean_url: str) -> None:
    warned = inside("doctor", DATABASE_URL=clean_url)
    assert (warned.returncode, warned.stderr) == (0, "")
    assert "warning: engines: " in warned.stdout and "ok: schema: up to date\n" in warned.stdout
    faulty = command("doctor", DATABASE_URL=clean_url, HOST="0.0.0.0")
    assert faulty.returncode == 1
    assert faulty.stderr.startswith("fault: base URL: ") and "fault" not in faulty.stdout
    shown = inside("doctor", "--json", DATABASE_URL=clean_url, HOST="0.0.0.0")
    assert (shown.returncode, shown.stderr) == (1, "")
    assert {"level": "ok", "check": "schema", "text": "up to date"} in json.loads(shown.stdout)["findings"]


def test_a_webhook_secret_that_cannot_sign(database: Database, person: int, examine: Examine) -> None:
    factories.contact(database, person, "https://192.0.2.1/hook", name="signed", secret="whsec_!!")
    texts = [text for _, text in of(examine(), "transports") if text.startswith("alice@example.com/signed")]
    assert any(text.endswith("is not base64; correct its secret") for text in texts)
    assert not any("!!" in text for text in texts)
