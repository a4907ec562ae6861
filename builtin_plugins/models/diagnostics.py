"""What `platformctl doctor` says about model servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from builtin_plugins.models.addresses import NamedRuntime
from builtin_plugins.models.connections.reach import check_server
from builtin_plugins.models.connections.rows import read_servers
from builtin_plugins.models.settings import ModelsSettings
from builtin_plugins.owner_secrets.api import secrets_of
from kernel.sdk import BadRequest, Diagnostic, Finding, Platform

_SECONDS = 5.0


async def check_connections(platform: Platform) -> AsyncIterator[Finding]:
    """Check that every connected model server answers, with its key."""
    if platform.settings_of(ModelsSettings).connectable == "none":
        return
    stored = await platform.database.read(read_servers, secrets_of(platform))
    failures = await asyncio.gather(*(_failure(platform, server) for server in stored.connections))
    for server, failure in zip(stored.connections, failures, strict=True):
        if failure is None:
            yield Finding("model server", "ok", f"'{server.name}' answers")
        else:
            text = f"'{server.name}' is connected, but its test fails: {failure.detail}"
            yield Finding("model server", "warning", text, f"platformctl models disconnect {server.name}")


async def _failure(platform: Platform, server: NamedRuntime) -> BadRequest | None:
    try:
        await check_server(platform, server.url, server.key, kind=server.kind, seconds=_SECONDS)
    except BadRequest as error:
        return error
    return None


DIAGNOSTICS = (Diagnostic("rows", check_connections),)
