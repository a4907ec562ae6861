"""Stored files over HTTP: parts, conditions, refusals, and names; and clients that wait to send theirs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import pytest_asyncio
from aiohttp import web

from kernel.http.downloads import part_of
from kernel.libs.names import content_disposition
from kernel.sdk import (
    AUTHENTICATED,
    PUBLIC,
    Context,
    Plugin,
    RawBody,
    RouteTable,
    Upload,
    hookimpl,
    receive_file,
)
from kernel.testing import Reply, Running, platforms
from tests.fakes.network import raw_client

shared = pytest.mark.asyncio(loop_scope="module")

TEXT = b"0123456789abcdef"
MEGABYTE = 1024 * 1024
FORM = "Content-Type: multipart/form-data; boundary=XX"
EXPECT = "Expect: 100-continue"


class Shelf(Plugin):
    """Sends a file, and takes one of at most a megabyte."""

    name = "shelf"

    def __init__(self, folder: Path) -> None:
        self.file = folder / "kept"
        self.file.write_bytes(TEXT)

    @hookimpl
    def register_routes(self) -> list[RouteTable]:
        table = RouteTable("Shelf")

        @table.get("/v1/shelf/file", access=PUBLIC, media_type="application/octet-stream", returns=bytes)
        async def file(ctx: Context) -> web.StreamResponse:
            """Send the file."""
            return await ctx.send_file(self.file, "Müller.pdf")

        @table.get("/v1/shelf/gone", access=PUBLIC, media_type="application/octet-stream", returns=bytes)
        async def gone(ctx: Context) -> web.StreamResponse:
            """Send a file that somebody removed."""
            return await ctx.send_file(self.file.with_name("gone"), "gone.pdf")

        @table.get("/v1/shelf/plain", access=PUBLIC, media_type="application/octet-stream", returns=bytes)
        async def plain(_ctx: Context) -> web.StreamResponse:
            """Send the file as aiohttp does."""
            return web.FileResponse(self.file)

        @table.post("/v1/shelf/file", access=PUBLIC, body=Upload(), returns=int)
        async def upload(ctx: Context) -> int:
            """Take a file."""
            received = await receive_file(ctx, 1)
            received.staged.discard()
            return received.staged.size

        @table.post("/v1/shelf/own", access=AUTHENTICATED, body=Upload(), returns=int)
        async def own(ctx: Context) -> int:
            """Take a file of somebody who is known."""
            return await upload(ctx)

        @table.post("/v1/shelf/whole", access=PUBLIC, body=RawBody(), returns=Any)
        async def whole(ctx: Context) -> Any:
            """Read the body by aiohttp's own method."""
            return await ctx.request.json()

        return [table]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    """One platform for all tests: they leave it as it was."""
    folder = tmp_path_factory.mktemp("downloads")
    async with platforms(folder / "home") as start:
        yield await start("api_docs", Shelf(folder))


def head(path: str, *lines: str, method: str = "POST") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: x", *lines, "", ""]).encode()


def refused(answer: Reply, status: int, code: str) -> None:
    """In the shape of every error, and not as a download."""
    assert (answer.status, answer.json()["code"]) == (status, code)
    assert answer.headers["Content-Type"].startswith("application/json")
    assert "Content-Disposition" not in answer.headers


IGNORED = [
    *("lines=0-5", "bytes=", "bytes=-", "bytes=a-b", "bytes=5-2", "bytes=0-1,4-5", "bytes=1-2-3", "0-5"),
    *("bytes 0-5", "bytes=0x1-2", "bytes=+1-2", "bytes=1.0-2", "=0-5", "", "none"),
]


class TestRanges:
    @pytest.mark.parametrize("sent", IGNORED)
    def test_ignored(self, sent: str) -> None:
        """RFC 9110, 14.2: an unknown unit and what isn't one range of bytes count as no header."""
        assert part_of([sent]) == slice(None, None, 1)

    @pytest.mark.parametrize(
        ("sent", "start", "stop"),
        [
            ("bytes=0-4", 0, 5),
            ("Bytes=2-", 2, None),
            ("bytes=-3", -3, None),
            ("bytes= 1-1 ,", 1, 2),
            ("bytes=0-" + "9" * 9000, 0, 10**18 + 1),
            ("bytes=" + "0" * 9000 + "7-", 7, None),
        ],
    )
    def test_asked_for(self, sent: str, start: int, stop: int | None) -> None:
        """One range of bytes; numbers of any length are numbers."""
        assert part_of([sent]) == slice(start, stop, 1)

    def test_two_headers(self) -> None:
        assert part_of(["bytes=0-1", "bytes=2-3"]) == part_of([]) == slice(None, None, 1)

    @pytest.mark.parametrize("sent", ["bytes=-0", "bytes=-000"])
    def test_the_last_zero_bytes(self, sent: str) -> None:
        """RFC 9110, 14.1.2: a suffix of no length can't be satisfied."""
        with pytest.raises(ValueError, match="zero bytes"):
            part_of([sent])


