"""The catalog of tools, and the single entrance through which all clients call them.

Function definitions, tool servers, chats, the routes of actions and the command line all use this list
and this entrance: through a model, a caller may do what it may do through the routes, and nothing more.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from pydantic_core import to_jsonable_python

from kernel.sdk import (
    ANY_ERROR,
    RATE_LIMITS,
    Action,
    Context,
    Forbidden,
    GatewayTimeout,
    NotFound,
    Platform,
    PlatformError,
    ResourceKey,
    Unauthorized,
)
from kernel.sdk.http import Access, ScopeMissing, require_access

from .arguments import arguments_from_object
from .directory import Directory
from .hookspecs import check_tool_call, offer_tools, on_tool_called
from .parameters import parameters_schema
from .tool import Tool, distinct_name, tool_name

log = logging.getLogger("platform.tools")

READS_PER_MINUTE, WRITES_PER_MINUTE = 30, 20
LONGEST_TEXT = 4000

_CUT = " … [the rest is cut off]"


@dataclass(frozen=True, slots=True)
class ToolReply:
    """The outcome of a call as a model reads it: at most 4,000 characters (wire-facts 8.2).

    `value` is the whole result; None if the call failed. The text of a failure begins with ``error:``.
    """

    text: str
    value: Any = None
    failed: bool = False


class Tools:
    """The tools of one platform, as ``platform.resource(TOOLS)``."""

    def __init__(self, platform: Platform) -> None:
        self._directory = Directory(platform)
        self._hooks = platform.hooks
        self._limits = platform.resource(RATE_LIMITS)
        self._action_tools: dict[tuple[str, str], tuple[Action, Tool]] = {}

    async def declared(self) -> list[Tool]:
        """The actions of all plugins in service, whoever may call them, under unique names."""
        actions = await self._directory.actions()
        return _unique([self._of_action(plugin, action) for plugin, action in actions])

    def out_of_service(self) -> list[Tool]:
        """The actions of disabled plugins, which nobody may call now."""
        return _unique([self._of_action(*pair) for pair in self._directory.actions_out_of_service()])

    async def offered(self, ctx: Context) -> list[Tool]:
        """Every action, and the other tools that plugins offer to this caller (`offer_tools`)."""
        return _unique([*await self.declared(), *await self._brought(ctx)])

    async def usable(self, ctx: Context) -> list[Tool]:
        """The tools that the caller may call now."""
        allowed: dict[Access, bool] = {}
        opened = [tool for tool in await self.offered(ctx) if ctx.principal.allows(*tool.token_scopes)]
        return [tool for tool in opened if await self._may(ctx, tool.access, allowed)]

    async def find(self, ctx: Context, name: str) -> Tool:
        """An offered tool by its name. Raises NotFound."""
        tool = next((tool for tool in await self.declared() if tool.name == name), None)
        tool = tool or next((tool for tool in await self.offered(ctx) if tool.name == name), None)
        if tool is None:
            raise NotFound(f"There is no tool '{name[:80]}'")
        return tool

    async def of_action(self, plugin: str, action: str) -> Tool | None:
        """The tool of an action; None if no enabled plugin has it."""
        match = await self._directory.action(plugin, action)
        return None if match is None else self._of_action(plugin, match)

    async def call(
        self,
        ctx: Context,
        tool: Tool,
        arguments: Mapping[str, Any],
        *,
        seconds: float | None = None,
        counted: bool = False,
    ) -> Any:
        """Call a tool for the sender of the request: its result as plain JSON values.

        Access and vetoes (`check_tool_call`) are checked first, then the call is counted against the caller's
        limit, unless the calling route has `counted` it. `seconds` bounds the call, by default the tool's own
        limit. Raises Unauthorized, Forbidden, TooManyRequests, GatewayTimeout, and what the tool raises.
        """
        if not ctx.principal.allows(*tool.token_scopes):
            raise ScopeMissing(tool.token_scopes)
        await require_access(ctx, tool.access)
        await self._hooks.ask(check_tool_call, ctx=ctx, tool=tool, arguments=arguments)
        if tool.per_minute is not None and not counted:
            caller = ctx.principal.subject or ctx.network
            await self._limits.count(f"ratelimit:{tool.endpoint or tool.name}:{caller}", tool.per_minute)
        started = time.perf_counter()
        try:
            result = await _bounded(ctx, tool, arguments, seconds or tool.seconds)
        except BaseException as error:  # boundary: recorded and raised again, including cancellation
            await self._tell(ctx, tool, started, error)
            raise
        await self._tell(ctx, tool, started, None)
        return result

    async def reply(
        self,
        ctx: Context,
        tool: Tool,
        arguments: Mapping[str, Any],
        *,
        seconds: float | None = None,
    ) -> ToolReply:
        """Call a tool and return the result or failure as text, for a model to continue with."""
        try:
            value = await self.call(ctx, tool, arguments, seconds=seconds)
        except PlatformError as error:
            return failed_reply(error)
        except ANY_ERROR:  # boundary: a tool's defect must not end the chat
            log.exception("the tool '%s' failed", tool.name)
            return failed_reply(PlatformError())
        return ToolReply(_cut(json.dumps(value, ensure_ascii=False)), value)

    async def _tell(self, ctx: Context, tool: Tool, started: float, error: BaseException | None) -> None:
        seconds = time.perf_counter() - started
        await self._hooks.tell(on_tool_called, ctx=ctx, tool=tool, seconds=seconds, error=error)

    async def _brought(self, ctx: Context) -> list[Tool]:
        try:
            answers = await self._hooks.ask(offer_tools, ctx=ctx)
        except PlatformError as error:
            log.warning("a plugin can't offer its tools: %s", error.detail)
            return []
        return [tool for tools in answers for tool in tools]

    async def _may(self, ctx: Context, access: Access, allowed: dict[Access, bool]) -> bool:
        if access not in allowed:
            try:
                await require_access(ctx, access)
                allowed[access] = True
            except (Unauthorized, Forbidden):
                allowed[access] = False
        return allowed[access]

    def _of_action(self, plugin: str, action: Action) -> Tool:
        """An action's tool, cached because making its schema takes a while."""
        entry = self._action_tools.get((plugin, action.name))
        if entry is None or entry[0] is not action:
            entry = self._action_tools[plugin, action.name] = action, _tool_of(plugin, action)
        return entry[1]


