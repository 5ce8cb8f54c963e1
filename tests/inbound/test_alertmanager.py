"""Alertmanager's webhook: one event per alert."""

import json
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from escalade.errors import Invalid, Refusal, Unreadable
from escalade.inbound import alertmanager, parse
from escalade.inbound.base import Event, Request

LABELS = {"alertname": "LagHigh", "instance": "pg2", "severity": "warning"}


def alert(**changes: Any) -> dict[str, Any]:
    return {"status": "firing", "labels": LABELS, "annotations": {"summary": "Lag"}, "fingerprint": "f1"} | changes


def read(*alerts: Any, **group: Any) -> list[Event]:
    body = {"status": "firing", "alerts": list(alerts), **group}
    return parse("alertmanager", Request(json.dumps(body).encode(), "application/json"))


def refused(body: Any) -> Invalid:
    with pytest.raises(Invalid) as caught:
        parse("alertmanager", Request(json.dumps(body).encode(), "application/json"))
    return caught.value


def test_an_alert() -> None:
    [event] = read(
        alert(
            annotations={"summary": "Lag on pg2", "description": "90 s", "runbook_url": "https://example.com/lag"},
            generatorURL="https://prom.example.com/graph",
            startsAt="2026-01-07T08:00:00Z",
        )
    )
    assert event == Event(
        action="trigger",
        title="Lag on pg2 (LagHigh)",
        details="90 s\n\nrunbook_url: https://example.com/lag\n\n"
        "Labels:\nalertname: LagHigh\ninstance: pg2\nseverity: warning\n\nStarted: 2026-01-07T08:00:00Z",
        severity="warning",
        dedup_key="f1",
        link="https://prom.example.com/graph",
        group={"size": 1},
    )


@pytest.mark.parametrize(
    ("word", "severity"),
    [
        *[("critical", "critical"), ("error", "error"), ("warning", "warning"), ("info", "info"), ("none", "info")],
        *[("Critical", "critical"), ("page", "error"), ("", "error"), (None, "error"), (3, "error"), ([], "error")],
    ],
)
def test_k001_an_unknown_severity_is_error(word: object, severity: str) -> None:
    assert read(alert(labels=LABELS | {"severity": word}))[0].severity == severity
    assert read(alert(labels={"alertname": "LagHigh"}))[0].severity == "error"


def test_k001_an_unknown_or_missing_status_is_a_trigger() -> None:
    assert [event.action for event in read(alert(status="odd"), alert(status=None), alert(status={"a": 1}))] == [
        "trigger"
    ] * 3


def test_a_resolved_alert_in_a_firing_group_resolves_its_own_and_the_others_stay() -> None:
    events = read(alert(), alert(status="resolved", fingerprint="f2"), alert(fingerprint="f3"))
    assert [(event.action, event.dedup_key) for event in events] == [
        ("trigger", "f1"),
        ("resolve", "f2"),
        ("trigger", "f3"),
    ]
    assert read({"labels": LABELS}, status="resolved")[0].action == "resolve"


@pytest.mark.parametrize("body", [[], ["x"], "x", 7, None, True, {}, {"alerts": None}, {"alerts": {}}, {"alerts": []}])
def test_k003_a_body_of_another_shape_is_refused_and_alerts_named(body: object) -> None:
    assert refused(body).field == "alerts"


@pytest.mark.parametrize("body", [b"", b"{", b"title=x", b'{"alerts": NaN}', b"[" * 20_000])
def test_k003_bad_json_is_unreadable(body: bytes) -> None:
    with pytest.raises(Unreadable):
        parse("alertmanager", Request(body, "application/json"))


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        *[("x", ""), (None, ""), ([], ""), (alert(labels=[]), ".labels"), (alert(labels="x"), ".labels")],
        *[({}, ".labels"), ({"labels": {}, "fingerprint": ""}, ".labels"), (alert(annotations=7), ".annotations")],
        *[(alert(fingerprint={"a": 1}), ".fingerprint"), (alert(fingerprint=[1]), ".fingerprint")],
    ],
)
def test_k003_what_is_wrong_inside_an_alert_is_named(bad: object, field: str) -> None:
    assert refused({"alerts": [alert(), alert(), bad]}).field == f"alerts[2]{field}"


