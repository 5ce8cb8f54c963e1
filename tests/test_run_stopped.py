"""A run of the tests that is told to stop leaves no Postgres behind, and ignores no signal that its programs need."""

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest

from tests.commands import ROOT, environment
from tests.receiver import wait_for

SLOW = """
import os, signal, sys, time
from pathlib import Path

def test_slow():
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    (Path(__file__).parent / "begun").touch()
    time.sleep(60)
"""


@pytest.mark.parametrize("processes", ["0", "1"])
def test_a_run_that_is_told_to_stop_stops_its_postgres(processes: str) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="stopped-") as made:
        folder = Path(made)
        folder.chmod(0o755)
        (folder / "test_slow.py").write_text(SLOW)
        # As a shell starts what it puts in the background: with SIGINT ignored.
        line = f"trap '' INT; exec {sys.executable} -m pytest -p tests.conftest -n {processes} {folder}/test_slow.py"
        run = subprocess.Popen(
            ["sh", "-c", line], cwd=ROOT, env=environment(TMPDIR=made), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        wait_for(lambda: (folder / "begun").exists(), 60, "the slow test")
        assert servers(folder)
        run.send_signal(signal.SIGTERM)
        printed, _ = run.communicate(timeout=60)
        assert run.returncode == 128 + signal.SIGTERM, printed.decode()
        assert servers(folder) == []
        assert list(folder.glob("escalade-test-*")) == []


def servers(folder: Path) -> list[int]:
    """The processes that work below this folder."""
    found = []
    for process in psutil.process_iter(["cwd"]):
        if (process.info["cwd"] or "").startswith(f"{folder}/"):
            found.append(process.pid)
    return found
