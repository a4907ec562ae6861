"""Text from pictures by tesseract, a separate program that runs within a parser process's limits."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from time import monotonic
from typing import Final, NamedTuple

from builtin_plugins.documents.blocks import Code, SlowDocument, UnparsableDocument

_PROGRAM: Final = "tesseract"
_PAGE_SECONDS: Final = 120
_SAID_BYTES: Final = 500
_DOUBTFUL: Final = 75.0
"""Percent: upright text scores higher, sideways or upside-down text lower."""
_OUTPUT: Final = ("-c", "tessedit_create_txt=1", "-c", "tessedit_create_tsv=1")
# Detect the orientation first; unreliable for very little text.
_TURN: Final = ("--psm", "1")
# A row of tesseract's table of words, which it writes before the text: the last two are confidence and word.
_WORD: Final = re.compile(r"^5\t(?:-?\d+\t){9}(-?[\d.]+)\t(.*)$")
_ROW: Final = re.compile(r"^(?:level\t|[1-5]\t(?:-?\d+\t){9}-?[\d.]+\t)")
_UNREAD: Final = "Error in pixRead"  # for a TIFF; the program still exits with success
_FAULTS: Final[dict[str, Code]] = {
    "Failed loading language": "no_ocr",
    "Error opening data file": "no_ocr",
    **dict.fromkeys(
        (
            *("Image too large", "requested bytes >= 2^31", "pixdata_malloc fail"),
            *("libpng error: Out of memory", "npixels too large", "width too large"),
        ),
        "too_many_pixels",
    ),
}


def _nobody(_page: int, _pages: int) -> None:
    """The default: progress is not shown."""


LISTENER: ContextVar[Callable[[int, int], None]] = ContextVar("who is told of pages", default=_nobody)


def begin_page(page: int, pages: int) -> None:
    """Report that page `page` (from 1) of `pages` is being read."""
    LISTENER.get()(page, pages)


class OcrOptions(NamedTuple):
    """Languages in tesseract's notation (`eng+deu`), and how many pages of a document may be recognized."""

    languages: str = "eng"
    most_pages: int = 10_000


OPTIONS: ContextVar[OcrOptions] = ContextVar("ocr options", default=OcrOptions())  # noqa: B039 - immutable


class Recognizer:
    """Recognizes the pictures of one document."""

    def __init__(self) -> None:
        self._options = OPTIONS.get()
        self._program = shutil.which(_PROGRAM)
        self._pages = 0

    @property
    def is_installed(self) -> bool:
        """Whether tesseract is installed."""
        return self._program is not None

    @property
    def most_pages(self) -> int:
        """How many pages may be recognized."""
        return self._options.most_pages

    def expect(self, pages: int) -> None:
        """Announce how many pages need recognition. Raises `SlowDocument` at once if they are too many,
        because the other lane would recognize them all again.
        """
        if self._program is not None and pages > self.most_pages:
            raise SlowDocument(f"more than {self.most_pages} pages to recognize")

    def read(self, picture: bytes, page: int | None = None) -> str:
        """The text in a picture (PNG, JPEG, GIF, WebP, TIFF, BMP, PNM), or in one page of a TIFF, from 1.

        Raises `SlowDocument` after too many of them, `UnparsableDocument`: `no_ocr` without the program or
        its languages, `timeout`, `too_many_pixels`, `corrupt` for what is not a picture.
        """
        self._pages += 1
        self.expect(self._pages)
        deadline = monotonic() + _PAGE_SECONDS
        said = self._ask(picture, page, deadline)
        if said.is_doubtful:
            with suppress(UnparsableDocument):  # keep the first reading
                said = likelier(said, self._ask(picture, page, deadline, *_TURN))
        return said.text

    def _ask(self, picture: bytes, page: int | None, deadline: float, *options: str) -> OcrText:
        if self._program is None:
            raise UnparsableDocument("no_ocr", "tesseract is not installed")
        command = [self._program, "stdin", "stdout", "-l", self._options.languages, *options]
        if page is not None:
            command += ["-c", f"tessedit_page_number={page - 1}"]
        environment = {"OMP_THREAD_LIMIT": "1", "LANG": "C.UTF-8"}
        try:
            done = subprocess.run(
                [*command, *_OUTPUT],
                input=picture,
                capture_output=True,
                timeout=max(deadline - monotonic(), 0.0),
                env=environment,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise UnparsableDocument("timeout", "tesseract took too long for one page") from error
        complaint = done.stderr.decode("utf-8", "replace")
        text = OcrText(done.stdout.decode("utf-8", "replace"))
        if done.returncode != 0 or (_UNREAD in complaint and not text.text.strip()):
            raise UnparsableDocument(_fault(complaint), complaint[:_SAID_BYTES])
        return text


class OcrText:
    """Tesseract's output: the text, and the average confidence per character."""

    def __init__(self, output: str) -> None:
        lines = output.replace("\f", "").split("\n")
        self.text = "\n".join(line for line in lines if not _ROW.match(line))
        words = [(float(found[1]), len(found[2].strip())) for line in lines if (found := _WORD.match(line))]
        self.size = sum(length for _, length in words)
        self.confidence = sum(sure * length for sure, length in words) / self.size if self.size else 0.0
        self.is_doubtful = self.size > 0 and self.confidence < _DOUBTFUL


def likelier(upright: OcrText, turned: OcrText) -> OcrText:
    """The more confident reading, unless it has less than half the text of the upright one."""
    return turned if turned.confidence > upright.confidence and 2 * turned.size >= upright.size else upright


def _fault(complaint: str) -> Code:
    """The error code for tesseract's complaint."""
    return next((code for sign, code in _FAULTS.items() if sign in complaint), "corrupt")
