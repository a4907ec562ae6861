"""Taking files in: what is accepted, what is refused at once, and that a refusal leaves nothing behind."""

from __future__ import annotations

import asyncio
import hashlib
import io
import re
import secrets
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import aiohttp
import pytest

from builtin_plugins.vectors.api import VECTORS
from kernel.testing import Actor, Reply, Running, Start, eventually
from tests.builtin_plugins.rag.rag_support import (
    HANDBOOK,
    ingest,
    make_base,
    path_of,
    problems,
    record,
    somebody,
    upload,
)
from tests.fakes.loaded_once import LoadedOnce

pytestmark = pytest.mark.asyncio(loop_scope="session")

TEXT = "Some words that anybody may read, in a sentence of their own.\n"
MEGABYTE = 1024 * 1024
BINARY_BOOK = io.BytesIO()
with zipfile.ZipFile(BINARY_BOOK, "w") as archive:
    archive.writestr("[Content_Types].xml", "<Types/>")
    archive.writestr("xl/workbook.bin", "x")
PAGES = io.BytesIO()
with zipfile.ZipFile(PAGES, "w") as archive:
    archive.writestr("Index/Document.iwa", "x")
    archive.writestr("preview.jpg", "x")
COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def part(headers: str, content: bytes | str) -> bytes:
    data = content.encode() if isinstance(content, str) else content
    return b"--XX\r\n" + headers.encode() + b"\r\n\r\n" + data + b"\r\n"


def file_part(content: bytes | str = TEXT, name: str = "a.txt", more: str = "") -> bytes:
    return part(f'Content-Disposition: form-data; name="file"; filename="{name}"{more}', content)


def field_part(name: str, value: str) -> bytes:
    return part(f'Content-Disposition: form-data; name="{name}"', value)


async def send(
    actor: Actor,
    base: str,
    body: bytes | AsyncIterator[bytes],
    content_type: str = "multipart/form-data; boundary=XX",
) -> Reply:
    path = f"/v1/rag/knowledge-bases/{base}/upload"
    return await actor.post(path, data=body, headers={"Content-Type": content_type})


async def documents(actor: Actor, base: str) -> list[dict[str, object]]:
    return list((await actor.get(f"/v1/rag/knowledge-bases/{base}/documents")).json()["items"])


def staged(running: Running) -> list[Path]:
    """Files that arrive, or were forgotten."""
    folder = running.platform.settings.home / "blobs" / "staging"
    return list(folder.iterdir()) if folder.is_dir() else []


async def refused(running: Running, actor: Actor, base: str, answer: Reply, status: int) -> None:
    assert answer.status == status, (answer.status, answer.body)
    assert await documents(actor, base) == []
    assert staged(running) == []


