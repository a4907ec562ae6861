"""Text from pictures, by a plugin's recognizer or by tesseract, within a parser process and its limits."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from time import monotonic
from typing import Final, NamedTuple

from builtin_plugins.documents.blocks import (
    DOUBTFUL,
    Code,
    ParserUnavailable,
    SlowDocument,
    UnparsableDocument,
)
from builtin_plugins.documents.omissions import omit

_PROGRAM: Final = "tesseract"
_PAGE_SECONDS: Final = 120
_SAID_BYTES: Final = 500
_TURNED: Final = 0.75
"""Upright text scores higher, sideways or upside-down text lower."""
_GIBBERISH: Final = 0.6
"""The average certainty of a page below which its text is made up: pages in scripts that are not read score
0.25 to 0.47, pages that are too blurred to read 0.41, and those in a language with the same letters 0.82.
"""
_SURE: Final = 0.6
"""The certainty of a word below which it is not quoted: all such words of three measured scans were wrong."""
_OUTPUT: Final = ("-c", "tessedit_create_txt=1", "-c", "tessedit_create_tsv=1")
# Detect the orientation first; unreliable for very little text.
_TURN: Final = ("--psm", "1")
# A row of tesseract's table of words, which it writes before the text: the last two are confidence and word.
_WORD: Final = re.compile(r"^5\t(?:-?\d+\t){9}(-?[\d.]+)\t(.*)$")
_ROW: Final = re.compile(r"^(?:level\t|[1-5]\t(?:-?\d+\t){9}-?[\d.]+\t)")
_GAP: Final = re.compile(r"(\s+)")
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
    """Languages in tesseract's notation (`eng+deu`), how many pages of a document may be recognized, and what
    is asked before tesseract (`find_recognizer`).
    """

    languages: str = "eng"
    most_pages: int = 10_000
    recognizer: str | None = None


class RecognizedWord(NamedTuple):
    """A word in a picture, and how certain it is, from 0 to 1: below 0.6 it is not quoted, and a page whose
    average is below that is not read.
    """

    text: str
    certainty: float


WordReader = Callable[[bytes, int | None], Iterable[Sequence[RecognizedWord]]]
"""What a plugin's recognizer is: a picture, and the page of a TIFF from 1, become lines of words."""


OPTIONS: ContextVar[OcrOptions] = ContextVar("ocr options", default=OcrOptions())  # noqa: B039 - immutable


class Recognizer:
    """Recognizes the pictures of one document."""

    def __init__(self) -> None:
        self._options = OPTIONS.get()
        self._program = shutil.which(_PROGRAM)
        self._words = None if self._options.recognizer is None else _load(self._options.recognizer)
        self._pages = 0

    @property
    def is_installed(self) -> bool:
        """Whether there is anything that recognizes text."""
        return self._program is not None or self._words is not None

    @property
    def most_pages(self) -> int:
        """How many pages may be recognized."""
        return self._options.most_pages

    def expect(self, pages: int) -> None:
        """Announce how many pages need recognition. Raises `SlowDocument` at once if they are too many,
        because the other lane would recognize them all again.
        """
        if self.is_installed and pages > self.most_pages:
            raise SlowDocument(f"more than {self.most_pages} pages to recognize")

    def read(self, picture: bytes, page: int | None = None) -> str:
        """The text in a picture (PNG, JPEG, GIF, WebP, TIFF, BMP, PNM), or in one page of a TIFF, from 1.

        Doubtful words have a mark after them (`DOUBTFUL`). Text that is gibberish is left out and counted.

        Raises `SlowDocument` after too many of them, `UnparsableDocument`: `no_ocr` without the program or
        its languages, `timeout`, `too_many_pixels`, `corrupt` for what is not a picture.
        """
        self._pages += 1
        self.expect(self._pages)
        reading = self._read(picture, page)
        if reading.is_gibberish:
            omit("unrecognized")
            return ""
        return reading.text

    def _read(self, picture: bytes, page: int | None) -> OcrText:
        if self._words is not None:
            reading = OcrText.of_lines(self._words(picture, page))
            if self._program is None or not reading.is_gibberish:
                return reading
            with suppress(UnparsableDocument):  # it may have the language
                return likelier(reading, self._ask(picture, page, monotonic() + _PAGE_SECONDS))
            return reading
        deadline = monotonic() + _PAGE_SECONDS
        reading = self._ask(picture, page, deadline)
        if reading.is_doubtful:
            with suppress(UnparsableDocument):  # keep the first reading
                reading = likelier(reading, self._ask(picture, page, deadline, *_TURN))
        return reading

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
        text = OcrText.of_output(done.stdout.decode("utf-8", "replace"))
        if done.returncode != 0 or (_UNREAD in complaint and not text.text.strip()):
            raise UnparsableDocument(_fault(complaint), complaint[:_SAID_BYTES])
        return text


def _load(target: str) -> WordReader:
    module, _, name = target.partition(":")
    try:
        function: WordReader = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ParserUnavailable(f"{target}: {type(error).__name__}: {error}") from None
    return function


class OcrText:
    """A reading of a picture: its text with doubtful words marked, and the average certainty by length."""

    def __init__(self, text: str, words: Sequence[RecognizedWord]) -> None:
        self.size = sum(len(word.text) for word in words)
        certain = sum(word.certainty * len(word.text) for word in words)
        self.confidence = certain / self.size if self.size else 0.0
        self.is_doubtful = self.size > 0 and self.confidence < _TURNED
        self.is_gibberish = self.size > 0 and self.confidence < _GIBBERISH
        pieces = _GAP.split(text)
        if pieces[::2] == [word.text for word in words]:
            pieces[::2] = map(_marked, words)
        self.text = "".join(pieces)

    @classmethod
    def of_output(cls, output: str) -> OcrText:
        """What tesseract writes: a table of words, and the text."""
        lines = output.replace("\f", "").split("\n")
        words = [
            RecognizedWord(word, float(match[1]) / 100)
            for line in lines
            if (match := _WORD.match(line)) and (word := match[2].strip())
        ]
        return cls("\n".join(line for line in lines if not _ROW.match(line)).strip(), words)

    @classmethod
    def of_lines(cls, lines: Iterable[Sequence[RecognizedWord]]) -> OcrText:
        """What a plugin's recognizer returns."""
        listed = list(lines)
        text = "\n".join(" ".join(word.text for word in line) for line in listed)
        return cls(text, [word for line in listed for word in line])


def _marked(word: RecognizedWord) -> str:
    return word.text if word.certainty >= _SURE else word.text + DOUBTFUL


def likelier(upright: OcrText, turned: OcrText) -> OcrText:
    """The more confident reading, unless it has less than half the text of the upright one."""
    return turned if turned.confidence > upright.confidence and 2 * turned.size >= upright.size else upright


def _fault(complaint: str) -> Code:
    """The error code for tesseract's complaint."""
    return next((code for sign, code in _FAULTS.items() if sign in complaint), "corrupt")
