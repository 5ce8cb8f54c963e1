"""Embedded Postgres, with real servers in temporary directories."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from escalade import embedded, postmaster
from escalade.errors import Refusal

ROOT = Path(__file__).parents[1]
PLAIN: dict[str, str] = {}
OTHER_PROCESS = """
import sys
from pathlib import Path
from escalade import embedded
print(embedded.start(Path(sys.argv[1]), {}), flush=True)
sys.stdin.readline()
embedded.stop(Path(sys.argv[1]))
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that everybody may pass, which pytest's own is not where root runs it."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="embedded-") as made:
        os.chmod(made, 0o755)
        yield Path(made)


@pytest.fixture
def folder(place: Path) -> Iterator[Path]:
    """A data directory whose server is gone after the test, whatever the test left."""
    made = place / "data"
    yield made
    embedded.stop(made)
    postmaster.end(made / "postgres")


def ask(url: str, query: str) -> object:
    """The first column of the first row."""
    with psycopg.connect(url, autocommit=True) as conn:
        row = conn.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


def write(url: str) -> None:
    """Commit one row."""
    with psycopg.connect(url) as conn:
        conn.execute("CREATE TABLE IF NOT EXISTS kept (word text)")
        conn.execute("INSERT INTO kept VALUES ('durable')")


def pid_of(folder: Path) -> int:
    """The pid of the server on this data directory."""
    server = postmaster.find(folder / "postgres")
    assert server is not None
    return server.pid


def until(condition: object, seconds: float = 10) -> None:
    """Wait for a callable to answer something true."""
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.02)