class TestAccepted:
    async def test_record(self, running: Running, ann: Actor, base: str) -> None:
        """202 with the document as it will be polled; the bytes are kept under their hash by then."""
        answer = await upload(ann, base, "handbook.md")
        body = answer.json()
        assert answer.status == 202
        assert body.pop("document_id") and body.pop("uploaded_at")
        sha256 = hashlib.sha256(HANDBOOK.encode()).hexdigest()
        assert body == {
            "filename": "handbook.md",
            "content_type": "text/markdown",
            "size_bytes": len(HANDBOOK.encode()),
            "sha256": sha256,
            "status": "processing",
            "chunk_count": 0,
            "vector_count": 0,
            "searchable_count": 0,
            "page_count": None,
            "error": None,
            "notice": None,
            "parent_id": None,
            "completed_at": None,
            "tree_nodes_created": 0,
            "path": None,
            "external_id": None,
            "kept_by": None,
            "version": 1,
            "superseded_at": None,
            "metadata": {},
            "same_name": [],
        }
        assert (await running.platform.blobs.local(sha256)).read_bytes() == HANDBOOK.encode()
        assert staged(running) == []
        await running.run_jobs()

    async def test_same_bytes_again(self, running: Running, ann: Actor, base: str) -> None:
        """200 with the record there is, whatever the name, while it is processed and after."""
        first = (await upload(ann, base)).json()
        again = await upload(ann, base, "other-name.md")
        assert (again.status, again.json()) == (200, first)
        await running.run_jobs()
        later = await upload(ann, base)
        assert (later.status, later.json()["status"]) == (200, "completed")
        assert len(await documents(ann, base)) == 1

    async def test_same_bytes_at_the_same_time(self, running: Running, ann: Actor, base: str) -> None:
        text = f"{TEXT} {base}"
        answers = await asyncio.gather(*(upload(ann, base, "a.txt", text) for _ in range(8)))
        assert sorted(answer.status for answer in answers) == [200] * 7 + [202]
        assert len({answer.json()["document_id"] for answer in answers}) == 1
        await running.run_jobs()
        (document,) = await documents(ann, base)
        assert await running.platform.resource(VECTORS).count(f"rag:{base}") == document["chunk_count"]
        assert staged(running) == []

    async def test_same_bytes_elsewhere(self, running: Running, ann: Actor) -> None:
        """Another knowledge base gets its own document."""
        answers = [await upload(ann, await make_base(ann)) for _ in range(2)]
        assert [answer.status for answer in answers] == [202, 202]
        assert answers[0].json()["document_id"] != answers[1].json()["document_id"]
        await running.run_jobs()

    async def test_same_name_twice(self, running: Running, ann: Actor, base: str) -> None:
        """Two files of one name are two documents."""
        for number in range(2):
            assert (await upload(ann, base, "a.txt", f"{TEXT} {number}")).status == 202
        assert [item["filename"] for item in await documents(ann, base)] == ["a.txt"] * 2
        await running.run_jobs()

    async def test_failed_one_starts_anew(self, running: Running, ann: Actor, base: str) -> None:
        """A document that failed is tried again when it is uploaded again, under its new name."""
        broken = b"%PDF-1.7\nnot really " + base.encode()
        failed = await ingest(running, ann, base, "one.pdf", broken)
        assert failed["status"] == "failed" and failed["error"]
        again = await upload(ann, base, "two.pdf", broken)
        assert again.status == 202
        assert again.json()["document_id"] == failed["document_id"]
        assert (again.json()["status"], again.json()["error"]) == ("processing", None)
        assert again.json()["filename"] == "two.pdf"
        await running.run_jobs()
        assert (await record(ann, base, failed["document_id"]))["status"] == "failed"

    async def test_other_fields_do_not_matter(self, running: Running, ann: Actor, base: str) -> None:
        body = field_part("note", "hello") + file_part() + field_part("build_tree", "false") + b"--XX--\r\n"
        assert (await send(ann, base, body)).status == 202
        await running.run_jobs()

    @pytest.mark.parametrize("charset", ["utf-8", "", "x" * 1_000])
    async def test_encoding_named_first(self, running: Running, ann: Actor, base: str, charset: str) -> None:
        """A form may begin with `_charset_` (RFC 7578), which is a field like any other."""
        body = field_part("_charset_", charset) + file_part(f"{TEXT} {charset}") + b"--XX--\r\n"
        answer = await send(ann, base, body)
        assert (answer.status, answer.json().get("filename")) == (202, "a.txt"), answer.body
        await running.run_jobs()

    async def test_boundary_that_falls_anywhere(self, running: Running, ann: Actor, base: str) -> None:
        """However the body is cut into pieces on its way, the same bytes arrive."""
        content = (b"line\r\n--X\r\n--XY\r\n-" + secrets.token_hex(4).encode()) * 3
        body = file_part(content) + b"--XX--\r\n"

        async def pieces(size: int) -> AsyncIterator[bytes]:
            for start in range(0, len(body), size):
                yield body[start : start + size]

        for size in (1, 2, 3, 7, 64):
            answer = await send(ann, base, pieces(size))
            assert answer.json()["sha256"] == hashlib.sha256(content).hexdigest(), size
        await running.run_jobs()


