"""The document for Open WebUI's tool server, held to what its parser reads, and called as it calls.

`chat_program` does what Open WebUI does (backend/open_webui/utils/tools.py): one tool for each operation with
an operationId, of each parameter the type and a description, no servers, arguments joined into the query.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from enum import IntEnum
from typing import Annotated, Any, Literal

import pytest
import pytest_asyncio
from pydantic import BaseModel, Field

from kernel.plugins.loading import installed
from kernel.sdk import AUTHENTICATED, PUBLIC, Action, Context, Plugin, hookimpl
from kernel.testing import Actor, Running, platforms

pytestmark = pytest.mark.asyncio(loop_scope="module")

DOCUMENT = "/v1/ai/tools/openapi.json"
BASES = {"": DOCUMENT, "/v1/ai/tools": "/openapi.json"}
LONG = "a_name_of_seventy_characters_which_no_client_of_any_model_would_ever_t"
PLAIN = {"string", "integer", "number", "boolean"}


class Level(IntEnum):
    """Numbers with names."""

    LOW = 1
    HIGH = 2


class Inner(BaseModel):
    """Something inside."""

    name: str
    deeper: Inner | None = None


class Nasty(BaseModel):
    """Every shape that tool servers stumble over."""

    plain: str = Field("x", description="A text.")
    either: int | str = Field(0, description="A number or a text.")
    maybe: float | None = None
    colour: Literal["red", "green"] = "red"
    level: Level = Level.LOW
    power: Literal[1, 2, 4] = 1
    mixed: Literal[1, "one"] = 1
    only: Literal["this"] = "this"
    inside: Inner | None = None
    many: list[Inner] = []
    words: list[str] = []
    table: dict[str, int] = {}
    pair: tuple[int, str] = (1, "a")
    choice: Annotated[Inner | list[int], Field(description="An object or a list.")] = []
    anything: Any = None
    a_field_name_of_seventy_characters_which_is_too_long_for_some_clients_: bool = False


class Nothing(BaseModel):
    """No arguments."""


async def echo(_ctx: Context, parameters: Nasty) -> dict[str, Any]:
    return {"given": parameters.model_dump(mode="json", exclude_unset=True)}


async def whoami(ctx: Context, _given: Nothing) -> dict[str, Any]:
    return {"you": ctx.principal.username}


class Twisted(Plugin):
    """Actions with nasty shapes and names."""

    name = "twisted"

    @hookimpl
    def register_actions(self) -> Sequence[Action]:
        return [
            Action("echo", "Echoes. " * 40, Nasty, echo, access=PUBLIC, read_only=True),
            Action(LONG, "Is called long.", Nasty, echo, access=PUBLIC, read_only=True),
            Action(LONG + "x", "Is called longer.", Nasty, echo, access=PUBLIC, read_only=True),
            Action("with space/and-more", "Odd.", Nothing, whoami, access=PUBLIC, read_only=True),
            Action("whoami", "Who?", Nothing, whoami, access=AUTHENTICATED, read_only=True),
            Action("write", "Changes things.", Nothing, whoami, access=AUTHENTICATED),
        ]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    """A platform with every built-in plugin, and twisted actions."""
    async with platforms(tmp_path_factory.mktemp("server")) as start:
        yield await start(*(candidate.name for candidate in installed()), Twisted)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ann(running: Running) -> Actor:
    """The account whose key the chat program holds."""
    return await running.user("ann")


async def document(actor: Actor) -> dict[str, Any]:
    answer = await actor.get(DOCUMENT)
    assert answer.status == 200
    return dict(answer.json())


def operations(spec: dict[str, Any]) -> dict[str, tuple[str, str, dict[str, Any]]]:
    by_name = {}
    for path, methods in spec["paths"].items():
        for method, operation in methods.items():
            assert isinstance(operation, dict), "a path item holds methods and nothing else"
            if operation.get("operationId"):
                assert operation["operationId"] not in by_name, "the later of two would be dropped"
                by_name[operation["operationId"]] = (path, method, operation)
    return by_name


def tool_of(operation: dict[str, Any]) -> dict[str, Any]:
    """What the model is told of a tool."""
    properties, required = {}, []
    for parameter in operation.get("parameters", []):
        schema = parameter.get("schema", {})
        description = schema.get("description", "") or parameter.get("description") or ""
        if isinstance(schema.get("enum"), list):
            description += f". Possible values: {', '.join(schema['enum'])}"
        properties[parameter["name"]] = {"type": schema.get("type"), "description": description}
        if parameter.get("required"):
            required.append(parameter["name"])
    return {"properties": properties, "required": required}


async def chat_program(actor: Actor, base: str, name: str, **arguments: Any) -> Any:
    """Fetch the document below a base address and call a tool as Open WebUI does."""
    answer = await actor.get(base + BASES[base])
    assert answer.status == 200
    path, method, operation = operations(answer.json())[name]
    assert "requestBody" not in operation and method == "get"
    in_query = {parameter["name"] for parameter in operation["parameters"] if parameter["in"] == "query"}
    query = "&".join(f"{key}={value}" for key, value in arguments.items() if key in in_query)
    reply = await actor.get(f"{base}{path}{f'?{query}' if query else ''}")
    return reply.json() if reply.status < 400 else {"error": f"HTTP error {reply.status}: {reply.detail}"}


async def test_valid(ann: Actor) -> None:
    """It is OpenAPI, with read-only tools alone."""
    spec = await document(ann)
    assert spec["openapi"].startswith("3.1") and "$ref" not in str(spec)
    assert {"title", "version"} <= spec["info"].keys() and spec["servers"] == [{"url": "/"}]
    found = operations(spec)
    assert "twisted_echo" in found and "twisted_write" not in found
    assert all(len(operation["summary"]) <= 120 for _, _, operation in found.values())


async def test_rules_of_the_parser(ann: Actor) -> None:
    """Every built-in tool and every nasty one: names that fit, one plain type for each parameter."""
    for name, (_, method, operation) in operations(await document(ann)).items():
        assert method == "get" and re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name)
        assert operation["description"]
        for parameter in operation["parameters"]:
            schema = parameter["schema"]
            assert parameter["in"] == "query" and set(schema) <= {"type", "description", "enum"}, parameter
            assert schema["type"] in PLAIN, parameter
            assert all(isinstance(choice, str) for choice in schema.get("enum", ())), parameter
        assert tool_of(operation)["properties"].keys() >= set(tool_of(operation)["required"])


async def test_what_the_model_reads(ann: Actor) -> None:
    _, _, operation = operations(await document(ann))["twisted_echo"]
    told = tool_of(operation)["properties"]
    assert told["level"] == {"type": "integer", "description": "Numbers with names. One of 1, 2"}
    assert told["colour"]["description"].endswith("Possible values: red, green")
    assert "One of 1, 2, 4" in told["power"]["description"]
    assert told["words"]["type"] == "string" and "JSON" in told["words"]["description"]
    assert "name, deeper" in told["inside"]["description"]


@pytest.mark.parametrize("base", list(BASES), ids=["gateway", "mount"])
async def test_called(running: Running, ann: Actor, base: str) -> None:
    """Both ways of entering the address work, and every shape arrives as it was meant."""
    given = {
        "plain": "tea",
        "either": "7",
        "maybe": 1.5,
        "level": 2,
        "power": 4,
        "inside": '{"name":"a","deeper":{"name":"b"}}',
        "many": '[{"name":"a"}]',
        "words": '["a","b"]',
        "table": '{"a":1}',
        "choice": "[1,2]",
        "a_field_name_of_seventy_characters_which_is_too_long_for_some_clients_": True,
    }
    answer = await chat_program(running.anonymous, base, "twisted_echo", **given)
    assert answer["plugin"] == "twisted", answer
    assert answer["result"]["given"] == {
        **given,
        "inside": {"name": "a", "deeper": {"name": "b"}},
        "many": [{"name": "a"}],
        "words": ["a", "b"],
        "table": {"a": 1},
        "choice": [1, 2],
    }
    assert (await chat_program(ann, base, "twisted_whoami"))["result"] == {"you": "ann"}
    refused = await chat_program(running.anonymous, base, "twisted_whoami")
    assert refused["error"].startswith("HTTP error 401")
    wrong = await chat_program(running.anonymous, base, "twisted_echo", level=9)
    assert "'level'" in wrong["error"]


async def test_odd_names(running: Running) -> None:
    """Names that no path or tool could have are reached all the same."""
    for base in BASES:
        for name in operations(await document(running.anonymous)):
            if name.startswith("twisted") and name not in ("twisted_whoami",):
                answer = await chat_program(running.anonymous, base, name)
                assert answer.get("plugin") == "twisted", (name, answer)


async def test_preflight(running: Running) -> None:
    """A browser may ask with a key, as a user's own tool server in Open WebUI does."""
    asked = {
        "Origin": "https://chat.example.org",
        "Access-Control-Request-Method": "GET",
        "Access-Control-Request-Headers": "authorization,content-type",
    }
    answer = await running.anonymous.request("OPTIONS", DOCUMENT, headers=asked)
    assert answer.status == 204
    assert "authorization" in answer.headers["Access-Control-Allow-Headers"]


