"""How an action is answered: with htmx by the part of the page it came from, drawn anew; else by 303 back to it."""

from typing import Any, cast

from flask import Response, make_response, redirect, render_template, request, url_for

from escalade.web.context import context
from escalade.web.pages import filters, queue_region, regions, telling


def fragment(template: str, seen: dict[str, Any]) -> Response:
    """A part of a page."""
    return make_response(render_template(template, fragment=True, **seen))


def unchanged() -> Response | None:
    """204 where the page shows the newest state already."""
    with context().db.read() as tx:
        same = request.args.get("v") == regions.mark(tx)
    return Response(status=204) if same else None


def done(word: str, incident_id: int | None = None) -> Response:
    """The answer to an action that has been done: the form says which page it came from."""
    back = request.form.get("back", "")
    if back == "now":
        return _back_to("now.show", "now/_live.html", word, incident_id)
    if back == "attempts":
        return _back_to("attempt_pages.show", "attempts/_live.html", word, incident_id)
    if back == "attempt":
        return _back_to("attempt_pages.one", "attempts/_one.html", word, incident_id)
    return _back_to("incident_pages.show", "incidents/_live.html", word, incident_id)


def _back_to(endpoint: str, template: str, word: str, incident_id: int | None) -> Response:
    if "HX-Request" in request.headers:
        with context().db.read() as tx:
            seen = _region(tx, endpoint, incident_id) | {"said": telling.told(tx, word, incident_id)}
        return fragment(template, seen)
    values: dict[str, Any] = {"said": word}
    if endpoint == "incident_pages.show":
        values["incident_id"] = incident_id
    elif incident_id is not None:
        values["about"] = incident_id
    if endpoint == "attempt_pages.show":
        values |= filters.carried(request.form)
    if endpoint == "attempt_pages.one":
        values["attempt_id"] = _attempt_id()
    return cast(Response, redirect(url_for(endpoint, **values), 303))


def _region(tx: Any, endpoint: str, incident_id: int | None) -> dict[str, Any]:
    if endpoint == "now.show":
        return regions.now(tx)
    if endpoint == "attempt_pages.show":
        return queue_region.attempts(tx, request.form)
    if endpoint == "attempt_pages.one":
        return queue_region.attempt(tx, _attempt_id())
    return regions.incident(tx, incident_id or 0)


def said(tx: Any, incident_id: int | None = None) -> telling.Said | None:
    """What the address says has just been done. A warning stays in the address of the live part."""
    return telling.told(tx, request.args.get("said", ""), incident_id or request.args.get("about", type=int))


def _attempt_id() -> int:
    return request.form.get("attempt", 0, type=int)
