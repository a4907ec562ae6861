"""WebDAV: the suite for all sources against Apache's server, and servers that don't behave."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from subprocess import Popen
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import encode_basic_auth, web
from pydantic import SecretStr, ValidationError
from yarl import URL

from builtin_plugins.source_webdav.kind import open_webdav
from builtin_plugins.source_webdav.settings import WebdavSettings
from builtin_plugins.sources.api import (
    DocumentSource,
    ListingEnd,
    ListingIncomplete,
    SourceFault,
    SourceItem,
    SourceMisplaced,
    SourceSetup,
    SourceThrottled,
)
from builtin_plugins.sources.conformance import SourceConformance, SourceWorld
from kernel.sdk import Platform
from kernel.testing import Running, eventually, missing, platforms

pytestmark = pytest.mark.asyncio(loop_scope="module")

USER, PASSWORD = "ada", "grüner tee"
_MODULES = (
    "mpm_event",
    "authn_core",
    "authn_file",
    "authz_core",
    "authz_user",
    "auth_basic",
    "dav",
    "dav_fs",
)
_CONFIGURATION = """
ServerRoot "{home}"
ServerName localhost
PidFile "{home}/pid"
ErrorLog "{home}/errors"
Listen 127.0.0.1:{port}
{modules}
{account}
DocumentRoot "{home}/files"
DavLockDB "{home}/locks"
<Directory "{home}/files">
    Dav On
    AuthType Basic
    AuthName files
    AuthUserFile "{home}/users"
    Require valid-user
</Directory>
"""


@contextmanager
def apache(home: Path) -> Iterator[int]:
    """Apache's WebDAV server with one account, on a free port."""
    program, modules = shutil.which("apache2") or "", Path("/usr/lib/apache2/modules")
    if not program:
        missing("Apache is missing; apt-get install apache2-bin")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    (home / "files").mkdir(parents=True)
    (home / "users").write_text(f"{USER}:{{SHA}}{_sha1(PASSWORD)}\n", "utf-8")
    loaded = "\n".join(f"LoadModule {name}_module {modules}/mod_{name}.so" for name in _MODULES)
    account = "User www-data\nGroup www-data" if os.geteuid() == 0 else ""
    text = _CONFIGURATION.format(home=home, port=port, modules=loaded, account=account)
    (home / "apache.conf").write_text(text, "utf-8")
    if account:
        for place in (home, home / "files"):
            shutil.chown(place, "www-data", "www-data")
        for above in home.parents:
            if above.owner() == "root" and above != Path("/tmp") and above != Path("/"):
                above.chmod(above.stat().st_mode | 0o011)
    server = Popen([program, "-f", str(home / "apache.conf"), "-D", "FOREGROUND"])
    try:
        yield port
    finally:
        server.terminate()
        server.wait(30)


def _sha1(password: str) -> str:
    import base64
    import hashlib

    return base64.b64encode(hashlib.sha1(password.encode(), usedforsecurity=False).digest()).decode()


