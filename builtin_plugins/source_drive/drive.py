"""A drive: listed as a whole or by its changes, read file by file."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from builtin_plugins.source_drive.files import EXPORTS, FOLDER, DriveApi, DriveFile, file_of
from builtin_plugins.source_drive.settings import DriveSettings
from builtin_plugins.sources.api import (
    GoneItem,
    Listing,
    ListingEnd,
    SourceItem,
    SourceMisplaced,
    as_listed,
)

_DEPTH: Final = 200
_LASTING: Final = {
    "exportSizeLimitExceeded": "Google exports no document of more than 10 MB",
    "cannotDownloadFile": "Its owner does not allow that it is downloaded",
    "cannotDownloadAbusiveFile": "Google considers it harmful and does not give it out",
}
Folders = Mapping[str, DriveFile]


class DriveSource:
    """Files are known by their ids."""

    def __init__(self, api: DriveApi, settings: DriveSettings) -> None:
        self.api = api
        self._folder = settings.folder
        self.is_exact = False
        """Whether only what was listed is read: rights were read after that, not those of later content."""

    async def documents(self, since: str | None) -> Listing:
        """All files, or what has changed if these are only files. Raises SourceFault."""
        if since is not None:
            try:
                changes, token = await self.api.changes(since)
            except SourceMisplaced:  # a token that is too old, or of another drive
                changes, token = [{}], ""
            if all(_is_of_file(one) for one in changes):
                folders = await self._folders() if changes else {}
                for entry in {str(change["fileId"]): change for change in changes}.values():
                    file = file_of(entry["file"])
                    path = self.path_of(file, folders)
                    yield GoneItem(file.id) if path is None else _item(file, path)
                yield ListingEnd(token, only_changes=True)
                return
        token = await self.api.start()
        if self._folder and await self.api.state(self._folder) is None:
            raise SourceMisplaced("Folder: there is none, it is in the trash, or the account may not see it")
        files = {one.id: one async for one in self.api.files()}
        for file in files.values():
            path = self.path_of(file, files)
            if path is not None and file.type != FOLDER:
                yield _item(file, path)
        yield ListingEnd(token)

    async def _folders(self) -> Folders:
        return {one.id: one async for one in self.api.files(only_folders=True)}

    def path_of(self, file: DriveFile, folders: Folders) -> str | None:
        """Where a file is; None if that is not below the source's folder."""
        parts, parent, is_below = [_part(file)], file.parent, not self._folder
        for _ in range(_DEPTH):
            if parent == self._folder and self._folder:
                is_below = True
                break
            above = folders.get(parent or "")
            if above is None:
                break
            parts.append(_part(above))
            parent = above.parent
        return "/".join(reversed(parts)) if is_below else None

    @asynccontextmanager
    async def content(self, item: SourceItem) -> AsyncIterator[AsyncIterator[bytes]]:
        """The bytes of a file, Google's own documents in Office's formats. Raises ItemFault, SourceFault."""
        kind, _, _ = item.etag.partition(" ")
        async with self.api.api.content(self.api.content(item.identity, kind), _LASTING) as pieces:
            yield as_listed(pieces, item, self._etag_of) if self.is_exact else pieces

    async def _etag_of(self, file: str) -> str | None:
        now = await self.api.state(file)
        return None if now is None else now.etag


def _is_of_file(change: Mapping[str, Any]) -> bool:
    """Whether a change is one that says all about a file: what is below a folder is not listed with it."""
    file = change.get("file")
    if change.get("removed") or not isinstance(file, dict):
        return False
    return not file.get("trashed") and file.get("mimeType") != FOLDER


def _item(file: DriveFile, path: str) -> SourceItem:
    size, link = file.about.get("size"), file.about.get("webViewLink")
    export = EXPORTS.get(file.type)
    return SourceItem(
        identity=file.id,
        etag=file.etag,
        path=path,
        size=int(size) if size and export is None else None,
        modified=file.modified,
        media_type=export[0] if export is not None else file.type,
        link=str(link) if link else None,
        unavailable=file.unavailable,
    )


def _part(file: DriveFile) -> str:
    """A name as a part of a path, with the suffix of what it is exported to."""
    suffix = file.export[1] if file.export is not None else ""
    name = file.name.replace("/", "\N{DIVISION SLASH}")
    return name if name.lower().endswith(suffix) else f"{name}{suffix}"
