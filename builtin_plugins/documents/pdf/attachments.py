"""Files inside a PDF: a portfolio's documents, attachments of the document, and those pinned to a page."""

from __future__ import annotations

import mmap
import re
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

import pypdfium2
from pypdfium2 import raw

from builtin_plugins.documents.blocks import UnparsableDocument
from builtin_plugins.documents.extraction import ExtractedFile

_MOST: Final = 2_000  # annotations of a page
_PINNED: Final = b"FileAttachment"
_PACKED: Final = re.compile(rb"/ObjStm\b.{0,1000}?stream\r?\n", re.DOTALL)
"""The start of objects that are packed together (ISO 32000-1, 7.5.7)."""
_UNPACKED_BYTES: Final = 4 * 1024 * 1024


def extract(path: Path) -> Iterator[ExtractedFile]:
    """Yield the files inside, which become separate documents. Raises `UnparsableDocument`."""
    try:
        document = pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        raise UnparsableDocument("corrupt", str(error)) from error
    try:
        for number, attachment in enumerate(_attachments(document, path), 1):
            yield ExtractedFile(_name(attachment, number), _content(attachment))
    finally:
        document.close()


def names_in(document: pypdfium2.PdfDocument, path: Path, most: int) -> list[str]:
    """The names of the first files inside the document that is open from `path`."""
    attachments = islice(_attachments(document, path), most)
    return [_name(attachment, number) for number, attachment in enumerate(attachments, 1)]


def _attachments(document: pypdfium2.PdfDocument, path: Path) -> Iterator[pypdfium2.PdfAttachment]:
    """Each is valid until the next one."""
    for index in range(document.count_attachments()):
        try:
            yield document.get_attachment(index)
        except pypdfium2.PdfiumError:  # an entry without a file
            continue
    for index in range(len(document) if _may_pin(path) else 0):
        try:
            page = document[index]
        except pypdfium2.PdfiumError:
            continue
        try:
            yield from _pinned(document, page)
        finally:
            page.close()


def _may_pin(path: Path) -> bool:
    """Whether a page may have a file pinned to it: of most documents, no page has to be opened for this."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if content.find(_PINNED) >= 0:
            return True
        for packed in _PACKED.finditer(content):
            unpacking = zlib.decompressobj()
            try:
                stream = unpacking.decompress(
                    content[packed.end() : packed.end() + _UNPACKED_BYTES], _UNPACKED_BYTES
                )
            except zlib.error:  # encrypted, or packed in another way
                return True
            if _PINNED in stream or not unpacking.eof:
                return True
    return False


def _pinned(document: pypdfium2.PdfDocument, page: pypdfium2.PdfPage) -> Iterator[pypdfium2.PdfAttachment]:
    for number in range(min(raw.FPDFPage_GetAnnotCount(page), _MOST)):
        annotation = raw.FPDFPage_GetAnnot(page, number)
        try:
            if raw.FPDFAnnot_GetSubtype(annotation) == raw.FPDF_ANNOT_FILEATTACHMENT and (
                attachment := raw.FPDFAnnot_GetFileAttachment(annotation)
            ):
                yield pypdfium2.PdfAttachment(attachment, document)
        finally:
            raw.FPDFPage_CloseAnnot(annotation)


def _name(attachment: pypdfium2.PdfAttachment, number: int) -> str:
    try:
        name = " ".join(str(attachment.get_name()).split())[:255]
    except pypdfium2.PdfiumError:
        name = ""
    return name or f"attachment {number}"


def _content(attachment: pypdfium2.PdfAttachment) -> Iterator[bytes]:
    """The bytes, once; what can't be unpacked raises while it is written, and counts as damaged."""
    yield bytes(attachment.get_data())
