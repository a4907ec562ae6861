"""The vocabulary of parsing: blocks of text, parsers, and the one error a document can end with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple

SEPARATOR: Final = "\n\n"
"""Separates blocks in the parsed text, also at page breaks."""

DOUBTFUL: Final = "\u2060"
"""Stands after a word of a picture that was recognized with little certainty: such words can be searched, but
are not quoted. It is the invisible word joiner, which is removed from any other text.
"""

MOST_ENTRIES: Final = 10_000
"""The maximum of files and folders in an archive."""

Code = Literal[
    "encrypted",
    "corrupt",
    "no_text",
    "no_ocr",
    "unrecognized",
    "too_large",
    "too_many",
    "too_many_pixels",
    "too_deep",
    "timeout",
    "memory",
]


class Heading(NamedTuple):
    """A heading: the lower its `level`, the higher it stands above others; `start` is its place in its
    block's text, in characters.
    """

    level: int
    text: str
    start: int = 0


class Block(NamedTuple):
    """A piece of a document's text, with the 1-based page (slide, sheet) it is on, if there are pages.
    `unread` marks a picture that nothing here can read, `recognized` a picture that was read; `damaged` marks
    a broken page or part. `headings` are those in the text, in their order.

    The parsed text of a document is `SEPARATOR.join(block.text for block in blocks)`; every character offset
    in the platform is a Python string index into that text.
    """

    text: str
    page: int | None = None
    unread: bool = False
    recognized: bool = False
    damaged: bool = False
    headings: Sequence[Heading] = ()


def first_line(text: str) -> str:
    """The first line of a slide's text; empty if it is a row of a table."""
    line = text.partition("\n")[0]
    return "" if "\t" in line else line


def with_first_line(block: Block) -> Block:
    """A block with its first line as a heading: what a slide without a title is called."""
    return block._replace(headings=[Heading(1, first_line(block.text))])


class Parser(NamedTuple):
    """A way to read some media types.

    `target` is `package.module:function`; the function takes a `Path` and yields `Block`s (or plain
    strings, or `(text, page)` pairs). It runs in its own process, see `runner.parse`. `extractor` names
    a function that yields the files inside the document, see `extracting`.
    """

    name: str
    media_types: tuple[str, ...]
    target: str
    extractor: str | None = None


DETAILS: Final[dict[Code, str]] = {
    "encrypted": "The document is protected by a password. Remove the password and upload it again.",
    "corrupt": "The document is damaged and cannot be read. Save it again and upload the new file.",
    "no_text": "No text was found in the document.",
    "no_ocr": "Reading text from pictures needs the program tesseract with the languages in "
    "PLATFORM_RAG_OCR_LANGUAGES on the server (Debian: apt install tesseract-ocr tesseract-ocr-deu for "
    "English and German). Then upload the document again.",
    "unrecognized": "The text in the picture could not be recognized with any certainty: it is too blurred, "
    "or in a language that the server does not have. PLATFORM_RAG_OCR_LANGUAGES sets them (Debian: "
    "apt install tesseract-ocr-deu for German). Then upload the document again.",
    "too_large": "The document is too large: its file, what it unpacks to, or its text is more than can be "
    "read. Split it and upload the parts.",
    "too_many": f"The archive holds too many files: it may have at most {MOST_ENTRIES:,} files and folders. "
    "Split it and upload the parts.",
    "too_many_pixels": "The picture has too many pixels: more than 32,767 in width or height, or more than "
    "fit in the memory for a document. Scale it down, or cut it into parts, and upload it again.",
    "too_deep": "The document's lists or objects are nested too deeply to be read. "
    "Flatten it and upload it again.",
    "timeout": "Reading the document took too long. Split it or simplify it and upload it again.",
    "memory": "Reading the document needs more memory than is allowed. Split it and upload the parts.",
}
"""The texts for users, by code; output of a parser process is never shown to users."""


def unread_pages(unread: int, pages: int | None) -> str:
    """What to tell users about a document that was read only in part."""
    some = "One page is a picture" if unread == 1 else f"{unread} pages are pictures"
    return (
        f"{some} and could not be read (of {pages} in all), because tesseract is not installed on the server "
        "(Debian: apt install tesseract-ocr). Once it is, delete the document and upload it again."
    )


def damaged_pages(damaged: int, pages: int | None) -> str:
    """What to tell users about a document with broken pages, or broken parts if it has no pages."""
    if pages is None:
        some = "One part of the document is" if damaged == 1 else f"{damaged} parts of the document are"
        return f"{some} missing or damaged and could not be read. Save the file again and upload it."
    some = "One page is" if damaged == 1 else f"{damaged} pages are"
    return f"{some} damaged and could not be read (of {pages} in all). Save the file again and upload it."


UNAVAILABLE: Final = "unavailable"
SLOW: Final = "slow"


class UnparsableDocument(Exception):
    """A document that cannot become text.

    `detail` is for users: it names the remedy and depends only on `code`. `reason` is for the log and may
    repeat what a library said about the file.
    """

    def __init__(self, code: Code, reason: str = "") -> None:
        self.code: Code = code
        self.detail = DETAILS[code]
        self.reason = reason
        super().__init__(f"{code}: {reason or self.detail}")


class SlowDocument(Exception):
    """A document with too many pages to recognize for the lane of small documents."""

    code = SLOW


class ParserUnavailable(RuntimeError):
    """A parser that cannot be started: a fault of the installation, not of the document."""

    code = UNAVAILABLE


def parsed_text(blocks: Iterable[Block]) -> str:
    """Return the whole parsed text, in memory: only for tests and small documents."""
    return SEPARATOR.join(block.text for block in blocks)
