"""What can't be recognized in pictures with certainty is said instead of being made up, and is not quoted."""

from __future__ import annotations

import io
import shutil
from contextlib import aclosing
from pathlib import Path

import pytest
from PIL import ImageOps
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from builtin_plugins.documents.blocks import UnparsableDocument
from builtin_plugins.documents.detection import detect_media_type
from builtin_plugins.documents.parsers import BUILTIN_PARSERS
from builtin_plugins.documents.protocol import read_blocks
from builtin_plugins.documents.runner import ParsedDocument, ParseLimits, parse, parser_processes, unread_part
from kernel.testing import Start
from tests.builtin_plugins.documents.sample_documents import picture
from tests.builtin_plugins.rag.rag_support import ask, ingest, make_base, somebody
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.unsure_recognizer import UnsureRecognizer

needs_tesseract = pytest.mark.skipif(shutil.which("tesseract") is None, reason="tesseract is not installed")

LINES = ("The harbour master signed the paper on Friday", "and asked for a report about the damage")
LIMITS = ParseLimits(memory_mb=1024, cpu_seconds=20, wall_seconds=60, max_text_chars=100_000)


async def parsed(path: Path) -> ParsedDocument:
    kind = detect_media_type(path)
    parser = next(parser for parser in BUILTIN_PARSERS if kind in parser.media_types)
    async with aclosing(parser_processes()) as children:
        return await parse(children, path, parser, LIMITS, path.parent / "sink")


@needs_tesseract
async def test_a_script_that_is_not_known(tmp_path: Path) -> None:
    """A picture in letters that tesseract lacks, such as mirrored ones, is refused with the remedy."""
    path = tmp_path / "a.png"
    ImageOps.mirror(picture(*LINES)).save(path)
    with pytest.raises(UnparsableDocument) as caught:
        await parsed(path)
    assert caught.value.code == "unrecognized" and "PLATFORM_RAG_OCR_LANGUAGES" in caught.value.detail


@needs_tesseract
async def test_one_page_of_several(tmp_path: Path) -> None:
    """Of a scan with such a page, the others are read, and the notice names the setting."""
    path = tmp_path / "a.pdf"
    document = Canvas(str(path))
    for page in (picture(*LINES), ImageOps.mirror(picture(*LINES))):
        document.drawImage(ImageReader(page), 0, 500, 595, 170)
        document.showPage()
    document.save()
    found = await parsed(path)
    assert [" ".join(block.text.split()) for block in read_blocks(found.sink)] == [" ".join(LINES)]
    assert found.omitted == {"unrecognized": 1}
    assert "PLATFORM_RAG_OCR_LANGUAGES" in (unread_part(found) or "")


async def test_doubtful_words(start_platform: Start) -> None:
    """A plugin's recognizer is asked first; what it is unsure of is found by a search, and never quoted."""
    running = await start_platform("rag", "extractive_answers", HashEmbeddings(), UnsureRecognizer())
    ann = await somebody(running)
    base = await make_base(ann)
    file = io.BytesIO()
    picture("anything").save(file, "PNG")
    document = await ingest(running, ann, base, "fees.png", file.getvalue())
    assert (document["status"], document["notice"]) == ("completed", None)
    searched = await ann.post(
        f"/v1/rag/knowledge-bases/{base}/search", json={"question": "fee of the southern harbour"}
    )
    assert "72" in searched.json()["items"][0]["text"]
    made = {"name": "Fees", "knowledge_base_ids": [base]}
    pipeline = (await ann.post("/v1/rag/pipeline", json=made)).json()["pipeline_id"]
    answer = await ask(ann, pipeline, "What is the fee of the harbour for every night and boat?")
    assert "12 euro" in answer["answer"] and "72" not in answer["answer"]
