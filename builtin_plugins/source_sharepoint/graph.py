"""The routes of Microsoft Graph (v1.0), and what they say of drives and their items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote, unquote

from yarl import URL

from builtin_plugins.source_sharepoint.settings import SharepointSettings
from builtin_plugins.sources.api import (
    BatchedAnswer,
    JsonApi,
    ListingIncomplete,
    SourceMisplaced,
    entries_of,
    link_of,
    lists_together,
)

_STATE: Final = "id,name,size,file,eTag,lastModifiedDateTime,parentReference"
_ITEM: Final = f"{_STATE},folder,root,package,deleted,remoteItem,malware,publication,webUrl"
_USER: Final = "id,displayName,mail,userPrincipalName,accountEnabled"
_AT_ONCE: Final = 1000
_BATCHED: Final = 20
"""The most requests that Graph takes in one."""
_NEXT: Final = "@odata.nextLink"
_DELTA: Final = "@odata.deltaLink"


@dataclass(frozen=True, slots=True)
class GraphDrive:
    """A document library, or somebody's OneDrive. Its paths begin with `folder`, if it is one of several."""

    id: str
    folder: str = ""


@dataclass(frozen=True, slots=True)
class GraphItem:
    """A file, folder or something else in a drive, as Graph describes it."""

    drive: GraphDrive
    id: str
    about: Mapping[str, Any]

    @property
    def parent(self) -> str | None:
        """The id of the folder in which it is."""
        reference = self.about.get("parentReference")
        parent_id = reference.get("id") if isinstance(reference, dict) else None
        return str(parent_id) if parent_id else None

    @property
    def part(self) -> str:
        """Its name as a part of a path."""
        return str(self.about.get("name") or self.id)

    @property
    def is_file(self) -> bool:
        """Whether it has content, or stands for something that has."""
        return any(isinstance(self.about.get(one), dict) for one in ("file", "package", "remoteItem"))

    @property
    def is_deleted(self) -> bool:
        """Whether it is gone; a folder is not always listed with what was in it."""
        return isinstance(self.about.get("deleted"), dict)

    @property
    def is_draft(self) -> bool:
        """Whether its last version is a minor one, such as 2.1, which readers may not see."""
        publication = self.about.get("publication")
        version = publication.get("versionId") if isinstance(publication, dict) else None
        return str(version or "").partition(".")[2].strip("0") != ""

    @property
    def etag(self) -> str:
        """Of its content: listings of changes leave out `cTag`, and `eTag` changes with the name as well."""
        file = self.about.get("file")
        hashes = file.get("hashes") if isinstance(file, dict) else None
        digest = hashes.get("quickXorHash") if isinstance(hashes, dict) else None
        return f"hash {digest} {self.about.get('size')}" if digest else f"tag {self.about.get('eTag')}"

    @property
    def media_type(self) -> str | None:
        """As SharePoint has it, or nothing."""
        file = self.about.get("file")
        return (file.get("mimeType") or None) if isinstance(file, dict) else None

    @property
    def unavailable(self) -> str | None:
        """Why there is nothing to read."""
        if isinstance(self.about.get("remoteItem"), dict):
            return "a shortcut: what it leads to is read where it is"
        if isinstance(self.about.get("malware"), dict):
            return "Microsoft considers it harmful and does not give it out"
        if not isinstance(self.about.get("file"), dict):
            return "a notebook, which is no file"
        return None

    @property
    def modified(self) -> datetime | None:
        """When it was last changed."""
        try:
            return datetime.fromisoformat(str(self.about.get("lastModifiedDateTime")))
        except ValueError:
            return None


