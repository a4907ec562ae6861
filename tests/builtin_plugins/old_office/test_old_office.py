"""Word, Excel and PowerPoint files from before 2007, and binary workbooks, from the upload to their text."""

from __future__ import annotations

import lzma
import random
import struct
import zipfile
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path

import pytest
import pytest_asyncio

from builtin_plugins.documents.blocks import DETAILS
from kernel.testing import Actor, Running
from tests.builtin_plugins.rag.rag_support import ingest, make_base, path_of, upload
from tests.fakes.kept import Kept
from tests.fakes.loaded_once import LoadedOnce

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]
FILES = Path(__file__).parent / "files"
ENCRYPTED_BOOK = struct.pack("<HHHHHH", 0x2F, 6, 0, 1, 1, 1)


def sample(name: str) -> bytes:
    """A file that LibreOffice wrote."""
    return lzma.decompress((FILES / f"{name}.xz").read_bytes())


def binary_workbook() -> bytes:
    """An .xlsb with one sheet of two rows, a hidden one, and one of macros ([MS-XLSB])."""

    def record(kind: int, content: bytes = b"") -> bytes:
        number = bytes([kind]) if kind < 128 else bytes([kind & 0x7F | 0x80, kind >> 7])
        return number + bytes([len(content)]) + content

    def text(value: str) -> bytes:
        return struct.pack("<I", len(value)) + value.encode("utf-16-le")

    def cell(column: int, value: str | float) -> bytes:
        place = struct.pack("<II", column, 0)
        if isinstance(value, str):
            return record(6, place + text(value))
        return record(5, place + struct.pack("<d", value))

    def sheet(*rows: tuple[str | float, ...]) -> bytes:
        size = struct.pack("<IIII", 0, len(rows) - 1, 0, len(rows[0]) - 1)
        lines = b"".join(
            record(0, struct.pack("<I", at) + bytes(13)) + b"".join(cell(*one) for one in enumerate(row))
            for at, row in enumerate(rows)
        )
        return record(129) + record(148, size) + record(145) + lines + record(146) + record(130)

    entries = b"".join(
        record(156, struct.pack("<II", hidden, number) + text(f"r{number}") + text(name))
        for number, name, hidden in ((1, "Prices", 0), (2, "Secret", 1), (3, "Macro", 0))
    )
    base = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    links = "".join(
        f'<Relationship Id="r{n}" Type="{kind}" Target="{folder}/sheet{n}.bin"/>'
        for n, kind, folder in (
            (1, f"{base}/worksheet", "worksheets"),
            (2, f"{base}/worksheet", "worksheets"),
            (3, "http://schemas.microsoft.com/office/2006/relationships/xlMacrosheet", "macrosheets"),
        )
    )
    package = "http://schemas.openxmlformats.org/package/2006"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"/>',
        "xl/workbook.bin": record(131) + record(143) + entries + record(144) + record(132),
        "xl/_rels/workbook.bin.rels": f'<Relationships xmlns="{package}/relationships">{links}'
        "</Relationships>",
        "xl/worksheets/sheet1.bin": sheet(("City", "Limit"), ("Oslo", 185.5)),
        "xl/worksheets/sheet2.bin": sheet(("concealed", 1.0)),
        "xl/macrosheets/sheet3.bin": sheet(("concealed", 1.0)),
    }
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return file.getvalue()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def running(kept: Kept) -> AsyncIterator[Running]:
    """A platform that reads old Office files."""
    yield await kept.platform("old office", "sqlite", LoadedOnce, "models", "rag", "old_office")


@pytest_asyncio.fixture(loop_scope="session")
async def ann(running: Running) -> Actor:
    return await running.user()


async def text_of(actor: Actor, base: str, document: str) -> str:
    answer = await actor.get(path_of(base, document, "/chunks"))
    assert answer.status == 200, answer.body
    return "\n\n".join(str(one["text"]) for one in answer.json()["items"])


