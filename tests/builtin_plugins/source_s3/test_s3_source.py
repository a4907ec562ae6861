"""S3: the suite for all sources against SeaweedFS, versions against moto, and servers that don't behave."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from email.utils import format_datetime
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web
from botocore.config import Config
from botocore.session import Session
from pydantic import SecretStr, ValidationError
from yarl import URL

from builtin_plugins.source_s3.bucket import open_s3
from builtin_plugins.source_s3.readers import PrefixReaders
from builtin_plugins.source_s3.settings import S3SourceSettings
from builtin_plugins.sources.api import (
    CredentialRefused,
    DocumentSource,
    ItemFault,
    ListingEnd,
    ListingIncomplete,
    SourceFault,
    SourceGrant,
    SourceItem,
    SourceMisplaced,
    SourceSetup,
    SourceThrottled,
    SourceUnreachable,
)
from builtin_plugins.sources.conformance import SourceConformance, SourceWorld, read_item
from builtin_plugins.sources.conformance_rights import GuardedConformance, GuardedWorld
from kernel.sdk import Platform, utc_now
from kernel.testing import Running, platforms
from tests.fakes.s3_server import BUCKET, KEY, SECRET, S3Server, client_of
from tests.fakes.website import served_by

pytestmark = pytest.mark.asyncio(loop_scope="module")


class SpoiledS3:
    """A proxy before the server, that can spoil answers."""

    def __init__(self, server: str, session: aiohttp.ClientSession) -> None:
        self.server = server
        self.session = session
        self.spoil = ""
        self._asked = 0

    async def handle(self, request: web.Request) -> web.Response:
        self._asked += 1
        if self.spoil == "busy" and self._asked % 3 == 0:
            return web.Response(
                status=503, headers={"Retry-After": "0"}, text="<Error><Code>SlowDown</Code></Error>"
            )
        url = URL(f"{self.server}{request.raw_path}", encoded=True)
        headers = {name: request.headers[name] for name in ("Host", "If-Match") if name in request.headers}
        async with self.session.request(request.method, url, headers=headers) as answer:
            body, status = await answer.read(), answer.status
        if "list-type" in request.query and status == 200:
            body = self._spoilt(body)
        return web.Response(status=status, body=body, content_type=answer.content_type)

    def _spoilt(self, body: bytes) -> bytes:
        end = b"</Contents>"
        if self.spoil == "cut":
            return body[: len(body) // 2]
        if self.spoil == "short":
            return body[: body.index(end) + len(end)] + b"</ListBucketResult>"
        if self.spoil == "repeated":
            entries = body[body.index(b"<Contents>") : body.rindex(end) + len(end)]
            return body.replace(entries, entries + entries)
        return body


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    async with platforms(tmp_path_factory.mktemp("platform")) as start:
        yield await start("source_s3", env={"PLATFORM_OUTGOING_ALLOWED": "127.0.0.1"})


def source_at(platform: Platform, url: str, **fields: Any) -> AbstractAsyncContextManager[DocumentSource]:
    secret = fields.pop("secret", SECRET)
    settings = S3SourceSettings(**{"bucket": BUCKET, "endpoint": url, "access_key": KEY, **fields})
    return open_s3(SourceSetup(platform, "one", settings, SecretStr(secret)))


class S3World(SourceWorld):
    """A prefix of its own in the bucket."""

    def __init__(self, platform: Platform, server: S3Server, proxy: SpoiledS3, url: str) -> None:
        self._platform = platform
        self._client = client_of(server.url)
        self._proxy = proxy
        self._url = url
        self._prefix = f"below {secrets.token_hex(4)}/"
        self._secret = SECRET

    def opened(self) -> AbstractAsyncContextManager[DocumentSource]:
        return source_at(self._platform, self._url, prefix=self._prefix, secret=self._secret)

    async def _do(self, call: str, path: str, **fields: Any) -> None:
        await asyncio.to_thread(getattr(self._client, call), Bucket=BUCKET, Key=self._prefix + path, **fields)

    async def put(self, path: str, content: bytes) -> None:
        await self._do("put_object", path, Body=content)

    async def remove(self, path: str) -> None:
        await self._do("delete_object", path)

    async def move(self, old: str, new: str) -> None:
        await self._do("copy_object", new, CopySource={"Bucket": BUCKET, "Key": self._prefix + old})
        await self.remove(old)

    @asynccontextmanager
    async def _spoilt(self, how: str) -> AsyncIterator[None]:
        self._proxy.spoil = how
        try:
            yield
        finally:
            self._proxy.spoil = ""

    def cut_off(self) -> AbstractAsyncContextManager[object]:
        return self._spoilt("cut")

    def shortened(self) -> AbstractAsyncContextManager[object]:
        return self._spoilt("short")

    def throttled(self) -> AbstractAsyncContextManager[object]:
        return self._spoilt("busy")

    def repeated(self) -> AbstractAsyncContextManager[object]:
        return self._spoilt("repeated")

    @asynccontextmanager
    async def expired(self) -> AsyncIterator[None]:
        self._secret = "another"
        try:
            yield
        finally:
            self._secret = SECRET


@pytest.mark.long
class TestS3(SourceConformance):
    """The suite."""

    MANY = 1_100  # more than a page

    @pytest_asyncio.fixture(loop_scope="module")
    async def world(self, running: Running, s3: S3Server) -> AsyncIterator[SourceWorld]:
        async with aiohttp.ClientSession() as session:
            proxy = SpoiledS3(s3.url, session)
            async with served_by(proxy.handle) as url:
                yield S3World(running.platform, s3, proxy, url)


class GuardedS3World(S3World, GuardedWorld):
    """A prefix of its own, with readers that its settings name."""

    people = ("ann@example.org", "bob@example.org", "cleo@example.org")
    groups = ("staff", "board")

    def __init__(self, platform: Platform, server: S3Server, proxy: SpoiledS3, url: str) -> None:
        super().__init__(platform, server, proxy, url)
        self._readers: dict[str, str] = {}
        self._groups: dict[str, list[str]] = {"staff": [], "board": []}

    def opened(self) -> AbstractAsyncContextManager[DocumentSource]:
        readers = [f"{self._prefix}{path} = {names}" for path, names in self._readers.items()]
        groups = [f"{name} = {', '.join(members)}" for name, members in self._groups.items()]
        fields = {"readers": readers or ["=*"], "groups": groups, "prefix": self._prefix}
        return source_at(self._platform, self._url, secret=self._secret, **fields)

    async def grant(self, path: str, grant: SourceGrant) -> None:
        names = ["*"] if grant.everybody else [*grant.people, *(f"@{one}" for one in grant.groups)]
        self._readers[path] = ", ".join(names)

    async def set_group(self, group: str, people: tuple[str, ...]) -> None:
        self._groups[group] = list(people)

    async def nest(self, group: str, inner: str) -> bool:
        self._groups[group].append(f"@{inner}")
        return True

    def rights_cut_off(self) -> AbstractAsyncContextManager[object]:
        return self._spoilt("cut")


@pytest.mark.long
class TestGuardedS3(GuardedConformance):
    """The suite with rights."""

    MANY = 1_100

    @pytest_asyncio.fixture(loop_scope="module")
    async def world(self, running: Running, s3: S3Server) -> AsyncIterator[SourceWorld]:
        async with aiohttp.ClientSession() as session:
            proxy = SpoiledS3(s3.url, session)
            async with served_by(proxy.handle) as url:
                yield GuardedS3World(running.platform, s3, proxy, url)


async def test_the_longest_prefix_decides() -> None:
    """Alone: what a longer one leaves out, a shorter one doesn't give."""
    lines = [
        "hr/ = @hr",
        "hr/open/ = *",
        "hr/open/x = ann@example.org",
        "a=b/ = @hr, bob@example.org",
    ]
    readers = PrefixReaders(lines, ["hr = cleo@example.org"])
    hr, ann = SourceGrant((), ("hr",)), SourceGrant(("ann@example.org",))
    given = {key: readers.of(key) for key in ("hr/a", "hr/open/a", "hr/open/xy", "a=b/c", "h", "other")}
    assert given == {
        "hr/a": hr,
        "hr/open/a": SourceGrant(everybody=True),
        "hr/open/xy": ann,
        "a=b/c": SourceGrant(("bob@example.org",), ("hr",)),
        "h": SourceGrant(),
        "other": SourceGrant(),
    }
    directory = readers.directory()
    assert [one.email for one in directory.people] == [f"{one}@example.org" for one in ("ann", "bob", "cleo")]
    assert [(one.id, list(one.people)) for one in directory.groups] == [("hr", ["cleo@example.org"])]


