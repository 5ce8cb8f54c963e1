"""GET /api/openapi.json: the API described for programs, written by hand; a test holds it against the routes."""

from flask import Blueprint, Response, jsonify

from escalade import __version__
from escalade.web.access import needs
from escalade.web.api.schemas import (
    ANSWER,
    ATTEMPT,
    DURATION,
    ERROR,
    EVENT,
    INCIDENT,
    NEW_INCIDENT,
    NEW_OVERRIDE,
    REPLAY_MANY,
    SHIFT,
    TEXT,
    TIME,
    TRY,
    WHOLE,
    Schema,
    a_list,
    maybe,
    one_field,
    ref,
    thing,
)

blueprint = Blueprint("api_openapi", __name__, url_prefix="/api")


@blueprint.get("/openapi.json")
@needs("viewer")
def describe() -> Response:
    """The description."""
    return jsonify(DOCUMENT)


def content(schema: Schema) -> Schema:
    """JSON of this schema."""
    return {"application/json": {"schema": schema}}


def query(name: str, schema: Schema, description: str) -> Schema:
    """An optional query parameter."""
    return {"name": name, "in": "query", "schema": schema, "description": description}


def path(name: str, schema: Schema) -> Schema:
    """A part of the address."""
    return {"name": name, "in": "path", "required": True, "schema": schema}


def operation(
    summary: str,
    answer: Schema | None,
    status: str = "200",
    parameters: tuple[Schema, ...] = (),
    body: Schema | None = None,
) -> Schema:
    """One method of one address."""
    good: Schema = {"description": "Done."} | ({"content": content(answer)} if answer is not None else {})
    found: Schema = {
        "summary": summary,
        "responses": {status: good, "default": {"$ref": "#/components/responses/Refused"}},
    }
    if parameters:
        found["parameters"] = list(parameters)
    if body is not None:
        found["requestBody"] = {"required": bool(body.get("required")), "content": content(body)}
    return found


def action(summary: str, body: Schema | None = None) -> Schema:
    """Something a person does to one incident."""
    return {"post": operation(summary, ref("Answer"), parameters=(INCIDENT_ID,), body=body)}


INCIDENT_ID = path("incident_id", WHOLE)
ATTEMPT_ID = path("attempt_id", WHOLE)
SCHEDULE = path("name", TEXT)
LIMIT = query("limit", {"type": "integer", "minimum": 1, "maximum": 500, "default": 50}, "How many at most.")
BEFORE = query("before", TEXT, "The value of next from an earlier answer.")

PATHS: Schema = {
    "/api/openapi.json": {"get": operation("This description.", {"type": "object"})},
    "/api/v1/incidents": {
        "get": operation(
            "Incidents, the newest first.",
            thing({"incidents": a_list(ref("Incident")), "next": maybe(TEXT)}),
            parameters=(
                query("status", TEXT, "Statuses, separated by commas."),
                query("service", TEXT, "The name of a service."),
                LIMIT,
                BEFORE,
            ),
        ),
        "post": operation(
            "Open an incident on a service, or for one target.",
            thing({"incident": ref("Incident")}),
            "201",
            body=NEW_INCIDENT,
        ),
    },
    "/api/v1/incidents/{incident_id}": {
        "get": operation(
            "One incident, with its attempts and its timeline.",
            thing({"incident": ref("Incident"), "attempts": a_list(ref("Attempt")), "events": a_list(EVENT)}),
            parameters=(INCIDENT_ID,),
        )
    },
    "/api/v1/incidents/{incident_id}/acknowledge": action("Somebody is on it: nothing more is sent."),
    "/api/v1/incidents/{incident_id}/resolve": action("It is over."),
    "/api/v1/incidents/{incident_id}/unacknowledge": action("Nobody is on it after all."),
    "/api/v1/incidents/{incident_id}/reopen": action("It is not over after all."),
    "/api/v1/incidents/{incident_id}/escalate": action("The next step now."),
    "/api/v1/incidents/{incident_id}/snooze": action("Silent for a while.", one_field("for", DURATION)),
    "/api/v1/incidents/{incident_id}/reassign": action("Tell somebody else.", one_field("target", TEXT)),
    "/api/v1/incidents/{incident_id}/note": action("A line in the timeline.", one_field("text", TEXT)),
    "/api/v1/attempts": {
        "get": operation(
            "Attempts by due time, then id; of one incident also those in the archive.",
            thing({"attempts": a_list(ref("Attempt")), "next": maybe(TEXT)}),
            parameters=(
                query("status", TEXT, "Statuses, separated by commas."),
                query("incident", WHOLE, "The id of an incident."),
                query("transport", TEXT, "A transport, such as slack."),
                LIMIT,
                BEFORE,
            ),
        )
    },
    "/api/v1/attempts/{attempt_id}": {
        "get": operation(
            "One attempt with its tries.",
            thing({"attempt": ref("Attempt"), "tries": a_list(TRY)}),
            parameters=(ATTEMPT_ID,),
        )
    },
    "/api/v1/attempts/{attempt_id}/replay": {
        "post": operation("Send a failed page again.", thing({"attempt": ref("Attempt")}), parameters=(ATTEMPT_ID,))
    },
    "/api/v1/attempts/replay": {
        "post": operation("Send failed pages again.", thing({"replayed": WHOLE, "skipped": WHOLE}), body=REPLAY_MANY)
    },
    "/api/v1/oncall": {
        "get": operation(
            "Who is on call.",
            thing({"at": TIME, "schedules": a_list(thing({"schedule": TEXT, "users": a_list(TEXT)}))}),
            parameters=(query("at", TIME, "When; without it, now."), query("schedule", TEXT, "One schedule.")),
        )
    },
    "/api/v1/schedules/{name}/shifts": {
        "get": operation(
            "The turns of a schedule, overrides included.",
            thing({"schedule": TEXT, "shifts": a_list(SHIFT)}),
            parameters=(
                SCHEDULE,
                query("from", TIME, "Without it, now."),
                query("to", TIME, "At most 366 days later; without it, two weeks."),
            ),
        )
    },
    "/api/v1/schedules/{name}/overrides": {
        "post": operation(
            "Somebody takes a shift, stands in for somebody, or is taken out.",
            thing({"override": thing({"id": WHOLE})}),
            "201",
            parameters=(SCHEDULE,),
            body=NEW_OVERRIDE,
        )
    },
    "/api/v1/schedules/{name}/overrides/{override_id}": {
        "delete": operation("End an override.", None, "204", parameters=(SCHEDULE, path("override_id", WHOLE)))
    },
}
DOCUMENT: Schema = {
    "openapi": "3.1.0",
    "info": {
        "title": "Escalade",
        "version": __version__,
        "description": "Incidents, the queue of pages, and who is on call. Viewers read; responders also act.",
    },
    "security": [{"token": []}],
    "paths": PATHS,
    "components": {
        "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        "schemas": {
            "Incident": INCIDENT,
            "Attempt": ATTEMPT,
            "Answer": ANSWER,
            "Error": ERROR,
        },
        "responses": {
            "Refused": {
                "description": "400 no JSON, 401 no token, 403 role, 404 unknown, 409 state, 422 body, 503 try again.",
                "content": content(ref("Error")),
            }
        },
    },
}
