"""What other plugins may import of documents: parsing, passages of a text, and the hook for more formats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from builtin_plugins.documents.archives.archive import BOUNDED
from builtin_plugins.documents.blocks import (
    DOUBTFUL,
    Block,
    Heading,
    Parser,
    ParserUnavailable,
    SlowDocument,
    UnparsableDocument,
)
from builtin_plugins.documents.chunking import MAX_SIZE, Chunk, Pages, Sections, chunk, page_at, section_at
from builtin_plugins.documents.detection import CSV, JSON, JSON_LINES, MARKDOWN, PLAIN, names_in_zip
from builtin_plugins.documents.extraction import Bounds, ExtractedFile
from builtin_plugins.documents.images.ocr import OcrOptions, RecognizedWord, begin_page
from builtin_plugins.documents.mail.quotes import has_quotes, unframed_lines
from builtin_plugins.documents.office.number_formats import date_text, duration_text, number_text, shown_as
from builtin_plugins.documents.office.ole_files import EmbeddedFile, embedded_in
from builtin_plugins.documents.omissions import omit
from builtin_plugins.documents.parsers import PLAIN_TEXT_PARSERS
from builtin_plugins.documents.previewing import PreviewFailed, PreviewFault, preview
from builtin_plugins.documents.properties import note_property
from builtin_plugins.documents.protocol import ParserPosition, last_place, read_blocks
from builtin_plugins.documents.registry import PARSER_PROCESSES, PARSERS, DocumentParser
from builtin_plugins.documents.runner import (
    Member,
    ParsedDocument,
    ParseLimits,
    SmallText,
    extract,
    parse,
    parse_small,
    unread_part,
)
from builtin_plugins.documents.sentence_marks import asks, ends, ends_sentence, is_closed, is_endless
from builtin_plugins.documents.subject import subject_of
from builtin_plugins.documents.tables.names import is_amount, names_columns
from builtin_plugins.documents.tables.sheets import Layout, Merged, sheet_blocks
from kernel.sdk import Platform, hookspec

__all__ = [
    "BOUNDED",
    "CSV",
    "DOUBTFUL",
    "JSON",
    "JSON_LINES",
    "MARKDOWN",
    "MAX_SIZE",
    "PARSERS",
    "PARSER_PROCESSES",
    "PLAIN",
    "PLAIN_TEXT_PARSERS",
    "Block",
    "Bounds",
    "Chunk",
    "DocumentParser",
    "EmbeddedFile",
    "ExtractedFile",
    "Heading",
    "Layout",
    "Member",
    "Merged",
    "OcrOptions",
    "Pages",
    "ParseLimits",
    "ParsedDocument",
    "Parser",
    "ParserPosition",
    "ParserUnavailable",
    "PreviewFailed",
    "PreviewFault",
    "RecognizedWord",
    "Sections",
    "SlowDocument",
    "SmallText",
    "UnparsableDocument",
    "asks",
    "begin_page",
    "blocks_of",
    "chunk",
    "date_text",
    "duration_text",
    "embedded_in",
    "ends",
    "ends_sentence",
    "extract",
    "find_recognizer",
    "has_quotes",
    "is_amount",
    "is_closed",
    "is_endless",
    "last_place",
    "names_columns",
    "names_in_zip",
    "note_property",
    "number_text",
    "omit",
    "page_at",
    "parse",
    "parse_small",
    "preview",
    "read_blocks",
    "register_parsers",
    "section_at",
    "sheet_blocks",
    "shown_as",
    "subject_of",
    "unframed_lines",
    "unread_part",
]


def blocks_of(portions: Iterable[str]) -> Iterator[Block]:
    """Yield the blocks of a page in HTML that comes in portions. For a parser process: needs lxml."""
    from builtin_plugins.documents.markup import from_html

    return from_html.blocks_of(portions)


@hookspec.declaration
def register_parsers() -> Sequence[DocumentParser]:
    """Parsers for more document types. Those of plugins are asked before the built-in ones.

    A parser may call `note_property` for what its file says about itself: its title, author, dates.
    """


@hookspec.first_now
def find_recognizer(platform: Platform) -> str | None:
    """What recognizes text in pictures before tesseract is asked, as ``package.module:function``.

    The function is called in a parser's process, without network, with a picture's bytes (PNG, JPEG, GIF,
    WebP, TIFF, BMP, PNM) and the page of a TIFF from 1, or None. It returns lines of `RecognizedWord`s. Where
    it is uncertain of a whole page, tesseract is asked as well, if it is installed.
    """
