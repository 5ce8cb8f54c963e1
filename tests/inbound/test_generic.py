"""Alerts from anything that can POST."""

import json
from dataclasses import asdict
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from escalade.errors import Invalid, Refusal, Unreadable
from escalade.inbound import parse
from escalade.inbound.base import Event, Request

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"


def read(body: bytes | str, content_type: str = "", query: tuple[tuple[str, str], ...] = ()) -> Event:
    raw = body if isinstance(body, bytes) else body.encode()
    [event] = parse("generic", Request(raw, content_type, query=query))
    return event


def send(**fields: Any) -> Event:
    return read(json.dumps(fields), JSON)


def refused(body: bytes | str, content_type: str = JSON) -> Invalid:
    with pytest.raises(Invalid) as caught:
        read(body, content_type)
    return caught.value


def test_all_fields_of_a_json_alert() -> None:
    event = send(
        title="Queue stuck",
        details="42 jobs",
        severity="warning",
        action="trigger",
        dedup_key="q",
        link="https://example.com/q",
    )
    assert event == Event("trigger", "Queue stuck", "42 jobs", "warning", "q", "https://example.com/q")


@pytest.mark.parametrize("name", ["title", "summary", "message"])
def test_each_name_of_the_title(name: str) -> None:
    assert send(**{name: "Queue stuck"}) == Event("trigger", "Queue stuck")


@pytest.mark.parametrize("name", ["details", "description"])
def test_each_name_of_the_details(name: str) -> None:
    assert send(title="t", **{name: "more"}).details == "more"


@pytest.mark.parametrize("name", ["dedup_key", "dedup", "alert_uid"])
def test_k016_each_name_of_the_key_which_is_kept_verbatim(name: str) -> None:
    assert send(title="t", **{name: " Key/1\t"}).dedup_key == " Key/1\t"


@pytest.mark.parametrize("name", ["link", "link_to_upstream_details"])
def test_each_name_of_the_link(name: str) -> None:
    assert send(title="t", **{name: "https://example.com/"}).link == "https://example.com/"
    assert send(title="t", **{name: "javascript:alert(1)"}).link is None


def test_the_better_name_wins_and_a_message_left_over_is_the_details() -> None:
    assert send(message="M", title="T") == Event("trigger", "T", "M")
    assert send(message="M", title="T", description="D") == Event("trigger", "T", "D")
    assert send(message="M", title=None, summary="  ") == Event("trigger", "M")


def test_an_alert_with_details_alone_is_titled_by_their_first_line() -> None:
    assert send(details="\x01\nDisk full\nsda1") == Event("trigger", "Disk full", "Disk full\nsda1")
    assert send(details="Disk full") == Event("trigger", "Disk full")


@pytest.mark.parametrize(
    ("word", "severity"),
    [
        *[("critical", "critical"), ("error", "error"), ("warning", "warning"), ("info", "info")],
        *[(" Critical ", "critical"), ("WARNING", "warning"), ("fatal", "error"), ("", "error")],
        *[(None, "error"), (1, "error"), (["critical"], "error"), ({"a": 1}, "error")],
    ],
)
def test_k001_an_unknown_severity_is_error(word: object, severity: str) -> None:
    assert send(title="t", severity=word).severity == severity
    assert send(title="t").severity == "error"


@pytest.mark.parametrize(
    ("word", "action"),
    [
        *[("trigger", "trigger"), ("acknowledge", "acknowledge"), ("ack", "acknowledge"), ("ACK", "acknowledge")],
        *[("resolve", "resolve"), ("resolved", "resolve"), ("close", "resolve"), ("closed", "resolve")],
        *[("ok", "resolve"), (" OK ", "resolve"), ("alerting", "trigger"), ("whatever", "trigger")],
        *[("", "trigger"), (None, "trigger"), (0, "trigger"), ([], "trigger")],
    ],
)
def test_k001_an_unknown_action_is_trigger(word: object, action: str) -> None:
    assert send(title="t", dedup_key="k", action=word).action == action
    assert send(title="t", dedup_key="k", state=word).action == action


def test_the_action_goes_before_the_state() -> None:
    assert send(title="t", dedup_key="k", action="trigger", state="ok").action == "trigger"


@pytest.mark.parametrize("action", ["acknowledge", "resolve", "ok"])
@pytest.mark.parametrize("key", [None, "", "  "])
def test_without_a_key_nothing_can_be_acknowledged_or_resolved(action: str, key: str | None) -> None:
    refusal = refused(json.dumps({"title": "t", "action": action, "dedup_key": key}))
    assert refusal.field == "dedup_key" and not isinstance(refusal, Unreadable)