class GraphApi:
    """What is asked of Graph."""

    def __init__(self, api: JsonApi, settings: SharepointSettings) -> None:
        self.api = api
        self._server = URL(settings.server)
        self._settings = settings

    def _route(self, path: str, query: Mapping[str, str] | None = None) -> URL:
        """The address of a route; the path is quoted already."""
        url = URL(f"{self._settings.server}/v1.0/{path}", encoded=True)
        return url.with_query(query) if query else url

    async def all_of(self, url: URL) -> list[Mapping[str, Any]]:
        """The entries of all pages. Raises RouteAbsent, RouteRefused, SourceFault."""
        return [one async for one in entries_of(self.api, url, "value", self._following)]

    def _following(self, _page: URL, answer: Any) -> URL | None:
        link = answer.get(_NEXT)
        return self._own(str(link)) if link else None

    def _own(self, link: str) -> URL:
        """A link of an answer; the token goes to no other server. Raises ListingIncomplete."""
        url = link_of(link, is_encoded=True)
        if not url.scheme or not url.host or url.origin() != self._server.origin():
            raise ListingIncomplete("Microsoft's list goes on at another server, which is not asked")
        return url

    async def drives(self) -> list[GraphDrive]:
        """The libraries of the site, or the user's OneDrive. Raises SourceMisplaced, SourceFault."""
        if self._settings.user:
            return [GraphDrive(await self._id_of("User", f"users/{quote(self._settings.user)}/drive"))]
        site = URL(self._settings.site)
        path = f":{site.raw_path}" if site.raw_path.strip("/") else ""
        number = await self._id_of("Site", f"sites/{site.host}{path}")
        route = self._route(f"sites/{quote(number, safe=',')}/drives", {"$select": "id,name"})
        names_by_id = {str(one["id"]): str(one.get("name") or one["id"]) for one in await self.all_of(route)}
        library = self._settings.library
        libraries = [
            GraphDrive(drive_id, "" if library else name)
            for drive_id, name in names_by_id.items()
            if library in ("", name)
        ]
        if not libraries:
            raise SourceMisplaced("Library: there is none, or the application may not see it")
        return libraries

    async def _id_of(self, field: str, path: str) -> str:
        answer = await self.api.read(self._route(path, {"$select": "id"}))
        if not isinstance(answer, dict) or not answer.get("id"):
            raise SourceMisplaced(f"{field}: there is nothing, or the application may not see it")
        return str(answer["id"])

    async def delta(self, drive: GraphDrive, link: str | None) -> tuple[list[GraphItem], str]:
        """All items of a drive, or what has changed since a link, and the next link.

        Raises RouteAbsent if the link is too old (410), SourceFault.
        """
        last: Any = {}

        def following(page: URL, answer: Any) -> URL | None:
            nonlocal last
            last = answer
            return self._following(page, answer)

        first = self._route(f"drives/{quote(drive.id)}/root/delta", {"$select": _ITEM})
        url = first if link is None else self._own(link)
        items = dict[str, GraphItem]()
        async for entry in entries_of(self.api, url, "value", following):
            if not entry.get("id"):
                raise ListingIncomplete("Microsoft lists an item without an id")
            items.pop(str(entry["id"]), None)  # the last time that it is named counts
            items[str(entry["id"])] = GraphItem(drive, str(entry["id"]), entry)
        if not last.get(_DELTA):
            raise ListingIncomplete("Microsoft's list breaks off")
        return list(items.values()), str(last[_DELTA])

    async def item(self, drive: str, item: str) -> GraphItem | None:
        """An item as it is now; None if it is gone. Raises SourceFault."""
        answer = await self.api.read(self._route(_place(drive, item), {"$select": _STATE}))
        return None if answer is None else GraphItem(GraphDrive(drive), item, answer)

    def content(self, drive: str, item: str) -> URL:
        """The route that leads to the bytes of a file."""
        return self._route(f"{_place(drive, item)}/content")

    async def permissions(self, items: Sequence[GraphItem]) -> list[list[Mapping[str, Any]] | None]:
        """Those of each item, inherited ones included; None if they are refused or the item is gone.

        Raises SourceFault.
        """
        return await self._lists(
            [self._route(f"{_place(one.drive.id, one.id)}/permissions") for one in items]
        )

    async def members(self, groups: Sequence[str]) -> list[list[Mapping[str, Any]] | None]:
        """Who is in each group, also by way of others; None if that is refused. Raises SourceFault.

        Asked for users alone (by a cast), Graph answers from an index that lags behind.
        """
        select = {"$select": _USER}
        return await self._lists(
            [self._route(f"groups/{quote(one, safe='')}/transitiveMembers", select) for one in groups]
        )

    async def _lists(self, urls: Sequence[URL]) -> list[list[Mapping[str, Any]] | None]:
        return await lists_together(self.api, urls, "value", self._following, self._batch, _BATCHED)

    async def _batch(self, urls: Sequence[URL]) -> Mapping[URL, BatchedAnswer]:
        """Send requests together. Raises ListingIncomplete, SourceFault."""
        paths = [url.raw_path_qs.removeprefix("/v1.0") for url in urls]
        requests = [{"id": str(at), "method": "GET", "url": path} for at, path in enumerate(paths)]
        body = {"requests": requests}
        answer = await self.api.read(self._route("$batch"), method="POST", body=body)
        answers = answer.get("responses") if isinstance(answer, dict) else None
        try:
            return {urls[int(one["id"])]: _batched(one) for one in answers or ()}
        except (LookupError, TypeError, ValueError, AttributeError):
            raise ListingIncomplete("Microsoft's answer to a batch is not understood") from None

    async def people(self, ids: Sequence[str]) -> list[Mapping[str, Any]]:
        """Who these are, as far as they are there. Raises RouteRefused, SourceFault."""
        people = list[Mapping[str, Any]]()
        for start in range(0, len(ids), _AT_ONCE):
            body = {"ids": list(ids[start : start + _AT_ONCE]), "types": ["user"]}
            url = self._route("directoryObjects/getByIds", {"$select": _USER})
            answer = await self.api.read(url, method="POST", body=body)
            if not isinstance(answer, dict) or not isinstance(answer.get("value"), list):
                raise ListingIncomplete("Microsoft's list of people is not understood")
            people += answer["value"]
        return people


def folder_path(item: GraphItem) -> str | None:
    """The folder in which an item is, from the drive on; None if the answer does not say it."""
    reference = item.about.get("parentReference")
    path = reference.get("path") if isinstance(reference, dict) else None
    _, root, rest = str(path or "").partition("root:")
    return unquote(rest).strip("/") if root else None


def _batched(answer: Mapping[str, Any]) -> BatchedAnswer:
    headers = {str(name).lower(): str(value) for name, value in (answer.get("headers") or {}).items()}
    return BatchedAnswer(int(answer["status"]), headers.get("retry-after"), answer.get("body"))


def _place(drive: str, item: str) -> str:
    return f"drives/{quote(drive)}/items/{quote(item)}"
