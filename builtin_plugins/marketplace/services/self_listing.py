"""Installed plugins list themselves: at the start and with each change, in one transaction."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from packaging.utils import canonicalize_name
from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.plugin_registry import api as plugin_registry
from builtin_plugins.tools.api import TOOLS, Directory, PluginEntry
from builtin_plugins.tools.api import Tool as AnyTool
from kernel.sdk import Platform, ResourceKey, Unit, lasting, set_within, utc_now

from ..models import InstalledPlugin, Listing, Transition
from ..states import PUBLIC
from .listings import LOCK
from .search import index, name_key
from .tools import flattened, put

log = logging.getLogger("platform.marketplace")

_LOOK_SECONDS = 5.0
_RETRY_SECONDS = 30.0

InstalledEntries = Mapping[str, tuple[PluginEntry, Mapping[str, Mapping[str, Any]]]]


class SelfListing:
    """Keeps the catalog's listings of installed plugins in step with what is installed."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._stopping = asyncio.Event()
        self._last_state: object = None
        self._turn = asyncio.Lock()

    async def sync(self) -> None:
        """Bring the catalog up to date now; writes nothing if nothing has changed."""
        async with self._turn:
            installed = await self._installed()
            state = {
                name: (entry.version, entry.description, entry.author, entry.status, tools)
                for name, (entry, tools) in installed.items()
            }
            if state == self._last_state:
                return
            self._last_state = (
                state  # before the write, so that a listing that changes meanwhile is checked again
            )
            try:
                await self._platform.database.write(write_listings, installed)
            except BaseException:  # however it ended, nothing was written
                self._last_state = None
                raise

    def note_listing(self, _listing: str) -> None:
        """Note a changed listing: it may be that of an installed package."""
        if any(record.distribution and not record.built_in for record in self._platform.plugins):
            self._last_state = None

    async def _installed(self) -> InstalledEntries:
        entries = await Directory(self._platform).entries()
        tools = self._platform.resource(TOOLS)
        declared = await tools.declared()
        off = tools.out_of_service()
        return {
            entry.name: (
                entry,
                {
                    tool.name: _columns(tool)
                    for tool in (*declared, *off)
                    if tool.plugin == entry.name and entry.status == "enabled"
                },
            )
            for entry in entries
        }

    async def _look_now_and_then(self) -> None:
        outage = self._platform.database.outage(log, "installed plugins can't be listed")
        while not self._stopping.is_set():
            with outage.tolerated():
                await self.sync()
            await set_within(self._stopping, _RETRY_SECONDS if outage.lasts else _LOOK_SECONDS)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[SelfListing]:
        """Look for changes within the block, in memory only."""
        task = None
        if self._platform.role == "api":
            self._platform.notices.listen(plugin_registry.LISTINGS_CHANGED, self.note_listing)
            task = lasting("self-listing", self._look_now_and_then)
        try:
            yield self
        finally:
            self._stopping.set()
            if task is not None:
                await task


def _columns(tool: AnyTool) -> dict[str, Any]:
    return {
        "type": "query" if tool.read_only else "action",
        "description": tool.description,
        "endpoint": tool.endpoint,
        "method": tool.method,
        "parameters": flattened(tool.parameters),
        "response_format": None,
        "required_tier": tool.tier,
        "active": True,
    }


def write_listings(unit: Unit, installed: InstalledEntries) -> None:
    """Give each installed plugin an approved listing with its tools; archive those of missing plugins."""
    unit.lock(LOCK)
    keys = {name_key(name): name for name in installed}
    rows = unit.session.scalars(
        select(Listing).where(Listing.self_listed.is_(True) | Listing.name_key.in_(list(keys)))
    ).all()
    rows_by_key = {row.name_key: row for row in rows}
    own = {name for key, name in keys.items() if key in rows_by_key and not rows_by_key[key].self_listed}
    behind = _by_package(
        unit.session, {name: installed[name][0] for name in keys.values() if name not in own}
    )
    _write_installed(unit, installed, behind)
    for key, name in keys.items():
        if name not in behind:
            entry, tools = installed[name]
            _list(unit, rows_by_key.get(key), entry, tools)
    for key, row in rows_by_key.items():
        is_gone = key not in keys or keys[key] in behind
        if is_gone and row.self_listed and row.status == PUBLIC:
            _move(unit, row, "archived")
            put(unit, row, {})
            index(unit, row)


