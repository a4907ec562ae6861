"""The tier that a whole plugin requires, and whether somebody has it."""

from __future__ import annotations

from sqlalchemy.orm import Session

from builtin_plugins.plugin_registry import api as plugin_registry
from builtin_plugins.tools.api import Directory
from kernel.sdk import Caller, Platform, Unit, audit, utc_now

from ..errors import PluginUnknown
from ..models import PluginTier
from ..schemas import PluginKeyVerdict, PluginTierChange, PluginTierOut, RequiredTier
from ..settings import LicensingSettings
from ..tiers import DEFAULT, PAID, canonical_tier, covers, highest
from .keys import end_of, hasher_of, masked
from .licenses import best_in, find_by_key, held_by, organizations_of
from .plugins import key_of
from .usage import USAGE


async def required_tier(platform: Platform, plugin: str) -> RequiredTier:
    """The tier that a plugin requires; `community` unless an administrator set another."""
    row = await platform.database.read(_row, plugin)
    return RequiredTier(plugin_name=plugin, required_tier=DEFAULT if row is None else row.tier)


def _row(session: Session, plugin: str) -> PluginTier | None:
    return session.get(PluginTier, plugin)


async def change(caller: Caller, plugin: str, body: PluginTierChange) -> PluginTierOut:
    """Require a tier for a whole plugin. Raises PluginUnknown."""
    if await Directory(caller.platform).entry(plugin) is None:
        raise PluginUnknown(f"There is no plugin '{plugin[:80]}'")
    return await caller.platform.database.write(_change, caller, plugin, body)


def _change(unit: Unit, caller: Caller, plugin: str, body: PluginTierChange) -> PluginTierOut:
    unit.lock("licensing.plugin_tier")
    row = unit.session.get(PluginTier, plugin)
    before = None if row is None else {"license_tier": row.tier}
    if row is None:
        row = PluginTier(plugin=plugin)
        unit.session.add(row)
    row.tier, row.changed_at = body.license_tier, utc_now()
    if body.license_key is not None:
        row.key_hash = hasher_of(caller.platform).hash(body.license_key)
        row.key_end = end_of(body.license_key)
    after = {"license_tier": row.tier}
    audit(unit, "plugin.tier_changed", "plugin", plugin, before=before, after=after, origin=caller.origin)
    masked_key = None if row.key_end is None else masked(row.key_end)
    return PluginTierOut(
        plugin_name=plugin, license_tier=row.tier, license_key=masked_key, updated_at=row.changed_at
    )


async def validate(platform: Platform, plugin: str, key: str | None) -> PluginKeyVerdict:
    """Whether a key, or none, suffices for the tier that a plugin requires."""
    return await platform.database.read(_validate, platform, plugin, key)


def _validate(session: Session, platform: Platform, plugin: str, key: str | None) -> PluginKeyVerdict:
    row = session.get(PluginTier, plugin)
    required = DEFAULT if row is None else row.tier
    if required not in PAID:
        return PluginKeyVerdict(valid=True, tier=required, message=f"The tier {required} needs no license")
    if key is None:
        return PluginKeyVerdict(valid=False, tier=required, message=f"This needs a license for {required}")
    if platform.settings_of(LicensingSettings).allow_unvalidated:
        return PluginKeyVerdict(valid=True, tier=required, message="Any key is accepted on this server")
    hasher = hasher_of(platform)
    if hasher.matches(key, None if row is None else row.key_hash):
        return PluginKeyVerdict(valid=True, tier=required, message="The key of this server is valid")
    return _validate_license(session, platform, plugin, required, hasher.candidates(key))


def _validate_license(
    session: Session, platform: Platform, plugin: str, required: str, hashes: list[str]
) -> PluginKeyVerdict:
    license_row, expired = find_by_key(session, hashes)
    if license_row is None or license_row.plugin_id != key_of(platform, session, plugin):
        return PluginKeyVerdict(valid=False, tier=required, message="Invalid license key")
    if not license_row.active or expired:
        return PluginKeyVerdict(valid=False, tier=required, message="The license has expired")
    if not covers(license_row.tier, required):
        text = f"Your license is for {license_row.tier}; this needs {required}"
        return PluginKeyVerdict(valid=False, tier=required, message=text)
    return PluginKeyVerdict(valid=True, tier=license_row.tier, message="The license is valid")


async def check(
    platform: Platform, subject: str, plugin: str, required: str, *, used: bool
) -> plugin_registry.LicenseVerdict:
    """The answer to the hook `check_license`."""
    places = await organizations_of(platform, subject)
    tier, license_id, demand = await platform.database.read(
        _tiers_of, platform, held_by(subject, places), plugin
    )
    needed = required if demand is None or covers(required, demand) else demand
    own_tier = highest([tier] if tier else [])
    if canonical_tier(needed) is None:
        reason = f"The tool needs the tier '{needed[:40]}', which is unknown"
        return plugin_registry.LicenseVerdict(False, needed, own_tier, reason)
    if not covers(own_tier, needed):
        reason = f"This needs a license for {needed}; yours is for {own_tier}"
        return plugin_registry.LicenseVerdict(False, needed, own_tier, reason)
    if used and license_id is not None:
        platform.resource(USAGE).count(license_id)
    return plugin_registry.LicenseVerdict(True, needed, own_tier)


def _tiers_of(
    session: Session, platform: Platform, which: object, plugin: str
) -> tuple[str | None, str | None, str | None]:
    """(the best tier held, the id of that license, the tier that an administrator requires)."""
    row = session.get(PluginTier, plugin)
    tier, license_id = best_in(session, which, key_of(platform, session, plugin))
    return tier, license_id, None if row is None else row.tier
