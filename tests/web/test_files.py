"""Static files under versioned addresses, packed answers, the manifest and the service worker."""

import gzip
import re
import struct

import pytest
from flask.testing import FlaskClient

from escalade.web import files, packing
from tests.web.screens import Screens

PACKED = {"Accept-Encoding": "gzip, br"}


@pytest.fixture
def client(screens: Screens) -> FlaskClient:
    return screens.app.test_client()


def test_every_file_of_a_page_has_its_version_in_its_address(client: FlaskClient) -> None:
    page = client.get("/login").text
    found = re.findall(r'(?:src|href)="(/static/[^"]+)"', page)
    assert len(found) >= 5
    for address in found:
        answer = client.get(address)
        assert answer.status_code == 200 and "?v=" in address
        assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"


def test_a_file_under_another_version_is_not_kept(client: FlaskClient) -> None:
    for address in ("/static/app.js", "/static/app.js?v=0", "/static/app.js?v="):
        assert client.get(address).headers["Cache-Control"] == "no-cache"


def test_a_file_is_sent_again_only_where_it_has_changed(client: FlaskClient) -> None:
    tag = client.get("/static/app.css").headers["ETag"]
    assert client.get("/static/app.css", headers={"If-None-Match": tag}).status_code == 304
    assert client.get("/static/app.css", headers={"If-None-Match": 'W/"other"'}).status_code == 200


@pytest.mark.parametrize("path", ["nothing.js", "../app.py", "%2e%2e/app.py", "..%2fapp.py", "vendor/../app.js", ""])
def test_nothing_but_the_files_is_served(client: FlaskClient, path: str) -> None:
    assert client.get(f"/static/{path}").status_code == 404


def test_what_is_packed_comes_out_as_it_went_in(client: FlaskClient) -> None:
    for name, file in files.read(files.FOLDER).items():
        answer = client.get(f"/static/{name}", headers=PACKED)
        packed = answer.headers.get("Content-Encoding") == "gzip"
        assert (gzip.decompress(answer.data) if packed else answer.data) == file.data
        assert packed == (file.packed is not None)
        assert answer.headers["Vary"] == "Accept-Encoding"


def test_a_page_is_packed_for_whoever_takes_it(client: FlaskClient) -> None:
    plain, packed = client.get("/login"), client.get("/login", headers=PACKED)
    assert "Content-Encoding" not in plain.headers
    assert packed.headers["Content-Encoding"] == "gzip" and int(packed.headers["Content-Length"]) == len(packed.data)
    assert gzip.decompress(packed.data) == plain.data
    assert {"Cookie", "HX-Request", "Accept-Encoding"} <= set(plain.vary) and set(plain.vary) == set(packed.vary)
    assert "Content-Encoding" not in client.get("/login", headers={"Accept-Encoding": "gzip;q=0"}).headers


def test_json_is_packed_and_short_answers_are_not(screens: Screens) -> None:
    alice = screens.client()
    described = alice.get("/api/openapi.json", **PACKED)
    assert described.headers["Content-Encoding"] == "gzip" and len(described.data) < 20_000
    short = alice.get("/api/v1/incidents", **PACKED)
    assert "Content-Encoding" not in short.headers and len(short.data) < packing.WORTH


def test_a_page_that_another_site_asks_for_is_not_packed(client: FlaskClient) -> None:
    """Or how long it is would say what is in it."""
    for site, packed in (("cross-site", False), ("same-site", False), ("same-origin", True), ("none", True)):
        answer = client.get("/login", headers=PACKED | {"Sec-Fetch-Site": site})
        assert ("Content-Encoding" in answer.headers) == packed, site


def test_the_manifest_says_what_a_phone_asks_for(client: FlaskClient) -> None:
    answer = client.get("/manifest.webmanifest")
    assert answer.mimetype == "application/manifest+json"
    manifest = answer.get_json(force=True)
    assert manifest["name"] and manifest["start_url"] == manifest["scope"] == "/"
    assert manifest["display"] == "standalone"
    assert {(icon["sizes"], icon["purpose"]) for icon in manifest["icons"]} == {
        ("192x192", "any"),
        ("512x512", "any"),
        ("512x512", "maskable"),
    }
    for icon in manifest["icons"]:
        data = client.get(icon["src"]).data
        assert data.startswith(b"\x89PNG")
        width, height = struct.unpack(">II", data[16:24])
        assert icon["sizes"] == f"{width}x{height}"
    assert '<link rel="manifest" href="/manifest.webmanifest">' in client.get("/login").text


def test_the_service_worker_lies_at_the_root_and_is_asked_for_anew(client: FlaskClient) -> None:
    answer = client.get("/sw.js")
    assert (answer.status_code, answer.mimetype) == (200, "text/javascript")
    assert answer.headers["Cache-Control"] == "no-store"


def test_what_the_service_worker_keeps_is_there(client: FlaskClient) -> None:
    kept = re.findall(r'"(/static/[\w./-]+\.\w+)"', client.get("/sw.js").text)
    assert {"/static/away.html", "/static/ack.css"} <= set(kept)
    assert [client.get(path).status_code for path in kept] == [200] * len(kept)
