"""The routes of Drive (v3) and of the Directory API, and what they say of files."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final
from urllib.parse import quote

from yarl import URL

from builtin_plugins.source_drive.batch import MOST_CALLS, send_batch
from builtin_plugins.source_drive.settings import GOOGLE, DriveSettings
from builtin_plugins.sources.api import (
    JsonApi,
    ListingIncomplete,
    SourceMisplaced,
    entries_of,
    lists_together,
)

FOLDER: Final = "application/vnd.google-apps.folder"
_OFFICE: Final = "application/vnd.openxmlformats-officedocument."
EXPORTS: Final = {
    "application/vnd.google-apps.document": (f"{_OFFICE}wordprocessingml.document", ".docx"),
    "application/vnd.google-apps.spreadsheet": (f"{_OFFICE}spreadsheetml.sheet", ".xlsx"),
    "application/vnd.google-apps.presentation": (f"{_OFFICE}presentationml.presentation", ".pptx"),
    "application/vnd.google-apps.drawing": ("application/pdf", ".pdf"),
}
_GOOGLES: Final = "application/vnd.google-apps."
_SHORTCUT: Final = "application/vnd.google-apps.shortcut"
_CONTENT: Final = "mimeType,md5Checksum,headRevisionId,modifiedTime,trashed"
_FIELDS: Final = f"id,name,parents,size,webViewLink,driveId,capabilities(canDownload,canShare),{_CONTENT}"
_PERMISSION: Final = (
    "id,type,emailAddress,domain,displayName,deleted,pendingOwner,view,expirationTime,allowFileDiscovery"
)
_PAGE, _MEMBERS = 1000, 200
_ALL_DRIVES: Final = {"supportsAllDrives": "true", "includeItemsFromAllDrives": "true"}


@dataclass(frozen=True, slots=True)
class DriveFile:
    """A file, folder or shortcut, as Drive describes it."""

    id: str
    name: str
    type: str
    parent: str | None
    about: Mapping[str, Any]

    @property
    def etag(self) -> str:
        """Type and content: Google's own documents have no checksum, but a time that only edits change."""
        about = self.about
        tag = about.get("md5Checksum") or about.get("headRevisionId") or about.get("modifiedTime") or ""
        return f"{self.type} {tag}"

    @property
    def export(self) -> tuple[str, str] | None:
        """Media type and suffix of what it is exported to, if it is one of Google's own documents."""
        return EXPORTS.get(self.type)

    @property
    def unavailable(self) -> str | None:
        """Why there is nothing to read."""
        if self.type == _SHORTCUT:
            return "a shortcut: what it leads to is read where it is"
        if self.type.startswith(_GOOGLES) and self.export is None:
            return "Google does not export this kind of document"
        able = self.about.get("capabilities")
        if isinstance(able, dict) and able.get("canDownload") is False:
            return "its owner does not allow that it is downloaded"
        return None

    @property
    def modified(self) -> datetime | None:
        """When its content was last changed."""
        try:
            return datetime.fromisoformat(str(self.about.get("modifiedTime")))
        except ValueError:
            return None


def file_of(about: Mapping[str, Any]) -> DriveFile:
    """A file of an answer. Raises ListingIncomplete."""
    number, name, kind = about.get("id"), about.get("name"), about.get("mimeType")
    if not number or name is None or not kind:
        raise ListingIncomplete("Drive lists a file without an id, a name or a type")
    parents = about.get("parents")
    parent = str(parents[0]) if isinstance(parents, list) and parents else None
    return DriveFile(str(number), str(name), str(kind), parent, about)


