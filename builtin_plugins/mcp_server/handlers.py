"""`/mcp`, and the metadata by which a client learns how to sign in (RFC 9728)."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from aiohttp import hdrs, web
from pydantic import BaseModel, Field

from builtin_plugins.mcp_server import cancelling, methods
from builtin_plugins.mcp_server.origins import ForeignOrigin, check_origin
from builtin_plugins.mcp_server.protocol import (
    RpcError,
    RpcRequest,
    Unreadable,
    error_message,
    read_call,
    result_message,
    status_of,
)
from builtin_plugins.mcp_server.settings import McpServerSettings
from kernel.sdk import (
    PUBLIC,
    PUBLIC_OR_MORE,
    Context,
    PayloadTooLarge,
    PlatformError,
    RawBody,
    RouteTable,
    Unauthorized,
    UnsupportedMediaType,
    read_body,
    split_list,
)
from kernel.sdk.http import ErrorFormat, ScopeMissing

log = logging.getLogger("platform.mcp")

routes = RouteTable("MCP")

_LARGEST = 4 * 1024 * 1024
_MOST_VALUES = 100_000  # reading them blocks the event loop
# Seconds until an answer becomes a stream, and between its keep-alives: proxies cut silent connections.
_SOON, _ALIVE_EVERY = 2.0, 15.0
_METADATA = "/.well-known/oauth-protected-resource"


class ResourceMetadata(BaseModel):
    """OAuth 2.0 protected-resource metadata (RFC 9728)."""

    resource: str
    resource_name: str = "Platform"
    authorization_servers: list[str] = Field(
        [],
        exclude_if=lambda servers: not servers,  # clients refuse an empty one
        description="Where named by the operator; personal access tokens come from the platform itself.",
    )
    bearer_methods_supported: list[str] = ["header"]
    scopes_supported: list[str] = ["ask", "tools", "manage"]


class Refusal(BaseModel):
    """A platform error and a protocol error in one, as MCP clients only show the latter's text."""

    detail: Any
    code: str
    jsonrpc: str
    id: None
    error: dict[str, Any]


def _refuse(ctx: Context, error: PlatformError) -> web.Response:
    """The error for what is refused before a message is read."""
    rpc_error = error_message(RpcError.of(error), None)
    # The official Python client reads no error without an id, though the protocol has none here.
    body = {"detail": error.detail, "code": error.code, **rpc_error, "id": None}
    headers = dict(error.headers)
    if error.status == HTTPStatus.UNAUTHORIZED:
        wrong = "invalid_token" if hdrs.AUTHORIZATION in ctx.request.headers else None
        headers |= _challenge(ctx, wrong)
    return _json(body, error.status, headers)


def _challenge(ctx: Context, error: str | None) -> dict[str, str]:
    """How to sign in, or which scopes to sign in with again (RFC 6750, RFC 9728)."""
    wrong = "" if error is None else f'error="{error}", '
    where = f'resource_metadata="{_base(ctx)}{_METADATA}/mcp"'
    return {hdrs.WWW_AUTHENTICATE: f'Bearer {wrong}{where}, scope="ask tools"'}


@routes.post(
    "/mcp",
    access=PUBLIC_OR_MORE,
    body=RawBody(
        schema={"type": "object", "required": ["jsonrpc", "method"]},
        example={"jsonrpc": "2.0", "id": 1, "method": "ping"},
    ),
    returns=dict[str, Any],
    also_media_types=("text/event-stream",),
    also_statuses=(202,),
    errors=(ForeignOrigin, Unauthorized, PayloadTooLarge, UnsupportedMediaType, 404),
    long=True,
    any_origin=True,  # `check_origin` decides
    error_format=ErrorFormat(_refuse, Refusal, Refusal),
    token_scopes=("ask", "tools"),
    hidden=True,  # its errors are JSON-RPC's, and its clients read no OpenAPI
)
async def mcp(ctx: Context) -> web.StreamResponse:
    """One message of the Model Context Protocol, versions 2026-07-28 and 2025-11-25.

    Needs a session's token or a personal access token. Returns JSON; for a call that takes longer, a
    stream of server-sent events. Closing the connection cancels the call; an older client may also send
    `notifications/cancelled`.
    """
    check_origin(ctx)
    if ctx.principal.kind == "anonymous":
        raise Unauthorized()
    if ctx.request.content_type != "application/json":
        raise UnsupportedMediaType("Send application/json")
    patience = ctx.platform.settings.body_timeout
    raw = await read_body(ctx.request, _LARGEST, patience, most_values=_MOST_VALUES)
    try:
        call = read_call(raw, ctx.request.headers)
    except Unreadable as unreadable:
        error = unreadable.error
        return _json(error_message(error, unreadable.id), status_of(error, None))
    if call.id is None:
        await cancelling.note(ctx, call)
        return web.Response(status=202)
    return await _answer(ctx, call)


