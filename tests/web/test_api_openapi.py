"""The description of the API is what the API does."""

import re
from typing import Any

import pytest

from escalade.config import Config
from escalade.db import Database
from tests import factories
from tests.web.serving import Api, api, make_app


@pytest.fixture
def caller(database: Database, config: Config) -> Api:
    return api(database, config)


@pytest.fixture
def document(caller: Api) -> Any:
    response = caller.client.get("/api/openapi.json", headers={"Authorization": f"Bearer {caller.secret}"})
    assert response.status_code == 200
    return response.get_json()


def test_every_route_is_described_and_nothing_else(database: Database, config: Config, document: Any) -> None:
    routes = {
        (re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", str(rule)), method)
        for rule in make_app(database, config).url_map.iter_rules()
        if str(rule).startswith("/api/")
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    described = {(path, method.upper()) for path, methods in document["paths"].items() for method in methods}
    assert described == routes


def test_every_part_of_an_address_is_a_parameter(document: Any) -> None:
    for path, methods in document["paths"].items():
        for operation in methods.values():
            named = {one["name"] for one in operation.get("parameters", []) if one["in"] == "path"}
            assert named == set(re.findall(r"{(\w+)}", path))


def test_every_reference_leads_somewhere(document: Any) -> None:
    for name in re.findall(r"#/[\w/]+", str(document)):
        place = document
        for part in name[2:].split("/"):
            place = place[part]


def test_what_is_shown_has_exactly_the_properties_described(caller: Api, database: Database, document: Any) -> None:
    incident = factories.open_incident(database, factories.ladder(database, "http://127.0.0.1:9"))
    shown = caller.get(f"/incidents/{incident.id}")
    schemas = document["components"]["schemas"]
    fits(shown["incident"], schemas["Incident"])
    for attempt in shown["attempts"]:
        fits(attempt, schemas["Attempt"])
    done = caller.post(f"/incidents/{incident.id}/acknowledge")
    assert set(done) == set(schemas["Answer"]["properties"])
    fits(caller.get("/incidents/0", 404), schemas["Error"])


def fits(value: dict[str, Any], schema: dict[str, Any]) -> None:
    """The value has the properties of the schema, each of one of its types."""
    assert set(value) == set(schema["properties"]) == set(schema["required"])
    kinds = {"string": str, "integer": int, "boolean": bool, "null": type(None)}
    for name, inner in schema["properties"].items():
        types = inner["type"] if isinstance(inner["type"], list) else [inner["type"]]
        assert isinstance(value[name], tuple(kinds[kind] for kind in types)), name
        if "enum" in inner:
            assert value[name] in inner["enum"], name
