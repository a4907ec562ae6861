"""B8: text of a born-digital PDF, through the whole way of a limited subprocess (design.md section 4).

python -m tests.benchmarks.parsing
"""

from __future__ import annotations

import asyncio
import io
import tempfile
import time
from pathlib import Path

from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas

from builtin_plugins.rag.parsing import BUILTIN_PARSERS, ParseLimits, parse
from tests.benchmarks.table import Row, print_table
from tests.benchmarks.texts import article

PAGES = 300
_LINES = 45
_WIDTH = 95


def pdf(pages: int) -> bytes:
    """A PDF with a full page of text on each page."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=A4)
    for number in range(pages):
        text = article(number, 20).replace("\n", " ")
        lines = [text[at : at + _WIDTH] for at in range(0, _LINES * _WIDTH, _WIDTH)]
        body = canvas.beginText(40, 800)
        body.textLines(lines)
        canvas.drawText(body)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


async def main() -> None:
    """B8."""
    limits = ParseLimits(memory_mb=1024, cpu_seconds=300, wall_seconds=300, max_text_chars=100_000_000)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "long.pdf").write_bytes(pdf(PAGES))
        started = time.perf_counter()
        parsed = await parse(folder / "long.pdf", BUILTIN_PARSERS[0], limits, folder / "sink")
        rate = PAGES / (time.perf_counter() - started)
    figure = f"{rate:.0f} pages/s ({parsed.char_count // PAGES:,} characters a page)"
    print_table([Row("B8", "text of a born-digital PDF, one core", figure, ">= 100 pages/s", rate >= 100)])


if __name__ == "__main__":
    asyncio.run(main())
