"""Headers that every answer carries: what pages may load, and that nobody keeps a copy."""

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
    """Put the headers on every answer."""
    app.after_request(harden)


def harden(response: Response) -> Response:
    """Add what browsers, caches and robots have to know."""
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["X-Content-Type-Options"] = "nosniff"
    # Not no-referrer: under that, browsers post "Origin: null".
    response.headers["Referrer-Policy"] = "same-origin"
    if request.endpoint != "static":
        response.headers["Cache-Control"] = "no-store"
        response.vary.update(("Cookie", "HX-Request"))
    if request.path.startswith("/a/"):
        response.headers["X-Robots-Tag"] = "noindex"
    return response
