"""What the API takes and gives, as JSON Schema."""

from typing import Any

from escalade.inbound.generic import SEVERITIES
from escalade.oncall import KINDS
from escalade.overview import INCIDENT_STATUSES, STATUSES
from escalade.shown import ATTEMPT_FIELDS

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
TRUTH: Schema = {"type": "boolean"}
TIME: Schema = {"type": "string", "format": "date-time"}
DURATION: Schema = {"type": "string", "pattern": "^[0-9]+[smhd]$", "examples": ["1h"]}


def one_of(words: tuple[str, ...]) -> Schema:
    """One of a few words."""
    return {"type": "string", "enum": list(words)}


def maybe(schema: Schema) -> Schema:
    """The same, or null."""
    return {**schema, "type": [schema["type"], "null"]}


def a_list(schema: Schema) -> Schema:
    """A list of these."""
    return {"type": "array", "items": schema}


def thing(properties: Schema, required: list[str] | None = None, open_ended: bool = True) -> Schema:
    """An object; all properties are there unless `required` names some."""
    wanted = list(properties) if required is None else required
    return {"type": "object", "properties": properties, "required": wanted} | (
        {} if open_ended else {"additionalProperties": False}
    )


def ref(name: str) -> Schema:
    """A schema by its name."""
    return {"$ref": f"#/components/schemas/{name}"}


INCIDENT = thing(
    {
        "id": WHOLE,
        "url": TEXT,
        "service": maybe(TEXT),
        "title": TEXT,
        "details": TEXT,
        "severity": one_of(SEVERITIES),
        "urgency": one_of(("high", "low")),
        "status": one_of(INCIDENT_STATUSES),
        "dedup_key": maybe(TEXT),
        "link": maybe(TEXT),
        "policy": maybe(TEXT),
        "step": WHOLE,
        "round": WHOLE,
        "escalates_at": maybe(TIME),
        "exhausted_at": maybe(TIME),
        "opened_at": TIME,
        "last_alert_at": TIME,
        "count": WHOLE,
        "acknowledged_at": maybe(TIME),
        "acknowledged_by": maybe(TEXT),
        "resolved_at": maybe(TIME),
        "snoozed_until": maybe(TIME),
    }
)
_ATTEMPT_TYPES: Schema = {
    "id": WHOLE,
    "incident_id": maybe(WHOLE),
    "kind": one_of(("STEP", "PAGE", "NOTICE")),
    "status": one_of(STATUSES),
    "lane": one_of(("high", "low")),
    "cancel_requested": TRUTH,
    "due_at": TIME,
    "first_due_at": TIME,
    "idempotency_key": TEXT,
    **dict.fromkeys(("step", "round", "tries", "max_tries"), WHOLE),
    **dict.fromkeys(("held_until", "claimed_at", "lease_until", "delivered_at", "finished_at"), maybe(TIME)),
}
ATTEMPT = thing({name: _ATTEMPT_TYPES.get(name, maybe(TEXT)) for name in ATTEMPT_FIELDS})
TRY = thing(
    {
        "try": WHOLE,
        "started_at": TIME,
        "ended_at": maybe(TIME),
        "outcome": maybe(TEXT),
        "error": maybe(TEXT),
        "request": TEXT,
        "answer": TEXT,
    }
)
EVENT = thing({"id": WHOLE, "at": TIME, "event": TEXT, "actor": maybe(TEXT), "data": {"type": "object"}, "text": TEXT})
IN_FLIGHT = thing({"attempt_id": WHOLE, "user": maybe(TEXT), "channel": TEXT}, ["attempt_id", "user"])
ANSWER = thing(
    {"incident": ref("Incident"), "changed": TRUTH, "cancelled": WHOLE, "in_flight": a_list(IN_FLIGHT)},
)
NEW_INCIDENT = thing(
    {
        "service": TEXT,
        "target": {"type": "string", "description": "user:E-MAIL, schedule:NAME or channel:NAME"},
        "title": TEXT,
        "details": TEXT,
        "severity": one_of(SEVERITIES),
        "link": TEXT,
    },
    ["title"],
    open_ended=False,
)
NEW_OVERRIDE = thing(
    {"kind": one_of(KINDS), "user": TEXT, "replaces": maybe(TEXT), "start": TIME, "end": TIME},
    ["kind", "user", "start", "end"],
    open_ended=False,
)
REPLAY_MANY = thing({"status": {"const": "FAILED"}, "transport": TEXT, "ids": a_list(WHOLE)}, [], open_ended=False)
ERROR = thing({"error": TEXT, "field": maybe(TEXT)})
SHIFT = thing({"start": TIME, "end": TIME, "users": a_list(TEXT)})


def one_field(name: str, schema: Schema) -> Schema:
    """A body of one field."""
    return thing({name: schema}, open_ended=False)