@shared
class TestFiles:
    @pytest.mark.parametrize(
        ("sent", "part", "shown"),
        [
            ("bytes=0-4", b"01234", "bytes 0-4/16"),
            ("bytes=10-", b"abcdef", "bytes 10-15/16"),
            ("bytes=-2", b"ef", "bytes 14-15/16"),
            ("bytes=14-99", b"ef", "bytes 14-15/16"),
            ("bytes=-99", TEXT, "bytes 0-15/16"),
        ],
    )
    async def test_a_part(self, running: Running, sent: str, part: bytes, shown: str) -> None:
        """206 says which part it is and how much there is."""
        answer = await running.anonymous.get("/v1/shelf/file", headers={"Range": sent})
        assert (answer.status, answer.body, answer.headers["Content-Range"]) == (206, part, shown)

    @pytest.mark.parametrize("sent", ["lines=0-5", "bytes=5-2", "bytes=0-1,4-5"])
    @pytest.mark.parametrize("path", ["/v1/shelf/file", "/v1/shelf/plain"])
    async def test_the_whole(self, running: Running, path: str, sent: str) -> None:
        """What can't be heeded is ignored, also where a plugin leaves the answer to aiohttp."""
        answer = await running.anonymous.get(path, headers={"Range": sent})
        assert (answer.status, answer.body, answer.headers.get("Content-Range")) == (200, TEXT, None)

    @pytest.mark.parametrize("sent", ["bytes=-0", "bytes=16-", "bytes=99-100", f"bytes={'9' * 5000}-"])
    async def test_no_such_part(self, running: Running, sent: str) -> None:
        """416 says how long the file is, in the shape of every error."""
        answer = await running.anonymous.get("/v1/shelf/file", headers={"Range": sent})
        refused(answer, 416, "range_not_satisfiable")
        assert answer.headers["Content-Range"] == "bytes */16"

    async def test_of_an_asset(self, running: Running) -> None:
        """The scripts of the API's documents are sent the same way."""
        path = "/static/docs/page.css"
        whole = await running.anonymous.get(path)
        part = await running.anonymous.get(path, headers={"Range": "bytes=0-9"})
        assert (whole.status, part.status, part.body) == (200, 206, whole.body[:10])
        answer = await running.anonymous.get(path, headers={"Range": "bytes=-0"})
        refused(answer, 416, "range_not_satisfiable")
        assert answer.headers["Content-Range"] == f"bytes */{len(whole.body)}"

    async def test_head(self, running: Running) -> None:
        answer = await running.anonymous.request("HEAD", "/v1/shelf/file", headers={"Range": "bytes=0-4"})
        assert (answer.status, answer.headers["Content-Length"]) == (200, "16")

    async def test_if_range(self, running: Running) -> None:
        """The part of a file that the client has a part of; the whole of any other."""
        get = running.anonymous.get
        whole = await get("/v1/shelf/file")
        etag, date = whole.headers["ETag"], whole.headers["Last-Modified"]
        for condition in (etag, date):
            part = await get("/v1/shelf/file", headers={"Range": "bytes=0-4", "If-Range": condition})
            assert (part.status, part.body) == (206, TEXT[:5]), condition
        stale = ('"another"', f"W/{etag}", etag.strip('"'), "Fri, 01 Jan 2100 00:00:00 GMT", "yesterday")
        for condition in stale:
            part = await get("/v1/shelf/file", headers={"Range": "bytes=0-4", "If-Range": condition})
            assert (part.status, part.body) == (200, TEXT), condition

    async def test_conditions_come_first(self, running: Running) -> None:
        """Who has the file gets 304, whatever part is asked for; who has another is refused."""
        get = running.anonymous.get
        etag = (await get("/v1/shelf/file")).headers["ETag"]
        known = await get("/v1/shelf/file", headers={"If-None-Match": etag, "Range": "bytes=99-"})
        assert (known.status, known.body) == (304, b"")
        refused(await get("/v1/shelf/file", headers={"If-Match": '"x"'}), 412, "precondition_failed")

    async def test_a_file_that_is_gone(self, running: Running) -> None:
        refused(await running.anonymous.get("/v1/shelf/gone"), 404, "not_found")

    async def test_headers(self, running: Running) -> None:
        """A download, whatever the bytes look like, under its name."""
        answer = await running.anonymous.get("/v1/shelf/file")
        assert answer.headers["Content-Disposition"] == content_disposition("Müller.pdf")
        assert answer.headers["Content-Type"] == "application/octet-stream"
        assert answer.headers["Accept-Ranges"] == "bytes"


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("report (1).pdf", "report (1).pdf"),
        ("Müller.pdf", "Muller.pdf"),
        ("\ufdfa" * 3 + ".txt", "___.txt"),
        ("Mu\u0308ller.pdf", "Muller.pdf"),
        ("Straße ÆØÅ Łódź.txt", "Strasse AEOA Lodz.txt"),
        ("Ấm trà İıŞş.txt", "Am tra IiSs.txt"),
        ("Отчёт.pdf", "_____.pdf"),
        ("報告.pdf", "__.pdf"),
        ('a"b\\c/d;e%41.pdf', "a_b_c_d_e_41.pdf"),
        ("two\r\nlines.txt", "two__lines.txt"),
        ("／etc／x", "_etc_x"),
        ("👩‍🚀.txt", "___.txt"),
        ("\ud800.txt", "_.txt"),
    ],
)
def test_names(name: str, plain: str) -> None:
    """Each letter leaves something in the ASCII form; the other has the whole name (RFC 6266, RFC 8187)."""
    header = content_disposition(name)
    start, full = header.split("; filename*=UTF-8''")
    assert start == f'attachment; filename="{plain}"'
    assert header.isascii() and not set("\r\n\"';,/\\ ") & set(full)
    assert unquote(full) == name.replace("/", "_").replace("\\", "_").replace("\ud800", "?")


