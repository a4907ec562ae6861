"""The built-in parsers: which function reads which media types."""

from __future__ import annotations

from builtin_plugins.documents import detection as _types
from builtin_plugins.documents.blocks import Parser

_HERE = __package__

BUILTIN_PARSERS = (
    Parser("pdf", (_types.PDF,), f"{_HERE}.pdf.from_pdf:parse", f"{_HERE}.pdf.attachments:extract"),
    Parser("docx", _types.WORD_TYPES, f"{_HERE}.office.from_docx:parse"),
    Parser("pptx", _types.POWERPOINT_TYPES, f"{_HERE}.office.from_pptx:parse"),
    Parser("xlsx", _types.EXCEL_TYPES, f"{_HERE}.office.from_xlsx:parse"),
    Parser("epub", (_types.EPUB,), f"{_HERE}.markup.from_epub:parse"),
    Parser("odt", _types.ODT_TYPES, f"{_HERE}.office.from_odt:parse"),
    Parser("rtf", (_types.RTF,), f"{_HERE}.office.from_rtf:parse"),
    Parser("email", (_types.EMAIL,), f"{_HERE}.mail.from_eml:parse", f"{_HERE}.mail.from_eml:extract"),
    Parser(
        "mbox",
        (_types.MAILBOX,),
        f"{_HERE}.mail.from_mbox:parse",
        f"{_HERE}.mail.from_mbox:extract",
    ),
    Parser("html", (_types.HTML,), f"{_HERE}.markup.from_html:parse"),
    Parser("json", (_types.JSON,), f"{_HERE}.text.from_json:parse"),
    Parser("notebook", (_types.NOTEBOOK,), f"{_HERE}.text.from_notebook:parse"),
    Parser("subtitles", (_types.SUBRIP, _types.VTT), f"{_HERE}.text.from_subtitles:parse"),
    Parser("vobject", (_types.CALENDAR, _types.CONTACTS), f"{_HERE}.text.from_vobject:parse"),
    Parser("json_lines", (_types.JSON_LINES,), f"{_HERE}.text.from_json:parse_lines"),
    Parser("csv", (_types.CSV,), f"{_HERE}.text.from_csv:parse"),
    Parser("markdown", (_types.MARKDOWN,), f"{_HERE}.markup.from_markdown:parse"),
    Parser("text", (_types.PLAIN,), f"{_HERE}.text.from_text:parse"),
    Parser(
        "zip",
        (_types.ZIP,),
        f"{_HERE}.archives.from_zip:parse",
        f"{_HERE}.archives.from_zip:extract",
    ),
    Parser(
        "tar",
        _types.TAR_TYPES,
        f"{_HERE}.archives.from_tar:parse",
        f"{_HERE}.archives.from_tar:extract",
    ),
    Parser("msg", (_types.MSG,), f"{_HERE}.mail.from_msg:parse", f"{_HERE}.mail.from_msg:extract"),
    Parser("image", tuple(_types.IMAGES), f"{_HERE}.images.from_image:parse"),
    Parser("ods", _types.ODS_TYPES, f"{_HERE}.office.from_ods:parse"),
    Parser("odp", _types.ODP_TYPES, f"{_HERE}.office.from_odt:parse_slides"),
)

PLAIN_TEXT_PARSERS = frozenset(
    parser for parser in BUILTIN_PARSERS if parser.name in ("text", "markdown", "csv", "json", "json_lines")
)
"""Several small documents may share a process with these."""
