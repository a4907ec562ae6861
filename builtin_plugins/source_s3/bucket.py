"""A bucket, or what is below a prefix in it: listed page by page, read object by object."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

from builtin_plugins.source_s3.addresses import SignedAddresses
from builtin_plugins.source_s3.pages import BucketObject, BucketPage, PageBroken, read_code, read_page
from builtin_plugins.source_s3.readers import PrefixReaders
from builtin_plugins.source_s3.settings import S3SourceSettings
from builtin_plugins.sources.api import (
    CredentialRefused,
    DocumentSource,
    ItemFault,
    ItemUnsuitable,
    ItemVanished,
    Listing,
    ListingEnd,
    ListingIncomplete,
    SourceDirectory,
    SourceFault,
    SourceGrant,
    SourceItem,
    SourceKind,
    SourceMisplaced,
    SourceSetup,
    SourceUnreachable,
    call_server,
    clock_difference,
    item_pieces,
)
from kernel.sdk import OUTGOING, CallLimits, OutgoingClient, OutgoingError, OutgoingReply

_LIST: Final = CallLimits(total_seconds=120, silence_seconds=60, body_bytes=16 * 1024 * 1024)
_OBJECT: Final = CallLimits(total_seconds=None, silence_seconds=60, body_bytes=2**40)
_PAGE: Final = 1000
_ERROR_BYTES: Final = 64 * 1024
_OF_CONTENT: Final = re.compile(r"[0-9a-f]{32}")
"""An ETag that may be the digest of the content: that of an object written in parts is none."""
_ETAG: Final = re.compile(r"[0-9a-f]{32}(-[0-9]{1,5})?")
_ODD_NAME: Final = "its name has parts that servers leave out of addresses ('.' or '..')"
_KEYS: Final = {"InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"}
_SKEWED: Final = "RequestTimeTooSkewed"
_MOST_SKEW: Final = 300.0
"""Seconds; servers bear up to 15 minutes, and addresses are valid for as long."""
_REASONS: Final = {
    "NoSuchBucket": "There is no such bucket",
    "PermanentRedirect": "The bucket is in another region",
    "AuthorizationHeaderMalformed": "The bucket is in another region",
    "AuthorizationQueryParametersError": "The bucket is in another region",
    "NotImplemented": "The server does not list versions",
}


class S3Source:
    """Objects are known by their keys."""

    def __init__(
        self, client: OutgoingClient, settings: S3SourceSettings, addresses: SignedAddresses
    ) -> None:
        self._client = client
        self._settings = settings
        self._addresses = addresses

    async def documents(self, since: str | None) -> Listing:
        """All current objects below the prefix. Raises SourceFault."""
        token, version, starts = None, None, set[object]()
        while True:
            page = await self._page(token, version)
            for entry in page.objects:
                if not entry.key.endswith("/"):  # stands for a folder
                    yield self.item(entry)
            token, version = page.next_token, page.next_version
            start = token or version
            if start is None:
                break
            if start in starts:
                raise ListingIncomplete("The server lists the same objects again and again")
            starts.add(start)
        yield ListingEnd()

    async def _page(self, token: str | None, version: tuple[str, str] | None) -> BucketPage:
        prefix, versions = self._settings.prefix, self._settings.versions
        url = (
            self._addresses.versions_page(prefix, _PAGE, version)
            if versions
            else self._addresses.page(prefix, _PAGE, token)
        )
        async with await call_server(self._client, "GET", url, _LIST) as reply:
            if reply.status != 200:
                raise await _fault_of(reply)
            try:
                return read_page(await reply.read(), versions=versions)
            except (OutgoingError, PageBroken) as error:
                raise ListingIncomplete(f"The server's answer is not whole: {error}") from None

    def item(self, entry: BucketObject) -> SourceItem:
        """An object of a listing as an item."""
        fingerprint = f"{entry.etag} {entry.size}" if _OF_CONTENT.fullmatch(entry.etag) else None
        return SourceItem(
            identity=entry.key,
            etag=f"{entry.etag} {entry.size}" if entry.etag else f"{entry.modified} {entry.size}",
            path=entry.key.removeprefix(self._settings.prefix).lstrip("/") or entry.key,
            size=entry.size,
            modified=entry.modified,
            link=None if self._settings.access_key else str(self._addresses.content(entry.key, None)),
            details={"version": entry.version} if entry.version else {},
            fingerprint=fingerprint,
            unavailable=_ODD_NAME if {".", ".."} & set(entry.key.split("/")) else None,
        )

    @asynccontextmanager
    async def content(self, item: SourceItem) -> AsyncIterator[AsyncIterator[bytes]]:
        """The bytes of an object, as it was listed. Raises ItemFault, SourceFault."""
        url = self._addresses.content(item.identity, item.details.get("version"))
        headers = _as_listed(item)
        async with await call_server(self._client, "GET", url, _OBJECT, headers) as reply:
            if reply.status == 412:
                raise ItemFault("It was changed since it was listed")
            if reply.status != 200:
                raise await _item_fault(reply)
            yield item_pieces(reply)


class GuardedS3Source(S3Source):
    """A bucket whose settings say who may read what is below a prefix."""

    def __init__(
        self, client: OutgoingClient, settings: S3SourceSettings, addresses: SignedAddresses
    ) -> None:
        super().__init__(client, settings, addresses)
        self._readers = PrefixReaders(settings.readers, settings.groups)
        self._keys: set[str] | None = None

    def item(self, entry: BucketObject) -> SourceItem:
        """The same with its readers."""
        return replace(super().item(entry), grant=self._readers.of(entry.key))

    async def rights_mark(self) -> str | None:
        """A digest of the settings: nothing else says who may read an object."""
        return self._readers.mark()

    async def directory(self) -> SourceDirectory:
        """The people and groups that the settings name."""
        return self._readers.directory()

    async def grants(self, items: Sequence[SourceItem]) -> Mapping[str, SourceGrant]:
        """By their names, as far as they are in the bucket, which is listed once. Raises SourceFault."""
        if self._keys is None:
            listed = [one async for one in self.documents(None) if isinstance(one, SourceItem)]
            self._keys = {one.identity for one in listed}
        there = (one.identity for one in items if one.identity in self._keys)
        return {key: self._readers.of(key) for key in there}


def _as_listed(item: SourceItem) -> dict[str, str]:
    """The condition that the object is still what was listed."""
    etag, _, _ = item.etag.partition(" ")
    return {"If-Match": f'"{etag}"'} if _ETAG.fullmatch(etag) else {}


async def _fault_of(reply: OutgoingReply) -> SourceFault:
    """Why there is no listing."""
    code = await _code_of(reply)
    if (skew := _skew_fault(reply, code)) is not None:
        return skew
    if code in _REASONS or 300 <= reply.status < 400:
        return SourceMisplaced(_REASONS.get(code, "The bucket is at another address, or in another region"))
    if code in _KEYS or reply.status in (401, 403):
        return CredentialRefused(f"The S3 server refuses the keys, or that they list the bucket ({code})")
    if reply.status >= 500:
        return SourceUnreachable(f"The S3 server answered {reply.status} {code}".rstrip())
    return SourceMisplaced(f"No S3 server answers at this address (it answered {reply.status})")


async def _item_fault(reply: OutgoingReply) -> Exception:
    """Why an object can't be read."""
    code = await _code_of(reply)
    if (skew := _skew_fault(reply, code)) is not None:
        return skew
    if code in _KEYS or reply.status == 401:
        return CredentialRefused(f"The S3 server refuses the keys ({code})")
    if reply.status == 404:
        return ItemVanished("It was deleted since it was listed")
    if code == "InvalidObjectState":
        return ItemUnsuitable("It is archived, and must be restored before it can be read")
    return ItemFault(f"The S3 server answered {reply.status} {code}".rstrip())