NAMES = [
    ("../../etc/passwd", "passwd"),
    ("..\\..\\windows\\win.ini", "win.ini"),
    ("/", "document"),
    ("..", "document"),
    (".", "document"),
    ("   ", "document"),
    ("C:\\temp\\report final.txt", "report final.txt"),
    ("a\x00b\x1b[31m\x7f\x85.txt", "ab[31m.txt"),
    ("two\nlines\r.txt", "twolines.txt"),
    ("two\u2028lines\u2029.txt", "twolines.txt"),
    ("invoice\u202efdp.exe", "invoicefdp.exe"),
    ("\u2067عقد\u2069.txt", "عقد.txt"),
    ("דוח שנתי.txt", "דוח שנתי.txt"),
    ("👩‍🚀 🚀.txt", "👩‍🚀 🚀.txt"),
    ('quote".txt', 'quote".txt'),
    ("%2e%2e%2fx.txt", "%2e%2e%2fx.txt"),
    ("x" * 300 + ".txt", "x" * 251 + ".txt"),
    ("x" * 10_000 + ".txt", "x" * 251 + ".txt"),
]


class TestNames:
    async def test_hostile_ones(self, running: Running, ann: Actor, base: str) -> None:
        """No folder, no control character, no direction override, 255 characters at most; letters stay."""
        names = {}
        for at, (sent, name) in enumerate(NAMES):
            raw = re.sub(r"[\x00-\x1f\x7f]", "", sent).replace("\\", "\\\\").replace('"', '\\"')
            for number, form in enumerate((f"filename*=UTF-8''{quote(sent, safe='')}", f'filename="{raw}"')):
                body = part(f'Content-Disposition: form-data; name="file"; {form}', f"{TEXT} {at} {number}")
                answer = await send(ann, base, body + b"--XX--\r\n")
                assert (answer.status, answer.json().get("filename")) == (202, name), form[:200]
                names[answer.json()["document_id"]] = name
        await running.run_jobs()
        for document, name in names.items():
            content = await ann.get(path_of(base, document, "/content"))
            assert content.status == 200
            disposition = content.headers["Content-Disposition"]
            assert disposition.startswith('attachment; filename="') and disposition.isascii()
            assert not {"\r", "\n", "/", "\\"} & set(disposition)
            assert disposition.partition("''")[2] == quote(name, safe="")

    async def test_folders_of_old_browsers(self, running: Running, ann: Actor, base: str) -> None:
        """Old browsers send the whole path, its backslashes as they are; the name follows the last one."""
        for sent, name in (
            ("C:\\x\\h.txt", "h.txt"),
            ("C:\\Users\\ada\\new report (1).txt", "new report (1).txt"),
            ("\\\\server\\share\\über.txt", "über.txt"),
            (r"C:\\x\\a\"b.txt", 'a"b.txt'),
        ):
            answer = await send(ann, base, file_part(f"{TEXT} {name}", sent) + b"--XX--\r\n")
            assert (answer.status, answer.json().get("filename")) == (202, name), answer.body
        await running.run_jobs()

    async def test_longer_than_a_header(self, running: Running, ann: Actor, base: str) -> None:
        answer = await send(ann, base, file_part(name="é" * 20_000 + ".txt") + b"--XX--\r\n")
        await refused(running, ann, base, answer, 400)


