"""The OpenAPI document: valid, complete, and unharmed by one plugin's odd model."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel, ConfigDict

from builtin_plugins.api_docs.openapi import without_descriptions
from kernel.plugins.loading import installed
from kernel.sdk import PUBLIC, Context, Plugin, RawBody, RouteTable, Upload, hookimpl
from kernel.testing import Running, Start
from tests.fakes.echo import EchoPlugin

METHODS = {"get", "put", "post", "delete", "patch", "head", "options", "trace"}


async def document(running: Running) -> dict[str, Any]:
    answer = await running.anonymous.get("/openapi.json")
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")
    return dict(answer.json())


def operations(found: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [(p, m, op) for p, item in found["paths"].items() for m, op in item.items() if m in METHODS]


def references(value: Any) -> set[str]:
    if isinstance(value, dict):
        here = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return here.union(*map(references, value.values()))
    return set().union(*map(references, value)) if isinstance(value, list) else set()


@pytest.fixture(scope="module")
def documents() -> dict[str, dict[str, Any]]:
    """Those that were fetched: the first test that looks at one starts its platform."""
    return {}


@pytest.fixture(params=["echo", "built-in"])
async def found(
    request: pytest.FixtureRequest, start_platform: Start, documents: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """The document of a platform with a plugin of every kind of route, then of the built-in plugins."""
    if request.param not in documents:
        plugins = (
            ["api_docs", EchoPlugin]
            if request.param == "echo"
            else [candidate.name for candidate in installed()]
        )
        documents[request.param] = await document(await start_platform(*plugins))
    return documents[request.param]


class TestDocument:
    async def test_frame(self, found: dict[str, Any]) -> None:
        """The fields that OpenAPI 3.1 asks for, and no others at the top."""
        assert found["openapi"].startswith("3.1.")
        assert set(found["info"]) >= {"title", "version"}
        assert set(found) <= {"openapi", "info", "servers", "paths", "components", "security", "tags"}

    async def test_descriptions_stand_alone(self, found: dict[str, Any]) -> None:
        assert re.findall(r"\bspec \d|wire-facts|decisions\.md", json.dumps(found)) == []

    async def test_references_lead_somewhere(self, found: dict[str, Any]) -> None:
        known = {f"#/components/schemas/{name}" for name in found["components"]["schemas"]}
        assert references(found) <= known

    async def test_schemas_are_schemas(self, found: dict[str, Any]) -> None:
        """Every schema is valid JSON Schema 2020-12, as OpenAPI 3.1 wants it."""
        for schema in found["components"]["schemas"].values():
            Draft202012Validator.check_schema(schema)
        for _, _, operation in operations(found):
            for parameter in operation.get("parameters", []):
                Draft202012Validator.check_schema(parameter["schema"])

    async def test_operations(self, found: dict[str, Any]) -> None:
        """Each has its own id, a summary, a tag, its path's parameters, answers with descriptions."""
        ids = [operation["operationId"] for _, _, operation in operations(found)]
        assert len(ids) == len(set(ids))
        for path, method, operation in operations(found):
            place = f"{method} {path}"
            assert operation["summary"] and operation["tags"], place
            whole = " ".join(operation["description"].split())
            assert whole.startswith(f"{operation['summary']}."), "the summary is not the first sentence"
            named = {p["name"] for p in operation.get("parameters", []) if p["in"] == "path"}
            assert named == {part[1:-1] for part in path.split("/") if part.startswith("{")}, place
            assert all(p["required"] for p in operation.get("parameters", []) if p["in"] == "path"), place
            assert operation["responses"], place
            for status, response in operation["responses"].items():
                assert status.isdecimal() and response["description"], place

    async def test_names_fit(self, found: dict[str, Any]) -> None:
        """Names of schemas hold only what OpenAPI allows in a component's name."""
        import re

        assert all(re.fullmatch(r"[A-Za-z0-9._-]+", name) for name in found["components"]["schemas"])

    async def test_security(self, found: dict[str, Any]) -> None:
        """Each operation says whether it needs a token, by a scheme that is declared."""
        schemes = set(found["components"]["securitySchemes"])
        for path, method, operation in operations(found):
            used = {name for requirement in operation["security"] for name in requirement}
            assert used <= schemes, f"{method} {path}"
        security = {path: found["paths"][path]["post"]["security"] for path in _POSTS}
        assert security == _POSTS


