"""B8: text of a born-digital PDF, and what a short text costs, through the whole way of a limited process.

python -m tests.benchmarks.parsing
"""

from __future__ import annotations

import asyncio
import io
import tempfile
import time
from contextlib import aclosing
from pathlib import Path

import psutil
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas

from builtin_plugins.documents.parsers import BUILTIN_PARSERS
from builtin_plugins.documents.runner import ParseLimits, parse, parser_processes
from kernel.sdk import Children
from tests.benchmarks.table import Row, print_table
from tests.benchmarks.texts import article

PAGES = 300
SHORT = 500
LIMITS = ParseLimits(memory_mb=1024, cpu_seconds=300, wall_seconds=300, max_text_chars=100_000_000)
_LINES = 45
_WIDTH = 95


def pdf(pages: int, last: str = "") -> bytes:
    """Pages of prose; `last` is the last line of the last one."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=A4)
    for number in range(pages):
        text = article(number, 20).replace("\n", " ")
        lines = [text[at : at + _WIDTH] for at in range(0, _LINES * _WIDTH, _WIDTH)]
        body = canvas.beginText(40, 800)
        body.textLines([*lines, last] if last and number == pages - 1 else lines)
        canvas.drawText(body)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


async def read_long_pdf(children: Children, folder: Path) -> Row:
    (folder / "long.pdf").write_bytes(pdf(PAGES))
    started = time.perf_counter()
    parsed = await parse(children, folder / "long.pdf", BUILTIN_PARSERS[0], LIMITS, folder / "sink")
    rate = PAGES / (time.perf_counter() - started)
    figure = f"{rate:.0f} pages/s ({parsed.char_count // PAGES:,} characters a page)"
    return Row("B8", "text of a born-digital PDF, one core", figure, ">= 100 pages/s", rate >= 100)


async def read_short_texts(children: Children, folder: Path) -> Row:
    """Processor time of one small text file: this process, the prepared one and the children together."""
    (folder / "short.txt").write_text(article(1, 2)[:1024], encoding="utf-8")
    parser = next(parser for parser in BUILTIN_PARSERS if parser.name == "text")
    await parse(children, folder / "short.txt", parser, LIMITS, folder / "sink")
    before = processor_seconds()
    for _ in range(SHORT):
        await parse(children, folder / "short.txt", parser, LIMITS, folder / "sink")
    spent = 1000 * (processor_seconds() - before) / SHORT
    return Row("", "text of a file of 1 KB, processor time", f"{spent:.1f} ms", "<= 10 ms", spent <= 10)


def processor_seconds() -> float:
    """Of this process, its living children, and those that they waited for."""
    found = 0.0
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        times = process.cpu_times()
        found += times.user + times.system + times.children_user + times.children_system
    return found


async def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        async with aclosing(parser_processes()) as children:
            rows = [await read_long_pdf(children, Path(name)), await read_short_texts(children, Path(name))]
    print_table(rows)


if __name__ == "__main__":
    asyncio.run(main())
