"""Calls that an older client cancels by a notification, as it may leave its connection open.

Clients number their calls from one, so a number alone is ambiguous. The session id tells the clients of one
account apart; nothing is stored for it, and the notice reaches the process that makes the call.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from builtin_plugins.mcp_server.protocol import RpcError, RpcRequest
from kernel.sdk import Context, Unit

CANCELLED: Final = RpcError(499, "The client cancelled the request")
_TOPIC: Final = "mcp_server.cancelled"
_SESSION: Final = "Mcp-Session-Id"


def session_headers(call: RpcRequest) -> Mapping[str, str]:
    """The headers in the answer to `initialize` that the client sends with all further requests."""
    return {_SESSION: secrets.token_urlsafe(24)} if call.method == "initialize" else {}


async def note(ctx: Context, notification: RpcRequest) -> None:
    """Cancel the call that the notification names, if it is of the same session."""
    if notification.method == "notifications/cancelled" and notification.era == "legacy":
        key = _key(ctx, notification.params.get("requestId"))
        if key is not None:
            await ctx.write(_tell, key)


def _tell(unit: Unit, key: str) -> None:
    unit.notify(_TOPIC, key)


@contextmanager
def heeding(ctx: Context, call: RpcRequest, task: asyncio.Task[Any]) -> Iterator[None]:
    """Within the block, the task is cancelled when its client cancels the call."""
    key = _key(ctx, call.id) if call.era == "legacy" else None

    def heed(notice: str) -> None:
        if notice == key:
            task.cancel()

    with ctx.platform.notices.listening(_TOPIC, heed):
        yield


def _key(ctx: Context, number: Any) -> str | None:
    """The key of one call among all clients'; None for a client without a session."""
    session = ctx.request.headers.get(_SESSION)
    if not session or not isinstance(number, str | int):
        return None
    whole = json.dumps([ctx.principal.subject, session, number])
    return hashlib.sha256(whole.encode()).hexdigest()