@pytest.mark.parametrize(
    "fields",
    [
        {"readers": ["hr/"]},
        {"readers": ["hr/ = somebody"]},
        {"readers": ["hr/ = @"]},
        {"readers": ["hr/ = @hr@b.org, a@b@c.org"]},
        {"readers": ["hr/ = *", "hr/ = a@b.org"]},
        {"readers": ["hr/ = *"], "groups": ["hr = *"]},
        {"groups": ["hr = a@b.org"]},
    ],
)
async def test_readers_are_checked(fields: dict[str, list[str]]) -> None:
    with pytest.raises(ValidationError):
        S3SourceSettings(bucket="good", **fields)


@pytest.fixture(scope="module")
def moto_url() -> Iterator[str]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield f"http://{host}:{port}"
    finally:
        server.stop()


async def everything(source: DocumentSource) -> list[SourceItem]:
    found = [one async for one in source.documents(None)]
    assert isinstance(found.pop(), ListingEnd)
    return [one for one in found if isinstance(one, SourceItem)]


@pytest.mark.long
async def test_a_version_is_read_as_it_was_listed(running: Running, moto_url: str) -> None:
    """Also once it was overwritten or deleted; what was deleted is not listed."""
    client = Session().create_client(
        *("s3", "us-east-1"),
        endpoint_url=moto_url,
        aws_access_key_id=KEY,
        aws_secret_access_key=SECRET,
        config=Config(s3={"addressing_style": "path"}),
    )
    await asyncio.to_thread(client.create_bucket, Bucket="versioned")
    turned_on = {"Status": "Enabled"}
    await asyncio.to_thread(
        client.put_bucket_versioning, Bucket="versioned", VersioningConfiguration=turned_on
    )
    for key, body in (
        ("a +ä.txt", b"first"),
        ("a +ä.txt", b"second"),
        ("b.txt", b"other"),
        ("c.txt", b"gone"),
    ):
        await asyncio.to_thread(client.put_object, Bucket="versioned", Key=key, Body=body)
    await asyncio.to_thread(client.delete_object, Bucket="versioned", Key="c.txt")
    async with source_at(running.platform, moto_url, bucket="versioned", versions=True) as source:
        first, other = await everything(source)
        assert [first.path, other.path] == ["a +ä.txt", "b.txt"]
        await asyncio.to_thread(client.put_object, Bucket="versioned", Key="a +ä.txt", Body=b"third")
        await asyncio.to_thread(client.delete_object, Bucket="versioned", Key="b.txt")
        assert [await read_item(source, one) for one in (first, other)] == [b"second", b"other"]
        [again] = await everything(source)
    assert again.details["version"] != first.details["version"]
    async with source_at(running.platform, moto_url, bucket="versioned") as source:
        [item] = await everything(source)
        await asyncio.to_thread(client.put_object, Bucket="versioned", Key="a +ä.txt", Body=b"fourth")
        with pytest.raises(ItemFault):
            await read_item(source, item)