@shared
class TestExpectations:
    """`Expect: 100-continue`: the body is asked for by whoever reads it, after everything that may refuse."""

    async def test_too_large(self, running: Running) -> None:
        """By its declared length an upload is refused at once, and the connection ends: a body may follow."""
        async with raw_client(running.url) as client:
            length = f"Content-Length: {200 * MEGABYTE}"
            await client.send(head("/v1/shelf/file", FORM, length, EXPECT))
            answer = await client.answer()
        assert (answer.status, answer.headers["connection"]) == (413, "close")
        assert b'"payload_too_large"' in answer.body

    @pytest.mark.parametrize(
        ("path", "status"), [("/v1/shelf/own", 401), ("/v1/shelf/nothing", 404), ("/v1/auth/login", 413)]
    )
    async def test_refused_otherwise(self, running: Running, path: str, status: int) -> None:
        """Nor is anybody asked for what would be thrown away: a stranger, for no route, for too much JSON."""
        async with raw_client(running.url) as client:
            await client.send(head(path, FORM, f"Content-Length: {200 * MEGABYTE}", EXPECT))
            answer = await client.answer()
        assert (answer.status, answer.headers["connection"]) == (status, "close")

    async def test_an_upload(self, running: Running) -> None:
        """A form that may come is asked for, once; the connection lasts."""
        disposition = 'Content-Disposition: form-data; name="file"; filename="a.txt"'
        body = f"--XX\r\n{disposition}\r\n\r\nwords\r\n--XX--\r\n".encode()
        async with raw_client(running.url) as client:
            for _ in range(2):
                await client.send(head("/v1/shelf/file", FORM, f"Content-Length: {len(body)}", EXPECT))
                assert await client.head() == (100, {})
                await client.send(body)
                answer = await client.answer()
                assert (answer.status, answer.body) == (200, b"5")

    async def test_a_body_read_by_aiohttp(self, running: Running) -> None:
        """A plugin may read the request by aiohttp's own methods."""
        lines = ("Content-Type: application/json", "Content-Length: 2", EXPECT)
        async with raw_client(running.url) as client:
            await client.send(head("/v1/shelf/whole", *lines))
            assert await client.head() == (100, {})
            await client.send(b"[]")
            assert (await client.answer()).body == b"[]"

    async def test_without_a_body(self, running: Running) -> None:
        """Nothing to wait for: the answer comes, and the connection lasts."""
        async with raw_client(running.url) as client:
            await client.send(head("/v1/shelf/file", EXPECT, method="GET"))
            answer = await client.answer()
        assert (answer.status, answer.body, answer.headers.get("connection")) == (200, TEXT, None)
