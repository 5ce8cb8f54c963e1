"""Light or dark: as the system says, unless somebody chose. The choice is a cookie, so that it works without a script
and on the page where they log in."""

from typing import cast

from flask import Blueprint, Response, redirect, request

from escalade.errors import Invalid
from escalade.web import access
from escalade.web.access import needs
from escalade.web.context import context

pages = Blueprint("theme", __name__)

COOKIE = "theme"
THEMES = ("auto", "light", "dark")
KEPT_SECONDS = 400 * 86400


def chosen() -> str:
    """The theme of this browser: light, dark, or auto where nobody chose."""
    value = request.cookies.get(COOKIE, "auto")
    return value if value in THEMES else "auto"


@pages.post("/theme")
@needs("viewer")
def choose() -> Response:
    """Keep the choice, and go back to the switch on the page it was made on. Raises Invalid."""
    theme = request.form.get("theme", "")
    if theme not in THEMES:
        raise Invalid("Choose auto, light or dark.", "theme")
    response = cast(Response, redirect(access.safe_next(request.form.get("back")) + "#theme", 303))
    secure = context().config.base_url.startswith("https:")
    response.set_cookie(COOKIE, theme, max_age=KEPT_SECONDS, path="/", secure=secure, httponly=True, samesite="Lax")
    return response
