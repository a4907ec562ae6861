"""Which program wrote a file, by the streams of its compound file ([MS-CFB]) or the parts of its package."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from builtin_plugins.documents.api import names_in_zip

WORD: Final = "application/msword"
EXCEL: Final = "application/vnd.ms-excel"
POWERPOINT: Final = "application/vnd.ms-powerpoint"
EXCEL_BINARY: Final = "application/vnd.ms-excel.sheet.binary.macroEnabled.12"

_COMPOUND: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ZIP: Final = b"PK\x03\x04"
_BINARY_BOOK: Final = "xl/workbook.bin"
# At the top of the file: what is embedded has storages of its own. "Book" is Excel's until 95.
_STREAMS: Final = {
    "WordDocument": WORD,
    "Workbook": EXCEL,
    "Book": EXCEL,
    "PowerPoint Document": POWERPOINT,
}


def detect(path: Path, _filename: str) -> str | None:
    """The media type of an old Office file or a binary workbook; None for any other file."""
    with path.open("rb") as file:
        start = file.read(len(_COMPOUND))
    if start.startswith(_ZIP):
        return EXCEL_BINARY if _BINARY_BOOK in names_in_zip(path) else None
    if start != _COMPOUND:
        return None
    import olefile  # few processes see such a file

    try:
        with olefile.OleFileIO(str(path)) as compound:
            return next((kind for name, kind in _STREAMS.items() if compound.exists(name)), None)
    except (OSError, ValueError, IndexError):  # a damaged directory
        return None
