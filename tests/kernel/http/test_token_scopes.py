"""A credential that opens less than its account: what a route names, and what only a handler knows."""

from __future__ import annotations

from typing import Any

import pytest

from kernel.sdk import (
    AUTHENTICATED,
    PUBLIC,
    PUBLIC_OR_MORE,
    Context,
    Plugin,
    Principal,
    RouteTable,
    hookimpl,
)
from kernel.sdk.accounts import TokenScope
from kernel.sdk.http import ScopeMissing
from kernel.testing import Running, Start


class Narrow(Plugin):
    """`Narrow ask+tools` is the first account with these scopes; a route for each way to name them."""

    name = "narrow"

    @hookimpl
    def identify_actor(self, authorization: str | None) -> Principal | None:
        kind, _, scopes = (authorization or "").partition(" ")
        if kind != "Narrow":
            return None
        held: Any = frozenset(scopes.split("+"))
        return Principal("user", "1", 1, "ana", "user", scopes=held, credential="narrow:1")

    @hookimpl
    def register_routes(self) -> list[RouteTable]:
        table, closed = RouteTable("Narrow"), RouteTable("Closed", token_scopes=())
        scoped: tuple[tuple[str, tuple[TokenScope, ...]], ...] = (
            ("ask", ("ask",)),
            ("tools", ("tools",)),
            ("either", ("ask", "tools")),
            ("nobody", ()),
        )
        for name, scopes in scoped:
            path = f"/v1/narrow/{name}"
            table.get(path, access=AUTHENTICATED, returns=str, token_scopes=scopes)(_answer)
        table.get("/v1/narrow/default", access=AUTHENTICATED, returns=str)(_answer)
        table.get("/v1/narrow/public", access=PUBLIC, returns=str)(_answer)
        table.get("/v1/narrow/more", access=PUBLIC_OR_MORE, returns=str)(_answer)
        table.get("/v1/narrow/handler", access=AUTHENTICATED, returns=str, token_scopes=("ask",))(_tools)
        closed.get("/v1/narrow/closed", access=AUTHENTICATED, returns=str)(_answer)
        return [table, closed]


async def _answer(_ctx: Context) -> str:
    """Let in."""
    return "in"


async def _tools(ctx: Context) -> str:
    """Need more than the route says."""
    if not ctx.principal.allows("tools"):
        raise ScopeMissing(("tools",))
    return "in"


OPEN = {
    "ask": {"ask", "either", "public"},
    "tools": {"tools", "either", "public"},
    "manage": {"ask", "either", "public", "default", "more"},
    "ask+tools": {"ask", "tools", "either", "public", "handler"},
}
ROUTES = ("ask", "tools", "either", "nobody", "default", "public", "more", "handler", "closed")


async def status(running: Running, name: str, authorization: str) -> int:
    headers = {"Authorization": authorization}
    return (await running.anonymous.get(f"/v1/narrow/{name}", headers=headers)).status


@pytest.mark.parametrize("scopes", OPEN)
async def test_scopes(start_platform: Start, scopes: str) -> None:
    """A route opens to its own scopes alone, `manage` where it names none; a session has them all."""
    running = await start_platform(Narrow)
    ana = await running.user("ana")
    found = {name for name in ROUTES if await status(running, name, f"Narrow {scopes}") == 200}
    assert found == OPEN[scopes]
    assert {name for name in ROUTES if await status(running, name, f"Bearer {ana.token}") == 200} == {*ROUTES}


async def test_refusal_says_what_is_missing(start_platform: Start) -> None:
    """The text names the scope; where no scope helps, it says to sign in."""
    running = await start_platform(Narrow)
    headers = {"Authorization": "Narrow ask"}
    refused = await running.anonymous.get("/v1/narrow/tools", headers=headers)
    assert (refused.status, refused.json()["code"]) == (403, "token_scope_missing")
    assert "'tools'" in refused.detail
    assert "sign in" in (await running.anonymous.get("/v1/narrow/closed", headers=headers)).detail


async def test_documents_name_the_scopes(start_platform: Start) -> None:
    """The OpenAPI document says of each route what a personal access token needs there."""
    running = await start_platform("api_docs", Narrow)
    paths = (await running.anonymous.get("/openapi.json")).json()["paths"]
    assert paths["/v1/narrow/either"]["get"]["x-token-scopes"] == ["ask", "tools"]
    assert paths["/v1/narrow/closed"]["get"]["x-token-scopes"] == []
    assert "x-token-scopes" not in paths["/v1/narrow/public"]["get"]
    assert paths["/v1/auth/change-password"]["post"]["x-token-scopes"] == []
    assert paths["/v1/auth/refresh"]["post"]["x-token-scopes"] == []