# What is open has no padlock; what looks at a token by itself is asked for one like the rest.
_POSTS: dict[str, list[dict[str, list[str]]]] = {
    "/v1/auth/login": [],
    "/v1/auth/refresh": [{"bearer": []}],
    "/v1/auth/change-password": [{"bearer": []}],
}


class TestErrors:
    async def test_the_codes_of_a_422(self, start_platform: Start) -> None:
        running = await start_platform("api_docs", EchoPlugin)
        found = await document(running)
        answer = await running.anonymous.post("/v1/echo/body", json={"name": ""})
        declared = found["paths"]["/v1/echo/body"]["post"]["responses"]["422"]
        schema = declared["content"]["application/json"]["schema"]
        Draft202012Validator({**schema, "components": found["components"]}).validate(answer.json())


def model(name: str, module: str = __name__, **fields: type) -> type[BaseModel]:
    return type(name, (BaseModel,), {"__annotations__": fields, "__doc__": name, "__module__": module})


class Offers(Plugin):
    """A plugin with one route that answers a given type."""

    name = "offers"

    def __init__(self, name: str, returns: Any) -> None:
        self.name = name
        self._returns = returns

    @hookimpl
    def register_routes(self) -> list[RouteTable]:
        table = RouteTable("Offers")

        @table.get(f"/v1/{self.name}", access=PUBLIC, returns=self._returns)
        async def index(ctx: Context) -> None:
            """Offer something."""

        return [table]


class TestOddModels:
    async def test_two_of_one_name(self, start_platform: Start) -> None:
        """Two plugins may each have a `Thing`: each route shows its own."""
        first, second = model("Thing", colour=str), model("Thing", weight=int)
        running = await start_platform(
            "api_docs", Offers("first", list[first]), Offers("second", list[second])
        )  # type: ignore[valid-type]
        found = await document(running)

        def properties(path: str) -> set[str]:
            answer = found["paths"][path]["get"]["responses"]["200"]
            schema = answer["content"]["application/json"]["schema"]["items"]
            name = schema["$ref"].rpartition("/")[2]
            return set(found["components"]["schemas"][name]["properties"])

        assert (properties("/v1/first"), properties("/v1/second")) == ({"colour"}, {"weight"})

    async def test_no_title_twice(self, found: dict[str, Any]) -> None:
        """Generators of clients name classes after titles, and leave out the second one of a title."""
        titles = Counter(schema.get("title") for schema in found["components"]["schemas"].values())
        assert [title for title, count in titles.items() if count > 1] == []

    async def test_titles_of_one_name(self, start_platform: Start) -> None:
        """Schemas of one name get titles with the part that differs; other titles stay."""
        things = [
            model("Thing", "acme.notes.schemas", text=str),
            model("Thing", "acme.boards.schemas", width=int),
            model("Other", "acme", size=int),
        ]
        plugins = [Offers(f"offers_{number}", thing) for number, thing in enumerate(things)]
        found = (await document(await start_platform("api_docs", *plugins)))["components"]["schemas"]
        assert {name: found[name]["title"] for name in found if name.endswith(("Thing", "Other"))} == {
            "acme__notes__schemas__Thing": "Thing (notes)",
            "acme__boards__schemas__Thing": "Thing (boards)",
            "Other": "Other",
        }

    async def test_one_that_has_no_schema(self, start_platform: Start) -> None:
        """A model that can't be described leaves its own route out of the document, and no other."""

        class Odd(BaseModel):
            """Holds a function."""

            model_config = ConfigDict(arbitrary_types_allowed=True)
            call: Callable[[], None]

        running = await start_platform("api_docs", Offers("odd", Odd), Offers("even", int))
        found = await document(running)
        assert "/v1/even" in found["paths"]


class Takes(Plugin):
    """A plugin with a route for each of these bodies, by its last word."""

    name = "takes"

    def __init__(self, **bodies: Any) -> None:
        self.bodies = bodies

    @hookimpl
    def register_routes(self) -> list[RouteTable]:
        table = RouteTable("Takes")
        for name, body in self.bodies.items():

            @table.post(f"/v1/takes/{name}", access=PUBLIC, body=body, returns=int)
            async def take(ctx: Context) -> int:
                """Take something."""
                return 1

        return [table]