def _skew_fault(reply: OutgoingReply, code: str) -> SourceFault | None:
    """A fault if clocks are the reason of a refusal: servers call signed addresses expired or not yet valid,
    which reads as if the keys were wrong.
    """
    if code != _SKEWED and reply.status not in (400, 401, 403):
        return None
    seconds = clock_difference(reply)
    if code != _SKEWED and (seconds is None or abs(seconds) < _MOST_SKEW):
        return None
    by = "too far apart" if seconds is None else f"{abs(seconds) / 60:.0f} minutes apart"
    return SourceUnreachable(
        f"The clocks of the S3 server and of this one are {by}, so it refuses what is signed; set the one "
        "that is wrong, for example by NTP"
    )


async def _code_of(reply: OutgoingReply) -> str:
    try:
        return read_code(await reply.read(_ERROR_BYTES))
    except OutgoingError:
        return ""


@asynccontextmanager
async def open_s3(setup: SourceSetup) -> AsyncIterator[DocumentSource]:
    """Open a source of this kind."""
    settings = S3SourceSettings.model_validate(setup.settings.model_dump())
    addresses = await asyncio.to_thread(SignedAddresses, settings, setup.secret)
    async with setup.platform.resource(OUTGOING).client("source_s3") as client:
        yield (GuardedS3Source if settings.readers else S3Source)(client, settings, addresses)


S3: Final = SourceKind(
    "s3",
    "S3 bucket",
    S3SourceSettings,
    open_s3,
    secret="Secret access key",
    guarded=lambda settings: bool(S3SourceSettings.model_validate(settings.model_dump()).readers),
)