def _by_package(session: Session, entries: Mapping[str, PluginEntry]) -> dict[str, Listing]:
    """The approved listings that name the packages that these plugins came with."""
    packages = {name: canonicalize_name(entry.package) for name, entry in entries.items() if entry.package}
    if not packages:
        return {}
    query = select(Listing).where(
        Listing.status == PUBLIC, Listing.package.is_not(None), Listing.self_listed.is_(False)
    )
    listed: dict[str, Listing] = {}
    for row in session.scalars(query.order_by(Listing.number)):
        listed.setdefault(canonicalize_name(str(row.package)), row)
    return {name: listed[package] for name, package in packages.items() if package in listed}


def _write_installed(unit: Unit, installed: InstalledEntries, behind: Mapping[str, Listing]) -> None:
    """Give each listing exactly the tools of the plugins that came with its package."""
    before = {row.name: row for row in unit.session.scalars(select(InstalledPlugin))}
    touched = {row.id: row for row in behind.values()}
    for name, row in before.items():
        if name not in behind or behind[name].id != row.plugin_id:
            left = unit.session.scalar(select(Listing).where(Listing.id == row.plugin_id))
            if left is not None:
                touched.setdefault(left.id, left)
            unit.session.delete(row)
    unit.session.flush()
    for name, listing in behind.items():
        if name not in before or before[name].plugin_id != listing.id:
            unit.session.add(InstalledPlugin(name=name, plugin_id=listing.id))
    for listing in touched.values():
        names = [name for name, row in behind.items() if row.id == listing.id]
        tools = {key: tool for name in names for key, tool in installed[name][1].items()}
        if put(unit, listing, tools)[0]:
            index(unit, listing)


def _list(
    unit: Unit, row: Listing | None, entry: PluginEntry, tools: Mapping[str, Mapping[str, Any]]
) -> None:
    if row is not None and not row.self_listed:
        if row.status == PUBLIC and put(unit, row, tools)[0]:
            index(unit, row)
        return
    changed = False
    if row is None:
        row = _new(entry)
        unit.session.add(row)
        changed = True
    elif row.status != PUBLIC:
        _move(unit, row, PUBLIC)
        changed = True
    columns = {
        "description": entry.description or None,
        "author": (entry.author or "unknown")[:100],
        "current_version": (entry.version or "")[:100] or None,
    }
    for field, value in columns.items():
        if getattr(row, field) != value:
            setattr(row, field, value)
            changed = True
    unit.session.flush()
    if put(unit, row, tools)[0] or changed:
        row.updated_at = utc_now()
        index(unit, row)


def _new(entry: PluginEntry) -> Listing:
    now = utc_now()
    return Listing(
        id=str(uuid.uuid4()),
        name=entry.name[:100],
        name_key=name_key(entry.name)[:100],
        display_name=entry.name.replace("_", " ").replace("-", " ").capitalize()[:200],
        author=(entry.author or "unknown")[:100],
        origin="first_party",
        self_listed=True,
        status=PUBLIC,
        created_at=now,
        updated_at=now,
        published_at=now,
    )


def _move(unit: Unit, row: Listing, status: str) -> None:
    unit.session.add(
        Transition(
            plugin_id=row.id,
            from_status=row.status,
            to_status=status,
            actor="platform",
            actor_role="service",
            notes=f"The plugin lists itself {'again' if status == PUBLIC else 'no longer'}",
        )
    )
    row.status, row.updated_at = status, utc_now()


SELF_LISTING: ResourceKey[SelfListing] = ResourceKey("self-listing of plugins")


@asynccontextmanager
async def open_self_listing(platform: Platform) -> AsyncIterator[SelfListing]:
    """Running for as long as the platform does."""
    async with SelfListing(platform).running() as listing:
        yield listing
