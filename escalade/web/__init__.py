"""The web application: closed by default, one table from refusal to status, one answer for people and for tools."""

from pathlib import Path

from flask import Flask

from escalade.db import ROOT
from escalade.web import access, api, beats, errors, files, headers, health, hooks, metrics, packing, pages
from escalade.web.context import Context

BODY_LIMIT = 256 * 1024


def create_app(context: Context) -> Flask:
    """The application for this context. Views find it again through `context()`."""
    app = Flask("escalade", template_folder=str(Path(ROOT, "templates")), static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = BODY_LIMIT
    # A tool that is redirected posts nothing: a slash too many is no reason for a redirect.
    app.url_map.strict_slashes = False
    app.url_map.merge_slashes = False
    app.extensions["escalade"] = context
    for module in (errors, access, packing, headers, files, hooks, beats, health, metrics, api, pages):
        module.install(app)
    return app
