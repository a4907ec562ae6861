"""Archives and attachments over HTTP: each file inside is a document; what harms stays out."""

from __future__ import annotations

import asyncio
import gzip
import io
import re
import shutil
import struct
import zipfile
from collections.abc import AsyncIterator, Callable
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from PIL import Image

from kernel.testing import Actor, Running, platforms
from tests.builtin_plugins.documents import sample_documents as made
from tests.builtin_plugins.rag.rag_support import ingest, make_base, somebody
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.npm import npm_folder

MEGABYTE = 1024 * 1024


class Desk:
    """Somebody with knowledge bases."""

    def __init__(self, running: Running, ann: Actor) -> None:
        self.running = running
        self.ann = ann

    async def upload(
        self, filename: str, content: bytes, *, all_completed: bool = True
    ) -> tuple[dict[str, Any], dict[str, Any], str]:
        """The document's own record, those of the files inside by name, and what its job says."""
        base = await make_base(self.ann)
        own = await ingest(self.running, self.ann, base, filename, content)
        await self.running.run_jobs()
        listed = (await self.ann.get(f"/v1/rag/knowledge-bases/{base}/documents")).json()["items"]
        inside = {one["filename"]: one for one in listed if one["document_id"] != own["document_id"]}
        assert not all_completed or all(one["status"] == "completed" for one in inside.values())
        own["knowledge_base_id"] = base
        job = (await self.ann.get(f"/v1/jobs?subject={own['document_id']}")).json()["items"][0]
        return own, inside, job["message"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def desk(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Desk]:
    env = {"MAX_UPLOAD_SIZE_MB": "2", "PLATFORM_RAG_ARCHIVE_FILES": "20", "PLATFORM_RAG_ARCHIVE_MB": "6"}
    async with platforms(tmp_path_factory.mktemp("members")) as start:
        running = await start("rag", "extractive_answers", HashEmbeddings(), env=env)
        yield Desk(running, await somebody(running))


pytestmark = pytest.mark.asyncio(loop_scope="module")


def zipped(fill: Callable[[zipfile.ZipFile], object]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        fill(archive)
    return file.getvalue()


async def test_an_archive(desk: Desk, tmp_path: Path) -> None:
    """Files of several kinds, in folders, become documents of their own; the archive lists them."""
    pdf = made.pdf(tmp_path / "a.pdf", [["The ferry leaves at noon."]]).read_bytes()

    def fill(archive: zipfile.ZipFile) -> None:
        archive.writestr("letters/june.txt", "The lighthouse was painted in June.")
        archive.writestr("letters/plan.pdf", pdf)
        archive.writestr("program.exe", b"MZ" + bytes(range(256)) * 10)
        archive.writestr("__MACOSX/letters/._june.txt", "chaff")
        archive.writestr("empty.txt", "")

    own, inside, told = await desk.upload("box.zip", zipped(fill))
    assert own["status"] == "completed" and own["content_type"] == "application/zip"
    assert set(inside) == {"june.txt", "plan.pdf"} and inside["plan.pdf"]["page_count"] == 1
    assert told.startswith("2 of 4 ") and "program.exe (" in told and "empty.txt (" in told
    left = "program.exe (no supported type), empty.txt (empty)"
    assert own["notice"] == f"2 of 4 files inside were left out: {left}."


async def test_a_portfolio(desk: Desk, tmp_path: Path) -> None:
    report = made.pdf(tmp_path / "b.pdf", [["The ferry leaves at noon."]]).read_bytes()
    files = {"june.txt": b"June was warm in the harbour.", "report.pdf": report, "run.exe": b"MZ" + bytes(99)}
    made.portfolio(tmp_path / "a.pdf", files, {"pin.txt": b"Pinned to the page of the harbour."})
    own, inside, told = await desk.upload("portfolio.pdf", (tmp_path / "a.pdf").read_bytes())
    assert own["status"] == "completed" and own["page_count"] == 1
    assert set(inside) == {"june.txt", "report.pdf", "pin.txt"}
    assert {one["parent_id"] for one in inside.values()} == {own["document_id"]}
    assert " run.exe (" in told


async def test_a_compressed_file_that_has_no_name(desk: Desk) -> None:
    """What `pg_dump | gzip` writes is named after the upload, which also says that it is a table."""
    _, inside, _ = await desk.upload("stations.csv.gz", gzip.compress(b"name,power\nHarbour,12\n"))
    assert [(name, one["content_type"]) for name, one in inside.items()] == [("stations.csv", "text/csv")]
    _, inside, told = await desk.upload("noise.gz", gzip.compress(b"MZ" + bytes(range(256))))
    assert not inside and " noise (" in told


async def test_names_are_no_paths(desk: Desk) -> None:
    """Neither folders nor absolute names lead anywhere; links stay out."""

    def fill(archive: zipfile.ZipFile) -> None:
        archive.writestr("../../../../../../tmp/escaped-1.txt", "Up and away we go.")
        archive.writestr("/tmp/escaped-2.txt", "An absolute place for words.")
        archive.writestr("..\\..\\escaped-3.txt", "The other way around it.")
        link = zipfile.ZipInfo("passwords.txt")
        link.create_system, link.external_attr = 3, 0o120777 << 16
        archive.writestr(link, "/etc/passwd")

    _, inside, told = await desk.upload("away.zip", zipped(fill))
    assert set(inside) == {"escaped-1.txt", "escaped-2.txt", "escaped-3.txt"}
    assert "passwords.txt (a link)" in told
    assert not await asyncio.to_thread(lambda: list(Path("/tmp").glob("escaped-*.txt")))


async def test_names_that_are_told_are_clean(desk: Desk) -> None:
    """What was left out is told without turns of direction, and without control characters: PostgreSQL can't
    store all of them.
    """
    message = letter("the odd one")
    message.add_attachment(b"\0\1" * 40, maintype="application", subtype="x", filename="QQQ.bin")
    own, _, told = await desk.upload("odd.eml", message.as_bytes().replace(b"QQQ", b"no\0ne"))
    assert " none.bin (" in own["notice"] and " none.bin (" in told

    def fill(archive: zipfile.ZipFile) -> None:
        archive.writestr("harm\u202egpj.\x1b[31m\nexe", b"MZ" + bytes(range(256)))

    own, _, _ = await desk.upload("odd.zip", zipped(fill))
    assert " harmgpj.[31mexe (" in own["notice"]


async def test_too_many_files(desk: Desk) -> None:
    """Beyond the limit files are left out; a directory of more than 10,000 entries is refused as a whole."""

    def fill(count: int, name: str = "") -> Callable[[zipfile.ZipFile], object]:
        return lambda archive: [
            archive.writestr(f"{name}{n}.txt", f"File {n} of many.") for n in range(count)
        ]

    _, inside, told = await desk.upload("many.zip", zipped(fill(25)))
    assert len(inside) == 20 and told.startswith("20 of 25 ")
    _, inside, told = await desk.upload("names.zip", zipped(fill(80, "a long name of a file " * 3)))
    assert len(inside) == 20 and re.search(r", and \d+ more$", told)
    own, inside, _ = await desk.upload("crowd.zip", zipped(fill(10_001)))
    assert own["status"] == "failed" and own["error"] and inside == {}


def lying(size: int) -> bytes:
    data = bytearray(zipped(lambda archive: archive.writestr("liar.txt", "Nothing but lies. " * 5000)))
    for signature, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        struct.pack_into("<I", data, data.index(signature) + offset, size)
    return bytes(data)


async def test_lying_sizes(desk: Desk) -> None:
    """A file that is longer than it claims is damaged and stays out; one that is shorter is what it is."""
    own, inside, told = await desk.upload("liar.zip", lying(10))
    assert own["status"] == "completed" and inside == {} and "liar.txt (damaged)" in told
    _, inside, _ = await desk.upload("boaster.zip", lying(4_000_000_000))
    assert inside["liar.txt"]["size_bytes"] == 90_000


async def test_a_damaged_archive_inside(desk: Desk) -> None:
    """What can't be unpacked far enough to see whether it is an archive stays out; the rest is read."""
    content = bytearray(
        zipped(
            lambda archive: (archive.writestr("old.zip", b"PK" * 400), archive.writestr("a.txt", "Hello."))
        )
    )
    start = 30 + len("old.zip")
    content[start : start + 4] = b"\xff" * 4
    own, inside, told = await desk.upload("archive.zip", bytes(content))
    assert own["status"] == "completed" and set(inside) == {"a.txt"}
    assert "old.zip (damaged)" in told


async def test_encrypted_and_broken_archives(desk: Desk) -> None:
    data = bytearray(zipped(lambda archive: archive.writestr("secret.txt", "words")))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(signature) + offset] |= 1
    own, inside, _ = await desk.upload("secret.zip", bytes(data))
    assert own["status"] == "failed" and "password" in own["error"] and inside == {}
    nothing, inside, _ = await desk.upload("nothing.zip", zipped(lambda archive: archive.mkdir("folder")))
    assert nothing["status"] == "failed" and inside == {}


async def test_what_a_document_came_out_of(desk: Desk) -> None:
    """A file inside names the document that it was in, one within another; an upload none. The list can be
    asked for the files of one archive, which stay when it is deleted.
    """
    message = letter("the harbour")
    message.add_attachment("The harbour is deep.", filename="depth.txt")

    def fill(archive: zipfile.ZipFile) -> None:
        archive.writestr("plan.eml", message.as_bytes())
        archive.writestr("june.txt", "The lighthouse was painted in June.")

    box, inside, _ = await desk.upload("box.zip", zipped(fill))
    base = box["knowledge_base_id"]
    other = await ingest(desk.running, desk.ann, base, "other.txt", b"Uploaded by itself.")
    assert box["parent_id"] is None and other["parent_id"] is None
    plan, june, depth = inside["plan.eml"], inside["june.txt"], inside["depth.txt"]
    assert plan["parent_id"] == june["parent_id"] == box["document_id"]
    assert depth["parent_id"] == plan["document_id"]
    path = f"/v1/rag/knowledge-bases/{base}/documents"

    async def of(parent: str) -> set[str]:
        listed = (await desk.ann.get(f"{path}?parent_id={parent}")).json()
        assert listed["total"] == len(listed["items"])
        return {one["filename"] for one in listed["items"]}

    assert await of(box["document_id"]) == {"plan.eml", "june.txt"}
    assert await of(plan["document_id"]) == {"depth.txt"} and await of(other["document_id"]) == set()
    assert (await desk.ann.delete(f"{path}/{box['document_id']}")).status == 200
    assert await of(box["document_id"]) == {"plan.eml", "june.txt"}


async def test_a_file_that_comes_twice(desk: Desk) -> None:
    """A file that is there already keeps its parent. One that failed is tried again by the next archive that
    has it, and came out of that.
    """

    def fill(archive: zipfile.ZipFile) -> None:
        archive.writestr("june.txt", "The lighthouse was painted in June.")
        archive.writestr("broken.pdf", b"%PDF-1.4 nothing")

    first, inside, _ = await desk.upload("first.zip", zipped(fill), all_completed=False)
    assert inside["broken.pdf"]["status"] == "failed"

    def fill_again(archive: zipfile.ZipFile) -> None:
        fill(archive)
        archive.writestr("more.txt", "It was painted red.")

    base = first["knowledge_base_id"]
    second = await ingest(desk.running, desk.ann, base, "second.zip", zipped(fill_again))
    await desk.running.run_jobs()
    listed = (await desk.ann.get(f"/v1/rag/knowledge-bases/{base}/documents")).json()["items"]
    parents = {one["filename"]: one["parent_id"] for one in listed}
    assert parents["june.txt"] == first["document_id"]
    assert parents["more.txt"] == parents["broken.pdf"] == second["document_id"]
    again = await ingest(desk.running, desk.ann, base, "broken.pdf", b"%PDF-1.4 nothing")
    assert again["parent_id"] is None


def letter(subject: str) -> EmailMessage:
    """A message without attachments."""
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "ada@example.org", "bob@example.org", subject
    message["Message-ID"] = "<1@example.org>"
    message.set_content(f"Dear Bob, here is {subject}.")
    return message


async def test_attachments(desk: Desk, tmp_path: Path) -> None:
    message = letter("the plan")
    pdf = made.pdf(tmp_path / "a.pdf", [["The budget is 500 crowns."]]).read_bytes()
    message.add_attachment(pdf, maintype="application", subtype="pdf", filename="budget.pdf")
    box = zipped(lambda archive: archive.writestr("notes.txt", "The meeting is on Monday."))
    message.add_attachment(box, maintype="application", subtype="zip", filename="box.zip")
    message.add_attachment(letter("an older plan"))
    own, inside, told = await desk.upload("plan.eml", message.as_bytes())
    assert own["content_type"] == "message/rfc822" and told == "3 of 3 files inside became documents"
    assert own["notice"] is None
    assert set(inside) == {"budget.pdf", "box.zip", "an older plan.eml", "notes.txt"}


async def test_a_message_that_outlook_wrote(desk: Desk) -> None:
    """A file of Outlook's own: an empty message with a photo without text, sent to oneself."""
    folder = npm_folder(Path(__file__).parent / "outlook", "the tests of a real .msg file")
    content = (folder / "node_modules/msgreader/data/test.msg").read_bytes()
    own, inside, _ = await desk.upload("photo.msg", content, all_completed=False)
    assert (own["content_type"], own["status"]) == ("application/vnd.ms-outlook", "completed")
    assert inside == {} and ".jpg (" in own["notice"]
    path = f"/v1/rag/knowledge-bases/{own['knowledge_base_id']}/documents/{own['document_id']}/chunks"
    text = (await desk.ann.get(path)).json()["items"][0]["text"]
    assert text.startswith("Subject: asdf\nFrom: christoph@freiraum.xyz") and "2018-03-23 16:06" in text


async def test_an_outlook_message(desk: Desk, tmp_path: Path) -> None:
    """Headers, text and attachments of a .msg file."""
    content = made.outlook_message(
        "Harbour dues", "The dues are 12 crowns a day.", {"rates.txt": b"Boats pay 12 crowns. " * 300}
    )
    own, inside, _ = await desk.upload("dues.msg", content)
    assert (own["content_type"], own["status"]) == ("application/vnd.ms-outlook", "completed")
    assert set(inside) == {"rates.txt"}
    broken, _, _ = await desk.upload("broken.msg", content[:1500])
    assert broken["status"] == "failed" and "damaged" in broken["error"]


async def test_pictures_of_a_signature(desk: Desk) -> None:
    """A spacer or a logo becomes no failed document, and the message says so; a scan is a document."""
    blank, scan = io.BytesIO(), io.BytesIO()
    Image.new("RGB", (12, 4), "white").save(blank, "GIF")
    made.picture("The harbour master signed").save(scan, "PNG")
    mail = EmailMessage()
    mail["Subject"], mail["From"] = "Berths", "ann@example.org"
    mail.set_content("The berths are free.")
    for name, data in (("spacer.gif", blank), ("image001.gif", blank), ("scan.png", scan)):
        mail.add_attachment(data.getvalue(), "image", name[-3:], filename=name, disposition="inline")
    own, inside, _ = await desk.upload("mail.eml", mail.as_bytes(), all_completed=False)
    assert own["status"] == "completed" and "spacer.gif" in own["notice"] and "image001.gif" in own["notice"]
    expected = {"scan.png": "completed"} if shutil.which("tesseract") else {}
    assert {name: one["status"] for name, one in inside.items()} == expected
