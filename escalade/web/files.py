"""Static files: read and packed once, at the start, and kept by browsers for ever, since their addresses name what is
in them. And the two files that make the pages an app on a phone: manifest and service worker."""

import gzip
import hashlib
import mimetypes
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from flask import Blueprint, Flask, Response, current_app, jsonify, request, url_for
from werkzeug.exceptions import NotFound

from escalade.db import ROOT
from escalade.web import packing
from escalade.web.access import public

blueprint = Blueprint("files", __name__)

FOLDER = Path(ROOT, "static")
FOR_EVER = "public, max-age=31536000, immutable"
ASK_FIRST = "no-cache"
# A page without a theme of its own starts in the dark one: whoever opens it from the home screen has been woken up.
NIGHT = "#0e1116"


@dataclass(frozen=True)
class File:
    """A file as it is sent. `version` is the beginning of its digest."""

    data: bytes
    mimetype: str

    @cached_property
    def version(self) -> str:
        """What its address says after ?v=."""
        return hashlib.sha256(self.data).hexdigest()[:12]

    @cached_property
    def packed(self) -> bytes | None:
        """Packed as small as it goes, or None where that gains nothing."""
        small = gzip.compress(self.data, 9, mtime=0)
        return small if self.mimetype in packing.TEXTS and len(small) < len(self.data) else None


def read(folder: Path) -> dict[str, File]:
    """Every file below the folder, by its path there."""
    found = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): File(path.read_bytes(), mimetype(path.name)) for path in found}


def mimetype(name: str) -> str:
    """What the name says the file is; the same on every machine, whatever its own table says."""
    known = {".js": "text/javascript", ".svg": "image/svg+xml", ".css": "text/css", ".html": "text/html"}
    return known.get(Path(name).suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"


def install(app: Flask) -> None:
    """Serve them under /static/, each under an address with its version."""
    files = read(FOLDER)

    @public
    def static(filename: str) -> Response:
        if filename not in files:
            raise NotFound
        return sent(files[filename])

    def versioned(endpoint: str, values: dict[str, Any]) -> None:
        if endpoint == "static" and values.get("filename") in files:
            values.setdefault("v", files[values["filename"]].version)

    app.add_url_rule("/static/<path:filename>", "static", static)
    app.url_defaults(versioned)
    app.extensions["escalade_files"] = files
    app.register_blueprint(blueprint)


def sent(file: File) -> Response:
    """The file, packed for whoever takes that. An address with another version than the file's is not kept."""
    packed = file.packed if packing.taken() else None
    response = Response(file.data if packed is None else packed, mimetype=file.mimetype)
    if packed is not None:
        response.headers["Content-Encoding"] = "gzip"
    response.vary.add("Accept-Encoding")
    response.headers["Cache-Control"] = FOR_EVER if request.args.get("v") == file.version else ASK_FIRST
    response.set_etag(file.version, weak=True)
    response.make_conditional(request.environ)
    return response


@blueprint.get("/sw.js")
@public
def service_worker() -> Response:
    """The service worker. It may see the pages because it lies at the root."""
    return sent(current_app.extensions["escalade_files"]["sw.js"])


@blueprint.get("/manifest.webmanifest")
@public
def manifest() -> Response:
    """What a phone needs to put the pages on its home screen."""
    response = jsonify(
        id="/",
        name="Escalade",
        short_name="Escalade",
        description="Who is paged, what is open, and who is on it.",
        start_url="/",
        scope="/",
        display="standalone",
        background_color=NIGHT,
        theme_color=NIGHT,
        icons=[icon("icon-192.png", 192), icon("icon-512.png", 512), icon("icon-maskable-512.png", 512, "maskable")],
        shortcuts=[
            {"name": "On call", "url": "/oncall"},
            {"name": "Attempts", "url": "/attempts"},
        ],
    )
    response.mimetype = "application/manifest+json"
    return response


def icon(name: str, size: int, purpose: str = "any") -> dict[str, str]:
    """One icon of the manifest."""
    address = url_for("static", filename=f"icons/{name}")
    return {"src": address, "sizes": f"{size}x{size}", "type": "image/png", "purpose": purpose}
