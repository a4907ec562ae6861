"""The progress of a document's job: in pages if it has them, else in passages."""

from __future__ import annotations

from math import ceil

from builtin_plugins.rag.chunking import Chunk
from builtin_plugins.rag.parsing.protocol import Place
from builtin_plugins.rag.parsing.runner import ParsedDocument
from kernel.sdk import Progress

_LONGEST_PAGE = 20_000
"""Characters. Anything longer is a sheet, not a page; a workbook has too few to show progress by."""
_RECOGNIZING = 0.9
"""The share of a scanned page's work that is done once it is recognized; text pages take no time to read."""


class ReadingProgress:
    """Reports the progress of one run, which never goes back, even after a crash."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._pages = 0
        self._passages = 0
        self._ahead = 0

    def begin(self) -> None:
        """Report that the file is being opened."""
        self._progress.report(message="Reading the file")

    def reading(self, place: Place) -> None:
        """Report the page being read, which takes a while in long or scanned documents."""
        if not place.pages:
            self._progress.report(message=f"Reading page {place.page:,}")
            return
        message = f"Reading page {place.page:,} of {place.pages:,}"
        self._tell(_ahead(place.recognized), place.pages, "pages", message)

    def count(self, parsed: ParsedDocument, passages: int, done: int) -> None:
        """Note how many passages there are to embed, and how many an earlier run has done."""
        pages = parsed.page_count or 0
        self._passages = passages
        self._pages = pages if parsed.char_count <= pages * _LONGEST_PAGE else 0
        self._ahead = _ahead(parsed.recognized_pages) if self._pages else 0
        following = min(done + 1, passages)
        self._count(self._ahead, done, f"Embedding passage {following:,} of {passages:,}")

    def embedded(self, last: Chunk) -> None:
        """All passages up to this one have their vectors."""
        number, pages = last.index + 1, 0
        if self._pages:
            pages = self._ahead + (self._pages - self._ahead) * (last.page or 0) // self._pages
        self._count(pages, number, f"Embedding passage {number:,} of {self._passages:,}")

    def complete(self) -> None:
        """Report everything as done, including empty pages at the end."""
        self._progress.report(self._progress.total)

    def _count(self, pages: int, passages: int, message: str) -> None:
        if self._pages:
            self._tell(pages, self._pages, "pages", message)
        else:
            self._tell(passages, self._passages, "passages", message)

    def _tell(self, done: int, total: int, unit: str, message: str) -> None:
        before = self._progress
        if (before.unit, before.total) == (unit, total):
            done = max(done, before.done)
        before.report(min(done, total), total=total, unit=unit, message=message)


def _ahead(recognized: int) -> int:
    """The progress in pages when this many are recognized and none is embedded."""
    return ceil(recognized * _RECOGNIZING)
