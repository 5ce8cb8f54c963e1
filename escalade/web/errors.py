"""One table from refusal to status, and one shape of answer for tools, for pages and for parts of pages."""

import logging
import uuid
from collections.abc import Callable
from functools import wraps
from typing import TypeVar, cast

import psycopg
from flask import Flask, Response, jsonify, render_template, request
from jinja2 import TemplateNotFound
from psycopg_pool import PoolTimeout
from werkzeug.exceptions import HTTPException

from escalade import errors
from escalade.db import unavailable
from escalade.web import access

log = logging.getLogger("escalade.web")
Error = TypeVar("Error", bound=Exception)

# The first that fits counts, so a special refusal stands before the general one.
STATUSES: tuple[tuple[type[errors.Refusal], int], ...] = (
    (errors.Unreadable, 400),
    (errors.Invalid, 422),
    (errors.Unauthenticated, 401),
    (errors.Forbidden, 403),
    (errors.NotFound, 404),
    (errors.Conflict, 409),
    (errors.TooMany, 429),
    (errors.Unavailable, 503),
)
RETRY_SECONDS = 5
TOOLS = ("/api/", "/hooks/", "/beat/", "/v2/", "/callbacks/", "/metrics", "/healthz", "/readyz")
SENTENCES = {
    400: "This request cannot be read.",
    404: "There is nothing at this address.",
    405: "This address does not take that method.",
    413: "The body is too large; 256 KiB is the most.",
}


def install(app: Flask) -> None:
    """Every exception becomes an answer here."""
    app.register_error_handler(errors.Refusal, surely(refused))
    app.register_error_handler(psycopg.OperationalError, surely(database_away))
    app.register_error_handler(PoolTimeout, surely(database_away))
    app.register_error_handler(psycopg.DataError, surely(unstorable))
    app.register_error_handler(HTTPException, surely(not_served))
    app.register_error_handler(Exception, broken)


def surely(handler: Callable[[Error], Response]) -> Callable[[Error], Response]:
    """The handler, whose own faults are answered as faults of ours: nobody handles what it raises."""

    @wraps(handler)
    def handle(error: Error) -> Response:
        try:
            return handler(error)
        except Exception as fault:
            return broken(fault)

    return handle


def status_of(refusal: errors.Refusal) -> int:
    """The HTTP status of a refusal; one without its own cannot be done as things are (409)."""
    return next((status for kind, status in STATUSES if isinstance(refusal, kind)), 409)


def refused(refusal: errors.Refusal) -> Response:
    """The answer to something that cannot be done."""
    away = None if for_tools() else access.turned_away(refusal)
    if away is not None:
        return away
    response = answer(status_of(refusal), refusal.message, refusal.field)
    if isinstance(refusal, errors.TooMany):
        response.headers["Retry-After"] = str(refusal.retry_after)
    if isinstance(refusal, errors.Unavailable):
        response.headers["Retry-After"] = str(RETRY_SECONDS)
    if isinstance(refusal, errors.Unauthenticated) and for_tools():
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def database_away(error: Exception) -> Response:
    """The database did not answer, outside of where that is a refusal already."""
    if isinstance(error, psycopg.OperationalError):
        unavailable(error)
    return refused(errors.Unavailable("The database is away or busy: try again in a few seconds."))


def unstorable(error: psycopg.DataError) -> Response:
    """A value that the database cannot hold, such as a text with NUL in an address."""
    log.warning("%s %s: %s", request.method, request.endpoint, str(error).strip() or type(error).__name__)
    return answer(422, "Something in this request cannot be stored.")


def not_served(error: HTTPException) -> Response:
    """No such address or method, a body that is too large, and the like."""
    status = error.code or 500
    if status < 400:
        return cast(Response, Response.force_type(error.get_response()))
    response = answer(status, SENTENCES.get(status) or error.description or error.name)
    for name, value in error.get_headers():
        if name.lower() in ("allow", "retry-after"):
            response.headers[name] = value
    return response


def broken(error: Exception) -> Response:
    """A fault of ours: logged under an id that the caller is told, who learns nothing else."""
    request_id = uuid.uuid4().hex[:12]
    # The path of an alert holds its key, so the route is named instead.
    log.error("request %s: %s %s raised", request_id, request.method, request.endpoint, exc_info=error)
    sentence = f"Something went wrong here; it is in the log as request {request_id}."
    try:
        return answer(500, sentence)
    except Exception as fault:
        # Without its trace: where the page cannot be drawn, every request would fill the log twice.
        log.error("request %s: the page that says so raised %r", request_id, fault)
        return Response(sentence, 500, mimetype="text/plain")


def answer(status: int, message: str, field: str | None = None) -> Response:
    """A refusal in the shape that the caller reads."""
    if for_tools():
        response: Response = jsonify(error=message, field=field)
    elif "HX-Request" in request.headers:
        response = Response(message, mimetype="text/plain")
    else:
        try:
            response = Response(render_template("errors/refused.html", status=status, message=message, field=field))
        except TemplateNotFound:
            response = Response(message, mimetype="text/plain")
    response.status_code = status
    return response


def for_tools() -> bool:
    """Whether the caller reads JSON: the API, the alert endpoints, and whoever asks for it or sends it."""
    if "HX-Request" in request.headers:
        return False
    accepts = request.accept_mimetypes
    prefers = accepts["application/json"] > accepts["text/html"]
    return request.path.startswith(TOOLS) or request.is_json or prefers
