"""Alerts in: POST /hooks/<key>. Answered 202 once every alert of the body is committed, each in its own transaction."""

import hmac
import logging
import time
from math import ceil
from urllib.parse import parse_qsl

import psycopg
from flask import Blueprint, Flask, Response, current_app, jsonify, request

from escalade import inbound, opening
from escalade.buckets import Buckets
from escalade.doorbell import Reading
from escalade.errors import NotFound, TooMany, Unauthenticated, Unavailable, Unreadable
from escalade.inbound.base import Event, Request
from escalade.opening import Done, Integration, Source
from escalade.tokens import digest
from escalade.web.access import bearer, public
from escalade.web.context import context

log = logging.getLogger("escalade.web.hooks")
blueprint = Blueprint("hooks", __name__)

BURST_SECONDS = 50
EXTENSION = "escalade_hook_buckets"


def install(app: Flask) -> None:
    """One bucket an integration, filled at the configured rate."""
    rate = app.extensions["escalade"].config.hook_rate
    app.extensions[EXTENSION] = Buckets(rate, rate * BURST_SECONDS)
    app.register_blueprint(blueprint)


@blueprint.post("/hooks/<key>")
@public
def receive(key: str) -> tuple[Response, int]:
    """Accept the alerts in the body, in its order."""
    asked_at = time.monotonic()
    with context().db.read() as tx:
        integration = opening.integration(tx, digest(key))
    hold_back(integration)
    verify(integration)
    events = inbound.parse(integration.kind, arrived())
    done = accept_all(integration.source, events, Reading(integration.now, asked_at))
    return jsonify(status="accepted", incidents=[{"id": one.id, "action": one.action} for one in done]), 202


def hold_back(integration: Integration) -> None:
    """Raises TooMany where the integration sends more than its rate; others are not touched by that."""
    buckets: Buckets = current_app.extensions[EXTENSION]
    wait = buckets.take(integration.id)
    if wait > 0:
        raise TooMany("This integration sends more than its rate; send it again later.", max(1, ceil(wait)))


def verify(integration: Integration) -> None:
    """With `verify: on`, a tool that signs nothing proves itself by its secret: in `Authorization: Bearer <secret>`,
    which Alertmanager and most others can be told to send, or in `X-Escalade-Secret`. Raises Unauthenticated."""
    if not integration.verify:
        return
    sent = bearer() or request.headers.get("X-Escalade-Secret", "")
    kept = integration.secret or ""
    # Without a secret nothing can be proved, and nothing is let in.
    if not kept or not hmac.compare_digest(digest(sent), digest(kept)):
        raise Unauthenticated("This integration demands its secret, as Authorization: Bearer or X-Escalade-Secret.")


def arrived() -> Request:
    """The request as the parsers take it. Bytes that are no UTF-8 become lone surrogates, in the query too."""
    encoding = request.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise Unreadable("The body must be sent as it is, without Content-Encoding.", "Content-Encoding")
    query = request.query_string.decode("utf-8", "surrogateescape")
    return Request(
        body=request.get_data(cache=False),
        content_type=request.headers.get("Content-Type", ""),
        headers={name.lower(): value for name, value in request.headers.items()},
        query=tuple(parse_qsl(query, keep_blank_values=True, errors="surrogateescape")),
    )


def accept_all(source: Source, events: list[Event], reading: Reading) -> list[Done]:
    """Every event in a transaction of its own. Raises Unavailable where one could not be written: what was committed
    stays, and the tool that sends all of it again counts it once."""
    done: list[Done] = []
    broken = 0
    for event in events:
        try:
            done.append(accept(source, event, reading))
        except (Unavailable, NotFound):
            raise
        except Exception:
            # A fault of ours in one alert must not cost the others.
            log.exception("an alert of %s raised", source.actor)
            broken += 1
    if broken:
        raise Unavailable(f"{broken} of {len(events)} alerts could not be accepted; send them again.")
    return done


def accept(source: Source, event: Event, reading: Reading) -> Done:
    """One alert; a transaction that lost against another one is repeated once."""
    try:
        with context().db.begin() as tx:
            return opening.accept(tx, source, event, reading)
    except Unavailable as refusal:
        if not isinstance(refusal.__cause__, psycopg.errors.DeadlockDetected | psycopg.errors.SerializationFailure):
            raise
    with context().db.begin() as tx:
        return opening.accept(tx, source, event)