@routes.get(_METADATA, access=PUBLIC, returns=ResourceMetadata, any_origin=True)
async def protected_resource(ctx: Context) -> ResourceMetadata:
    """Metadata for OAuth clients of /mcp."""
    servers = ctx.settings_of(McpServerSettings).authorization_servers
    return ResourceMetadata(resource=f"{_base(ctx)}/mcp", authorization_servers=split_list(servers))


@routes.get(f"{_METADATA}/mcp", access=PUBLIC, returns=ResourceMetadata, any_origin=True)
async def protected_resource_of_mcp(ctx: Context) -> ResourceMetadata:
    """Metadata for OAuth clients of /mcp, at the path that RFC 9728 derives."""
    return await protected_resource(ctx)


def _base(ctx: Context) -> str:
    """The address at which this client reached us: it compares the answer with its own."""
    named = ctx.settings_of(McpServerSettings).public_url
    return named or f"{ctx.request.scheme}://{ctx.request.host}"


async def _answer(ctx: Context, call: RpcRequest) -> web.StreamResponse:
    """The answer to a request: at once if it comes soon, else as a stream with keep-alives."""
    task = asyncio.create_task(_outcome(ctx, call), name=f"mcp {call.method}")
    try:
        patient = "text/event-stream" in ctx.request.headers.get(hdrs.ACCEPT, "")
        with cancelling.heeding(ctx, call, task):
            await asyncio.wait({task}, timeout=_SOON if patient else None)
            if not task.done():
                return await _stream(ctx, task)
        if task.cancelled():
            return _json(error_message(cancelling.CANCELLED, call.id), 200)
        message, status = task.result()
        more = _challenge(ctx, "insufficient_scope") if status == HTTPStatus.FORBIDDEN else {}
        return _json(message, status, {**cancelling.session_headers(call), **more})
    finally:
        if not task.done():  # the client left, or its session ended
            task.cancel()
            await asyncio.wait({task})


async def _outcome(ctx: Context, call: RpcRequest) -> tuple[dict[str, Any], int]:
    try:
        result = await methods.serve(ctx, call)
    except RpcError as error:
        return error_message(error, call.id), status_of(error, call.era)
    except ScopeMissing as error:
        return error_message(RpcError.of(error), call.id), error.status
    return result_message(call, result, methods.server_info()), 200


async def _stream(ctx: Context, task: asyncio.Task[tuple[dict[str, Any], int]]) -> web.StreamResponse:
    headers = {
        hdrs.CONTENT_TYPE: "text/event-stream",
        hdrs.CACHE_CONTROL: "no-store",
        "X-Accel-Buffering": "no",
    }
    response = web.StreamResponse(headers=headers)
    await response.prepare(ctx.request)
    while not task.done():
        await response.write(b": still at work\r\n\r\n")
        await asyncio.wait({task}, timeout=_ALIVE_EVERY)
    if not task.cancelled():
        message, _ = task.result()
        data = json.dumps(message, ensure_ascii=False, default=str)
        await response.write(f"event: message\r\ndata: {data}\r\n\r\n".encode())
    await response.write_eof()
    return response


def _json(message: dict[str, Any], status: int, more: Mapping[str, str] | None = None) -> web.Response:
    body = json.dumps(message, ensure_ascii=False, default=str).encode()
    headers = {hdrs.CACHE_CONTROL: "no-store", **(more or {})}
    return web.Response(body=body, status=status, content_type="application/json", headers=headers)