def listing(*keys: str, more: str = "<IsTruncated>false</IsTruncated>") -> str:
    entry = "<Contents><Key>{}</Key><Size>3</Size><ETag>&quot;{}&quot;</ETag></Contents>"
    entries = "".join(entry.format(key, "a" * 32) for key in keys)
    return f'<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{entries}{more}</ListBucketResult>'


async def listed(running: Running, status: int, body: str, **fields: Any) -> list[SourceItem]:
    """What a source makes of a server that answers this to everything."""

    async def handle(_request: web.Request) -> web.Response:
        return web.Response(status=status, text=body, headers={"Retry-After": "120"} if status == 503 else {})

    async with served_by(handle) as url, source_at(running.platform, url, **fields) as source:
        return await everything(source)


async def test_folders_and_the_prefix(running: Running) -> None:
    """What stands for a folder is no document, and paths begin after the prefix."""
    items = await listed(running, 200, listing("p/", "p/a/", "p/a/b.txt", "p/c.txt"), prefix="p/")
    assert [(one.identity, one.path, one.size) for one in items] == [
        ("p/a/b.txt", "a/b.txt", 3),
        ("p/c.txt", "c.txt", 3),
    ]


async def test_a_name_that_no_address_holds_keeps_no_other_away(running: Running) -> None:
    """A server reads `..` as another place, and then finds the signature to be wrong."""
    items = await listed(running, 200, listing("a/../b", "./c", "d..e"))
    assert [one.identity for one in items if one.unavailable is None] == ["d..e"]


