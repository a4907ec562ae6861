"""Why a file is refused, if its first bytes tell more than that no parser reads it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import BinaryIO, Final

from builtin_plugins.documents.archives.archive import APPLE_PART, directory_bytes
from builtin_plugins.documents.text.encoding import is_ebcdic, is_unsure

_ZIP: Final = b"PK\x03\x04"
_ARCHIVES: Final = (b"7z\xbc\xaf\x27\x1c", b"Rar!\x1a\x07")
_COMPOUND: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
# Stream names of Word, Excel and PowerPoint in the directory of a compound file. That of Excel 5 and 95 is
# short, so the rest of its entry is compared, too: zeros up to 64 bytes, and the name's size.
_OLD_OFFICE: Final = re.compile(
    b"|".join(name.encode("utf-16-le") for name in ("WordDocument", "Workbook", "PowerPoint"))
    + b"|"
    + "Book".encode("utf-16-le").ljust(64, b"\0")
    + rb"\x0a\0",
    re.IGNORECASE,
)
_LOCKED: Final = "EncryptedPackage".encode("utf-16-le")
_BINARY_BOOK: Final = b"xl/workbook.bin"
_LOOKED_AT: Final = 1024 * 1024
_TEXT_BYTES: Final = 65_536
# ISO/IEC 14496-12: the size of the first box, its type, and the file's main brand.
_HEIF: Final = re.compile(rb"\0.{3}ftyp(?:hei[cmsx]|hev[cmsx]|mif[12]|msf1|avi[fs])", re.DOTALL)

CUT: Final = (
    "The file is damaged: it begins like a ZIP archive or an Office document, but its end is missing. It "
    "may have been cut off in transit; send the complete file."
)
OLD: Final = (
    "Word, Excel and PowerPoint files in the formats from before 2007 (.doc, .xls, .ppt) cannot be read "
    "here. Save the file as .docx, .xlsx, .pptx or PDF and send that, or have the server's operator turn on "
    "the plugin old_office (pip install 'platform-kernel[old-office]')."
)
BINARY: Final = (
    "Binary Excel workbooks (.xlsb) cannot be read here. Save the file as .xlsx and send that, or have the "
    "server's operator turn on the plugin old_office (pip install 'platform-kernel[old-office]')."
)
HEIC: Final = (
    "Pictures in HEIC and AVIF cannot be read. Export the picture as JPEG or PNG and send that; on an "
    "iPhone, Settings, Camera, Formats, “Most Compatible” takes new ones as JPEG."
)
APPLE: Final = (
    "Documents of Pages, Numbers and Keynote cannot be read. Export the document as PDF, or as .docx, .xlsx "
    "or .pptx, and send that."
)
ARCHIVE: Final = "7z and RAR archives cannot be read. Pack the files as .zip or .tar.gz and send that."
EBCDIC: Final = (
    "Text in EBCDIC, the encoding of mainframes, cannot be read. Convert it to UTF-8 and send the new file."
)
UNSURE: Final = (
    "The encoding of this short text cannot be told for sure. Save it as UTF-8 and send the new file, or "
    "send it in one archive with longer texts in the same encoding."
)
LOCKED: Final = "The document is protected by a password. Remove the password and send it again."


def why_refused(path: Path) -> str | None:
    """What to tell the sender of a file without a media type; None if there is nothing more to say."""
    with path.open("rb") as file:
        head = file.read(len(_COMPOUND))
        if head.startswith(_ZIP):
            return _why_zip(file)
        if head.startswith(_ARCHIVES):
            return ARCHIVE
        if head != _COMPOUND:
            start = head + file.read(_TEXT_BYTES)
            if _HEIF.match(start):
                return HEIC
            if is_ebcdic(start):
                return EBCDIC
            return UNSURE if is_unsure(start) else None
        file.seek(0, 2)
        size = file.tell()
        for at in {0, max(0, size - _LOOKED_AT)}:  # the directory may be at either end
            file.seek(at)
            part = file.read(_LOOKED_AT)
            if _LOCKED in part:
                return LOCKED
            if _OLD_OFFICE.search(part):
                return OLD
    return None


def _why_zip(file: BinaryIO) -> str | None:
    if directory_bytes(file) is None:
        return CUT
    file.seek(max(0, file.seek(0, 2) - _LOOKED_AT))
    end = file.read()
    if APPLE_PART.encode() in end:
        return APPLE
    return BINARY if _BINARY_BOOK in end else None