def other_process(folder: Path) -> subprocess.Popen[str]:
    """Another process that uses the server until it gets a line."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", OTHER_PROCESS, str(folder)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_a_server_that_suits_us(folder: Path) -> None:
    url = embedded.start(folder, PLAIN)
    assert str(ask(url, "SHOW server_version")).startswith("18")
    assert ask(url, "SHOW server_encoding") == "UTF8"
    assert ask(url, "SHOW timezone") == "UTC"
    assert ask(url, "SELECT lower('ÄÖ')") == "äö"
    assert ask(url, "SHOW fsync") == "on"
    assert ask(url, "SHOW listen_addresses") == ""
    assert (folder / "postgres").stat().st_mode & 0o777 == 0o700
    assert (folder / "postgres.log").stat().st_mode & 0o777 == 0o600


def test_data_is_kept_from_one_start_to_the_next(folder: Path) -> None:
    write(embedded.start(folder, PLAIN))
    embedded.stop(folder)
    assert postmaster.find(folder / "postgres") is None
    assert ask(embedded.start(folder, PLAIN), "SELECT word FROM kept") == "durable"


def test_starting_twice_is_starting_once(folder: Path) -> None:
    assert embedded.start(folder, PLAIN) == embedded.start(folder, PLAIN)
    embedded.stop(folder)
    assert postmaster.find(folder / "postgres") is None
    embedded.stop(folder)


def test_a_killed_server_runs_again_while_it_is_used(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    url = embedded.start(folder, PLAIN)
    write(url)
    pid = pid_of(folder)
    os.kill(pid, signal.SIGKILL)
    until(lambda: (server := postmaster.find(folder / "postgres")) and server.ready and server.pid != pid)
    assert ask(url, "SELECT word FROM kept") == "durable"
    until(lambda: "it runs again" in caplog.text)


def test_a_server_killed_while_nobody_used_it(folder: Path) -> None:
    write(embedded.start(folder, PLAIN))
    with other_process(folder) as user:
        assert user.stdout and user.stdout.readline().startswith("postgresql://")
        embedded.stop(folder)
        user.kill()
    os.kill(pid_of(folder), signal.SIGKILL)
    assert ask(embedded.start(folder, PLAIN), "SELECT word FROM kept") == "durable"


def test_a_server_that_does_not_answer_is_not_trusted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []

    def not_at_first(server: postmaster.Running) -> bool:
        asked.append(real(server))
        return asked[-1] and len(asked) > 2

    real = postmaster.answers
    monkeypatch.setattr(postmaster, "answers", not_at_first)
    assert ask(embedded.start(folder, PLAIN), "SELECT 1") == 1
    assert asked == [True] * 3
    server = postmaster.find(folder / "postgres")
    assert server is not None
    embedded.stop(folder)
    assert not real(server)


def test_after_the_app_is_killed_its_server_is_found(folder: Path) -> None:
    with other_process(folder) as user:
        assert user.stdout
        url = user.stdout.readline().strip()
        write(url)
        user.kill()
    pid = pid_of(folder)
    assert embedded.start(folder, PLAIN) == url
    assert pid_of(folder) == pid
    embedded.stop(folder)
    assert postmaster.find(folder / "postgres") is None


def test_a_pid_that_another_process_has_now(folder: Path) -> None:
    write(embedded.start(folder, PLAIN))
    embedded.stop(folder)
    data = folder / "postgres"
    owner = data.stat()
    with subprocess.Popen(["sleep", "60"], user=owner.st_uid, group=owner.st_gid) as stranger:
        lines = [str(stranger.pid), str(data), "1700000000", "5432", str(data), "", "1234567   1234567", "ready"]
        (data / "postmaster.pid").write_text("\n".join(lines) + "\n")
        (data / ".s.PGSQL.5432.lock").write_text("\n".join(lines[:5]) + "\n")
        for name in ("postmaster.pid", ".s.PGSQL.5432.lock"):
            os.chown(data / name, owner.st_uid, owner.st_gid)
        try:
            assert ask(embedded.start(folder, PLAIN), "SELECT word FROM kept") == "durable"
        finally:
            stranger.kill()


def test_a_pid_file_cut_short(folder: Path) -> None:
    write(embedded.start(folder, PLAIN))
    embedded.stop(folder)
    (folder / "postgres" / "postmaster.pid").write_text("")
    assert ask(embedded.start(folder, PLAIN), "SELECT word FROM kept") == "durable"


def test_whoever_stops_last_stops_the_server(folder: Path) -> None:
    url = embedded.start(folder, PLAIN)
    with other_process(folder) as user:
        assert user.stdin and user.stdout
        assert user.stdout.readline().strip() == url
        embedded.stop(folder)
        assert ask(url, "SELECT 1") == 1
        user.stdin.write("\n")
        user.stdin.flush()
        assert user.stdout.read() == ""
        assert user.wait(timeout=20) == 0
    assert postmaster.find(folder / "postgres") is None


def test_two_processes_start_at_once(folder: Path) -> None:
    users = [other_process(folder) for _ in range(3)]
    urls = {user.stdout.readline().strip() for user in users if user.stdout}
    assert len(urls) == 1
    assert ask(urls.pop(), "SELECT 1") == 1
    for user in users:
        assert user.communicate("\n", timeout=30)[0] == ""
    assert postmaster.find(folder / "postgres") is None


@pytest.mark.parametrize("name", ["with space", "comma,quote\"and'per%cent", "long" * 40])
def test_awkward_paths(place: Path, name: str) -> None:
    with embedded.running(place / name / "data", PLAIN) as url:
        write(url)
        assert ask(url, "SELECT word FROM kept") == "durable"
        server = postmaster.find(place / name / "data" / "postgres")
        assert server is not None
    assert postmaster.find(place / name / "data" / "postgres") is None
    assert server.sockets == place / name / "data" / "postgres" or not server.sockets.exists()


def test_a_start_that_was_killed_half_way_leaves_nothing(folder: Path) -> None:
    (folder / "postgres.new-abc" / "base").mkdir(parents=True)
    embedded.start(folder, PLAIN)
    assert sorted(path.name for path in folder.iterdir()) == [
        "postgres",
        "postgres.lock",
        "postgres.log",
        "postgres.users",
    ]


def test_nothing_on_the_console(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with embedded.running(folder, PLAIN) as url:
        with pytest.raises(psycopg.errors.SyntaxError):
            ask(url, "no query")
    assert capfd.readouterr() == ("", "")
    assert "syntax error" in (folder / "postgres.log").read_text()


def test_many_threads_in_one_process(folder: Path) -> None:
    urls: list[str] = []
    threads = [threading.Thread(target=lambda: urls.append(embedded.start(folder, PLAIN))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(urls) == 4 and len(set(urls)) == 1


@pytest.mark.parametrize("name", ["DYNO", "RENDER", "RAILWAY_ENVIRONMENT", "FLY_APP_NAME", "K_SERVICE"])
def test_refused_where_the_disk_is_not_kept(folder: Path, name: str) -> None:
    with pytest.raises(Refusal, match="^set DATABASE_URL: the disk is not kept on "):
        embedded.start(folder, {name: "x"})
    assert not folder.exists()


def test_refused_without_the_package(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(Refusal, match="^set DATABASE_URL, or run `make setup`"):
        embedded.start(folder, PLAIN)


def test_refused_where_there_can_be_no_directory(place: Path) -> None:
    (place / "file").write_text("")
    with pytest.raises(Refusal, match="embedded Postgres cannot use"):
        embedded.start(place / "file", PLAIN)


def test_refused_for_data_of_another_version(folder: Path) -> None:
    embedded.start(folder, PLAIN)
    embedded.stop(folder)
    (folder / "postgres" / "PG_VERSION").write_text("15\n")
    with pytest.raises(Refusal, match="was made by Postgres 15, but Postgres 18 is installed"):
        embedded.start(folder, PLAIN)


def test_why_it_does_not_start(folder: Path) -> None:
    embedded.start(folder, PLAIN)
    embedded.stop(folder)
    (folder / "postgres" / "global" / "pg_control").unlink()
    with pytest.raises(Refusal, match=r"^Postgres did not start: .+ \(see .*postgres\.log\)$"):
        embedded.start(folder, PLAIN)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_root_gets_data_back_that_root_copied(folder: Path) -> None:
    write(embedded.start(folder, PLAIN))
    embedded.stop(folder)
    for path in [folder / "postgres", *(folder / "postgres").rglob("*")]:
        os.chown(path, 0, 0)
    assert ask(embedded.start(folder, PLAIN), "SELECT word FROM kept") == "durable"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_root_in_a_closed_directory(place: Path) -> None:
    closed = place / "home"
    closed.mkdir(mode=0o700)
    with embedded.running(closed / "app" / "data", PLAIN) as url:
        assert ask(url, "SELECT 1") == 1
    assert closed.stat().st_mode & 0o777 == 0o701
