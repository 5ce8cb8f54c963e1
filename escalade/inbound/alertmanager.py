"""Prometheus Alertmanager's webhook: one event per alert, so that each opens and resolves its own incident.

Groups come and go as alerts join and leave them; a fingerprint stays with its alert. The group is kept for display.
"""

import json
from typing import Any

from escalade import clean
from escalade.errors import Invalid
from escalade.inbound import generic
from escalade.inbound.base import Event, Request

# What tells two alerts of one rule apart at a glance; other labels follow in alphabetical order.
TELLING = ("instance", "namespace", "pod", "service", "host", "node", "device", "mountpoint", "container", "job")
TELLING_LIMIT = 4
# Each incident keeps the group it came in, so a body full of alerts must not multiply a huge group.
GROUP_LABELS = 30
GROUP_TEXT = 200
# Leaves room for the alert's name in the title, and for the labels in the details.
SUMMARY_LIMIT = 800
DESCRIPTION_LIMIT = 17_000

Labels = dict[str, str]


def parse(request: Request) -> list[Event]:
    """One event for each alert in the body, in its order."""
    body = clean.json_body(request.body)
    if not isinstance(body, dict):
        raise Invalid("The body must be a JSON object with a list of alerts.", "alerts")
    alerts = body.get("alerts")
    if not isinstance(alerts, list) or not alerts:
        raise Invalid("alerts must be a list of at least one alert.", "alerts")
    group = _group(body, len(alerts))
    return [_event(body, alert, group, f"alerts[{position}]") for position, alert in enumerate(alerts)]


def _event(body: dict[str, Any], alert: Any, group: dict[str, Any], path: str) -> Event:
    if not isinstance(alert, dict):
        raise Invalid(f"{path} must be an object.", path)
    labels = _texts(alert, "labels", path)
    notes = _texts(alert, "annotations", path)
    status = clean.words(alert.get("status") or body.get("status")).strip().lower()
    return Event(
        action="resolve" if status == "resolved" else "trigger",
        severity=_severity(labels),
        link=clean.link(alert.get("generatorURL")) or clean.link(body.get("externalURL")),
        **clean.fields(
            title=_title(labels, notes, body, group),
            details=_details(labels, notes, alert),
            dedup_key=_key(alert, labels, path),
            group=group,
        ),
    )


def _texts(alert: dict[str, Any], name: str, path: str) -> Labels:
    """The labels or annotations of an alert; values that are no text become text."""
    value = alert.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Invalid(f"{path}.{name} must be an object.", f"{path}.{name}")
    return {key: clean.words(item) for key, item in value.items()}


def _key(alert: dict[str, Any], labels: Labels, path: str) -> str:
    """The fingerprint as sent, else a hash of the labels, which is what a fingerprint is made of."""
    fingerprint = alert.get("fingerprint")
    if isinstance(fingerprint, dict | list):
        raise Invalid(f"{path}.fingerprint must be text.", f"{path}.fingerprint")
    if key := clean.words(fingerprint):
        return key
    if not labels:
        raise Invalid(f"{path} has neither a fingerprint nor labels to know it by.", f"{path}.labels")
    return f"labels:{clean.sha256(json.dumps(labels, sort_keys=True))}"


def _severity(labels: Labels) -> str:
    word = labels.get("severity", "")
    # "none" is how rules that always fire, such as Watchdog, say that they are no emergency.
    return "info" if word.strip().lower() == "none" else generic.severity(word)


def _title(labels: Labels, notes: Labels, body: dict[str, Any], group: dict[str, Any]) -> str:
    """The summary with the alert's name; labels join where the summary alone does not tell alerts apart."""
    name = clean.one_line(labels.get("alertname", ""))
    summary = clean.one_line(notes.get("summary", ""))
    common = body.get("commonAnnotations")
    shared = group["size"] > 1 and isinstance(common, dict) and common.get("summary") == notes.get("summary")
    telling = _telling(labels, group) if shared or not summary else ""
    about = ", ".join(part for part in (name if summary else "", telling) if part)
    head = clean.cut(summary or name or "Alert", SUMMARY_LIMIT)
    return f"{head} ({about})" if about else head


def _telling(labels: Labels, group: dict[str, Any]) -> str:
    """Up to four labels that are this alert's own; all labels count where the group has none of them apart."""
    common = group.get("commonLabels", {})
    candidates = {name: value for name, value in labels.items() if name not in ("alertname", "severity")}
    own = {name: value for name, value in candidates.items() if name not in common} or candidates
    order = sorted(own, key=lambda name: (TELLING.index(name) if name in TELLING else len(TELLING), name))
    return ", ".join(f"{name}={own[name]}" for name in order[:TELLING_LIMIT])


def _details(labels: Labels, notes: Labels, alert: dict[str, Any]) -> str:
    """The description, then the other annotations, labels and times, one a line."""
    in_title = "summary" if len(notes.get("summary", "")) <= SUMMARY_LIMIT else ""
    rest = {name: value for name, value in notes.items() if name not in (in_title, "description")}
    blocks = [
        clean.cut(notes.get("description", ""), DESCRIPTION_LIMIT),
        _listed("", rest),
        _listed("Labels:\n", labels),
        _listed("", {"Started": clean.words(alert.get("startsAt"))}),
    ]
    return "\n\n".join(block for block in blocks if block)


def _listed(heading: str, pairs: Labels) -> str:
    lines = [f"{name}: {value}" for name, value in pairs.items() if value.strip()]
    return heading + "\n".join(lines) if lines else ""


def _group(body: dict[str, Any], size: int) -> dict[str, Any]:
    """What the group says, within bounds and under Alertmanager's names, as far as the body has it."""
    truncated = body.get("truncatedAlerts")
    found = {
        "groupKey": clean.cut(clean.words(body.get("groupKey")), clean.KEY_LIMIT),
        "groupLabels": _shown(body.get("groupLabels")),
        "commonLabels": _shown(body.get("commonLabels")),
        "receiver": clean.cut(clean.words(body.get("receiver")), GROUP_TEXT),
        "externalURL": clean.link(body.get("externalURL")),
        "truncatedAlerts": truncated if isinstance(truncated, int) else 0,
        "size": size,
    }
    return {name: value for name, value in found.items() if value}


def _shown(labels: Any) -> Labels:
    if not isinstance(labels, dict):
        return {}
    pairs = list(labels.items())[:GROUP_LABELS]
    return {clean.cut(name, GROUP_TEXT): clean.cut(clean.words(value), GROUP_TEXT) for name, value in pairs}
