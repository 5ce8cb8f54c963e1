"""Answers are packed with gzip, since waitress does not: a page on a bad connection is there in half the time."""

import gzip

from flask import Flask, Response, request

TEXTS = ("text/html", "text/css", "text/javascript", "text/plain", "application/json", "image/svg+xml")
# Below this the headers weigh more than what packing saves.
WORTH = 1_000
LEVEL = 9


def install(app: Flask) -> None:
    """Pack what is sent."""
    app.after_request(pack)


def taken() -> bool:
    """Whether the caller takes gzip, and asks for itself.

    How long a packed page is says a little of what is in it. Somebody else's page that makes a browser ask again and
    again, each time with another guess in the address, gets the plain one.
    """
    asked_by = request.headers.get("Sec-Fetch-Site", "none")
    return asked_by in ("none", "same-origin") and request.accept_encodings["gzip"] > 0


def pack(response: Response) -> Response:
    """The answer, packed where that is worth it."""
    if response.mimetype not in TEXTS or response.is_streamed or "Content-Encoding" in response.headers:
        return response
    data = response.get_data()
    if len(data) < WORTH:
        return response
    response.vary.add("Accept-Encoding")
    if taken():
        response.set_data(gzip.compress(data, LEVEL, mtime=0))
        response.headers["Content-Encoding"] = "gzip"
    return response