@dataclass
class Between:
    """A proxy before the server, that can spoil answers."""

    server: str
    session: aiohttp.ClientSession
    spoil: str = ""
    asked: list[str] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.Response:
        self.asked.append(request.method)
        if self.spoil == "busy" and len(self.asked) % 3 == 0:
            return web.Response(status=429, headers={"Retry-After": "0"})
        headers = {
            name: request.headers[name]
            for name in ("Depth", "Authorization", "Content-Type")
            if name in request.headers
        }
        if self.spoil == "expired":
            headers["Authorization"] = encode_basic_auth(USER, "another")
        async with self.session.request(
            request.method, f"{self.server}{request.raw_path}", headers=headers, data=await request.read()
        ) as answer:
            body = await answer.read()
        if request.method == "PROPFIND" and self.spoil == "cut":
            body = body[: len(body) // 2]
        if request.method == "PROPFIND" and self.spoil == "short":
            start, end = body.index(b"</D:response>"), body.index(b"</D:multistatus>")
            body = body[: start + len(b"</D:response>")] + body[end:]
        return web.Response(status=answer.status, body=body, headers={"Content-Type": answer.content_type})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    async with platforms(tmp_path_factory.mktemp("platform")) as start:
        yield await start("source_webdav", env={"PLATFORM_OUTGOING_ALLOWED": "127.0.0.1"})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def between(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[SimpleNamespace]:
    home = tmp_path_factory.mktemp("dav")
    with apache(home) as port:
        async with aiohttp.ClientSession() as session:
            proxy = Between(f"http://127.0.0.1:{port}", session)
            async with served(proxy.handle) as url:

                async def answers() -> bool:
                    try:
                        async with session.get(proxy.server) as answer:
                            return answer.status == 401
                    except aiohttp.ClientError:
                        return False

                await eventually(answers)
                yield SimpleNamespace(proxy=proxy, url=url, files=home / "files")


@asynccontextmanager
async def served(handler: Any) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def source_at(platform: Platform, url: str, **fields: Any) -> AbstractAsyncContextManager[DocumentSource]:
    settings = WebdavSettings(url=url, user=fields.pop("user", USER))
    return open_webdav(SourceSetup(platform, "one", settings, SecretStr(fields.pop("password", PASSWORD))))


class WebdavWorld(SourceWorld):
    """A folder of its own on the server, changed over WebDAV."""

    def __init__(self, platform: Platform, between: SimpleNamespace) -> None:
        self._platform = platform
        self._proxy: Between = between.proxy
        self._files: Path = between.files
        self._folder = f"folder {secrets.token_hex(4)}"
        self._url = f"{between.url}/{quote(self._folder)}"
        self._headers = {"Authorization": encode_basic_auth(USER, PASSWORD)}

    def opened(self) -> AbstractAsyncContextManager[DocumentSource]:
        return source_at(self._platform, self._url)

    async def begin(self) -> None:
        await self._send("MKCOL", "")

    async def put(self, path: str, content: bytes) -> None:
        for above in reversed(Path(path).parents[:-1]):
            await self._send("MKCOL", str(above), exists=True)
        await self._send("PUT", path, data=content)

    async def remove(self, path: str) -> None:
        await self._send("DELETE", path)

    async def move(self, old: str, new: str) -> None:
        for above in reversed(Path(new).parents[:-1]):
            await self._send("MKCOL", str(above), exists=True)
        destination = f"{self._proxy.server}/{quote(self._folder)}/{quote(new)}"
        await self._send("MOVE", old, headers={"Destination": destination})

    async def _send(self, method: str, path: str, *, exists: bool = False, **options: Any) -> None:
        headers = {**self._headers, **options.pop("headers", {})}
        url = URL(f"{self._proxy.server}/{quote(self._folder)}/{quote(path)}", encoded=True)
        async with self._proxy.session.request(method, url, headers=headers, **options) as answer:
            assert answer.ok or (exists and answer.status == 405), (method, path, answer.status)

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

    def expired(self) -> AbstractAsyncContextManager[object]:
        return self._spoilt("expired")

    @asynccontextmanager
    async def skewed(self) -> AsyncIterator[None]:
        yield
        for place in (self._files / self._folder).rglob("*"):
            os.utime(place, (1, 1))


class TestWebdav(SourceConformance):
    """The suite."""

    MANY = 300

    @pytest_asyncio.fixture(loop_scope="module")
    async def world(self, running: Running, between: SimpleNamespace) -> SourceWorld:
        world = WebdavWorld(running.platform, between)
        await world.begin()
        return world


def multistatus(*responses: str) -> str:
    return f'<d:multistatus xmlns:d="DAV:" xmlns:oc="http://owncloud.org/ns">{"".join(responses)}</d:multistatus>'


def entry(href: str, *, folder: bool = False, more: str = "", status: str = "200 OK") -> str:
    kind = "<d:collection/>" if folder else ""
    return (
        f"<d:response><d:href>{href}</d:href><d:propstat><d:prop><d:resourcetype>{kind}</d:resourcetype>"
        f"<d:getetag>&quot;1&quot;</d:getetag>{more}</d:prop><d:status>HTTP/1.1 {status}</d:status>"
        "</d:propstat></d:response>"
    )


async def listed(running: Running, status: int, body: str, **headers: str) -> list[SourceItem]:
    """What a source makes of a server that answers this to everything."""

    async def handle(_request: web.Request) -> web.Response:
        return web.Response(status=status, text=body, headers=headers)

    async with served(handle) as url, source_at(running.platform, f"{url}/dav") as source:
        found = [one async for one in source.documents(None)]
    assert isinstance(found.pop(), ListingEnd)
    return [one for one in found if isinstance(one, SourceItem)]


async def test_what_is_not_below_the_folder_is_left_out(running: Running) -> None:
    outside = (
        "/dav/../secret.txt",
        "/other/a.txt",
        "http://example.org/dav/a.txt",
        "/dav/%2e%2e/secret.txt",
        "/davenport.txt",
    )
    body = multistatus(entry("/dav/", folder=True), *map(entry, outside), entry("/dav/good.txt"))
    assert [one.path for one in await listed(running, 207, body)] == ["good.txt"]


async def test_folders_without_end(running: Running) -> None:
    """A server that lists new folders in each folder is given up."""
    number = count()

    async def handle(request: web.Request) -> web.Response:
        names = (f"{request.path}{next(number)}/" for _ in range(2_000))
        body = multistatus(*(entry(name, folder=True) for name in names))
        return web.Response(status=207, text=body)

    async with (
        served(handle) as url,
        source_at(running.platform, f"{url}/dav/") as source,
        aclosing(source.documents(None)) as listing,
    ):
        with pytest.raises(SourceMisplaced):
            await anext(listing)


async def test_a_tag_that_becomes_strong_is_no_change(running: Running) -> None:
    tags = ("W/&quot;7&quot;", "&quot;7&quot;")
    [weak], [strong] = [
        await listed(running, 207, multistatus(entry("/dav/a.txt").replace("&quot;1&quot;", tag)))
        for tag in tags
    ]
    assert weak.etag == strong.etag


async def test_entities_are_not_resolved(running: Running) -> None:
    body = '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/hostname">]>' + multistatus(entry("/dav/&b;"))
    assert await listed(running, 207, body) == []


async def test_nextcloud_names_files_by_number(running: Running) -> None:
    more = "<oc:fileid>00042oc</oc:fileid><d:getcontentlength>7</d:getcontentlength>"
    [item] = await listed(running, 207, multistatus(entry("/dav/a.txt", more=more)))
    assert (item.identity, item.path, item.size) == ("file 00042oc", "a.txt", 7)


@pytest.mark.parametrize(
    ("status", "body", "headers", "fault"),
    [
        (404, "", {}, SourceMisplaced),
        (405, "", {}, SourceMisplaced),
        (200, "<html>", {}, SourceMisplaced),
        (301, "", {"Location": "/elsewhere"}, SourceMisplaced),
        (503, "", {"Retry-After": "120"}, SourceThrottled),
        (207, "<d:multistatus", {}, ListingIncomplete),
        (207, "", {}, ListingIncomplete),
        (
            207,
            multistatus(
                entry("/dav/a.txt"),
                "<d:response><d:href>/dav/</d:href><d:status>HTTP/1.1 507 X</d:status></d:response>",
            ),
            {},
            ListingIncomplete,
        ),
    ],
)
async def test_faults(
    running: Running, status: int, body: str, headers: dict[str, str], fault: type[SourceFault]
) -> None:
    with pytest.raises(fault):
        assert not await listed(running, status, body, **headers)


async def test_a_private_address_is_refused(tmp_path: Path) -> None:
    async with platforms(tmp_path) as start:
        closed = await start("source_webdav")
        async with (
            source_at(closed.platform, "http://127.0.0.1:9/dav") as source,
            aclosing(source.documents(None)) as listing,
        ):
            with pytest.raises(SourceMisplaced):
                await anext(listing)


@pytest.mark.parametrize(
    "url", ["ftp://a/b", "https://", "https://ada:secret@example.org/", "https://a/b?c", "x"]
)
async def test_an_address_is_checked(url: str) -> None:
    with pytest.raises(ValidationError) as refused:
        WebdavSettings(url=url)
    assert [error["loc"] for error in refused.value.errors()] == [("url",)]
