"""The API, version 1: JSON in, JSON out, described by /api/openapi.json."""

from flask import Flask

from escalade.web.api import attempts, incidents, openapi, rota


def install(app: Flask) -> None:
    """Put the API on the application."""
    for module in (incidents, attempts, rota, openapi):
        app.register_blueprint(module.blueprint)
