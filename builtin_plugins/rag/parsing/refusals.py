"""Why a file is refused, if its first bytes tell more than that no parser reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from builtin_plugins.rag.parsing.archive import directory_bytes

_ZIP: Final = b"PK\x03\x04"
_COMPOUND: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
# Stream names of Word, Excel and PowerPoint in the directory of a compound file.
_OLD_OFFICE: Final = tuple(name.encode("utf-16-le") for name in ("WordDocument", "Workbook", "PowerPoint"))
_LOCKED: Final = "EncryptedPackage".encode("utf-16-le")
_LOOKED_AT: Final = 1024 * 1024

CUT: Final = (
    "The file is damaged: it begins like a ZIP archive or an Office document, but its end is missing. It "
    "may have been cut off in transit; send the complete file."
)
OLD: Final = (
    "Word, Excel and PowerPoint files in the formats from before 2007 (.doc, .xls, .ppt) cannot be read. "
    "Save the file as "
    ".docx, .xlsx, .pptx or PDF and send that."
)
LOCKED: Final = "The document is protected by a password. Remove the password and send it again."


def why_refused(path: Path) -> str | None:
    """What to tell the sender of a file without a media type; None if there is nothing more to say."""
    with path.open("rb") as file:
        head = file.read(len(_COMPOUND))
        if head.startswith(_ZIP) and directory_bytes(file) is None:
            return CUT
        if head != _COMPOUND:
            return None
        file.seek(0, 2)
        size = file.tell()
        for start in {0, max(0, size - _LOOKED_AT)}:  # the directory may be at either end
            file.seek(start)
            part = file.read(_LOOKED_AT)
            if _LOCKED in part:
                return LOCKED
            if any(name in part for name in _OLD_OFFICE):
                return OLD
    return None
