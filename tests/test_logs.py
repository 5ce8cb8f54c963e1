"""The log: one line a record, nothing in it that moves the cursor or opens a door."""

import io
import json
import logging
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from escalade import logs


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """Where the log goes; the root logger is put back afterwards."""
    root = logging.getLogger()
    before = (root.handlers[:], root.level, logging.raiseExceptions)
    levels = {name: logging.getLogger(name).level for name in logs._LEVELS}
    yield io.StringIO()
    root.handlers[:], root.level, logging.raiseExceptions = before
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
    logging.captureWarnings(False)
    root.setLevel(before[1])


def lines(stream: io.StringIO) -> list[str]:
    """The lines written so far."""
    return stream.getvalue().split("\n")[:-1]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("POST /hooks/k3y-k3y?x=1 202", "POST /hooks/***?x=1 202"),
        ("https://p.example.com/hooks/k3y", "https://p.example.com/hooks/***"),
        ("GET /beat/k3y HTTP/1.1", "GET /beat/*** HTTP/1.1"),
        ("see https://p.example.com:8443/a/t0k.en-_x, please", "see https://p.example.com:8443/a/***, please"),
        ('"/a/t0ken"', '"/a/***"'),
        ("/start/t0ken", "/start/***"),
        ("/invite/t0ken /reset/t0ken /ics/t0ken", "/invite/*** /reset/*** /ics/***"),
        ("POST /callbacks/telegram/t0ken/x", "POST /callbacks/telegram/***"),
        ("/srv/data/a/file.txt", "/srv/data/a/file.txt"),
        ("/api/v1/incidents/7", "/api/v1/incidents/7"),
        ("Authorization: Bearer abc.def", "Authorization: ***"),
        ("{'Authorization': 'GenieKey abc-def', 'x': 'y'}", "{'Authorization': '***', 'x': 'y'}"),
        ("Cookie: session=abc; other=def", "Cookie: ***"),
        ("sent Bearer abcdefgh12345 there", "sent Bearer *** there"),
        ("postgres://me:s3cret@db.example.com/pager", "postgres://me:***@db.example.com/pager"),
        ("smtp://me:p@ss@host:587?starttls=required", "smtp://me:***@host:587?starttls=required"),
        ("http://host:80/x@y", "http://host:80/x@y"),
        ("https://hooks.slack.com/services/T0/B0/xyz failed", "https://hooks.slack.com/*** failed"),
        ("https://discord.com/api/webhooks/1/xyz", "https://discord.com/api/webhooks/***"),
        ("https://api.telegram.org/bot123:AAB-c/sendMessage", "https://api.telegram.org/bot***/sendMessage"),
        ("secret whsec_MfKQ9r8GKYqrTwjU", "secret ***"),
        ('{"routing_key": "abc", "a": 1}', '{"routing_key": ***, "a": 1}'),
        ("{'password': 'two words', 'x': 1}", "{'password': ***, 'x': 1}"),
        ('Authorization: Digest username="x", response="y"', "Authorization: ***"),
        ("password=abc&user=x", "password=***&user=x"),
        ("admin_password: abc", "admin_password: ***"),
        ("GET /x?key=abc&y=1", "GET /x?key=***&y=1"),
        ("dedup_key=disk-full tokens=3", "dedup_key=disk-full tokens=3"),
    ],
)
def test_redact(text: str, shown: str) -> None:
    assert logs.redact(text) == shown


@given(st.text())
def test_one_line_whatever_it_says(text: str) -> None:
    record = logging.LogRecord("x", logging.INFO, "", 0, "%s", (text,), None)
    for formatter in (logs.TextLine(), logs.JsonLine()):
        line = formatter.format(record)
        assert line.isprintable()
        line.encode("utf-8")


def test_text(stream: io.StringIO) -> None:
    logs.setup("text", stream)
    logging.getLogger("escalade.web").info("bad name %s", "x\n2026 ERROR fake\x1b[31m\u202e")
    [line] = lines(stream)
    assert line[10] == "T" and line[19] == "." and line[23:].startswith("Z INFO escalade.web: bad name x\\n2026")
    assert line.endswith("fake\\x1b[31m\\u202e")


def test_json_with_a_trace(stream: io.StringIO) -> None:
    logs.setup("json", stream)
    token = logs.request_id.set("r-1")
    try:
        raise ValueError("postgres://me:s3cret@db/pager")
    except ValueError:
        logging.getLogger("escalade.engine").exception("Tick failed")
    finally:
        logs.request_id.reset(token)
    [line] = lines(stream)
    record = json.loads(line)
    assert {name: record[name] for name in ("level", "logger", "message", "request")} == {
        "level": "error",
        "logger": "escalade.engine",
        "message": "Tick failed",
        "request": "r-1",
    }
    assert record["trace"].endswith("ValueError: postgres://me:***@db/pager")


def test_a_trace_is_on_the_line_too(stream: io.StringIO) -> None:
    logs.setup("text", stream)
    try:
        raise ValueError("broken")
    except ValueError:
        logging.getLogger("escalade").exception("Failed")
    [line] = lines(stream)
    assert ": Failed | Traceback" in line and line.endswith("\\nValueError: broken")


def test_wrong_arguments_are_still_told(stream: io.StringIO) -> None:
    logs.setup("text", stream)
    logging.getLogger("escalade").info("one %s", "a", "b")
    assert lines(stream)[0].endswith("'one %s' with ('a', 'b')")


def test_a_long_message_is_cut_without_showing_half_a_secret(stream: io.StringIO) -> None:
    logs.setup("text", stream)
    logging.getLogger("escalade").info(
        "%s", "x" * 9_970 + " postgres://me:" + "s3cret" * 10 + "@db/pager" + "y" * 99_999
    )
    [line] = lines(stream)
    assert "s3cret" not in line and len(line) < 10_100 and line.endswith("...")


def test_redacting_long_text_does_not_hang() -> None:
    # Under a second of this thread's own time; minutes where a pattern goes back over the text at each place.
    begun = time.thread_time()
    for piece in ("a", "_", "a:", "://", "/a", "'", "token", "x=", "\\"):
        logs.redact(piece * 100_000)
    assert time.thread_time() - begun < 30


def test_libraries_are_quiet(stream: io.StringIO) -> None:
    logs.setup("text", stream)
    logging.getLogger("werkzeug").info("GET /")
    logging.getLogger("waitress.queue").warning("Task queue depth is 1")
    logging.getLogger("urllib3.connectionpool").warning("Retrying")
    assert lines(stream) == []
    logging.getLogger("waitress").error("broken")
    assert len(lines(stream)) == 1


def test_setting_up_twice_writes_once(stream: io.StringIO) -> None:
    logs.setup("text", stream)
    logs.setup("json", stream)
    logging.getLogger("escalade").warning("once")
    assert len(lines(stream)) == 1


def test_a_stream_that_broke_is_no_fault_of_the_caller(stream: io.StringIO, capsys: pytest.CaptureFixture[str]) -> None:
    logs.setup("text", stream)
    stream.close()
    logging.getLogger("escalade").warning("lost")
    assert capsys.readouterr() == ("", "")


def test_a_stream_of_ascii() -> None:
    handlers = logging.getLogger().handlers[:]
    raw = io.BytesIO()
    try:
        logs.setup("text", io.TextIOWrapper(raw, encoding="ascii"))
        logging.getLogger("escalade").warning("Müller")
        logging.getLogger().handlers[0].flush()
        assert b"M\\xfcller" in raw.getvalue()
    finally:
        logging.getLogger().handlers[:] = handlers
        logging.captureWarnings(False)
        logging.raiseExceptions = True
