"""A plugin with one route of every kind, for tests of what stands before and behind a handler."""

from __future__ import annotations

import asyncio
import ipaddress
import sys
from typing import Any

from aiohttp import web
from pydantic import BaseModel, Field

from kernel.sdk import (
    ADMIN,
    ADMIN_OR_SERVICE,
    AUTHENTICATED,
    PLATFORM_ADMIN,
    PUBLIC,
    Conflict,
    Context,
    Permission,
    Plugin,
    Rate,
    RawBody,
    RouteTable,
    hookimpl,
    permission,
)
from kernel.sdk.http import iter_body

GRANTED = Permission("echo.use", "Use the echo.", granted_to="user")
WITHHELD = Permission("echo.withheld", "Nobody has this one by default.", granted_to="nobody")


class EchoBody(BaseModel):
    """A body with a field of each kind."""

    name: str = Field(min_length=1, max_length=20)
    size: int = Field(1, ge=1, le=10)
    password: str | None = Field(None, min_length=8)
    anything: Any = None
    tags: list[str] = []


class EchoQuery(BaseModel):
    """A query with a list and a number."""

    word: str = ""
    limit: int = Field(50, ge=1, le=500)
    tags: list[str] = []


class Taken(Conflict):
    code = "taken"


class EchoPlugin(Plugin):
    """Answers with what it heard."""

    name = "echo"

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.go_on = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.received = 0

    @hookimpl
    def register_permissions(self) -> list[Permission]:
        return [GRANTED, WITHHELD]

    @hookimpl
    def register_routes(self) -> list[RouteTable]:
        return [_access_table(), _input_table(), self._behaviour_table()]

    def _behaviour_table(self) -> RouteTable:
        table = RouteTable("Behaviour")

        @table.get("/v1/echo/wait", access=PUBLIC, returns=str)
        async def wait(ctx: Context) -> str:
            """Answer when the test says so."""
            self.entered.set()
            try:
                await self.go_on.wait()
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
            return "done"

        @table.post("/v1/echo/count", access=PUBLIC, body=RawBody(("application/octet-stream",)), returns=int)
        async def count(ctx: Context) -> int:
            """Count the bytes of the body as they come."""
            async for chunk in iter_body(ctx.request, ctx.platform.settings.body_timeout):
                self.received += len(chunk)
                self.entered.set()
            return self.received

        @table.get("/v1/echo/boom", access=PUBLIC)
        async def boom(ctx: Context) -> None:
            """Fail in a way that nobody foresaw."""
            raise RuntimeError("the password of the database is hunter22")

        @table.get("/v1/echo/unfit", access=PUBLIC)
        async def unfit(ctx: Context) -> None:
            """Let a library refuse what the client didn't send."""
            ipaddress.ip_address("hunter22")

        @table.get("/v1/echo/exit", access=PUBLIC)
        async def leave(ctx: Context) -> None:
            """Use a library that was made for command lines."""
            sys.exit(2)

        @table.get("/v1/echo/reset", access=PUBLIC)
        async def reset(ctx: Context) -> None:
            """Lose a connection to a store."""
            raise ConnectionResetError("the store went away")

        @table.get("/v1/echo/taken", access=PUBLIC, errors=(Taken,))
        async def taken(ctx: Context) -> None:
            """Refuse with an error that the route declares."""
            raise Taken("the name is taken")

        @table.get("/v1/echo/rare", access=PUBLIC, returns=str, rate=Rate(2, per="ip"))
        async def rare(ctx: Context) -> str:
            """Answer twice a minute."""
            return "rare"

        @table.get("/v1/echo/page", access=PUBLIC, media_type="text/html", returns=str)
        async def page(ctx: Context) -> web.Response:
            """Answer a page with its own policy."""
            headers = {"Content-Security-Policy": "default-src 'self'"}
            return web.Response(text="<p>hello", content_type="text/html", headers=headers)

        return table


def _access_table() -> RouteTable:
    table = RouteTable("Access")
    kinds = {
        "open": PUBLIC,
        "private": AUTHENTICATED,
        "admin": ADMIN,
        "platform-admin": PLATFORM_ADMIN,
        "service": ADMIN_OR_SERVICE,
        "permitted": permission(GRANTED),
        "withheld": permission(WITHHELD),
    }
    for name, access in kinds.items():
        table.get(f"/v1/echo/{name}", access=access, returns=dict[str, Any])(_who)
    return table


async def _who(ctx: Context) -> dict[str, Any]:
    """Who asks."""
    principal = ctx.principal
    return {"kind": principal.kind, "subject": principal.subject, "ip": ctx.client_ip, "id": ctx.request_id}


def _input_table() -> RouteTable:
    table = RouteTable("Input")

    @table.post("/v1/echo/body", access=PUBLIC, body=EchoBody, returns=EchoBody)
    async def body(ctx: Context, body: EchoBody) -> EchoBody:
        """Answer the body."""
        return body

    @table.get("/v1/echo/query", access=PUBLIC, query=EchoQuery, returns=EchoQuery)
    async def query(ctx: Context, query: EchoQuery) -> EchoQuery:
        """Answer the query."""
        return query

    @table.get("/v1/echo/items/{item_id:int}", access=PUBLIC, returns=int)
    async def item(ctx: Context, item_id: int) -> int:
        """Answer the number."""
        return item_id

    @table.get("/v1/echo/things/{thing_id:uuid}", access=PUBLIC, returns=str)
    async def thing(ctx: Context, thing_id: str) -> str:
        """Answer the id."""
        return thing_id

    @table.post("/v1/echo/things/{thing_id:uuid}", access=AUTHENTICATED, returns=str)
    async def change(ctx: Context, thing_id: str) -> str:
        """Answer the id to whoever signed in."""
        return thing_id

    @table.get("/v1/echo/files/{path:path}", access=PUBLIC, returns=str)
    async def file(ctx: Context, path: str) -> str:
        """Answer the path."""
        return path

    @table.get("/v1/echo/names/{name}", access=PUBLIC, returns=str)
    async def name(ctx: Context, name: str) -> str:
        """Answer the name."""
        return name

    return table
