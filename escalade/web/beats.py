"""Heartbeats in: /beat/<key>, from anything that can fetch an address."""

from flask import Blueprint, Flask, Response, jsonify, request

from escalade import heartbeats
from escalade.tokens import digest
from escalade.web.access import public
from escalade.web.context import context

blueprint = Blueprint("beats", __name__)


def install(app: Flask) -> None:
    """Put it on the application."""
    app.register_blueprint(blueprint)


@blueprint.route("/beat/<key>", methods=["GET", "POST"])
@public
def beat(key: str) -> Response:
    """A sign of life. The first must be a POST: a browser or a preview that opens the address must not arm it."""
    counted = heartbeats.beat(context().db.begin, digest(key), arms=request.method == "POST")
    return jsonify(status="ok") if counted else Response(status=204)