def test_k006_k014_a_resolve_is_known_by_its_fingerprint_alone() -> None:
    [event] = read(alert(status="resolved", labels={"severity": "info", "new": "label"}, annotations=None))
    assert (event.action, event.dedup_key) == ("resolve", "f1")


def test_k008_the_same_summary_with_other_fingerprints_or_labels_stays_apart() -> None:
    one, two = read(alert(fingerprint="f1"), alert(fingerprint="f2"))
    assert one.title == two.title and one.dedup_key != two.dedup_key
    one, two = read(alert(fingerprint=None), alert(fingerprint=None, labels=LABELS | {"instance": "pg3"}))
    assert one.title == two.title and one.dedup_key != two.dedup_key


def test_k009_the_key_does_not_depend_on_the_annotations() -> None:
    one, two = read(alert(fingerprint=""), alert(fingerprint="", annotations={"summary": "Other"}))
    assert one.dedup_key == two.dedup_key


@given(st.dictionaries(st.text(), st.text(), min_size=1), st.dictionaries(st.text(), st.text(), min_size=1))
def test_k010_without_a_fingerprint_the_labels_are_the_key_in_any_order(
    one: dict[str, str], two: dict[str, str]
) -> None:
    reverse = dict(reversed(one.items()))
    keys = [event.dedup_key for event in read({"labels": one}, {"labels": reverse}, {"labels": two})]
    assert str(keys[0]).startswith("labels:") and keys[0] == keys[1]
    assert (keys[0] == keys[2]) == (one == two)


def test_k016_a_fingerprint_is_kept_verbatim() -> None:
    for fingerprint in ("0a5d59711365e2a8", " A/b=c ", "ключ"):
        assert read(alert(fingerprint=fingerprint))[0].dedup_key == fingerprint
    assert read(alert(fingerprint=12))[0].dedup_key == "12"


def test_a_title_without_summary_is_the_name_and_the_labels_that_tell() -> None:
    labels = {
        "alertname": "Down",
        "severity": "info",
        "zone": "b",
        "job": "node",
        "instance": "web1",
        "a": "1",
        "c": "2",
    }
    assert read(alert(labels=labels, annotations={}))[0].title == "Down (instance=web1, job=node, a=1, c=2)"
    common = {"alertname": "Down", "job": "node", "a": "1", "c": "2"}
    assert read(alert(labels=labels, annotations={}), commonLabels=common)[0].title == "Down (instance=web1, zone=b)"
    assert read(alert(labels={"alertname": "Down"}, annotations={}))[0].title == "Down"
    assert read(alert(labels={"pod": "x"}, annotations={"summary": " \x01"}))[0].title == "Alert (pod=x)"
    assert read(alert(labels={}, annotations={}))[0].title == "Alert"


def test_alerts_that_share_a_summary_are_told_apart_by_their_labels() -> None:
    alerts = [alert(labels=LABELS | {"instance": name}, fingerprint=name) for name in ("pg2", "pg3")]
    group = {"commonLabels": {"alertname": "LagHigh"}, "commonAnnotations": {"summary": "Lag"}}
    assert [event.title for event in read(*alerts, **group)] == [
        "Lag (LagHigh, instance=pg2)",
        "Lag (LagHigh, instance=pg3)",
    ]
    assert read(alerts[0], **group)[0].title == "Lag (LagHigh)"