async def test_bodies_and_their_examples(start_platform: Start) -> None:
    """An example of every media type that has one; that of a form is with its parts and in curl's words."""
    title = {"type": "string", "description": "What it is called."}
    forms = ("application/x-www-form-urlencoded", "multipart/form-data")
    takes = Takes(
        plain=Upload(),
        part=Upload(fields={"title": title}, example={"title": "Minutes"}),
        whole=Upload(
            fields={"old": {"type": "boolean"}}, file="Minutes.", example={"file": "a b.md", "old": True}
        ),
        raw=RawBody(("application/json", "text/csv", *forms), {"description": "Anything."}, example={"a": 1}),
        texts=RawBody(("text/csv", "text/yaml"), more_examples={"text/yaml": "a: 1"}),
        form=RawBody(
            forms, {"type": "object", "properties": {"a": {"description": "A."}}}, example={"a": "1"}
        ),
    )
    paths = (await document(await start_platform("api_docs", takes)))["paths"]
    found = {name: paths[f"/v1/takes/{name}"]["post"]["requestBody"] for name in takes.bodies}

    def shown(name: str) -> dict[str, Any]:
        return {key: media.get("example") for key, media in found[name]["content"].items()}

    def parts(name: str, media_type: str = forms[1]) -> Any:
        return found[name]["content"][media_type]["schema"].get("properties")

    file = {"type": "string", "format": "binary", "contentMediaType": "application/octet-stream"}
    named = {**file, "description": "The file, with its name."}
    assert (shown("plain"), parts("plain")) == ({forms[1]: None}, {"file": named})
    assert shown("part") == {forms[1]: {"title": "Minutes"}}
    assert parts("part") == {"file": named, "title": {**title, "examples": ["Minutes"]}}
    assert shown("whole") == {forms[1]: {"file": "a b.md", "old": True}}
    assert parts("whole") == {
        "file": {**file, "description": "Minutes.", "examples": ["a b.md"]},
        "old": {"type": "boolean", "examples": [True]},
    }
    assert {name: body["description"] for name, body in found.items() if "description" in body} == {
        "part": "With curl: `-F title=Minutes`",
        "whole": "With curl: `-F file='@a b.md' -F old=true`",
        "raw": "Anything.",
    }
    assert shown("raw") == {"application/json": {"a": 1}, "text/csv": None, forms[0]: None, forms[1]: None}
    assert shown("texts") == {"text/csv": None, "text/yaml": "a: 1"}
    assert (shown("form"), parts("form")) == (
        {forms[0]: {"a": "1"}, forms[1]: None},
        {"a": {"description": "A."}},
    )
    assert parts("form", forms[0]) == {"a": {"type": "string", "description": "A.", "examples": ["1"]}}


class Plays(Plugin):
    """Its route answers with bytes in two formats."""

    name = "plays"

    @hookimpl
    def register_routes(self) -> list[RouteTable]:
        table = RouteTable("Plays")

        @table.get(
            "/v1/plays",
            access=PUBLIC,
            returns=bytes,
            media_type="audio/wav",
            also_media_types=("audio/mpeg",),
        )
        async def index(ctx: Context) -> bytes:
            """Play something."""
            return b""

        return [table]


async def test_bytes_in_several_formats(start_platform: Start) -> None:
    """All formats of one response are bytes, so that generated clients don't decode any as text."""
    found = await document(await start_platform("api_docs", Plays))
    content = found["paths"]["/v1/plays"]["get"]["responses"]["200"]["content"]
    assert content == {
        media_type: {"schema": {"type": "string", "format": "binary"}}
        for media_type in ("audio/wav", "audio/mpeg")
    }


def test_without_descriptions() -> None:
    """Free text goes; a field that is called `description` stays."""
    schema = {
        "description": "text",
        "summary": "text",
        "title": "Thing",
        "properties": {"description": {"type": "string", "description": "text"}},
        "required": ["description"],
    }
    assert without_descriptions(json.loads(json.dumps(schema))) == {
        "title": "Thing",
        "properties": {"description": {"type": "string"}},
        "required": ["description"],
    }
