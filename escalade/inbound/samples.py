"""An alert to try each tool's integration with, as the tool would send it."""

import json
from typing import Any

_GENERIC: dict[str, Any] = {
    "title": "A test alert",
    "severity": "critical",
    "dedup_key": "test-1",
    "details": "Sent by hand from Setup.",
}
_ALERTMANAGER: dict[str, Any] = {
    "version": "4",
    "status": "firing",
    "alerts": [
        {
            "status": "firing",
            "labels": {"alertname": "TestAlert", "severity": "critical", "instance": "test-1"},
            "annotations": {"summary": "A test alert, sent by hand from Setup"},
        }
    ],
}
SAMPLES: dict[str, str] = {
    "generic": json.dumps(_GENERIC),
    "alertmanager": json.dumps(_ALERTMANAGER),
}


def sample(kind: str) -> str:
    """The body to send; of a tool that has none of its own, the generic one."""
    return SAMPLES.get(kind, SAMPLES["generic"])
