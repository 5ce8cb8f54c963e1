"""Headers that every answer carries: what pages may load, and that nobody keeps a copy. And one of requests that
counts for nothing: Host."""

from collections.abc import Iterable
from urllib.parse import urlsplit
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from flask import Flask, Response, request

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "manifest-src 'self'",
    )
)


def install(app: Flask) -> None:
    """Put the headers on every answer, and the name of ours on every request."""
    app.after_request(harden)
    name = urlsplit(app.extensions["escalade"].config.base_url).netloc
    app.wsgi_app = own_name(app.wsgi_app, name)  # type: ignore[assignment, method-assign]


def own_name(served: WSGIApplication, name: str) -> WSGIApplication:
    """The application, asked under the name that its base URL gives it, whatever the caller calls it.

    Links are made from the base URL, so Host says nothing. But Flask looks at it before anything else, and one that
    it cannot read, such as `a..b`, would cost an alert.
    """

    def serve(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        known = {key: value for key, value in environ.items() if key != "HTTP_X_FORWARDED_HOST"}
        return served({**known, "HTTP_HOST": name}, start_response)

    return serve


def harden(response: Response) -> Response:
    """Add what browsers, caches and robots have to know."""
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["X-Content-Type-Options"] = "nosniff"
    # Not no-referrer: under that, browsers post "Origin: null".
    response.headers["Referrer-Policy"] = "same-origin"
    if request.endpoint != "static":
        response.headers["Cache-Control"] = "no-store"
        response.vary.update(("Cookie", "HX-Request"))
    if request.path.startswith(("/a/", "/invite/", "/reset/", "/start/")):
        response.headers["X-Robots-Tag"] = "noindex"
    return response
