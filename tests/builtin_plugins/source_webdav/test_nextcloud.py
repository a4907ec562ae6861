"""Nextcloud's shares as permissions, against answers of the documented shape: there is no Nextcloud here."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, cast

import pytest
import pytest_asyncio
from aiohttp import web
from pydantic import SecretStr, ValidationError

from builtin_plugins.source_webdav.guarded import SharedSource
from builtin_plugins.source_webdav.kind import WEBDAV, open_webdav
from builtin_plugins.source_webdav.settings import WebdavSettings
from builtin_plugins.sources.api import ItemFault, SourceFault, SourceGrant, SourceItem, SourceSetup
from builtin_plugins.sources.conformance import read_item
from kernel.testing import Running, platforms
from tests.fakes.website import served_by

pytestmark = pytest.mark.asyncio(loop_scope="module")

ABOVE = "/cloud/remote.php/dav/files/ada/docs/"


@dataclass
class Cloud:
    """What ada has: files in her folder `docs` by path, with their number and tag, and her shares."""

    files: dict[str, tuple[int, str]] = field(default_factory=dict)
    shares: list[dict[str, Any]] = field(default_factory=list)
    groups: dict[str, list[str]] = field(default_factory=dict)
    tag: str = "1"
    answer: tuple[int, Any] | None = None

    def share(self, path: str, who: str, kind: int = 0, permissions: int = 19, **more: Any) -> None:
        one = {"share_type": kind, "share_with": who, "permissions": permissions, "path": path}
        self.shares.append(
            {"id": "1", "uid_owner": "ada", "item_type": "folder", "expiration": None, **one, **more}
        )

    async def handle(self, request: web.Request) -> web.Response:
        assert request.headers["Authorization"].startswith("Basic ")
        if request.path.startswith("/cloud/ocs/v2.php/"):
            assert request.headers["OCS-APIRequest"] == "true" and request.query["format"] == "json"
            return self._shares(request)
        path = request.path.removeprefix(ABOVE).strip("/")
        if request.method == "GET":
            is_same = request.headers.get("If-Match") == f'"{self.files[path][1]}"'
            return web.Response(status=200 if is_same else 412, text="Text.")
        folders = {str(above) for one in self.files for above in PurePosixPath(one).parents} - {"."}
        inside = [one for one in {*self.files, *folders} if one.rpartition("/")[0] == path]
        listed = [self._entry(one) for one in [path, *inside * (request.headers["Depth"] == "1")]]
        body = f'<d:multistatus xmlns:d="DAV:" xmlns:oc="http://owncloud.org/ns">{"".join(listed)}</d:multistatus>'
        return web.Response(status=207, text=body)

    def _entry(self, path: str) -> str:
        if path in self.files:
            number, tag = self.files[path]
            more = f"<d:resourcetype/><oc:fileid>{number}</oc:fileid>"
        else:
            tag, more = self.tag, "<d:resourcetype><d:collection/></d:resourcetype>"
        props = f"<d:prop>{more}<d:getetag>&quot;{tag}&quot;</d:getetag></d:prop>"
        status = "<d:status>HTTP/1.1 200 OK</d:status>"
        href = f"<d:href>{ABOVE}{path}</d:href>"
        return f"<d:response>{href}<d:propstat>{props}{status}</d:propstat></d:response>"

    def _shares(self, request: web.Request) -> web.Response:
        if self.answer is not None:
            return web.json_response(self.answer[1], status=self.answer[0])
        data: Any = self.shares
        if not request.path.endswith("/shares"):
            group = request.path.rpartition("/")[2]
            if group not in self.groups:
                return web.json_response({}, status=403)
            data = {"users": self.groups[group]}
        return web.json_response({"ocs": {"meta": {"status": "ok", "statuscode": 200}, "data": data}})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    async with platforms(tmp_path_factory.mktemp("platform")) as start:
        yield await start("source_webdav", env={"PLATFORM_OUTGOING_ALLOWED": "127.0.0.1"})


@pytest_asyncio.fixture(loop_scope="module")
async def cloud() -> Cloud:
    return Cloud({"a.txt": (1, "a1"), "hr/b.txt": (2, "b1"), "hr/board/c.txt": (3, "c1")})


@pytest_asyncio.fixture(loop_scope="module")
async def source(running: Running, cloud: Cloud) -> AsyncIterator[SharedSource]:
    async with served_by(cloud.handle) as url:
        settings = WebdavSettings(url=f"{url}{ABOVE}", user="ada", rights="nextcloud", email_domain="b.org")
        assert WEBDAV.is_guarded(settings)
        async with open_webdav(SourceSetup(running.platform, "one", settings, SecretStr("x"))) as opened:
            yield cast("SharedSource", opened)


async def items_of(source: SharedSource) -> dict[str, SourceItem]:
    listed = [one async for one in source.documents(None) if isinstance(one, SourceItem)]
    return {one.path: one for one in listed}


async def readers(source: SharedSource) -> dict[str, tuple[set[str], set[str]]]:
    """People and groups who may read each file, as a new reading has it."""
    await source.rights_mark()
    items = await items_of(source)
    grants = await source.grants(list(items.values()))
    assert not any(one.everybody for one in grants.values())
    return {
        path: (set(grants[one.identity].people), set(grants[one.identity].groups))
        for path, one in items.items()
    }


async def test_shares_hold_for_what_is_below(source: SharedSource, cloud: Cloud) -> None:
    """Also those of the folders above the source; links and other clouds are nobody, nor is what is over."""
    cloud.groups = {"staff": ["bob", "cleo"]}
    cloud.share("/docs", "ann")
    cloud.share("/docs/hr", "staff", 1)
    cloud.share("/docs/hr/board/c.txt", "dan", expiration="2999-01-01 00:00:00")
    cloud.share("/docs/hr", "old", expiration="2020-01-01 00:00:00")
    cloud.share("/docs/a.txt", "", 3)
    cloud.share("/docs/a.txt", "eve@other.example", 6)
    cloud.share("/elsewhere", "fay")
    assert await readers(source) == {
        "a.txt": ({"ada", "ann"}, set()),
        "hr/b.txt": ({"ada", "ann"}, {"staff"}),
        "hr/board/c.txt": ({"ada", "ann", "dan"}, {"staff"}),
    }
    directory = await source.directory()
    assert {one.email for one in directory.people} >= {"ann@b.org", "bob@b.org", "cleo@b.org"}
    assert [(one.id, list(one.people)) for one in directory.groups] == [("staff", ["bob", "cleo"])]
    cloud.share("/docs/hr/board", "ann", permissions=0)
    assert (await readers(source))["hr/board/c.txt"] == ({"ada"}, set())


async def test_every_change_is_marked(source: SharedSource, cloud: Cloud) -> None:
    """And a file that was moved has the readers of its new place."""
    cloud.share("/docs/hr", "staff", 1)
    marks = [await source.rights_mark(), await source.rights_mark()]
    assert marks[0] == marks[1]
    cloud.groups["staff"] = ["bob"]
    marks.append(await source.rights_mark())
    cloud.share("/docs", "ann")
    marks.append(await source.rights_mark())
    before = (await items_of(source))["hr/b.txt"]
    cloud.files["b.txt"], cloud.tag = cloud.files.pop("hr/b.txt"), "2"
    marks.append(await source.rights_mark())
    assert len(set(marks)) == 4
    await items_of(source)
    assert (await source.grants([before]))[before.identity] == SourceGrant(["ada", "ann"], [])


async def test_only_what_was_listed_is_read(source: SharedSource, cloud: Cloud) -> None:
    item = (await items_of(source))["a.txt"]
    assert await read_item(source, item) == b"Text."
    cloud.files["a.txt"] = (1, "a2")
    with pytest.raises(ItemFault):
        await read_item(source, item)


@pytest.mark.parametrize(
    "answer",
    [
        (401, {}),
        (403, {}),
        (500, {}),
        (200, []),
        (200, {"ocs": {"meta": {"status": "failure"}, "data": []}}),
        (200, {"ocs": {"meta": {"status": "ok"}, "data": [{"share_type": 0}]}}),
        (200, {"ocs": {"meta": {"status": "ok"}, "data": {"path": "/"}}}),
    ],
)
async def test_what_is_not_understood_is_a_fault(
    source: SharedSource, cloud: Cloud, answer: tuple[int, Any]
) -> None:
    cloud.answer = answer
    with pytest.raises(SourceFault):
        await source.rights_mark()


async def test_members_that_may_not_be_known_are_nobody(source: SharedSource, cloud: Cloud) -> None:
    cloud.share("/docs", "hidden", 1)
    [group] = (await source.directory()).groups
    assert (group.id, list(group.people)) == ("hidden", [])


async def test_only_a_nextcloud_has_shares() -> None:
    with pytest.raises(ValidationError):
        WebdavSettings(url="https://example.org/dav/", rights="nextcloud")
