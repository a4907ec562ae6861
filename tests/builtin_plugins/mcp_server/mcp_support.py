"""A client of both eras by hand; every message that it sends or receives is held to the published schemas."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from pydantic import BaseModel

from builtin_plugins.tools.api import Tool
from kernel.sdk import AUTHENTICATED, PUBLIC, Action, BadRequest, Context, Plugin, hookimpl
from kernel.testing import Actor, Reply, Running

MODERN, LEGACY = "2026-07-28", "2025-11-25"
META = "io.modelcontextprotocol/"
SCHEMAS = Path(__file__).parent / "schemas"
RESULTS = {
    "server/discover": "DiscoverResult",
    "initialize": "InitializeResult",
    "ping": "EmptyResult",
    "tools/list": "ListToolsResult",
    "tools/call": "CallToolResult",
    "resources/list": "ListResourcesResult",
    "resources/templates/list": "ListResourceTemplatesResult",
    "resources/read": "ReadResourceResult",
}
REQUESTS = {
    "server/discover": "DiscoverRequest",
    "initialize": "InitializeRequest",
    "ping": "PingRequest",
    "tools/list": "ListToolsRequest",
    "tools/call": "CallToolRequest",
    "resources/list": "ListResourcesRequest",
    "resources/templates/list": "ListResourceTemplatesRequest",
    "resources/read": "ReadResourceRequest",
}
STRANGE = {"initialize": (MODERN,), "ping": (MODERN,), "server/discover": (LEGACY,)}  # to these eras
NAMED = {"tools/call": "name", "resources/read": "uri"}


@cache
def validator(version: str, name: str) -> Draft202012Validator:
    """The published schema of one type."""
    schema = json.loads((SCHEMAS / f"{version}.json").read_text(encoding="utf-8"))
    return Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": schema["$defs"]})


@dataclass
class Peer:
    """An account's client of one era."""

    actor: Actor
    version: str = MODERN
    numbers: Any = field(default_factory=lambda: itertools.count(1))

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of a request. Fails for anything else."""
        reply = await self.send(method, **params)
        assert reply.status == 200, reply.body
        message = reply.json()
        assert "result" in message, message
        return dict(message["result"])

    async def refused(self, method: str, status: int, code: int, **params: Any) -> dict[str, Any]:
        """The error of a request."""
        reply = await self.send(method, **params)
        error = reply.json()["error"]
        assert (reply.status, error["code"]) == (status, code), reply.body
        return dict(error)

    async def send(
        self, method: str, headers: Mapping[str, str | None] | None = None, **params: Any
    ) -> Reply:
        """Send a request as the era wants it, with these headers changed; the answer is a valid message."""
        body = self.message(method, params)
        if self.version not in STRANGE.get(method, ()):
            validator(self.version, REQUESTS.get(method, "JSONRPCRequest")).validate(body)
        reply = await self.post(body, self.headers(body) | (headers or {}))
        self.check(method, body["id"], reply)
        return reply

    def message(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The body of a request."""
        if self.version == MODERN:
            capabilities: dict[str, Any] = {}
            meta = {
                f"{META}protocolVersion": self.version,
                f"{META}clientInfo": {"name": "hand", "version": "1"},
                f"{META}clientCapabilities": capabilities,
            }
            params = {**params, "_meta": meta}
        return {"jsonrpc": "2.0", "id": next(self.numbers), "method": method, "params": params}

    def headers(self, body: Mapping[str, Any]) -> dict[str, str | None]:
        """The headers that go with a body."""
        found: dict[str, str | None] = {"MCP-Protocol-Version": self.version}
        if self.version == MODERN:
            found["Mcp-Method"] = body["method"]
            name = NAMED.get(body["method"])
            found |= {"Mcp-Name": body["params"][name]} if name else {}
        return found

    async def post(self, body: Any, headers: Mapping[str, str | None]) -> Reply:
        """Whatever the address answers."""
        sent = {"Accept": "application/json, text/event-stream", **headers}
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"Content-Type": "application/json", **sent}
        return await self.actor.post(
            "/mcp", data=data, headers={name: value for name, value in sent.items() if value is not None}
        )

    def check(self, method: str, number: int, reply: Reply) -> None:
        """Hold an answer to the schemas."""
        message = reply.json()
        if "error" in message:
            validator(self.version, "JSONRPCErrorResponse").validate(message)
            return
        assert message["id"] == number
        validator(self.version, "JSONRPCResultResponse").validate(message)
        validator(self.version, RESULTS[method]).validate(message["result"])


