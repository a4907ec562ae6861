"""Photos and scans as pictures: the text that tesseract recognizes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from builtin_plugins.rag.parsing.blocks import Block
from builtin_plugins.rag.parsing.ocr import Recognizer


def parse(path: Path) -> Iterator[Block]:
    """Yield the picture's text. Raises what `Recognizer.read` raises."""
    yield Block(Recognizer().read(path.read_bytes()))
