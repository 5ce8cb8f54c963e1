"""Migrations while alerts arrive and pages leave, and migrations that fail or are killed half-way."""

import ast
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from escalade.db import Database
from escalade.errors import Unavailable
from escalade.migrate import files, migrate
from tests import factories
from tests.engines import running_engine
from tests.receiver import receiver, wait_for

ALERTS = 60
COLUMNS = """select table_name, column_name, data_type, is_nullable from information_schema.columns
    where table_schema = 'public' order by 1, 2"""
INDEXES = "select indexname, indexdef from pg_indexes where schemaname = 'public' order by 1"
SLEEPING = "select 1 from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'"


@pytest.fixture
def empty(server_url: str, worker_name: str) -> Iterator[str]:
    """A database without a schema."""
    name = f"escalade_migrating_{worker_name}"
    with psycopg.connect(server_url, autocommit=True) as conn:
        conn.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))
        conn.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        yield urlsplit(server_url)._replace(path=f"/{name}").geturl()
        conn.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


def shape(url: str) -> list[list[tuple[object, ...]]]:
    """The columns and indexes of a database."""
    with psycopg.connect(url) as conn:
        return [conn.execute(query).fetchall() for query in (COLUMNS, INDEXES)]  # type: ignore[arg-type]


@pytest.mark.parametrize("number", range(len(files())))
def test_k094_a_migration_that_is_killed_half_way_completes_when_it_is_run_again(
    empty: str, database_url: str, tmp_path: Path, number: int
) -> None:
    for place, path in enumerate(files()):
        text = path.read_text(encoding="utf-8")
        (tmp_path / path.name).write_text(text + ("\nselect pg_sleep(1);" if place == number else ""))
    call = (
        f"from pathlib import Path; from escalade.migrate import migrate; migrate({empty!r}, Path({str(tmp_path)!r}))"
    )
    process = subprocess.Popen([sys.executable, "-c", call])
    with psycopg.connect(empty, autocommit=True) as conn:
        wait_for(lambda: conn.execute(SLEEPING).fetchone(), 20, "migration under way")  # type: ignore[arg-type]
    process.kill()
    process.wait()
    assert migrate(empty) == [path.stem for path in files()[number:]]
    assert shape(empty) == shape(database_url)


WAITING = "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
HISTORY = "select name from schema_migration order by 1"


@pytest.mark.parametrize("done", [0, 1, len(files()) - 1], ids=["empty", "old", "one behind"])
def test_two_processes_that_migrate_at_the_same_time_both_end_well_and_each_file_is_applied_once(
    empty: str, database_url: str, tmp_path: Path, done: int
) -> None:
    for path in files()[:done]:
        (tmp_path / path.name).write_text(path.read_text(encoding="utf-8"))
    migrate(empty, tmp_path)
    for place, path in enumerate(files()):
        text = path.read_text(encoding="utf-8")
        (tmp_path / path.name).write_text(text + ("\nselect pg_sleep(1);" if place == done else ""))
    call = (
        f"from pathlib import Path; from escalade.migrate import migrate; print(migrate({empty!r}, "
        f"Path({str(tmp_path)!r})))"
    )
    with psycopg.connect(empty, autocommit=True) as conn:
        command = [sys.executable, "-c", call]
        both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        wait_for(lambda: conn.execute(SLEEPING).fetchone(), 20, "migration under way")  # type: ignore[arg-type]
        wait_for(lambda: conn.execute(WAITING).fetchone(), 20, "one that waits for it")  # type: ignore[arg-type]
        said = [process.communicate(timeout=30)[0] for process in both]
        applied = [name for (name,) in conn.execute(HISTORY)]
    assert [process.returncode for process in both] == [0, 0]
    each = [name for text in said for name in ast.literal_eval(text)]
    assert sorted(each) == [path.stem for path in files()[done:]]
    assert applied == [path.stem for path in files()]
    assert shape(empty) == shape(database_url)


def send_alerts(database: Database, service_id: int, first: int, sent: list[int]) -> None:
    """Alerts one after the other; one that is refused is sent again, as tools do for a while."""
    end = time.monotonic() + 15
    for number in range(first, first + ALERTS // 2):
        while time.monotonic() < end:
            try:
                sent.append(factories.open_incident(database, service_id, f"alert {number}").id)
                break
            except Unavailable:
                continue


def test_k093_no_alert_and_no_page_is_lost_while_migrations_run_and_one_fails(empty: str, tmp_path: Path) -> None:
    migrate(empty)
    for path in files():
        (tmp_path / path.name).write_text(path.read_text(encoding="utf-8"))
    later = "alter table notification_attempt add column later text; alter table incident add column later text;"
    database, sent = Database(empty, size=4), []
    try:
        with receiver() as phone, running_engine(empty, database.doorbell):
            service = factories.ladder(database, phone.url)
            threads = [
                threading.Thread(target=send_alerts, args=(database, service, first, sent)) for first in (0, ALERTS)
            ]
            for thread in threads:
                thread.start()
            wait_for(lambda: len(sent) > 5)
            (tmp_path / "9998_later.sql").write_text(later + " select no_such_function();")
            with pytest.raises(psycopg.errors.UndefinedFunction):
                migrate(empty, tmp_path)
            (tmp_path / "9998_later.sql").write_text(later)
            assert migrate(empty, tmp_path) == ["9998_later"]
            for thread in threads:
                thread.join(20)
                assert not thread.is_alive()
            phone.wait(ALERTS, "/alice")
            pages = "select count(*) from notification_attempt where kind = 'PAGE' and status = 'DELIVERED'"
            wait_for(lambda: factories.run(database, pages) == [(ALERTS,)])
        assert len(set(sent)) == ALERTS == len(phone.arrived)
    finally:
        database.close()