def test_a_trigger_without_a_key_has_none() -> None:
    assert send(title="t").dedup_key is None
    assert send(title="t", dedup_key="").dedup_key is None


def test_k006_k014_a_resolve_needs_nothing_but_the_key() -> None:
    assert send(dedup_key="k", action="resolve") == Event("resolve", dedup_key="k")
    other = send(dedup_key="k", action="resolve", title=["odd"], details={"all": "new"}, severity="info", x=None)
    assert (other.action, other.dedup_key) == ("resolve", "k")


def test_k009_the_key_does_not_depend_on_the_summary() -> None:
    assert send(summary="one", dedup_key="k").dedup_key == send(summary="other", dedup_key="k").dedup_key


def test_k010_without_a_key_none_is_made_from_the_title() -> None:
    assert send(title="same", host="a").dedup_key is None is send(title="same", host="b").dedup_key


@pytest.mark.parametrize(
    "body",
    [
        *["[]", '[{"title": "x"}]', '"text"', "42", "null", "true", "{}", '{"title": null}', '{"title": {"a": null}}'],
        *['{"title": ["x"]}', '{"title": "", "summary": " ", "message": "\\u0001"}', '{"a": {"b": [null]}}'],
        *['{"details": {"a": null}}', '{"severity": "critical"}', ""],
    ],
)
def test_k003_a_body_of_another_shape_is_refused_and_the_title_named(body: str) -> None:
    refusal = refused(body)
    assert refusal.field == "title" and not isinstance(refusal, Unreadable)
    if not body.startswith("{"):
        assert refused(body, FORM).field == "title"


def test_k003_a_key_that_is_no_text_is_refused_under_its_own_name() -> None:
    assert refused('{"title": "t", "alert_uid": {"a": 1}}').field == "alert_uid"
    assert refused('{"title": "t", "dedup": [1]}').field == "dedup"


@pytest.mark.parametrize("body", ['{"title": ', '{"title": NaN}', '{"title": 1e999}', "title=x", "{'title': 'x'}"])
def test_bad_json_is_unreadable(body: str) -> None:
    assert isinstance(refused(body), Unreadable)


@pytest.mark.parametrize(("value", "title"), [(7, "7"), (1.5, "1.5"), (True, "true"), (0, "0"), (False, "false")])
def test_numbers_and_booleans_read_as_text(value: object, title: str) -> None:
    event = send(title=value, dedup_key=value, details=value if value else "d")
    assert (event.title, event.dedup_key) == (title, title)


def test_details_may_be_an_object_or_a_list() -> None:
    assert send(title="t", details={"host": "web1"}).details == '{\n  "host": "web1"\n}'
    assert send(title="t", details=[1]).details == "[\n  1\n]"
    assert send(title="t", details={}, description="D").details == "D"


def test_a_title_is_one_line_and_the_details_keep_theirs() -> None:
    event = send(title="Disk full\r\nBcc: eve@example.com", details="a\r\nb")
    assert (event.title, event.details) == ("Disk full Bcc: eve@example.com", "a\nb")


def test_a_title_that_must_be_cut_is_whole_in_the_details() -> None:
    event = send(title="x" * 3_000)
    assert event.title.endswith("… (cut)") and event.details == "x" * 3_000
    assert send(title="x" * 3_000, details="d").details == "d"


@pytest.mark.parametrize("content_type", ["application/json; charset=utf-8", "Application/JSON", "application/x+json"])
def test_labels_of_json(content_type: str) -> None:
    assert read('{"title": "t"}', content_type).title == "t"


@pytest.mark.parametrize("content_type", ["", FORM, "text/plain", "application/octet-stream"])
def test_json_under_another_label_is_json_all_the_same(content_type: str) -> None:
    assert read('{"title": "t", "severity": "info"}', content_type) == Event("trigger", "t", severity="info")


def test_a_form() -> None:
    body = urlencode({"title": "Größe & mehr", "severity": "info", "dedup": "k", "action": "close"})
    assert read(body, FORM) == Event("resolve", "Größe & mehr", severity="info", dedup_key="k")
    assert read("title=Disk full on web1&severity=warning", FORM).title == "Disk full on web1"
    assert refused("severity=info", FORM).field == "title"
    assert refused("foo=bar", FORM).field == "title"


def test_a_multipart_form() -> None:
    part = '--B0\r\nContent-Disposition: form-data; name="{}"\r\n\r\n{}\r\n'
    body = part.format("title", "Disk full") + part.format("details", "a\r\nb") + "--B0--\r\n"
    assert read(body, 'multipart/form-data; boundary="B0"') == Event("trigger", "Disk full", "a\nb")


