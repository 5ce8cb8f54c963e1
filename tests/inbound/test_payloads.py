"""What each tool really sends, file by file: our own samples, and the shared collection where it is present."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from escalade.inbound import parse
from escalade.inbound.base import Event, Request

ROOT = Path(__file__).parents[2]
OURS = ROOT / "tests" / "data"
SHARED = ROOT.parent / "shared" / "payloads"

# curl labels plain text as a form too.
FORM = "application/x-www-form-urlencoded"
CONTENT_TYPES = {".json": "application/json", ".form": FORM, ".txt": FORM}
PROM = "https://prometheus.example.com/graph?g0.expr=up+%3D%3D+0&g0.tab=1"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a file must come to; a title that ends with … is a beginning, a key that does too."""

    action: str
    title: str
    key: str | None
    severity: str = "error"
    link: str | None = None


def looping(pod: str, key: str, action: str = "trigger") -> Wanted:
    return Wanted(action, f"Pod is crash looping. (KubePodCrashLooping, {pod}…", key, "warning", PROM)


API = looping("instance=192.0.2.14:8443, namespace=payments, pod=api-7d9f8b6c4-x2k9p", "fca01793f259e95b")
INDEX = "namespace=search, pod=index-0"
WORKER = looping("namespace=payments, pod=worker-5c6d7f8d9-9zq4r", "922d4a9a287647d5")
DOWN = "Instance db1.example.com:9100 down (InstanceDown)"
WATCHDOG = "An alert that should always be firing to certify that Alertmanager is working properly. (Watchdog)"

OUR_FILES = {
    "generic/everything.json": [
        Wanted(
            "trigger",
            "Certificate of shop.example.net expires tomorrow",
            "cert:shop.example.net",
            "warning",
            "https://ca.example.net/orders/17",
        )
    ],
    "generic/title_only.json": [Wanted("trigger", "Nightly export did not finish", None)],
    "generic/acknowledge.json": [Wanted("acknowledge", "", "cert:shop.example.net")],
    "generic/state_ok.json": [Wanted("resolve", "Boiler room too warm", "9f1c")],
    "generic/curl_form.form": [Wanted("trigger", "Tape library jammed – slot 4", "tape", "critical")],
    "generic/curl_form_close.form": [Wanted("resolve", "Tape library jammed", "tape")],
    "generic/cron_output.txt": [Wanted("trigger", "cron: /usr/local/bin/rotate exited with 2", None)],
    "alertmanager/one_of_two_resolved.json": [
        Wanted(
            "resolve",
            "Disk fills up within a day (DiskWillFill, instance=nas1, device=sda1)",
            "00aa11bb22cc33dd",
            link="https://prom.example.net/graph?g0.expr=a",
        ),
        Wanted(
            "trigger",
            "Disk fills up within a day (DiskWillFill, instance=nas2, device=sdb1)",
            "44ee55ff66001122",
            link="https://am.example.net",
        ),
    ],
    "alertmanager/bare.json": [
        Wanted("trigger", "ProbeFailed (instance=https://shop.example.net)", "labels:…"),
    ],
    "alertmanager/always_firing.json": [
        Wanted("trigger", "Fires for ever X-Header: no (Heartbeat)", "abad1dea00000000", "info"),
    ],
}

SHARED_FILES = {
    "generic/curl_full.json": [
        Wanted("trigger", "Disk full on web1", "web1-disk", "critical", "https://grafana.example.com/d/abc")
    ],
    "generic/curl_minimal.json": [Wanted("trigger", "Backup failed on nas", None)],
    "generic/curl_resolve.json": [Wanted("resolve", "", "web1-disk")],
    "generic/form_encoded.form": [Wanted("trigger", "Disk full on web1", None, "warning")],
    "generic/goalert_generic_api.form": [Wanted("resolve", "test1", "k1")],
    "generic/oncall_formatted_webhook.json": [
        Wanted(
            "trigger",
            "TestAlert: The whole system is down",
            "08d6891a-835c-e661-39fa-96b6a9e26552",
            link="https://en.wikipedia.org/wiki/Downtime",
        )
    ],
    "generic/plain_text.txt": [Wanted("trigger", "disk full on web1", None)],
    "alertmanager/firing_group_of_3.json": [API, looping(INDEX, "d274371f937df0bb"), WORKER],
    "alertmanager/firing_single.json": [Wanted("trigger", DOWN, "1eeb778b84753ad0", "critical", PROM)],
    "alertmanager/group_by_all_labels.json": [
        Wanted("trigger", "cache1 target is down (TargetDown)", "0a7306b4dc7d6e6a", "warning", PROM)
    ],
    "alertmanager/hostile_strings.json": [
        Wanted("trigger", "'; DROP TABLE incidents; -- <img…", "db7925323f1fa293", "critical", PROM)
    ],
    "alertmanager/minimal_no_groupkey_no_version.json": [
        Wanted("trigger", "My alert summary (TestAlert)", "labels:…", link="http://my.url")
    ],
    "alertmanager/mixed_2_firing_1_resolved.json": [
        API,
        looping(INDEX, "d274371f937df0bb", "resolve"),
        WORKER,
    ],
    "alertmanager/no_annotations_no_severity_empty_generatorurl.json": [
        Wanted(
            "trigger",
            "NoAnnotations (cluster=kube-prod-1)",
            "489f8fcff20a58c8",
            link="https://alertmanager.example.com",
        )
    ],
    "alertmanager/resolved_single.json": [Wanted("resolve", DOWN, "1eeb778b84753ad0", "critical", PROM)],
    "alertmanager/truncated_max_alerts_2_of_7.json": [
        Wanted("trigger", "Disk full on web1 (DiskFull)", "b3f06dcb3251e626", "warning", PROM),
        Wanted("trigger", "Disk full on web2 (DiskFull)", "b4ce26961e103791", "warning", PROM),
    ],
    "alertmanager/unicode.json": [
        Wanted(
            "trigger",
            "🔥 ディスク使用率が95%を超えました — «/var» Größe ≥ 95 % (ディスク使用率警告)",
            "0a5d59711365e2a8",
            "critical",
            PROM,
        )
    ],
    "alertmanager/v4_runbook_template_in_annotation.json": [
        Wanted(
            "trigger",
            "No things for over 10 minutes (thing_dead)",
            "labels:…",
            "critical",
            "http://somehost:9090/graph?g0.expr=sum%28irate%28messages_received_total%5B5m%5D%29%29+%3D%3D+0&g0.tab=0",
        )
    ],
    "alertmanager/very_long_description.json": [
        Wanted("trigger", "Query of death xxxx…", "3aac81783445d47c", "warning", PROM)
    ],
    "alertmanager/watchdog_severity_none.json": [Wanted("trigger", WATCHDOG, "9dd6a6abe589e521", "info", PROM)],
}


