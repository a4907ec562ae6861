"""RapidOCR reads what tesseract can't, in a parser's process, without network and within its memory."""

from __future__ import annotations

import re
from contextlib import aclosing
from pathlib import Path

import pytest
from PIL import Image, ImageFilter

from builtin_plugins.documents.detection import detect_media_type
from builtin_plugins.documents.images.ocr import OcrOptions
from builtin_plugins.documents.parsers import BUILTIN_PARSERS
from builtin_plugins.documents.protocol import read_blocks
from builtin_plugins.documents.runner import ParseLimits, parse, parser_processes
from builtin_plugins.rapid_ocr.plugin import RapidOcrPlugin
from tests.builtin_plugins.documents.sample_documents import picture

LINES = (
    "The station on the island was opened in 1921",
    "and its light was kept by one family for years.",
    "Visitors should ask at the harbour before noon.",
    "A hotel in the old town costs 185 euro a night.",
)
LIMITS = ParseLimits(memory_mb=2048, cpu_seconds=120, wall_seconds=240, max_text_chars=100_000)


async def share(path: Path, ocr: OcrOptions) -> float:
    """The share of the words that are read rightly."""
    kind = detect_media_type(path)
    parser = next(parser for parser in BUILTIN_PARSERS if kind in parser.media_types)
    async with aclosing(parser_processes()) as children:
        parsed = await parse(children, path, parser, LIMITS._replace(ocr=ocr), path.parent / "sink")
    read = " ".join(block.text for block in read_blocks(parsed.sink))
    words = re.findall(r"\w+", " ".join(LINES))
    return sum(word in re.findall(r"\w+", read) for word in words) / len(words)


async def test_a_poor_scan(tmp_path: Path) -> None:
    """Tilted, blurred and pale: nearly all the words, in their order."""
    pytest.importorskip("rapidocr")
    page = picture(*LINES).rotate(3.5, expand=True, fillcolor=255, resample=Image.Resampling.BICUBIC)
    page = page.filter(ImageFilter.GaussianBlur(3)).point(lambda shade: 255 - (255 - shade) // 2)
    path = tmp_path / "scan.png"
    page.save(path)
    recognizer = RapidOcrPlugin().find_recognizer()
    assert await share(path, OcrOptions(recognizer=recognizer)) >= 0.95
