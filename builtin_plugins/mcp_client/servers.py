"""The servers of this process: what each currently offers, and its problems."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Protocol
from urllib.parse import urlsplit

from builtin_plugins.mcp_client.definitions import Definition, ToolUnfit, is_allowed, read_definition
from builtin_plugins.mcp_client.faults import ServerDenied, ServerFault, ServerRefused
from builtin_plugins.mcp_client.http import HttpConnection
from builtin_plugins.mcp_client.settings import McpClientSettings, ServerSettings
from builtin_plugins.mcp_client.stdio import StdioConnection
from kernel.sdk import OUTGOING, Platform, ResourceKey, lasting, set_within

log = logging.getLogger("platform.mcp_client")

_LIST_SECONDS, _LIST_FOR_SOMEBODY = 20.0, 3.0
_MOST_PAGES, _MOST_TOOLS = 20, 200
_FRESH_FOR, _PAUSE, _AFTER_A_FAULT = 60.0, 2.0, 10.0
_AT_ONCE = 8
_MOST_ASKERS = 1_000
_MOST_PROBLEMS = 10


class ServerConnection(Protocol):
    """A connection to one server."""

    async def ask(
        self, method: str, params: Mapping[str, Any], seconds: float, credential: str | None = None
    ) -> dict[str, Any]:
        """The result of a request."""

    async def close(self) -> None:
        """End it."""


class Server:
    """One server. Its failures only affect its own tools."""

    def __init__(self, name: str, settings: ServerSettings, secret: str | None) -> None:
        self.name = name
        self.settings = settings
        self.secret = secret
        self.connection: ServerConnection | None = None
        self.fault: str | None = "not asked yet"
        self.unfit: list[str] = []
        self._tools: dict[str | None, dict[str, Definition]] = {}
        self._pinned: dict[str | None, dict[str, str]] = {}
        self._woken = asyncio.Event()
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._asked_with: OrderedDict[str, float] = OrderedDict()

    @property
    def problem(self) -> str | None:
        """What an operator should know, in one text."""
        problems = [self.fault, *self.unfit] if self.fault else self.unfit
        return "; ".join(problems) or None

    @property
    def lists_for_accounts(self) -> bool:
        """Whether only accounts can list its tools, as the operator has no credential for it."""
        return self.settings.credentials == "account" and self.secret is None

    def tools_for(self, credential: str | None) -> Mapping[str, Definition]:
        """The tools to offer to whoever has this credential: what one account sees there is not another's."""
        own = self._tools.get(credential) if self.lists_for_accounts else None
        return self._tools.get(None, {}) if own is None else own

    async def refresh_for(self, credential: str) -> None:
        """List the tools with an account's credential: each only occasionally, and for a limited time.

        What the operator's credential lists is nobody else's.
        """
        if not self.lists_for_accounts:
            return
        last, now = self._asked_with.get(credential), time.monotonic()
        if last is not None and now - last < _FRESH_FOR:
            return
        self._asked_with[credential] = now
        self._asked_with.move_to_end(credential)
        if len(self._asked_with) > _MOST_ASKERS:
            oldest, _ = self._asked_with.popitem(last=False)
            self._tools.pop(oldest, None)
            self._pinned.pop(oldest, None)
        with suppress(TimeoutError):
            async with asyncio.timeout(_LIST_FOR_SOMEBODY):
                await self.refresh(credential)

    def wake(self) -> None:
        """List the tools again soon, after a notice that they have changed."""
        self._asked_with = OrderedDict.fromkeys(self._asked_with, float("-inf"))
        self._woken.set()

    async def keep_fresh(self) -> None:
        """List the tools now and then; a failing server is retried later."""
        while True:
            self._woken.clear()
            if not (self.lists_for_accounts and self._tools):
                await self.refresh(self.secret)
            pause = _FRESH_FOR if self.fault is None else _AFTER_A_FAULT
            await asyncio.sleep(_PAUSE)
            await set_within(self._woken, pause)

    async def refresh(self, credential: str | None) -> None:
        """List the tools. Errors are not raised, but kept in `problem`."""
        try:
            async with asyncio.timeout(_LIST_SECONDS):
                claimed = await self._list(credential)
        except ServerDenied as fault:
            # One account's wrong or missing credential says nothing about the server.
            if not self.lists_for_accounts:
                self._failed(str(fault))
            else:
                self._tools.pop(credential, None)
                self._recovered()
        except ServerRefused as refusal:
            self._failed(f"it refuses to list its tools: {refusal.message}")
        except ServerFault as fault:
            self._failed(str(fault))
        except TimeoutError:
            self._failed(f"it did not list its tools within {_LIST_SECONDS:g} s")
        else:
            self._take(claimed, credential if self.lists_for_accounts else None)
            return
        if self.connection is not None:
            await self.connection.close()

    async def call(self, tool: str, arguments: Mapping[str, Any], credential: str | None) -> dict[str, Any]:
        """The result of one call. Raises ServerFault, ServerRefused."""
        if self.connection is None:
            raise ServerFault("it is not connected")
        async with self._turns:
            params = {"name": tool, "arguments": dict(arguments)}
            return await self.connection.ask("tools/call", params, self.settings.seconds, credential)

    def _failed(self, fault: str) -> None:
        if fault != self.fault:
            log.warning("the MCP server '%s': %s", self.name, fault)
        self.fault, self._tools, self.unfit = fault, {}, []

    def _recovered(self) -> None:
        """Whoever asked a failing server in vain may ask at once."""
        if self.fault is not None:
            self.fault = None
            self._asked_with = OrderedDict.fromkeys(self._asked_with, float("-inf"))

    async def _list(self, credential: str | None) -> list[Any]:
        """All tools that the server claims to have."""
        if self.connection is None:
            raise ServerFault("it is not connected")
        all_tools: list[Any] = []
        cursor: Any = None
        for _ in range(_MOST_PAGES):
            params = {} if cursor is None else {"cursor": cursor}
            page = await self.connection.ask("tools/list", params, _LIST_SECONDS, credential)
            tools = page.get("tools")
            if not isinstance(tools, list):
                raise ServerFault("it sent an invalid list of tools")
            all_tools += tools
            cursor = page.get("nextCursor")
            if len(all_tools) > _MOST_TOOLS:
                raise ServerFault(f"it has more than {_MOST_TOOLS} tools")
            if cursor is None:
                return all_tools
        raise ServerFault(f"its list of tools has more than {_MOST_PAGES} pages")

    def _take(self, claimed: list[Any], credential: str | None) -> None:
        """Store what can be offered, and to whom. A tool whose description has changed is held back: trust in
        it was based on the earlier one.
        """
        tools: dict[str, Definition] = {}
        unfit: list[str] = []
        pinned = self._pinned.setdefault(credential, {})
        for item in claimed:
            try:
                tool = read_definition(item)
            except ToolUnfit as why:
                unfit.append(str(why))
                continue
            if not is_allowed(tool.name, self.settings.allow) or tool.name in tools:
                continue
            if pinned.setdefault(tool.name, tool.digest) != tool.digest:
                unfit.append(f"'{tool.name}' changed its description or schema; restart to accept it")
                continue
            tools[tool.name] = tool
        if unfit and unfit != self.unfit:
            log.warning("the MCP server '%s': %s", self.name, "; ".join(unfit[:_MOST_PROBLEMS]))
        self._tools[credential], self.unfit = tools, unfit[:_MOST_PROBLEMS]
        self._recovered()