@pytest.mark.parametrize("content_type", ["", FORM, "text/plain; charset=utf-8"])
@pytest.mark.parametrize(
    "text", ["disk full on web1", "[FIRING] disk full", "disk usage=97% on web1", "100% of a & b", "Größe"]
)
def test_plain_text_is_the_title(content_type: str, text: str) -> None:
    assert read(text + "\n", content_type) == Event("trigger", text)


def test_plain_text_of_several_lines() -> None:
    assert read("backup failed\nno space left\n", FORM) == Event(
        "trigger", "backup failed", "backup failed\nno space left"
    )
    assert read("{oops", "text/plain").title == "{oops"
    assert isinstance(refused("{oops", FORM), Unreadable)


def test_the_query_string_alone_or_beside_a_body() -> None:
    query = (("title", "Backup"), ("severity", "warning"), ("dedup", "k"))
    assert read("", query=query) == Event("trigger", "Backup", severity="warning", dedup_key="k")
    assert read('{"message": "M"}', JSON, query) == Event("trigger", "M", "", "warning", "k")
    assert read("tar: no space", FORM, query) == Event("trigger", "Backup", "tar: no space", "warning", "k")
    assert read("tar: no space", FORM, (("message", "Backup"),)).details == "tar: no space"


def test_bytes_that_are_not_utf8_still_page() -> None:
    for body, content_type in [(b'{"title": "Gr\xf6\xdfe"}', JSON), (b"title=Gr%F6%DFe", FORM), (b"Gr\xf6\xdfe", "")]:
        event = read(body, content_type)
        assert (event.title, event.sanitized) == ("Gr\ufffd\ufffde", True)


def test_nul_and_lone_surrogates_still_page() -> None:
    event = send(title="a\x00b", details={"c\ud800": "\x00"}, dedup_key="k\x00")
    assert event.sanitized and event.title == "a\ufffdb" and event.details == '{\n  "c\ufffd": "\ufffd"\n}'
    assert event.dedup_key is not None and event.dedup_key.startswith("k\ufffd")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
NAMES = st.sampled_from(
    "title summary message details description severity action state dedup_key alert_uid link".split()
)
BODIES = st.one_of(
    st.binary(),
    st.dictionaries(NAMES, VALUES).map(lambda fields: json.dumps(fields).encode()),
    st.dictionaries(NAMES, st.binary()).map(lambda fields: urlencode(fields).encode()),
    st.text('--B\r\n; name="title[]{}=&%0F').map(str.encode),
)
LABELS = st.sampled_from(["", JSON, FORM, "text/plain", "multipart/form-data; boundary=B", "x"]) | st.text()


@given(BODIES, LABELS, st.lists(st.tuples(NAMES, st.text(st.characters()))))
def test_no_bytes_whatever_raise_anything_but_a_refusal(
    body: bytes, content_type: str, query: list[tuple[str, str]]
) -> None:
    try:
        [event] = parse("generic", Request(body, content_type, query=tuple(query)))
    except Refusal as refusal:
        refusal.message.encode()
        return
    written = json.dumps(asdict(event), ensure_ascii=False, allow_nan=False)
    assert "\x00" not in "".join(str(value) for value in asdict(event).values()) and written.encode()
    assert event.action in ("trigger", "acknowledge", "resolve")
    assert event.title if event.action == "trigger" else event.dedup_key


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(Invalid) as caught:
        parse("carrier-pigeon", Request(b""))
    assert caught.value.field == "kind"


@pytest.mark.parametrize("name", ["action", "state", "status"])
@pytest.mark.parametrize(("word", "action"), [("resolved", "resolve"), ("ok", "resolve"), ("firing", "trigger")])
def test_a_state_under_another_name_is_understood(name: str, word: str, action: str) -> None:
    body = json.dumps({"title": "Disk full", "dedup_key": "web1", name: word}).encode()
    [event] = parse("generic", Request(body, "application/json"))
    assert event.action == action


def test_an_action_counts_before_a_status() -> None:
    body = json.dumps({"title": "Disk full", "dedup_key": "web1", "action": "trigger", "status": "resolved"}).encode()
    [event] = parse("generic", Request(body, "application/json"))
    assert event.action == "trigger"


def test_a_body_of_alertmanager_at_a_generic_integration_is_told_apart() -> None:
    body = b'{"version": "4", "status": "firing", "alerts": [{"labels": {"alertname": "HighLoad"}}]}'
    assert refused(body).message.endswith("This looks like Alertmanager's: give the integration that kind.")
