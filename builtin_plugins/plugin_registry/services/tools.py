"""Tools for clients of `/v1/tools`: found, shown, executed with the caller's license."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from builtin_plugins.plugin_registry import api
from builtin_plugins.tools.api import TOOLS, Directory, PluginEntry, Tool
from kernel.sdk import BadRequest, Context, Forbidden, NotFound, Platform

from ..settings import RegistrySettings
from ..tool_schemas import Executed, ToolDetail, ToolItem, ToolList, ToolsQuery, Validated
from .tool_arguments import flattened, prepare

_IDS = uuid.UUID("6f1e0f58-6a0c-4d36-9c2e-2f4f3f1f6a11")
_NO_LICENSE_NEEDED = ("free", "community")

Listings = Mapping[str, api.ListingRef]


class LicenseNeeded(Forbidden):
    code = "license_needed"


async def list_tools(platform: Platform, query: ToolsQuery) -> ToolList:
    """A page of tools, by plugin and name."""
    tools = [(tool, True) for tool in await platform.resource(TOOLS).declared()]
    if not query.active_only:
        tools += [(tool, False) for tool in platform.resource(TOOLS).out_of_service()]
    matching = [pair for pair in tools if query.tier in (None, pair[0].tier)]
    matching.sort(key=lambda pair: (pair[0].plugin, pair[0].name))
    page = matching[query.offset : query.offset + query.limit]
    return ToolList(
        tools=await _items(platform, page),
        count=len(page),
        total=len(matching),
        limit=query.limit,
        offset=query.offset,
    )


async def of_listing(platform: Platform, plugin_id: str) -> ToolList:
    """The tools of the plugin behind a listing. Raises NotFound."""
    refs = await platform.database.read(_refs, platform, [plugin_id])
    ref = refs.get(plugin_id)
    if ref is None or not ref.approved:
        raise NotFound("Plugin not found")
    tools = [tool for tool in await platform.resource(TOOLS).declared() if tool.plugin in ref.names]
    items = await _items(platform, [(tool, True) for tool in tools])
    return ToolList(tools=items, count=len(items), total=len(items), limit=0, offset=0)


async def show(platform: Platform, name: str) -> ToolDetail:
    """One tool. Raises NotFound."""
    declared = await platform.resource(TOOLS).declared()
    tool = next((tool for tool in declared if tool.name == name), None)
    if tool is None:
        raise NotFound(f"There is no tool '{name[:80]}'")
    item = (await _items(platform, [(tool, True)]))[0]
    entry = await Directory(platform).entry(tool.plugin)
    return ToolDetail(**item.model_dump(), plugin_description=entry.description if entry else None)


async def _items(platform: Platform, tools: Sequence[tuple[Tool, bool]]) -> list[ToolItem]:
    refs = await platform.database.read(_refs, platform, sorted({tool.plugin for tool, _ in tools}))
    entries = {entry.name: entry for entry in await Directory(platform).entries()}
    return [_item(tool, active, refs, entries) for tool, active in tools]


def _refs(session: Session, platform: Platform, plugins: Iterable[str]) -> dict[str, api.ListingRef]:
    spec, names = api.find_listings, list(plugins)
    answers = platform.hooks.ask_now(spec, platform=platform, session=session, plugins=names)
    refs = [ref for answer in answers for ref in answer]
    return {**{name: ref for ref in refs for name in ref.names}, **{ref.id: ref for ref in refs}}


def _item(tool: Tool, active: bool, refs: Listings, entries: Mapping[str, PluginEntry]) -> ToolItem:
    ref = refs.get(tool.plugin)
    return ToolItem(
        id=str(uuid.uuid5(_IDS, f"{tool.plugin}/{tool.action}")),
        tool_name=tool.name,
        type="query" if tool.read_only else "action",
        description=tool.description,
        endpoint=tool.endpoint,
        method=tool.method,
        parameters=flattened(tool.parameters),
        response_format=None,
        required_tier=tool.tier,
        active=active,
        plugin_id=ref.id if ref else str(uuid.uuid5(_IDS, tool.plugin)),
        plugin_name=tool.plugin,
        plugin_display_name=ref.display_name if ref else tool.plugin,
        annotations=tool.annotations,
    )


async def execute(ctx: Context, name: str, sent: Mapping[str, Any]) -> Executed:
    """Run a tool for the caller.

    Raises NotFound, BadRequest for one that is out of service, LicenseNeeded, Unprocessable for arguments
    that do not fit, GatewayTimeout, and what the tool raises.
    """
    tools = ctx.resource(TOOLS)
    tool = await _find(ctx, name)
    await check_license(ctx, tool)
    arguments = prepare(tool.parameters, sent)
    started = time.perf_counter()
    seconds = ctx.settings_of(RegistrySettings).tool_execution_timeout
    result = await tools.call(ctx, tool, arguments, seconds=seconds)
    return Executed(
        tool_name=tool.name,
        plugin_name=tool.plugin,
        result=result,
        execution_time=round(time.perf_counter() - started, 6),
        tier_required=tool.tier,
    )


async def _find(ctx: Context, name: str) -> Tool:
    try:
        return await ctx.resource(TOOLS).find(ctx, name)
    except NotFound:
        if any(tool.name == name for tool in ctx.resource(TOOLS).out_of_service()):
            raise BadRequest(f"The tool '{name}' is not active: its plugin is disabled") from None
        raise


async def verdict(platform: Platform, subject: str, tool: Tool, *, used: bool = False) -> api.LicenseVerdict:
    """Whether a license of the subject covers the tool; without a plugin for licenses, nobody has one."""
    answer = await platform.hooks.ask(
        api.check_license,
        platform=platform,
        subject=subject,
        plugin=tool.plugin,
        required=tool.tier,
        used=used,
    )
    if answer is not None:
        return answer
    allowed = tool.tier in _NO_LICENSE_NEEDED
    reason = None if allowed else f"This needs a license for {tool.tier}, but this server has no licensing"
    return api.LicenseVerdict(allowed, tool.tier, "community", reason)


async def check_license(ctx: Context, tool: Tool, *, used: bool = False) -> None:
    """Raise LicenseNeeded, with the object of wire-facts section 7, unless the caller's license is enough."""
    license_verdict = await verdict(ctx.platform, ctx.principal.subject, tool, used=used)
    if not license_verdict.allowed:
        raise LicenseNeeded(
            {
                "error": "License required",
                "tier_required": license_verdict.tier_required,
                "user_tier": license_verdict.user_tier,
                "reason": license_verdict.reason,
            }
        )


async def validate(ctx: Context, user_id: str, name: str) -> Validated:
    """Whether somebody's tier is enough for a tool; of others only administrators and services ask."""
    principal = ctx.principal
    if user_id != principal.subject and not (principal.is_admin or principal.is_service):
        raise Forbidden("Only administrators and services may ask for other accounts")
    try:
        tool = await ctx.resource(TOOLS).find(ctx, name)
    except NotFound:
        return Validated(
            allowed=False, tier_required="unknown", user_tier="unknown", reason="There is no such tool"
        )
    license_verdict = await verdict(ctx.platform, user_id, tool)
    return Validated(
        allowed=license_verdict.allowed,
        tier_required=license_verdict.tier_required,
        user_tier=license_verdict.user_tier,
        reason=license_verdict.reason,
    )
