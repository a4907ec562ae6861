"""A folder on a WebDAV server: listed folder by folder, read file by file."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Annotated, Final
from urllib.parse import unquote

from aiohttp import encode_basic_auth, hdrs
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from yarl import URL

from builtin_plugins.source_webdav.multistatus import PROPFIND, DavMember, ListingBroken, MemberReader
from builtin_plugins.sources.api import (
    ABSENT,
    CredentialRefused,
    DocumentSource,
    ItemFault,
    ItemVanished,
    Listing,
    ListingEnd,
    ListingIncomplete,
    SourceItem,
    SourceKind,
    SourceMisplaced,
    SourceSetup,
    SourceUnreachable,
    call_server,
    item_pieces,
)
from kernel.sdk import OUTGOING, CallLimits, OutgoingClient, OutgoingError, OutgoingReply

_LISTING: Final = CallLimits(total_seconds=300, silence_seconds=60, body_bytes=256 * 1024 * 1024)
_FILE: Final = CallLimits(total_seconds=None, silence_seconds=60, body_bytes=2**40)
_DEPTH, _FOLDERS = 100, 50_000
_HEADERS: Final = {"Depth": "1", hdrs.CONTENT_TYPE: "application/xml; charset=utf-8"}


def _address(value: str) -> str:
    url = URL(value)
    if url.user or url.password:
        raise ValueError("the address must hold no user or password; give them in their own fields")
    if url.scheme not in ("http", "https") or not url.host or url.query_string or url.fragment:
        raise ValueError("expected https://host/folder")
    return value


class WebdavSettings(BaseModel):
    """What a source of this kind is."""

    model_config = ConfigDict(extra="forbid")

    url: Annotated[str, AfterValidator(_address)] = Field(
        ...,
        title="Address",
        min_length=1,
        max_length=1000,
        description="The folder. Nextcloud: https://host/remote.php/dav/files/USER/folder",
    )
    user: str = Field(
        "",
        title="User",
        max_length=255,
        pattern=r"^[^:\x00-\x1f]*$",
        description="Sent with the password; none when empty.",
    )


class WebdavSource:
    """Files are known by Nextcloud's number of the file, where there is one, otherwise by their path."""

    def __init__(self, client: OutgoingClient, root: URL, headers: Mapping[str, str]) -> None:
        """`root` ends with a slash."""
        self._client = client
        self._root = root
        self._headers = headers
        self._above = unquote(root.raw_path)

    async def documents(self, since: str | None) -> Listing:
        """All files below the folder. Raises SourceFault."""
        waiting, known = [(self._root, 0)], {self._above}
        while waiting:
            folder, depth = waiting.pop()
            async with aclosing(self._members(folder, is_root=depth == 0)) as members:
                async for member in members:
                    path = self._path_of(folder, member)
                    if path is None or path in known:
                        continue
                    if not member.is_folder:
                        yield self._item(path.removeprefix(self._above), member)
                    elif depth < _DEPTH:
                        known.add(path)
                        if len(known) > _FOLDERS:
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
        async with await self._call("GET", self._url_of(item.path), _FILE) as reply:
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


@asynccontextmanager
async def open_webdav(setup: SourceSetup) -> AsyncIterator[DocumentSource]:
    """Open a source of this kind."""
    settings = WebdavSettings.model_validate(setup.settings.model_dump())
    headers = dict[str, str]()
    if settings.user or setup.secret is not None:
        password = setup.secret.get_secret_value() if setup.secret is not None else ""
        headers[hdrs.AUTHORIZATION] = encode_basic_auth(settings.user, password)
    root = URL(settings.url)
    async with setup.platform.resource(OUTGOING).client("source_webdav") as client:
        yield WebdavSource(client, root if root.raw_path.endswith("/") else root / "", headers)


WEBDAV: Final = SourceKind("webdav", "WebDAV or Nextcloud", WebdavSettings, open_webdav, secret="Password")
