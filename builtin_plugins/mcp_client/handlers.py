"""`/v1/mcp/servers`: the servers whose tools are offered, and the caller's credentials for them."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field, SecretStr

from builtin_plugins.mcp_client import credentials
from builtin_plugins.mcp_client.servers import SERVERS, Server
from builtin_plugins.tools.api import tool_name
from kernel.sdk import (
    AUTHENTICATED,
    Body,
    Conflict,
    Context,
    Forbidden,
    NotFound,
    RouteTable,
    example,
)

routes = RouteTable("MCP servers")


class ServerNotFound(NotFound):
    """No server of this name is configured."""

    code = "mcp_server_not_found"
    default_detail = "MCP server not found"


class NoCredentialNeeded(Conflict):
    """The server is called with the operator's credential."""

    code = "no_credential_needed"
    default_detail = "This server is called with the operator's credential; yours would not be used"


class McpServerOut(BaseModel):
    """A server whose tools are offered."""

    name: str
    kind: Literal["program", "address"]
    status: Literal["healthy", "unhealthy"]
    problem: str | None = Field(description="For administrators: what is wrong with the server.")
    tools: list[str] = Field(
        description="The names under which its tools are called; those that you may see."
    )
    credentials: Literal["operator", "account"] = Field(
        description="`account`: each account stores its own credential."
    )
    credential_stored: bool


class McpServerList(BaseModel):
    """The configured MCP servers."""

    servers: list[McpServerOut]


def _sendable(value: SecretStr) -> SecretStr:
    if not re.fullmatch(r"[\x20-\x7e]+", value.get_secret_value()):
        raise ValueError("must be printable ASCII, as a header is")
    return value


class CredentialIn(Body):
    """The caller's credential for a server."""

    model_config = example(token="the bearer token that the server gave you")

    token: Annotated[SecretStr, AfterValidator(_sendable)] = Field(
        min_length=1, max_length=8192, description="Sent to the server as a bearer token."
    )


@routes.get("/v1/mcp/servers", access=AUTHENTICATED, returns=McpServerList, token_scopes=("tools",))
async def list_mcp_servers(ctx: Context) -> McpServerList:
    """List the MCP servers whose tools are offered, with their state."""
    stored = await credentials.stored_for(ctx)
    servers = ctx.resource(SERVERS).values()
    return McpServerList(
        servers=[await _server_view(ctx, server, server.name in stored) for server in servers]
    )


@routes.put(
    "/v1/mcp/servers/{name}/credential",
    access=AUTHENTICATED,
    body=CredentialIn,
    status=204,
    errors=(ServerNotFound, NoCredentialNeeded, Forbidden),
    token_scopes=(),
)
async def store_mcp_credential(ctx: Context, name: str, body: CredentialIn) -> None:
    """Store the caller's own credential for a server, encrypted. It is used only for the caller's calls."""
    server, account_id = _named(ctx, name), _account(ctx)
    if server.settings.credentials == "operator":
        raise NoCredentialNeeded()
    await credentials.store(ctx, account_id, server, body.token)
    await server.refresh_for(body.token.get_secret_value())


@routes.delete(
    "/v1/mcp/servers/{name}/credential",
    access=AUTHENTICATED,
    status=204,
    errors=(ServerNotFound, NotFound, Forbidden),
    token_scopes=(),
)
async def forget_mcp_credential(ctx: Context, name: str) -> None:
    """Delete the caller's credential for a server."""
    if not await credentials.forget(ctx, _account(ctx), _named(ctx, name)):
        raise NotFound("You have not stored a credential for this server")


async def _server_view(ctx: Context, server: Server, stored: bool) -> McpServerOut:
    problem = server.problem
    tools = server.tools_for(await credentials.listing_credential(ctx, server))
    return McpServerOut(
        name=server.name,
        kind="address" if server.settings.url else "program",
        status="unhealthy" if problem else "healthy",
        problem=problem if ctx.principal.is_admin or ctx.principal.platform_admin else None,
        tools=[tool_name("mcp", server.name, tool) for tool in tools],
        credentials=server.settings.credentials,
        credential_stored=stored,
    )


def _named(ctx: Context, name: str) -> Server:
    server = ctx.resource(SERVERS).get(name)
    if server is None:
        raise ServerNotFound()
    return server


def _account(ctx: Context) -> int:
    if ctx.principal.id is None:
        raise Forbidden("A service has no credentials of its own")
    return ctx.principal.id