class TestFunctions:
    """One call, as programs make it that run the conversation themselves."""

    async def test_definitions(self, running: Running, ann: Actor) -> None:
        """Actions for everybody; with a token what is offered to the caller beside."""
        tools = (await running.anonymous.get("/v1/ai/functions/definitions")).json()["tools"]
        found = {tool["function"]["name"]: tool for tool in tools}
        assert found["twisted_write"]["metadata"]["method"] == "POST"
        assert found["twisted_echo"]["metadata"]["endpoint"] == "/v1/plugins/twisted/actions/echo"
        assert not [tool for tool in tools if tool["metadata"]["kind"] == "rag_pipeline"]

    @pytest.mark.parametrize(
        "body", [b'{"plain": "tea"}', b'{"parameters": {"plain": "tea"}}', b'{"plain":"tea"}\n']
    )
    async def test_call(self, running: Running, body: bytes) -> None:
        """Arguments, or an envelope of them."""
        answer = (await running.anonymous.post("/v1/ai/functions/twisted_echo", data=body)).json()
        assert answer["status"] == "success" and answer["timestamp"]
        result = {"plugin": "twisted", "action": "echo", "result": {"given": {"plain": "tea"}}}
        assert answer["result"] == result

    @pytest.mark.parametrize("body", [b"", b"nonsense", b"[1]", b"null"])
    async def test_no_arguments(self, running: Running, body: bytes) -> None:
        """What is absent or no object means none."""
        answer = (await running.anonymous.post("/v1/ai/functions/twisted_echo", data=body)).json()
        assert answer["result"]["result"] == {"given": {}}

    async def test_refusals(self, running: Running, ann: Actor) -> None:
        """Unknown 404, without a token 401, wrong arguments 400 with their name."""
        path = "/v1/ai/functions"
        assert (await ann.post(f"{path}/dance")).status == 404
        assert (await running.anonymous.post(f"{path}/twisted_whoami")).status == 401
        assert (await ann.post(f"{path}/twisted_write")).json()["result"]["result"] == {"you": "ann"}
        answer = await ann.post(f"{path}/twisted_echo", json={"level": 9})
        assert answer.status == 400 and "'level'" in answer.detail