class DriveApi:
    """What is asked of Google."""

    def __init__(self, api: JsonApi, settings: DriveSettings) -> None:
        self.api = api
        self._files = URL(settings.server) / "drive/v3/files"
        self._changes = URL(settings.server) / "drive/v3/changes"
        admin = "https://admin.googleapis.com" if settings.server == GOOGLE else settings.server
        self._groups = URL(admin) / "admin/directory/v1/groups"
        self._batches = URL(settings.server) / "batch/drive/v3"
        self._drive = settings.shared_drive

    async def files(self, *, only_folders: bool = False, rights: bool = False) -> AsyncGenerator[DriveFile]:
        """All that is not in the trash. Raises SourceFault, also if Drive searched only a part."""
        condition = "trashed = false" + f" and mimeType = '{FOLDER}'" * only_folders
        fields = f"{_FIELDS},permissions({_PERMISSION})" if rights else _FIELDS
        query = {
            "q": condition,
            "pageSize": str(_PAGE),
            "fields": f"nextPageToken,incompleteSearch,files({fields})",
            **_ALL_DRIVES,
            **({"corpora": "drive", "driveId": self._drive} if self._drive else {"corpora": "user"}),
        }
        async for about in entries_of(self.api, self._files.with_query(query), "files", _following):
            yield file_of(about)

    async def start(self) -> str:
        """Where changes from now on begin. Raises SourceFault."""
        url = self._changes / "startPageToken"
        query = {"supportsAllDrives": "true", **({"driveId": self._drive} if self._drive else {})}
        answer = await self.api.read(url.with_query(query))
        if answer is None:
            raise SourceMisplaced("Shared drive: there is none, or the account may not see it")
        token = answer.get("startPageToken") if isinstance(answer, dict) else None
        if not token:
            raise ListingIncomplete("Drive does not say where its changes begin")
        return str(token)

    async def changes(self, token: str) -> tuple[list[Mapping[str, Any]], str]:
        """What has changed, and where what changes next begins. Raises SourceFault."""
        query = {
            "pageToken": token,
            "pageSize": str(_PAGE),
            "includeRemoved": "true",
            "fields": f"nextPageToken,newStartPageToken,changes(changeType,removed,fileId,file({_FIELDS}))",
            **_ALL_DRIVES,
            **({"driveId": self._drive} if self._drive else {}),
        }
        last: Any = {}

        def following(page: URL, answer: Any) -> URL | None:
            nonlocal last
            last = answer
            return _following(page, answer)

        url = self._changes.with_query(query)
        changes = [one async for one in entries_of(self.api, url, "changes", following)]
        if not last.get("newStartPageToken"):
            raise ListingIncomplete("Drive's list of changes breaks off")
        return changes, str(last["newStartPageToken"])

    async def permissions(self, files: Sequence[str]) -> list[list[Mapping[str, Any]] | None]:
        """Those of each file; None if they are refused or the file is gone. Raises SourceFault."""
        fields = f"nextPageToken,permissions({_PERMISSION})"
        query = {"supportsAllDrives": "true", "pageSize": "100", "fields": fields}
        urls = [(self._files / one / "permissions").with_query(query) for one in files]
        send = partial(send_batch, self.api, self._batches)
        return await lists_together(self.api, urls, "permissions", _following, send, MOST_CALLS)

    async def members(self, group: str) -> list[Mapping[str, Any]]:
        """Who is in a group, also by way of others. Raises RouteRefused, RouteAbsent, SourceFault."""
        query = {"includeDerivedMembership": "true", "maxResults": str(_MEMBERS)}
        path = f"{self._groups}/{quote(group, safe='')}/members"
        url = URL(path, encoded=True).with_query(query)
        return [one async for one in entries_of(self.api, url, "members", _following, may_lack=True)]

    async def state(self, file: str) -> DriveFile | None:
        """A file as it is now; None if it is gone. Raises SourceFault."""
        query = {"supportsAllDrives": "true", "fields": f"id,name,{_CONTENT}"}
        answer = await self.api.read((self._files / file).with_query(query))
        return None if answer is None or answer.get("trashed") else file_of(answer)

    def content(self, file: str, kind: str) -> URL:
        """The route of a file's bytes, or of what one of Google's own documents is exported to."""
        if kind in EXPORTS:
            return (self._files / file / "export").with_query({"mimeType": EXPORTS[kind][0]})
        return (self._files / file).with_query({"alt": "media", "supportsAllDrives": "true"})


def _following(page: URL, answer: Any) -> URL | None:
    """The next page of a list. Raises ListingIncomplete if Drive says that it looked at a part alone."""
    if answer.get("incompleteSearch"):
        raise ListingIncomplete("Drive has searched only a part of its files, so nothing of it counts")
    token = answer.get("nextPageToken")
    return page.update_query(pageToken=str(token)) if token else None