SERVERS: ResourceKey[Mapping[str, Server]] = ResourceKey("mcp_client.servers")


@asynccontextmanager
async def open_servers(platform: Platform) -> AsyncIterator[Mapping[str, Server]]:
    """The resource `SERVERS`: each server is contacted in the background, so that none delays the start."""
    configured = platform.settings_of(McpClientSettings).servers
    servers = {
        name: Server(name, settings, _secret(platform, settings.secret))
        for name, settings in configured.items()
    }
    async with AsyncExitStack() as stack:
        for server in servers.values():
            server.connection = await _connect(platform, server, stack)
            stack.push_async_callback(server.connection.close)
        asking = [lasting(f"mcp {server.name}", server.keep_fresh) for server in servers.values()]
        try:
            yield servers
        finally:
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)


async def _connect(platform: Platform, server: Server, stack: AsyncExitStack) -> ServerConnection:
    settings = server.settings
    size = settings.answer_kb * 1024
    if settings.url is not None:
        parts = urlsplit(settings.url)
        outgoing = platform.resource(OUTGOING)
        # The operator configured this server, so it may be in the private network; only it is called.
        named = outgoing.client(f"mcp {server.name}", named=[settings.url], hosts=[parts.hostname or ""])
        return HttpConnection(await stack.enter_async_context(named), settings.url, body_bytes=size)
    secrets = {name: _secret(platform, key) or "" for name, key in settings.env_secrets.items()}
    return StdioConnection(
        settings.command or [],
        {**settings.env, **secrets},
        settings.folder,
        line_bytes=size,
        changed=server.wake,
    )


def _secret(platform: Platform, name: str | None) -> str | None:
    return None if name is None else platform.secrets.get(name)
