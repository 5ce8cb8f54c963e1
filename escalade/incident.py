"""An incident as it is stored."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Incident:
    """One row of `incident`. Times are aware, in UTC; `step` is the last one fanned out, from 1; 0 before the first."""

    id: int
    service_id: int | None
    integration_id: int | None
    service_name: str | None
    title: str
    details: str
    severity: str
    urgency: str
    status: str
    dedup_key: str | None
    link: str | None
    alert_group: dict[str, Any] | None
    sanitized: bool
    policy: dict[str, Any]
    round: int
    step: int
    repeats_left: int
    opened_at: datetime
    opened_by: str
    last_alert_at: datetime
    count: int
    acknowledged_at: datetime | None
    acknowledged_by: str | None
    resolved_at: datetime | None
    resolved_by: str | None
    snoozed_until: datetime | None
    exhausted_at: datetime | None
    ack_timeout_seconds: int | None
    ack_timeout_at: datetime | None
    auto_resolve_seconds: int | None
    auto_resolve_at: datetime | None
    wake_at: datetime | None
