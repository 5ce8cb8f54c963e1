"""The shared collection of what tools send, file by file. It lies beside the project while that is developed."""

import pytest

from tests.commands import ROOT
from tests.payloads import Wanted, check, present, read

SHARED = ROOT.parent / "shared" / "payloads"

if not SHARED.exists():
    pytest.skip("the shared payloads are not beside this clone (../shared/payloads)", allow_module_level=True)

PROM = "https://prometheus.example.com/graph?g0.expr=up+%3D%3D+0&g0.tab=1"


def looping(pod: str, key: str, action: str = "trigger") -> Wanted:
    return Wanted(action, f"Pod is crash looping. (KubePodCrashLooping, {pod}…", key, "warning", PROM)


API = looping("instance=192.0.2.14:8443, namespace=payments, pod=api-7d9f8b6c4-x2k9p", "fca01793f259e95b")
INDEX = "namespace=search, pod=index-0"
WORKER = looping("namespace=payments, pod=worker-5c6d7f8d9-9zq4r", "922d4a9a287647d5")
DOWN = "Instance db1.example.com:9100 down (InstanceDown)"
WATCHDOG = "An alert that should always be firing to certify that Alertmanager is working properly. (Watchdog)"

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


@pytest.mark.parametrize("name", SHARED_FILES)
def test_shared_sample_comes_to_what_its_table_says(name: str) -> None:
    check(read(SHARED, name), SHARED_FILES[name])


@pytest.mark.parametrize("kind", ["generic", "alertmanager"])
def test_no_shared_sample_is_left_out(kind: str) -> None:
    assert present(SHARED, kind) == {name for name in SHARED_FILES if name.startswith(kind)}


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