@pytest.mark.parametrize(
    ("name", "content", "media_type", "present", "absent", "notice"),
    [
        (
            "rules.doc",
            sample("rules.doc"),
            "application/msword",
            ["A berth costs 25 € a night", "Привет, 東京", "City\tLimit\nOslo\t185", "3. Ring the bell"],
            [],
            False,
        ),
        (
            "slides.ppt",
            sample("slides.ppt"),
            "application/vnd.ms-powerpoint",
            ["The lighthouse of Senja was built in 1859.", "Zoë pays 25 € for tea in 東京."],
            ["This slide is hidden"],
            True,
        ),
        (
            "prices.xls",
            sample("prices.xls"),
            "application/vnd.ms-excel",
            ["City\tPrice\tShare\tDay\nOslo\t1234.5 €\t25%\t2026-03-01", "Tromsø\t1\nTromsø\t2"],
            ["Bergen", "hidden sheet"],
            True,
        ),
        (
            "prices.xlsb",
            binary_workbook(),
            "application/vnd.ms-excel.sheet.binary.macroEnabled.12",
            ["City\tLimit\nOslo\t185.5"],
            ["concealed"],
            True,
        ),
    ],
)
async def test_an_old_file(
    running: Running,
    ann: Actor,
    name: str,
    content: bytes,
    media_type: str,
    present: list[str],
    absent: list[str],
    notice: bool,
) -> None:
    """It is read whole, without what it hides, which its notice counts; its name does not matter."""
    base = await make_base(ann)
    document = await ingest(running, ann, base, f"{name}.dat", content)
    assert (document["status"], document["content_type"]) == ("completed", media_type)
    text = await text_of(ann, base, document["document_id"])
    assert [one for one in present if one not in text] == []
    assert [one for one in absent if one in text] == []
    assert (document["notice"] is not None) == notice


async def test_a_file_within_an_archive(running: Running, ann: Actor) -> None:
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("rules.doc", sample("rules.doc"))
        archive.writestr("prices.xlsb", binary_workbook())
    base = await make_base(ann)
    await ingest(running, ann, base, "share.zip", file.getvalue())
    items = (await ann.get(f"/v1/rag/knowledge-bases/{base}/documents")).json()["items"]
    assert {one["filename"]: one["status"] for one in items} == {
        "share.zip": "completed",
        "rules.doc": "completed",
        "prices.xlsb": "completed",
    }


async def test_a_locked_workbook(running: Running, ann: Actor) -> None:
    content = bytearray(sample("prices.xls"))
    start = content.index(struct.pack("<HHH", 0x809, 16, 0x600))
    after = start + 20
    content[after : after + len(ENCRYPTED_BOOK)] = ENCRYPTED_BOOK
    document = await ingest(running, ann, await make_base(ann), "locked.xls", bytes(content))
    assert (document["status"], document["error"]) == ("failed", DETAILS["encrypted"])


@pytest.mark.long
@pytest.mark.parametrize("name", ["rules.doc", "slides.ppt", "prices.xls"])
async def test_damaged_files(running: Running, ann: Actor, name: str) -> None:
    """Whatever is wrong in a file, it ends as read, refused or failed, and the next file is read."""
    base, numbers = await make_base(ann), random.Random(name)
    whole = sample(name)
    documents = []
    for _ in range(12):
        content = bytearray(whole)
        for _ in range(numbers.choice((1, 20, 400))):
            content[numbers.randrange(512, len(content))] = numbers.randrange(256)
        answer = await upload(ann, base, "damaged", bytes(content[: numbers.choice((None, len(whole) // 2))]))
        assert answer.status in (202, 415), answer.body
        if answer.status == 202:
            documents.append(answer.json()["document_id"])
    await running.run_jobs()
    states = [(await ann.get(path_of(base, one))).json() for one in documents]
    assert {one["status"] for one in states} <= {"completed", "failed"}
    assert {one["error"] for one in states if one["status"] == "failed"} <= set(DETAILS.values())
    document = await ingest(running, ann, base, name, whole)
    assert document["status"] == "completed"
