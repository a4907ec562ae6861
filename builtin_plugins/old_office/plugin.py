"""The plugin that adds .doc, .xls, .ppt and .xlsb to the file types that can be read."""

from __future__ import annotations

from collections.abc import Sequence

from builtin_plugins.documents.api import DocumentParser
from builtin_plugins.old_office.detection import EXCEL, EXCEL_BINARY, POWERPOINT, WORD, detect
from kernel.sdk import Plugin, hookimpl

_HERE = __package__
_FILES = f"{_HERE}.embedded:extract"


class OldOfficePlugin(Plugin):
    """Reads what Word, Excel and PowerPoint wrote before 2007, and Excel's binary workbooks."""

    name = "old_office"
    version = "0.1.0"
    description = "Reading .doc, .xls, .ppt and .xlsb"
    author = "Platform"
    requires = ("documents",)

    @hookimpl
    def register_parsers(self) -> Sequence[DocumentParser]:
        return [
            DocumentParser(
                "doc", [WORD], f"{_HERE}.texts:parse_document", detect_file=detect, extractor=_FILES
            ),
            DocumentParser(
                "ppt", [POWERPOINT], f"{_HERE}.texts:parse_slides", detect_file=detect, extractor=_FILES
            ),
            DocumentParser("xls", [EXCEL], f"{_HERE}.workbooks:parse", detect_file=detect, extractor=_FILES),
            DocumentParser("xlsb", [EXCEL_BINARY], f"{_HERE}.workbooks:parse_binary", detect_file=detect),
        ]