async def test_without_a_key_nothing_is_signed(running: Running) -> None:
    """The operator's own keys are not used for it."""
    [item] = await listed(running, 200, listing("a.txt"), access_key="")
    assert item.link is not None and "Signature" not in item.link


@pytest.mark.parametrize(
    ("status", "body", "fault"),
    [
        (200, "<ListBucketResult>", ListingIncomplete),
        (200, "<html/>", ListingIncomplete),
        (200, listing("a", more="<IsTruncated>true</IsTruncated>"), ListingIncomplete),
        (200, listing("a", more=""), ListingIncomplete),
        (
            200,
            listing(
                "a", more="<IsTruncated>true</IsTruncated><NextContinuationToken>b</NextContinuationToken>"
            ),
            ListingIncomplete,
        ),
        (301, "<Error><Code>PermanentRedirect</Code></Error>", SourceMisplaced),
        (403, "<Error><Code>AccessDenied</Code></Error>", CredentialRefused),
        (403, "<Error><Code>RequestTimeTooSkewed</Code></Error>", SourceUnreachable),
        (404, "<Error><Code>NoSuchBucket</Code></Error>", SourceMisplaced),
        (500, "", SourceUnreachable),
        (503, "<Error><Code>SlowDown</Code></Error>", SourceThrottled),
    ],
)
async def test_faults(running: Running, status: int, body: str, fault: type[SourceFault]) -> None:
    with pytest.raises(fault):
        await listed(running, status, body)


async def test_clocks_that_differ_are_named(running: Running) -> None:
    """A signed address that the server calls expired says nothing about the keys."""
    ahead = format_datetime(utc_now() + timedelta(hours=3), usegmt=True)
    refused = "<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>"
    item = SourceItem("a.txt", "", "a.txt")

    async def handle(_request: web.Request) -> web.Response:
        return web.Response(status=403, text=refused, headers={"Date": ahead})

    async with served_by(handle) as url, source_at(running.platform, url) as source:
        with pytest.raises(SourceUnreachable, match="180 minutes"):
            await everything(source)
        with pytest.raises(SourceUnreachable, match="180 minutes"):
            await read_item(source, item)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("bucket", "A b"),
        ("endpoint", "https://a@b@c.org"),
        ("endpoint", "https://c.org/bucket"),
        ("endpoint", "c.org"),
    ],
)
async def test_settings_are_checked(field: str, value: str) -> None:
    with pytest.raises(ValidationError) as refused:
        S3SourceSettings(**{"bucket": "good", field: value})
    assert [error["loc"] for error in refused.value.errors()] == [(field,)]
