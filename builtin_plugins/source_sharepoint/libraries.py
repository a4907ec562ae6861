"""Document libraries: listed as a whole or by their changes, read file by file."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from builtin_plugins.source_sharepoint.graph import GraphApi, GraphDrive, GraphItem, folder_path
from builtin_plugins.sources.api import (
    GoneItem,
    Listing,
    ListingEnd,
    RouteAbsent,
    SourceItem,
    as_listed,
)

_DEPTH: Final = 500
Links = Mapping[str, str]
"""By drive, where its changes begin."""


class LibrarySource:
    """Files are known by the ids of their drive and of their item."""

    def __init__(self, api: GraphApi) -> None:
        self.api = api
        self.is_exact = False
        """Whether only what was listed is read: rights were read after that, not those of later content."""

    async def documents(self, since: str | None) -> Listing:
        """All files, or what has changed if these are only files. Raises SourceFault."""
        drives = await self.api.drives()
        changed = await self._changed(drives, {} if since is None else json.loads(since))
        if changed is not None:
            changes, links = changed
            for change in changes:
                yield change
            yield ListingEnd(json.dumps(links), only_changes=True)
            return
        fresh = dict[str, str]()
        for drive in drives:
            items, fresh[drive.id] = await self.all_items(drive)
            for item in items.values():
                if item.is_file:
                    yield _source_item(item, path_of(item, items))
        yield ListingEnd(json.dumps(fresh))

    async def all_items(self, drive: GraphDrive) -> tuple[Mapping[str, GraphItem], str]:
        """What is in a drive, by id, and where its changes begin. Raises SourceFault."""
        items, link = await self.api.delta(drive, None)
        return {one.id: one for one in items if not one.is_deleted}, link

    async def _changed(
        self, drives: list[GraphDrive], links: Links
    ) -> tuple[list[SourceItem | GoneItem], Links] | None:
        """What has changed; None if everything must be listed to know it. Raises SourceFault."""
        if {one.id for one in drives} != links.keys():
            return None
        changes, fresh = list[SourceItem | GoneItem](), dict[str, str]()
        folders = dict[str | None, str]()
        for drive in drives:
            try:
                items, fresh[drive.id] = await self.api.delta(drive, links[drive.id])
            except RouteAbsent:  # too old
                return None
            for item in items:
                if isinstance(item.about.get("root"), dict):
                    continue
                if not item.is_file:  # a folder, whose files are not listed with it
                    return None
                if item.is_deleted:
                    changes.append(GoneItem(_identity(item)))
                    continue
                if item.parent not in folders:
                    now = await self.api.item(drive.id, item.id)
                    path = None if now is None else folder_path(now)
                    if path is None:
                        return None
                    folders[item.parent] = path
                path = "/".join(one for one in (drive.folder, folders[item.parent], item.part) if one)
                changes.append(_source_item(item, path))
        return changes, fresh

    @asynccontextmanager
    async def content(self, item: SourceItem) -> AsyncIterator[AsyncIterator[bytes]]:
        """The bytes of a file, from the address to which Graph leads. Raises ItemFault, SourceFault."""
        drive, _, number = item.identity.partition("/")
        async with self.api.api.content(self.api.content(drive, number)) as pieces:
            yield as_listed(pieces, item, self._etag_of) if self.is_exact else pieces

    async def _etag_of(self, identity: str) -> str | None:
        drive, _, number = identity.partition("/")
        now = await self.api.item(drive, number)
        return None if now is None else now.etag


def path_of(item: GraphItem, items: Mapping[str, GraphItem]) -> str:
    """Where an item is: listings of drives have only ids of folders."""
    parts, parent = [item.part], item.parent
    for _ in range(_DEPTH):
        above = items.get(parent or "")
        if above is None or isinstance(above.about.get("root"), dict):
            break
        parts.append(above.part)
        parent = above.parent
    return "/".join(one for one in (item.drive.folder, *reversed(parts)) if one)


def _identity(item: GraphItem) -> str:
    return f"{item.drive.id}/{item.id}"


def _source_item(item: GraphItem, path: str) -> SourceItem:
    size, link = item.about.get("size"), item.about.get("webUrl")
    return SourceItem(
        identity=_identity(item),
        etag=item.etag,
        path=path,
        size=size if isinstance(size, int) else None,
        modified=item.modified,
        media_type=item.media_type,
        link=str(link) if link else None,
        unavailable=item.unavailable,
    )