class Nothing(BaseModel):
    """No arguments."""


class Weather(BaseModel):
    """Arguments of a tool."""

    city: str
    days: int = 1


class Workshop(Plugin):
    """Tools of every kind, among them those that the conformance runner asks for."""

    name = "workshop"

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.ended = asyncio.Event()
        self.go_on = asyncio.Event()

    @hookimpl
    def register_actions(self) -> list[Action]:
        return [
            Action("weather", "The weather.", Weather, _weather, access=PUBLIC, read_only=True),
            Action("refuse", "Always refuses.", Nothing, _refuse, access=AUTHENTICATED, read_only=True),
            Action("erase", "Erases things.", Nothing, _erase, access=AUTHENTICATED, destructive=True),
            Action("wait", "Waits.", Nothing, self._wait, access=AUTHENTICATED, read_only=True),
            Action("crash", "Fails.", Nothing, _crash, access=AUTHENTICATED, read_only=True),
        ]

    @hookimpl
    def offer_tools(self, ctx: Context) -> Sequence[Tool]:
        dialect = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {
                "address": {
                    "$anchor": "addressDef",
                    "type": "object",
                    "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
                }
            },
            "properties": {
                "name": {"type": "string"},
                "address": {"$ref": "#/$defs/address"},
                "contactMethod": {"type": "string", "enum": ["phone", "email"]},
                "phone": {"type": "string", "x-mcp-header": "Phone"},
                "email": {"type": "string"},
            },
            "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
            "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
            "then": {"required": ["phone"]},
            "else": {"required": ["email"]},
            "additionalProperties": False,
        }
        empty = {"type": "object", "properties": {}}
        return [
            Tool("test_simple_text", "Says something.", empty, _simple, "workshop"),
            Tool("test_error_handling", "Always fails.", empty, _fail, "workshop"),
            Tool("json_schema_2020_12_tool", "Takes an address.", dialect, _simple, "workshop"),
        ]

    async def _wait(self, _ctx: Context, _nothing: Nothing) -> str:
        self.entered.set()
        try:
            await self.go_on.wait()
        finally:
            self.ended.set()
        return "done"


async def _weather(ctx: Context, wanted: Weather) -> dict[str, Any]:
    told = {"city": wanted.city, "days": wanted.days, "for": ctx.principal.username}
    return told if wanted.city != "Nowhere" else {**told, "degrees": float("nan")}


async def _refuse(_ctx: Context, _nothing: Nothing) -> None:
    raise BadRequest("the shop is closed")


async def _erase(_ctx: Context, _nothing: Nothing) -> str:
    return "erased"


async def _crash(_ctx: Context, _nothing: Nothing) -> None:
    raise RuntimeError("password=hunter2")


async def _simple(_ctx: Context, _arguments: Mapping[str, Any]) -> str:
    return "This is a simple text response for testing."


async def _fail(_ctx: Context, _arguments: Mapping[str, Any]) -> None:
    raise BadRequest("This tool intentionally returns an error for testing")


async def program(actor: Actor, *scopes: str) -> Actor:
    """A program of somebody's, with a token of these scopes."""
    body = {"name": "mcp", **({"scopes": scopes} if scopes else {})}
    answer = await actor.post("/v1/auth/tokens", json=body)
    assert answer.status == 201, answer.body
    return Actor(actor.running, answer.json()["token"], actor.user)


def workshop_of(running: Running) -> Workshop:
    """The plugin of a running platform."""
    return next(
        record.instance for record in running.platform.plugins if isinstance(record.instance, Workshop)
    )
