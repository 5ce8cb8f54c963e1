"""The web application: closed by default, one table from refusal to status, one answer for people and for tools."""

from pathlib import Path

from flask import Flask

from escalade.db import ROOT
from escalade.web import access, errors, headers
from escalade.web.context import Context

BODY_LIMIT = 256 * 1024


def create_app(context: Context) -> Flask:
    """The application for this context. Views find it again through `context()`."""
    app = Flask("escalade", template_folder=str(Path(ROOT, "templates")), static_folder=str(Path(ROOT, "static")))
    app.config["MAX_CONTENT_LENGTH"] = BODY_LIMIT
    app.url_map.strict_slashes = False
    app.extensions["escalade"] = context
    for install in (errors.install, access.install, headers.install):
        install(app)
    return app
