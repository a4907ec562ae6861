"""The tools of other servers in the platform's catalog."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from builtin_plugins.mcp_client.credentials import credential_of, listing_credential
from builtin_plugins.mcp_client.definitions import Definition
from builtin_plugins.mcp_client.faults import ServerDenied, ServerFault, ServerRefused, ServerSlow
from builtin_plugins.mcp_client.servers import SERVERS, Server
from builtin_plugins.tools.api import Tool, tool_name
from kernel.sdk import (
    ADMIN,
    AUTHENTICATED,
    BadGateway,
    BadRequest,
    Context,
    Forbidden,
    GatewayTimeout,
    NotFound,
)

_LARGEST_ARGUMENTS = 256 * 1024
_LONGEST_REFUSAL = 2_000


async def offered(ctx: Context) -> list[Tool]:
    """The tools of all healthy servers, as far as the caller may see them."""
    tools = []
    for server in ctx.resource(SERVERS).values():
        credential = await listing_credential(ctx, server)
        if credential is not None:
            await server.refresh_for(credential)
        tools += [_tool(server, definition) for definition in server.tools_for(credential).values()]
    return tools


def _tool(server: Server, definition: Definition) -> Tool:
    settings = server.settings
    # A server's claims about its tools' safety count only if the operator trusts it.
    hints = definition.hints if settings.trusted else {}

    async def run(ctx: Context, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return await _call(ctx, server, definition, arguments)

    return Tool(
        tool_name("mcp", server.name, definition.name),
        definition.description or f"The tool '{definition.name}' of {server.name}.",
        definition.parameters,
        run,
        "mcp_client",
        action=f"{server.name}/{definition.name}",
        kind="mcp_server",
        access=ADMIN if settings.access == "admin" else AUTHENTICATED,
        read_only=hints.get("readOnlyHint") is True,
        destructive=hints.get("destructiveHint") is not False,
        idempotent=hints.get("idempotentHint") is True,
        open_world=hints.get("openWorldHint") is not False,
        seconds=settings.seconds + 15,
        per_minute=60,
        extra={"server": server.name},
    )


async def _call(
    ctx: Context, server: Server, definition: Definition, arguments: Mapping[str, Any]
) -> dict[str, Any]:
    current = server.tools_for(await listing_credential(ctx, server)).get(definition.name)
    if current is None or current.digest != definition.digest:
        raise NotFound(f"The tool '{definition.name}' of '{server.name}' no longer exists")
    if len(json.dumps(arguments, default=str)) > _LARGEST_ARGUMENTS:
        raise BadRequest(f"The arguments are larger than {_LARGEST_ARGUMENTS // 1024} KB")
    credential = await credential_of(ctx, server)
    try:
        result = await server.call(definition.name, arguments, credential)
    except ServerRefused as refusal:
        raise BadRequest(f"The server '{server.name}' refused the call: {refusal.message}") from None
    except ServerDenied:
        raise Forbidden(f"The server '{server.name}' refuses the credential; store another one") from None
    except ServerSlow as fault:
        server.wake()
        raise GatewayTimeout(f"The server '{server.name}': {fault}") from None
    except ServerFault as fault:
        server.wake()
        raise BadGateway(f"The server '{server.name}': {fault}") from None
    return _value(server, definition, result)


def _value(server: Server, definition: Definition, result: Mapping[str, Any]) -> dict[str, Any]:
    content = result.get("content")
    text = "\n".join(_texts(content if isinstance(content, list) else []))
    if result.get("isError") is True:
        raise BadRequest(
            text[:_LONGEST_REFUSAL] or f"The tool '{definition.name}' failed without giving a reason"
        )
    value: dict[str, Any] = {"server": server.name, "tool": definition.name, "text": text}
    structured = result.get("structuredContent")
    return value if structured is None else {**value, "data": structured}


def _texts(content: Sequence[Any]) -> list[str]:
    """Each part as text; anything else is named."""
    texts = []
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "text":
            texts.append(str(part.get("text", "")))
        elif kind == "resource" and isinstance(part.get("resource"), dict):
            texts.append(
                str(part["resource"].get("text") or f"[{part['resource'].get('uri', 'a resource')}]")
            )
        elif kind == "resource_link":
            texts.append(f"[{part.get('name', '')}] {part.get('uri', '')}")
        else:
            texts.append(f"[{kind or 'something'} that is not shown here]")
    return texts