def test_a_long_summary_leaves_room_for_the_name_and_is_whole_in_the_details() -> None:
    [event] = read(alert(annotations={"summary": "s" * 1_200, "description": "d" * 30_000}))
    assert event.title.endswith("… (cut) (LagHigh)") and len(event.title) < 1_000
    assert "s" * 1_200 in event.details and "… (cut)" in event.details and "instance: pg2" in event.details


@pytest.mark.parametrize("bad", ["", None, "javascript:alert(1)", 7, "/graph"])
def test_without_a_good_generator_link_the_link_is_alertmanagers(bad: object) -> None:
    assert read(alert(generatorURL=bad), externalURL="https://am.example.com")[0].link == "https://am.example.com"
    assert read(alert(generatorURL=bad), externalURL=bad)[0].link is None


def test_the_group_is_kept_for_display() -> None:
    group = {
        "groupKey": '{}:{alertname="LagHigh"}',
        "groupLabels": {"alertname": "LagHigh"},
        "commonLabels": LABELS,
        "receiver": "ops",
        "externalURL": "https://am.example.com",
        "truncatedAlerts": 5,
    }
    assert [event.group for event in read(alert(), alert(), **group)] == [group | {"size": 2}] * 2


def test_a_group_of_another_shape_costs_no_page() -> None:
    [event] = read(
        alert(),
        groupKey=None,
        groupLabels=[],
        commonLabels="x",
        receiver=7,
        externalURL="javascript:x",
        truncatedAlerts="many",
        commonAnnotations=3,
    )
    assert event.group == {"receiver": "7", "size": 1}


def test_many_alerts_do_not_multiply_a_huge_group(monkeypatch: pytest.MonkeyPatch) -> None:
    cut = []
    group = alertmanager._group
    monkeypatch.setattr(alertmanager, "_group", lambda *given: cut.append(group(*given)) or cut[-1])
    events = read(*[{"fingerprint": str(n)} for n in range(4_000)], commonLabels={str(n): "v" * 900 for n in range(99)})
    assert len(events) == 4_000 and len(cut) == 1, "the group is cut to size once, not for each alert"
    assert len(json.dumps(cut[0])) < 10_000
    assert all(event.group == cut[0] for event in events)


def test_bad_bytes_still_page_and_only_the_alert_that_has_them_is_marked() -> None:
    one, two = read(alert(annotations={"summary": "a\x00b\ud800"}), alert(fingerprint="f2"))
    assert (one.title, one.sanitized, two.sanitized) == ("a\ufffdb\ufffd (LagHigh)", True, False)


def test_a_title_is_one_line_whatever_the_labels_hold() -> None:
    [event] = read(alert(labels={"alertname": "A\r\nBcc: eve", "pod": "x\ny"}, annotations={}))
    assert event.title == "A Bcc: eve (pod=x y)"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
ALERTS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            **{name: VALUES for name in ("status", "fingerprint", "generatorURL", "startsAt")},
            "labels": st.dictionaries(st.sampled_from(["alertname", "severity", "pod"]) | st.text(), VALUES),
            "annotations": st.none() | st.dictionaries(st.sampled_from(["summary", "description"]), VALUES),
        },
    )
    | VALUES
)
GROUPS = st.fixed_dictionaries(
    {"alerts": ALERTS},
    optional={
        name: VALUES
        for name in "status groupKey groupLabels commonLabels commonAnnotations receiver externalURL".split()
    },
)


@given(st.binary() | st.one_of(GROUPS, VALUES).map(lambda body: json.dumps(body).encode()))
def test_no_bytes_whatever_raise_anything_but_a_refusal(body: bytes) -> None:
    try:
        events = parse("alertmanager", Request(body, "application/json"))
    except Refusal as refusal:
        refusal.message.encode()
        return
    for event in events:
        assert json.dumps(asdict(event), ensure_ascii=False, allow_nan=False).encode()
        assert "\\u0000" not in json.dumps([event.title, event.details, event.dedup_key, event.group]).replace(
            "\\\\", ""
        )
        assert event.title and event.dedup_key
