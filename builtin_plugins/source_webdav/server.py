"""A folder on a WebDAV server: listed folder by folder, read file by file."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Final
from urllib.parse import unquote

from aiohttp import hdrs
from yarl import URL

from builtin_plugins.source_webdav.multistatus import PROPFIND, DavMember, ListingBroken, MemberReader
from builtin_plugins.sources.api import (
    ABSENT,
    CredentialRefused,
    ItemFault,
    ItemVanished,
    Listing,
    ListingEnd,
    ListingIncomplete,
    SourceItem,
    SourceMisplaced,
    SourceUnreachable,
    call_server,
    item_pieces,
)
from kernel.sdk import CallLimits, OutgoingClient, OutgoingError, OutgoingReply

_LISTING: Final = CallLimits(total_seconds=300, silence_seconds=60, body_bytes=256 * 1024 * 1024)
_FILE: Final = CallLimits(total_seconds=None, silence_seconds=60, body_bytes=2**40)
_DEPTH, _FOLDERS = 100, 50_000
_HEADERS: Final = {"Depth": "1", hdrs.CONTENT_TYPE: "application/xml; charset=utf-8"}


class WebdavSource:
    """Files are known by Nextcloud's number of the file, where there is one, otherwise by their path."""

    def __init__(self, client: OutgoingClient, root: URL, headers: Mapping[str, str]) -> None:
        """`root` ends with a slash."""
        self._client = client
        self._root = root
        self._headers = headers
        self._above = unquote(root.raw_path)
        self.is_exact = False
        """Whether only what was listed is read: rights were read after that, not those of later content."""

    async def documents(self, since: str | None) -> Listing:
        """All files below the folder. Raises SourceFault."""
        waiting, paths = [(self._root, 0)], {self._above}
        while waiting:
            folder, depth = waiting.pop()
            async with aclosing(self._members(folder, is_root=depth == 0)) as members:
                async for member in members:
                    path = self._path_of(folder, member)
                    if path is None or path in paths:
                        continue
                    if not member.is_folder:
                        yield self._item(path.removeprefix(self._above), member)
                    elif depth < _DEPTH:
                        paths.add(path)
                        if len(paths) > _FOLDERS:
                            raise SourceMisplaced(f"The folder has more than {_FOLDERS:,} folders below it")
                        waiting.append((self._url_of(path.removeprefix(self._above)), depth + 1))
        yield ListingEnd()

    async def _members(self, folder: URL, *, is_root: bool) -> AsyncGenerator[DavMember, None]:
        """What is in a folder, itself included; nothing if it was deleted since it was listed."""
        reader = MemberReader()
        async with await self._call("PROPFIND", folder, _LISTING, _HEADERS, PROPFIND) as reply:
            if reply.status in ABSENT and not is_root:
                return
            _check_listing(reply)
            try:
                async with aclosing(reply.pieces()) as pieces:
                    async for piece in pieces:
                        for member in reader.feed(piece):
                            yield member
                reader.close()
            except (OutgoingError, ListingBroken) as error:
                raise ListingIncomplete(f"The server's answer is not whole: {error}") from None

    async def tag(self) -> str:
        """The etag of the folder itself. Raises SourceFault."""
        reader, headers = MemberReader(), {**_HEADERS, "Depth": "0"}
        async with await self._call("PROPFIND", self._root, _LISTING, headers, PROPFIND) as reply:
            _check_listing(reply)
            try:
                etags = [one.etag for one in reader.feed(await reply.read()) if one.is_folder]
                reader.close()
            except (OutgoingError, ListingBroken) as error:
                raise ListingIncomplete(f"The server's answer is not whole: {error}") from None
        if len(etags) != 1 or etags[0] is None:
            raise ListingIncomplete("The server does not say which version the folder is of")
        return etags[0]

    def _path_of(self, folder: URL, member: DavMember) -> str | None:
        """Its path on the server, folders with a slash at the end; None if it is not below the source."""
        try:
            url = folder.join(URL(member.href, encoded=True))
        except ValueError:
            return None
        path = unquote(url.raw_path).rstrip("/") + "/" * member.is_folder
        parts = path.split("/")
        if url.origin() != self._root.origin() or ".." in parts or not path.startswith(self._above):
            return None
        return path if path != self._above else None

    def _item(self, path: str, member: DavMember) -> SourceItem:
        # Apache calls the tag of a file weak as long as it was written less than a second ago.
        etag = f"{(member.etag or '').removeprefix('W/')} {member.size} {member.modified or ''}"
        return SourceItem(
            identity=path if member.file_id is None else f"file {member.file_id}",
            etag=etag,
            path=path,
            size=member.size,
            modified=member.modified,
            link=str(self._url_of(path)),
        )

    def _url_of(self, path: str) -> URL:
        """The address of what is at a path below the source."""
        folder = path.endswith("/")
        url = self._root
        for part in path.strip("/").split("/"):
            url = url / part
        return url / "" if folder else url

    @asynccontextmanager
    async def content(self, item: SourceItem) -> AsyncIterator[AsyncIterator[bytes]]:
        """The bytes of a file. Raises ItemFault, SourceFault."""
        tag, _, _ = item.etag.partition(" ")
        headers: dict[str, str] = {hdrs.IF_MATCH: tag} if self.is_exact else {}
        async with await self._call("GET", self._url_of(item.path), _FILE, headers) as reply:
            if reply.status == 412:
                raise ItemFault("It was changed since it was listed")
            if reply.status in ABSENT:
                raise ItemVanished("It was deleted since it was listed")
            if reply.status == 401:
                raise CredentialRefused("The server refuses the user or the password")
            if reply.status != 200:
                raise ItemFault(f"The server answered {reply.status}")
            yield item_pieces(reply)

    async def _call(
        self,
        method: str,
        url: URL,
        limits: CallLimits,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> OutgoingReply:
        sent = {**self._headers, **(headers or {})}
        return await call_server(self._client, method, url, limits, sent, body)


def _check_listing(reply: OutgoingReply) -> None:
    """Raise SourceFault unless the answer is a listing."""
    status = reply.status
    if status == 207:
        return
    if status in (401, 403):
        raise CredentialRefused("The server refuses the user or the password")
    if status in ABSENT:
        raise SourceMisplaced("There is no folder at this address")
    if 300 <= status < 400:
        raise SourceMisplaced(
            f"The folder is at another address: {reply.headers.get(hdrs.LOCATION, '')[:200]}"
        )
    if status >= 500:
        raise SourceUnreachable(f"The server answered {status}")
    raise SourceMisplaced(f"No WebDAV server answers at this address (it answered {status})")