def read(root: Path, name: str) -> list[Event]:
    path = root / name
    if not path.exists():
        pytest.skip(f"{path} is not here; the shared payloads lie beside the project while it is developed")
    request = Request(path.read_bytes(), CONTENT_TYPES[path.suffix])
    return parse(path.parent.name, request)


def shortened(value: str | None, like: str | None) -> str | None:
    """The value cut to the length of the expectation, where that is only a beginning."""
    return value[: len(like) - 1] + "…" if value and like and like.endswith("…") else value


def check(events: list[Event], wanted: list[Wanted]) -> None:
    found = [
        Wanted(
            event.action,
            str(shortened(event.title, want.title)),
            shortened(event.dedup_key, want.key),
            event.severity,
            event.link,
        )
        for event, want in zip(events, wanted, strict=True)
    ]
    assert found == wanted
    assert not any(event.sanitized for event in events)


@pytest.mark.parametrize("name", OUR_FILES)
def test_our_sample_comes_to_what_it_says(name: str) -> None:
    check(read(OURS, name), OUR_FILES[name])


@pytest.mark.parametrize("name", SHARED_FILES)
def test_shared_sample_comes_to_what_its_table_says(name: str) -> None:
    check(read(SHARED, name), SHARED_FILES[name])


@pytest.mark.parametrize(("root", "files"), [(OURS, OUR_FILES), (SHARED, SHARED_FILES)], ids=["ours", "shared"])
@pytest.mark.parametrize("kind", ["generic", "alertmanager"])
def test_no_sample_is_left_out(root: Path, files: dict[str, list[Wanted]], kind: str) -> None:
    if not (root / kind).exists():
        pytest.skip(f"{root / kind} is not here")
    present = {f"{kind}/{path.name}" for path in (root / kind).iterdir() if path.is_file()}
    assert present == {name for name in files if name.startswith(kind)}


def test_k015_a_key_is_the_same_from_trigger_to_resolve_and_to_the_next_trigger() -> None:
    keys = [
        read(SHARED, f"alertmanager/{name}.json")[0].dedup_key
        for name in ("firing_single", "resolved_single", "firing_single")
    ]
    assert len(set(keys)) == 1


def test_k008_every_alert_of_a_group_has_its_own_key() -> None:
    events = read(SHARED, "alertmanager/firing_group_of_3.json")
    assert len({event.dedup_key for event in events}) == 3
    assert len({event.title for event in events}) == 3


def test_hostile_strings_stay_text_and_their_lines_stay_in_the_details() -> None:
    [event] = read(SHARED, "alertmanager/hostile_strings.json")
    assert "\n" not in event.title and "\r" not in event.details
    assert "line1\nSubject: injected\n\nbody" in event.details
    assert "runbook_url: javascript:alert(1)" in event.details


def test_a_long_description_is_kept_and_the_whole_summary_with_it() -> None:
    [event] = read(SHARED, "alertmanager/very_long_description.json")
    assert event.title.endswith("… (cut) (VeryLong)")
    assert "line 179: SELECT" in event.details and "instance: long.example.com" in event.details


def test_the_number_of_alerts_left_out_is_kept() -> None:
    [first, _] = read(SHARED, "alertmanager/truncated_max_alerts_2_of_7.json")
    assert first.group is not None and (first.group["truncatedAlerts"], first.group["size"]) == (5, 2)


def test_the_objects_and_lines_of_our_samples_are_the_details() -> None:
    assert '"days_left": 1' in read(OURS, "generic/everything.json")[0].details
    assert read(OURS, "generic/curl_form.form")[0].details == "two\nlines"
    assert read(OURS, "generic/cron_output.txt")[0].details.endswith("\nmv: cannot stat /var/log/old")
