"""Configuration of running plugins."""

from __future__ import annotations

from builtin_plugins.tools.api import json_object
from kernel.sdk import (
    BadRequest,
    Conflict,
    Context,
    Forbidden,
    NotFound,
    Rate,
    RawBody,
    RouteTable,
    Settings,
    permission,
    read_body,
)
from kernel.sdk.operations import PLUGIN_SETTINGS

from .. import permissions
from ..live import LIVE
from ..schemas import ConfigChanged, PluginConfig
from ..services.config import change_config
from ..services.fields import describe, fixed_fields, keys_of, values_in_effect
from ..services.records import get_entry

routes = RouteTable("Plugin configuration")

_PATH = "/v1/plugins/{name}/config"
_BODY_LIMIT = 256 * 1024


@routes.get(_PATH, access=permission(permissions.CONFIG_READ), returns=PluginConfig, errors=(NotFound,))
async def get_config(ctx: Context, name: str) -> PluginConfig:
    """Show the settings that the caller may change while the plugin runs. Secrets are masked."""
    cls, keys = await _configurable(ctx, name)
    if cls is None or not keys:
        return PluginConfig(plugin=name, configurable=False, fields=[], values={})
    values = values_in_effect(ctx.settings_of(cls), keys)
    fields = describe(cls, keys, fixed_fields(ctx.platform, cls))
    return PluginConfig(plugin=name, configurable=True, fields=fields, values=values)


@routes.put(
    _PATH,
    access=permission(permissions.CONFIG_WRITE),
    body=RawBody(example={"answer_chars": 8000}),
    returns=ConfigChanged,
    errors=(NotFound, BadRequest, Forbidden, Conflict),
    rate=Rate(20, scope="path"),
)
async def put_config(ctx: Context, name: str) -> ConfigChanged:
    """Change a plugin's settings, in every process at once and for good.

    The body maps keys to values. Null restores the value from the environment, or the default. Some settings
    are only for administrators; of these, what the environment sets can't be changed (409).
    """
    raw = await read_body(ctx.request, _BODY_LIMIT, ctx.platform.settings.body_timeout)
    cls, keys = await _configurable(ctx, name)
    if cls is None:
        raise BadRequest(f"The plugin '{name}' has nothing to configure")
    wanted = json_object(raw, "The body")
    updated = await change_config(ctx.caller, name, cls, wanted)
    await ctx.resource(LIVE).refresh()
    return ConfigChanged(plugin=name, updated=updated, values=values_in_effect(ctx.settings_of(cls), keys))


async def _configurable(ctx: Context, name: str) -> tuple[type[Settings] | None, dict[str, str]]:
    """The settings class of a plugin in service, None if nothing can be configured; the caller's keys."""
    entry = await get_entry(ctx.platform, name)
    if entry.status != "enabled":
        raise NotFound(f"The plugin '{name}' is not running: {entry.reason or 'it is disabled'}")
    cls = ctx.platform.resource(PLUGIN_SETTINGS).class_of(name)
    keys = {} if cls is None else keys_of(cls, administered=ctx.principal.is_admin)
    return (cls if cls is not None and cls.configurable | cls.administered else None), keys
