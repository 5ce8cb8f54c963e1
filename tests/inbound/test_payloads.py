"""What each tool really sends, file by file: our own samples."""

import pytest

from tests.commands import ROOT
from tests.payloads import Wanted, check, present, read

OURS = ROOT / "tests" / "data"

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


@pytest.mark.parametrize("name", OUR_FILES)
def test_our_sample_comes_to_what_it_says(name: str) -> None:
    check(read(OURS, name), OUR_FILES[name])


@pytest.mark.parametrize("kind", ["generic", "alertmanager"])
def test_no_sample_is_left_out(kind: str) -> None:
    assert present(OURS, kind) == {name for name in OUR_FILES if name.startswith(kind)}


def test_the_objects_and_lines_of_our_samples_are_the_details() -> None:
    assert '"days_left": 1' in read(OURS, "generic/everything.json")[0].details
    assert read(OURS, "generic/curl_form.form")[0].details == "two\nlines"
    assert read(OURS, "generic/cron_output.txt")[0].details.endswith("\nmv: cannot stat /var/log/old")
