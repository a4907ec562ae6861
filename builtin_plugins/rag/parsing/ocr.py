"""Text from pictures by tesseract, a separate program; it runs inside a parser process and its limits."""

from __future__ import annotations

import shutil
import subprocess
from contextvars import ContextVar
from typing import Final, NamedTuple

from builtin_plugins.rag.parsing.blocks import Code, SlowDocument, UnparsableDocument

_PROGRAM: Final = "tesseract"
_PAGE_SECONDS: Final = 120
_SAID_BYTES: Final = 500
_UNREAD: Final = "Error in pixRead"  # of a TIFF; the program ends as if all was well
_FAULTS: Final[dict[str, Code]] = {
    "Failed loading language": "no_ocr",
    "Error opening data file": "no_ocr",
    **dict.fromkeys(
        ("Image too large", "requested bytes >= 2^31", "pixdata_malloc fail", "libpng error: Out of memory"),
        "too_many_pixels",
    ),
}


class OcrOptions(NamedTuple):
    """Languages in tesseract's notation (`eng+deu`), and how many pages may be recognized in one document."""

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
        """Whether the program is there."""
        return self._program is not None

    @property
    def most_pages(self) -> int:
        """How many pages may be recognized."""
        return self._options.most_pages

    def expect(self, pages: int) -> None:
        """This many pages are to be recognized. Raises `SlowDocument` before any of them is, if they are too
        many: in the other lane, they would all be recognized again.
        """
        if self._program is not None and pages > self.most_pages:
            raise SlowDocument(f"more than {self.most_pages} pages to recognize")

    def read(self, picture: bytes, page: int | None = None) -> str:
        """The text in a picture (PNG, JPEG, TIFF, PNM), or in one page of a TIFF, from 1.

        Raises `SlowDocument` after too many of them, `UnparsableDocument`: `no_ocr` without the program or
        its languages, `timeout`, `too_many_pixels`, `corrupt` for what is not a picture.
        """
        self._pages += 1
        self.expect(self._pages)
        if self._program is None:
            raise UnparsableDocument("no_ocr", "tesseract is not installed")
        command = [self._program, "stdin", "stdout", "-l", self._options.languages]
        if page is not None:
            command += ["-c", f"tessedit_page_number={page - 1}"]
        environment = {"OMP_THREAD_LIMIT": "1", "LANG": "C.UTF-8"}
        try:
            done = subprocess.run(
                command,
                input=picture,
                capture_output=True,
                timeout=_PAGE_SECONDS,
                env=environment,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise UnparsableDocument("timeout", "tesseract took too long for one page") from error
        said, text = done.stderr.decode("utf-8", "replace"), done.stdout.decode("utf-8", "replace")
        if done.returncode != 0 or (_UNREAD in said and not text.strip()):
            raise UnparsableDocument(_fault(said), said[:_SAID_BYTES])
        return text.replace("\f", "")


def _fault(said: str) -> Code:
    """What tesseract complains about."""
    return next((code for sign, code in _FAULTS.items() if sign in said), "corrupt")