TOOLS: ResourceKey[Tools] = ResourceKey("tools")


def failed_reply(error: PlatformError) -> ToolReply:
    """A failed call in words for a model."""
    detail = error.detail if isinstance(error.detail, str) else json.dumps(error.detail, default=str)
    hint = "; the user has to sign in" if error.status == 401 else ""
    return ToolReply(_cut(f"error: {error.status} {detail}{hint}"), failed=True)


async def _bounded(ctx: Context, tool: Tool, arguments: Mapping[str, Any], seconds: float) -> Any:
    try:
        async with asyncio.timeout(seconds) as limit:
            # JSON has neither NaN nor infinity.
            return to_jsonable_python(await tool.run(ctx, arguments), inf_nan_mode="null")
    except TimeoutError:
        if limit.expired():
            raise GatewayTimeout(f"The tool '{tool.name}' did not answer within {seconds:g} s") from None
        raise


def _tool_of(plugin: str, action: Action) -> Tool:
    async def run(ctx: Context, arguments: Mapping[str, Any]) -> Any:
        result = await action.handler(ctx, arguments_from_object(action.parameters, arguments))
        return {"plugin": plugin, "action": action.name, "result": result}

    hints = action.annotations
    return Tool(
        tool_name(action.tool) if action.tool else tool_name(plugin, action.name),
        action.description,
        parameters_schema(action.parameters),
        run,
        plugin,
        action=action.name,
        access=action.access,
        tier=action.tier,
        endpoint=f"/v1/plugins/{quote(plugin, safe='')}/actions/{quote(action.name, safe='')}",
        method="GET" if action.read_only else "POST",
        read_only=hints["readOnlyHint"],
        destructive=hints["destructiveHint"],
        idempotent=hints["idempotentHint"],
        open_world=hints["openWorldHint"],
        per_minute=READS_PER_MINUTE if action.read_only else WRITES_PER_MINUTE,
    )


def _unique(tools: Sequence[Tool]) -> list[Tool]:
    """The tools in their order; of two with the same name, the later gets another."""
    by_name: dict[str, Tool] = {}
    for tool in tools:
        name = tool.name
        if name in by_name:
            name = distinct_name(name, f"{tool.plugin}/{tool.action}{tool.endpoint}")
        by_name[name] = tool if name == tool.name else replace(tool, name=name)
    return list(by_name.values())


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - len(_CUT)] + _CUT
