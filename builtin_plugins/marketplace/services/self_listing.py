"""Installed plugins list themselves: at the start and with each change, in one transaction."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from kernel.sdk import DIRECTORY, TOOLS, Platform, PluginEntry, ResourceKey, Unit, utc_now
from kernel.sdk import Tool as AnyTool

from ..models import Listing, Transition
from ..states import PUBLIC
from .listings import LOCK
from .search import index, name_key
from .tools import flattened, put

log = logging.getLogger("platform.marketplace")

_LOOK_SECONDS = 5.0
_RETRY_SECONDS = 30.0

Wanted = Mapping[str, tuple[PluginEntry, Mapping[str, Mapping[str, Any]]]]


class SelfListing:
    """Keeps the catalog's listings of installed plugins in step with what is installed."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._stopping = asyncio.Event()
        self._told: object = None

    async def sync(self) -> None:
        """Bring the catalog up to date now; where nothing changed, nothing is written."""
        wanted = await self._installed()
        told = {
            name: (entry.version, entry.description, entry.author, entry.status, tools)
            for name, (entry, tools) in wanted.items()
        }
        if told != self._told:
            await self._platform.database.write(write_listings, wanted)
            self._told = told

    async def _installed(self) -> Wanted:
        entries = await self._platform.resource(DIRECTORY).entries()
        tools = self._platform.resource(TOOLS)
        found = await tools.declared()
        off = tools.out_of_service()
        return {
            entry.name: (
                entry,
                {
                    tool.name: _columns(tool)
                    for tool in (*found, *off)
                    if tool.plugin == entry.name and entry.status == "enabled"
                },
            )
            for entry in entries
        }

    async def _look_now_and_then(self) -> None:
        while not self._stopping.is_set():
            pause = _LOOK_SECONDS
            try:
                await self.sync()
            except (SQLAlchemyError, OSError) as error:
                log.warning("installed plugins can't be listed: %s", type(error).__name__)
                pause = _RETRY_SECONDS
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._stopping.wait()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[SelfListing]:
        """Look for changes within the block; what is looked at is in memory."""
        task = None
        if self._platform.role == "api":
            task = asyncio.create_task(self._look_now_and_then(), name="self-listing")
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


def write_listings(unit: Unit, wanted: Wanted) -> None:
    """Let each installed plugin have its approved listing with its tools; archive those that are gone."""
    unit.lock(LOCK)
    keys = {name_key(name): name for name in wanted}
    rows = unit.session.scalars(
        select(Listing).where(Listing.self_listed.is_(True) | Listing.name_key.in_(list(keys)))
    ).all()
    known = {row.name_key: row for row in rows}
    for key, name in keys.items():
        entry, tools = wanted[name]
        _list(unit, known.get(key), entry, tools)
    for key, row in known.items():
        if key not in keys and row.self_listed and row.status == PUBLIC:
            _move(unit, row, "archived")
            put(unit, row, {})
            index(unit, row)


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
    told = {
        "description": entry.description or None,
        "author": (entry.author or "unknown")[:100],
        "current_version": (entry.version or "")[:100] or None,
    }
    for field, value in told.items():
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
            notes="The plugin is installed again" if status == PUBLIC else "The plugin is gone",
        )
    )
    row.status, row.updated_at = status, utc_now()


SELF_LISTING: ResourceKey[SelfListing] = ResourceKey("self-listing of plugins")


@asynccontextmanager
async def open_self_listing(platform: Platform) -> AsyncIterator[SelfListing]:
    """Running for as long as the platform does."""
    async with SelfListing(platform).running() as found:
        yield found
