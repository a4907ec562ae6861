"""From a file to its text: detection by content, parsers in limited processes, blocks with pages.

What is imported here is imported by the parser processes too: `runner`, the platform's side, is not.
"""

from __future__ import annotations

from builtin_plugins.rag.parsing import detect as _types
from builtin_plugins.rag.parsing import flavours as _flavours
from builtin_plugins.rag.parsing.blocks import (
    DETAILS,
    SEPARATOR,
    Block,
    Parser,
    ParserUnavailable,
    UnparsableDocument,
    parsed_text,
)
from builtin_plugins.rag.parsing.detect import detect_media_type
from builtin_plugins.rag.parsing.protocol import read_blocks

__all__ = [
    "BUILTIN_PARSERS",
    "DETAILS",
    "SEPARATOR",
    "Block",
    "Parser",
    "ParserUnavailable",
    "UnparsableDocument",
    "detect_media_type",
    "parsed_text",
    "read_blocks",
]

BUILTIN_PARSERS = (
    Parser("pdf", (_types.PDF,), f"{__name__}.from_pdf:parse"),
    Parser("docx", _types.WORD_TYPES, f"{__name__}.from_docx:parse"),
    Parser("pptx", _types.POWERPOINT_TYPES, f"{__name__}.from_pptx:parse"),
    Parser("xlsx", _types.EXCEL_TYPES, f"{__name__}.from_xlsx:parse"),
    Parser("epub", (_types.EPUB,), f"{__name__}.from_epub:parse"),
    Parser("odt", _types.ODT_TYPES, f"{__name__}.from_odt:parse"),
    Parser("rtf", (_types.RTF,), f"{__name__}.from_rtf:parse"),
    Parser("email", (_flavours.EMAIL,), f"{__name__}.from_eml:parse", f"{__name__}.from_eml:extract"),
    Parser("mbox", (_flavours.MAILBOX,), f"{__name__}.from_mbox:parse", f"{__name__}.from_mbox:extract"),
    Parser("html", (_flavours.HTML,), f"{__name__}.from_html:parse"),
    Parser("json", (_flavours.JSON,), f"{__name__}.from_json:parse"),
    Parser("notebook", (_flavours.NOTEBOOK,), f"{__name__}.from_notebook:parse"),
    Parser("subtitles", (_flavours.SUBRIP, _flavours.VTT), f"{__name__}.from_subtitles:parse"),
    Parser("vobject", (_flavours.CALENDAR, _flavours.CONTACTS), f"{__name__}.from_vobject:parse"),
    Parser("json_lines", (_flavours.JSON_LINES,), f"{__name__}.from_json:parse_lines"),
    Parser("csv", (_flavours.CSV,), f"{__name__}.from_csv:parse"),
    Parser("markdown", (_flavours.MARKDOWN,), f"{__name__}.from_markdown:parse"),
    Parser("text", (_flavours.PLAIN,), f"{__name__}.from_text:parse"),
    Parser("zip", (_types.ZIP,), f"{__name__}.from_zip:parse", f"{__name__}.from_zip:extract"),
    Parser("tar", _types.TAR_TYPES, f"{__name__}.from_tar:parse", f"{__name__}.from_tar:extract"),
    Parser("msg", (_types.MSG,), f"{__name__}.from_msg:parse", f"{__name__}.from_msg:extract"),
    Parser("image", tuple(_types.IMAGES), f"{__name__}.from_image:parse"),
    Parser("ods", _types.ODS_TYPES, f"{__name__}.from_ods:parse"),
    Parser("odp", _types.ODP_TYPES, f"{__name__}.from_odt:parse_slides"),
)
