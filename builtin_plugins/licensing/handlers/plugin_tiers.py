"""The tier that a plugin needs, on the service `plugin-registry` (wire-facts section 7)."""

from __future__ import annotations

from kernel.sdk import ADMIN_OR_SERVICE, AUTHENTICATED, PUBLIC, Context, Rate, RouteTable

from ..errors import PluginUnknown
from ..schemas import (
    PluginKeyVerdict,
    PluginTierChange,
    PluginTierOut,
    RequiredTier,
    ValidateForPluginRequest,
)
from ..services import plugin_tiers
from ..settings import LicensingSettings

routes = RouteTable("Licenses", service="plugin-registry", optional=True)

_BASE = "/v1/licensing/plugins/{name}/license"


@routes.get(f"{_BASE}/tier", access=PUBLIC, returns=RequiredTier)
async def required_tier(ctx: Context, name: str) -> RequiredTier:
    """Show which tier a plugin needs; `community` unless an administrator set another."""
    return await plugin_tiers.required_tier(ctx.platform, name)


def _validations(settings: LicensingSettings) -> int:
    return settings.validations_per_minute


@routes.post(
    f"{_BASE}/validate",
    access=AUTHENTICATED,
    body=ValidateForPluginRequest | None,
    returns=PluginKeyVerdict,
    rate=Rate(_validations, settings=LicensingSettings),
)
async def validate(ctx: Context, name: str, body: ValidateForPluginRequest | None) -> PluginKeyVerdict:
    """Check a license key against what the plugin needs."""
    return await plugin_tiers.validate(ctx.platform, name, body.license_key if body else None)


@routes.patch(
    _BASE, access=ADMIN_OR_SERVICE, body=PluginTierChange, returns=PluginTierOut, errors=(PluginUnknown,)
)
async def change(ctx: Context, name: str, body: PluginTierChange) -> PluginTierOut:
    """Set the tier that the plugin needs, for each of its tools, and a key of this server for it."""
    return await plugin_tiers.change(ctx.caller, name, body)