class TestRefused:
    @pytest.mark.own_installation
    async def test_too_large_by_its_length(self, running: Running, ann: Actor, base: str) -> None:
        seen = 0

        async def slowly() -> AsyncIterator[bytes]:
            nonlocal seen
            for _ in range(200):
                seen += MEGABYTE
                yield bytes(MEGABYTE)
                await asyncio.sleep(0.01)

        path = f"{running.url}/v1/rag/knowledge-bases/{base}/upload"
        headers = {
            "Content-Type": "multipart/form-data; boundary=XX",
            "Content-Length": str(200 * MEGABYTE),
            "Authorization": f"Bearer {ann.token}",
        }
        async with running.session.post(path, data=slowly(), headers=headers) as answer:
            reply = Reply(answer.status, answer.headers, await answer.read())
        await refused(running, ann, base, reply, 413)
        assert "50 MB" in reply.detail
        assert seen < 100 * MEGABYTE

    async def test_not_a_form(self, running: Running, ann: Actor, base: str) -> None:
        """A body of another type says what to send."""
        for content_type in ("application/json", "application/octet-stream", "multipart/mixed; boundary=XX"):
            answer = await send(ann, base, file_part() + b"--XX--\r\n", content_type)
            await refused(running, ann, base, answer, 415)
            assert "multipart/form-data" in answer.detail

    @pytest.mark.parametrize(
        ("body", "place"),
        [
            (b"--XX--\r\n", "body.file"),
            (field_part("_charset_", "utf-8") + b"--XX--\r\n", "body.file"),
            (field_part("document", TEXT) + b"--XX--\r\n", "body.file"),
            (field_part("file", "report.pdf") + b"--XX--\r\n", "body.file"),
            (file_part(b"") + b"--XX--\r\n", "body.file"),
            (file_part(b"", name="") + b"--XX--\r\n", "body.file"),
            (field_part("build_tree", "banana") + file_part() + b"--XX--\r\n", "body.build_tree"),
        ],
    )
    async def test_unfit_fields(
        self, running: Running, ann: Actor, base: str, body: bytes, place: str
    ) -> None:
        """No file, an empty one, a name without a file, a tree that can't be built: 422 names the field."""
        answer = await send(ann, base, body)
        await refused(running, ann, base, answer, 422)
        assert list(problems(answer)) == [place]

    @pytest.mark.parametrize(
        ("body", "content_type"),
        [
            (b"", "multipart/form-data; boundary=XX"),
            (b"no boundary at all", "multipart/form-data; boundary=XX"),
            (file_part(), "multipart/form-data; boundary=XX"),
            (file_part() + b"--X", "multipart/form-data; boundary=XX"),
            (file_part()[:-10], "multipart/form-data; boundary=XX"),
            (b"--XX\r\n", "multipart/form-data; boundary=XX"),
            (b"--XX\r\nContent-Disposition\r\n\r\nx\r\n--XX--\r\n", "multipart/form-data; boundary=XX"),
            (file_part() + b"--XX--\r\n", "multipart/form-data"),
            (file_part() + b"--XX--\r\n", f"multipart/form-data; boundary={'X' * 100}"),
            (part("A: " + "b" * 40_000, TEXT) + b"--XX--\r\n", "multipart/form-data; boundary=XX"),
            (part("\r\n".join(f"H{n}: x" for n in range(500)), TEXT), "multipart/form-data; boundary=XX"),
            (
                part("Content-Type: multipart/mixed; boundary=YY", "--YY\r\n\r\nx\r\n--YY--") + b"--XX--\r\n",
                "multipart/form-data; boundary=XX",
            ),
            (
                part(
                    'Content-Disposition: form-data; name="file"; filename="a.txt"\r\n'
                    "Content-Transfer-Encoding: base64",
                    "aGVsbG8gd29ybGQ=",
                )
                + b"--XX--\r\n",
                "multipart/form-data; boundary=XX",
            ),
        ],
    )
    async def test_malformed(
        self, running: Running, ann: Actor, base: str, body: bytes, content_type: str
    ) -> None:
        """A body that is cut off, nested, encoded or no multipart at all is refused whole."""
        await refused(running, ann, base, await send(ann, base, body, content_type), 400)

    @pytest.mark.filterwarnings("ignore::aiohttp.BadContentDispositionHeader")
    @pytest.mark.parametrize(
        "names", ['name="file"; name="file"; filename="a.txt"', 'name="file"; filename="a.txt']
    )
    async def test_names_that_can_not_be_read(
        self, running: Running, ann: Actor, base: str, names: str
    ) -> None:
        body = part(f"Content-Disposition: form-data; {names}", TEXT) + b"--XX--\r\n"
        answer = await send(ann, base, body)
        await refused(running, ann, base, answer, 400)
        assert "Content-Disposition" in answer.detail

    @pytest.mark.parametrize("names", ['; name="x"; filename*0=a\'b', ""])
    async def test_another_fields_file_name(self, ann: Actor, base: str, names: str) -> None:
        """A field that nobody asks for is ignored, whatever its file is called."""
        other = part(f"Content-Disposition: form-data{names}", "x")
        assert (await send(ann, base, other + file_part() + b"--XX--\r\n")).status == 202

    @pytest.mark.parametrize(
        ("headers", "shown"),
        [
            (b"A: b", "A field without a name is too long"),
            (b'Content-Disposition: form-data; name="\xff\xfe"', "The field 'document' is too long"),
        ],
    )
    async def test_a_long_field_of_no_name(
        self, running: Running, ann: Actor, base: str, headers: bytes, shown: str
    ) -> None:
        body = b"--XX\r\n" + headers + b"\r\n\r\n" + b"x" * 20_000 + b"\r\n" + file_part() + b"--XX--\r\n"
        answer = await send(ann, base, body)
        await refused(running, ann, base, answer, 400)
        assert shown in answer.detail

    @pytest.mark.parametrize("second", ["short", "long " * 2000])
    async def test_two_files(self, running: Running, ann: Actor, base: str, second: str) -> None:
        body = file_part() + file_part(second, "b.txt") + b"--XX--\r\n"
        answer = await send(ann, base, body)
        await refused(running, ann, base, answer, 400)
        assert "one file" in answer.detail

    @pytest.mark.parametrize("line", [b"\n", b"\r\n", b"p\r\n", b"--X\r\n"])
    async def test_endless_lines_before_the_first_field(
        self, running: Running, ann: Actor, base: str, line: bytes
    ) -> None:
        """Lines that belong to no field are refused soon: reading millions would hold up all others."""
        answer = await send(ann, base, line * 100_000 + file_part() + b"--XX--\r\n")
        await refused(running, ann, base, answer, 400)

    async def test_a_few_lines_before_the_first_field(self, running: Running, ann: Actor, base: str) -> None:
        preamble = b"This is a message in several parts.\r\n\r\n"
        assert (await send(ann, base, preamble + file_part() + b"--XX--\r\n")).status == 202
        await running.run_jobs()

    async def test_endless_fields(self, running: Running, ann: Actor, base: str) -> None:
        """Many small fields are refused before they go on for ever."""
        body = b"".join(field_part(f"f{number}", "x") for number in range(1000))
        await refused(running, ann, base, await send(ann, base, body + file_part() + b"--XX--\r\n"), 400)

    @pytest.mark.parametrize(
        "content",
        [b"MThd" + bytes(64), b"MZ" + bytes(range(256)), b"RIFF\0\0\0\0WAVE" + bytes(64), bytes(4096)],
    )
    async def test_unsupported_kind(self, running: Running, ann: Actor, base: str, content: bytes) -> None:
        """What no parser reads is 415, whatever its name says."""
        answer = await upload(ann, base, "report.pdf", content)
        await refused(running, ann, base, answer, 415)
        assert answer.json()["code"] == "unsupported_document"
        assert all(kind in answer.detail for kind in ("PDF", ".msg", "ZIP", "PNG"))

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"PK\x03\x04" + bytes(100), "its end is missing"),
            (COMPOUND + bytes(5000) + "WordDocument".encode("utf-16-le"), ".doc, .xls, .ppt"),
            (COMPOUND + bytes(3_000_000) + "Workbook".encode("utf-16-le"), "Save the file as .docx"),
            (COMPOUND + bytes(5000) + "BOOK".encode("utf-16-le").ljust(64, b"\0") + b"\n\0", ".xls"),
            (COMPOUND + bytes(5000) + "EncryptedPackage".encode("utf-16-le"), "password"),
            (BINARY_BOOK.getvalue(), "(.xlsb) cannot be read"),
            (PAGES.getvalue(), "Export the document as PDF"),
            (b"7z\xbc\xaf\x27\x1c" + bytes(100), "Pack the files as .zip"),
            (b"Rar!\x1a\x07\x01\x00" + bytes(100), "Pack the files as .zip"),
        ],
    )
    async def test_refusals_that_say_why(
        self, running: Running, ann: Actor, base: str, content: bytes, words: str
    ) -> None:
        """A file that was cut off, is too old or is locked is told so, and not a list of what is read."""
        answer = await upload(ann, base, "report.docx", content)
        await refused(running, ann, base, answer, 415)
        assert words in answer.detail and "Markdown" not in answer.detail

    @pytest.mark.own_installation
    async def test_client_that_leaves(self, running: Running, ann: Actor, base: str) -> None:
        """An upload whose client hangs up in the middle leaves nothing."""
        arrived = asyncio.Event()

        async def half() -> AsyncIterator[bytes]:
            yield file_part(TEXT * 40_000)[:-10]
            arrived.set()
            await asyncio.Event().wait()

        sending = asyncio.create_task(send(ann, base, half()))
        await arrived.wait()
        await eventually(lambda: bool(staged(running)))
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        await eventually(lambda: not staged(running))
        assert await documents(ann, base) == []


