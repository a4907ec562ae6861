"""Installs of accounts: within the account's limit, and never enabled without their requirements."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from builtin_plugins.plugin_registry import api as plugin_registry
from kernel.sdk import Caller, Conflict, PageQuery, Platform, Unit, audit, utc_now

from ..errors import (
    DependencyMissing,
    DependentsEnabled,
    ListingNotFound,
    PluginNotInstalled,
    TooManyInstalled,
)
from ..models import Installation, Listing
from ..schemas import (
    Enabled,
    InstallationOut,
    InstallationPage,
    MyInstallation,
    MyInstallations,
    Switched,
)
from ..settings import MarketplaceSettings
from .records import find_approved

_INSTALLED = "installed"


async def install(caller: Caller, plugin_id: str) -> InstallationOut:
    """Install a plugin for the caller; an installed one stays as it is.

    Raises ListingNotFound, TooManyInstalled, and DependencyMissing: then it is installed, and disabled.
    """
    installation, refusal = await caller.platform.database.write(_install, caller, plugin_id)
    if refusal is not None:
        raise refusal
    return installation


def _install(unit: Unit, caller: Caller, plugin_id: str) -> tuple[InstallationOut, Conflict | None]:
    _lock(unit, caller)
    listing = find_approved(unit.session, plugin_id)
    row = _own(unit.session, caller, plugin_id)
    if row is None or row.status != _INSTALLED:
        _check_number(unit.session, caller)
        row = _written(unit, caller, listing, row)
        missing = _missing(caller.platform, unit.session, caller, plugin_id)
        row.enabled = not missing
        audit(unit, "listing.installed", "listing", plugin_id, origin=caller.origin)
        if missing:
            text = f"'{listing.name}' requires {_named(missing)}; install that first, then enable it"
            return _render(row), DependencyMissing(text)
        _enable_all(unit, caller, _requirements(caller.platform, unit.session, plugin_id))
    return _render(row), None


def _lock(unit: Unit, caller: Caller) -> None:
    unit.lock(f"marketplace.installs:{caller.principal.subject}")


def _written(unit: Unit, caller: Caller, listing: Listing, row: Installation | None) -> Installation:
    now = utc_now()
    if row is None:
        row = Installation(id=str(uuid.uuid4()), user_id=caller.principal.subject, plugin_id=listing.id)
        unit.session.add(row)
        more = update(Listing).where(Listing.id == listing.id)
        unit.session.execute(more.values(download_count=Listing.download_count + 1))
    row.status, row.version = _INSTALLED, listing.current_version
    row.installed_at = row.last_updated_at = now
    unit.session.flush()
    return row


def _check_number(session: Session, caller: Caller) -> None:
    most = caller.platform.settings_of(MarketplaceSettings).max_plugins_per_user
    mine = select(func.count()).where(
        Installation.user_id == caller.principal.subject, Installation.status == _INSTALLED
    )
    if (session.scalar(mine) or 0) >= most:
        raise TooManyInstalled(
            f"You have reached the limit of {most} installed plugins per account; remove some"
        )


def _own(session: Session, caller: Caller, plugin_id: str) -> Installation | None:
    query = select(Installation).where(
        Installation.user_id == caller.principal.subject, Installation.plugin_id == plugin_id
    )
    installation: Installation | None = session.scalar(query)
    return installation


def _requirements(
    platform: Platform, session: Session, plugin_id: str
) -> Sequence[plugin_registry.RequiredPlugin]:
    """All that a plugin requires, also through others; none if no plugin knows dependencies."""
    spec = plugin_registry.find_requirements
    requirements = platform.hooks.ask_now(spec, platform=platform, session=session, plugin_id=plugin_id)
    return requirements or ()


def _missing(
    platform: Platform, session: Session, caller: Caller, plugin_id: str
) -> list[plugin_registry.RequiredPlugin]:
    """What the plugin requires but the caller has not installed."""
    needed = _requirements(platform, session, plugin_id)
    if not needed:
        return []
    have = _installed(session, caller, (one.plugin_id for one in needed))
    return [one for one in needed if one.plugin_id not in have]


def _installed(session: Session, caller: Caller, ids: Iterable[str]) -> set[str]:
    query = select(Installation.plugin_id).where(
        Installation.user_id == caller.principal.subject,
        Installation.status == _INSTALLED,
        Installation.plugin_id.in_(list(ids)),
    )
    return set(session.scalars(query))


def _named(required: Collection[plugin_registry.RequiredPlugin]) -> str:
    return ", ".join(f"'{one.name}'" for one in required)


def _enable_all(unit: Unit, caller: Caller, needed: Sequence[plugin_registry.RequiredPlugin]) -> list[str]:
    """Enable what is required and disabled; returns the names."""
    rows = unit.session.scalars(
        select(Installation).where(
            Installation.user_id == caller.principal.subject,
            Installation.plugin_id.in_([one.plugin_id for one in needed]),
            Installation.enabled.is_(False),
        )
    )
    changed = {row.plugin_id for row in rows if _set_enabled(row, on=True)}
    return [one.name for one in needed if one.plugin_id in changed]


def _set_enabled(row: Installation, *, on: bool) -> bool:
    changed = row.enabled != on
    row.enabled = on
    if changed:
        row.last_updated_at = utc_now()
    return changed


def _current(unit: Unit, caller: Caller, plugin_id: str) -> Installation:
    _lock(unit, caller)
    row = _own(unit.session, caller, plugin_id)
    if row is None or row.status != _INSTALLED:
        raise PluginNotInstalled()
    return row


def uninstall(unit: Unit, caller: Caller, plugin_id: str) -> Switched:
    """Remove an install of the caller. Raises NotInstalled, DependentsEnabled."""
    row = _current(unit, caller, plugin_id)
    _check_dependents(unit, caller, plugin_id)
    row.status, row.enabled, row.last_updated_at = "uninstalled", False, utc_now()
    audit(unit, "listing.uninstalled", "listing", plugin_id, origin=caller.origin)
    return Switched(status="uninstalled", plugin_id=plugin_id)


def enable(unit: Unit, caller: Caller, plugin_id: str) -> Enabled:
    """Enable an install, and what it requires. Raises NotInstalled, DependencyMissing."""
    row = _current(unit, caller, plugin_id)
    missing = _missing(caller.platform, unit.session, caller, plugin_id)
    if missing:
        raise DependencyMissing(f"This plugin requires {_named(missing)}; install that first")
    needed = _requirements(caller.platform, unit.session, plugin_id)
    also = _enable_all(unit, caller, needed)
    _set_enabled(row, on=True)
    return Enabled(status="enabled", plugin_id=plugin_id, auto_enabled_dependencies=also)


def disable(unit: Unit, caller: Caller, plugin_id: str) -> Switched:
    """Disable an install. Raises NotInstalled, DependentsEnabled."""
    row = _current(unit, caller, plugin_id)
    _check_dependents(unit, caller, plugin_id)
    _set_enabled(row, on=False)
    return Switched(status="disabled", plugin_id=plugin_id)


def _check_dependents(unit: Unit, caller: Caller, plugin_id: str) -> None:
    dependents = caller.platform.hooks.ask_now(
        plugin_registry.find_dependents, platform=caller.platform, session=unit.session, plugin_id=plugin_id
    )
    names = {plugin.plugin_id: plugin for plugin in dependents or ()}
    query = select(Installation.plugin_id).where(
        Installation.user_id == caller.principal.subject,
        Installation.status == _INSTALLED,
        Installation.enabled.is_(True),
        Installation.plugin_id.in_(list(names)),
    )
    enabled = [names[plugin] for plugin in unit.session.scalars(query)]
    if enabled:
        raise DependentsEnabled(
            f"{_named(sorted(enabled, key=lambda plugin: plugin.name))} requires this plugin"
        )


def list_own(session: Session, caller: Caller) -> MyInstallations:
    """What the caller has installed, newest first."""
    query = (
        select(Installation, Listing)
        .join(Listing, Listing.id == Installation.plugin_id)
        .where(Installation.user_id == caller.principal.subject, Installation.status == _INSTALLED)
        .order_by(Installation.installed_at.desc(), Installation.id)
    )
    installations = [_mine(row, listing) for row, listing in session.execute(query)]
    return MyInstallations(installations=installations, count=len(installations))


def _mine(row: Installation, listing: Listing) -> MyInstallation:
    of_listing = ("name", "display_name", "description", "current_version", "pricing_model", "base_tier")
    fields: dict[str, Any] = {name: getattr(listing, name) for name in of_listing}
    return MyInstallation(
        installation_id=row.id,
        plugin_id=row.plugin_id,
        version=row.version,
        status=row.status,
        enabled=row.enabled,
        installed_at=row.installed_at,
        last_updated_at=row.last_updated_at,
        category_id=listing.category_id,
        author=listing.author,
        requires_services=listing.requires_services,
        **fields,
    )


def list_all(session: Session, plugin_id: str, query: PageQuery) -> InstallationPage:
    """Everybody's installs of a plugin. Raises ListingNotFound."""
    if session.scalar(select(Listing.id).where(Listing.id == plugin_id)) is None:
        raise ListingNotFound()
    mine = Installation.plugin_id == plugin_id
    total = session.scalar(select(func.count()).where(mine)) or 0
    order = (Installation.installed_at.desc(), Installation.id)
    rows = session.scalars(
        select(Installation).where(mine).order_by(*order).limit(query.limit).offset(query.offset)
    )
    installations = [_render(row) for row in rows]
    return InstallationPage(
        installations=installations,
        count=len(installations),
        total=total,
        limit=query.limit,
        offset=query.offset,
    )


def _render(row: Installation) -> InstallationOut:
    return InstallationOut.model_validate(row, from_attributes=True)