@pytest.mark.asyncio(loop_scope="function")
class TestSettings:
    async def test_too_large_by_counting(self, start_platform: Start) -> None:
        """A body without a length is refused once it is past the limit; the limit itself is allowed."""
        running = await start_platform(
            LoadedOnce, "rag", "extractive_answers", env={"MAX_UPLOAD_SIZE_MB": "1"}
        )
        ann = await somebody(running)
        base = await make_base(ann)

        async def pieces(size: int) -> AsyncIterator[bytes]:
            body = file_part(b"a" * size) + b"--XX--\r\n"
            for start in range(0, len(body), 60_000):
                yield body[start : start + 60_000]

        over = await send(ann, base, pieces(MEGABYTE + 1))
        await refused(running, ann, base, over, 413)
        assert " 1 MB" in over.detail
        declared = await upload(ann, base, "a.txt", b"a" * (MEGABYTE + 1))
        await refused(running, ann, base, declared, 413)
        assert (await send(ann, base, pieces(MEGABYTE))).status == 202

    @pytest.mark.own_installation
    async def test_storage_that_fails(self, start_platform: Start) -> None:
        """When the file can't be written the client hears that it is not its fault, and no path."""
        running = await start_platform(LoadedOnce, "rag", "extractive_answers")
        blobs = running.platform.settings.home / "blobs"
        blobs.mkdir(parents=True)
        (blobs / "staging").write_text("in the way")
        ann = await somebody(running)
        answer = await upload(ann, await make_base(ann))
        assert answer.status == 503 and str(blobs).encode() not in answer.body

    @pytest.mark.parametrize("drop", [b"", b"a"])
    async def test_slow_client(self, start_platform: Start, drop: bytes) -> None:
        """A client that goes silent mid-upload, or only trickles, gets 408 and leaves nothing."""
        running = await start_platform(
            LoadedOnce, "rag", "extractive_answers", env={"PLATFORM_BODY_TIMEOUT": "0.3"}
        )
        ann = await somebody(running)
        base = await make_base(ann)

        async def silent() -> AsyncIterator[bytes]:
            yield file_part(TEXT * (1 if drop else 1000))[:-10]  # what came earns time
            while drop:
                yield drop
                await asyncio.sleep(0.02)
            await asyncio.Event().wait()

        try:
            answer = await send(ann, base, silent())
        except aiohttp.ClientError:
            assert await documents(ann, base) == []
        else:
            await refused(running, ann, base, answer, 408)
