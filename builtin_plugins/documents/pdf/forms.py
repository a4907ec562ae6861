"""Values filled into a PDF form, text typed onto its pages, and comments."""

from __future__ import annotations

import ctypes
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import pypdfium2
from pypdfium2 import raw

from builtin_plugins.documents.omissions import omit

_MOST: Final = 2_000  # per page; a map without any form may have more links
_MOST_BYTES: Final = 16 * 1024 * 1024  # of a value
_WRITTEN: Final = frozenset(
    {raw.FPDF_FORMFIELD_TEXTFIELD, raw.FPDF_FORMFIELD_COMBOBOX, raw.FPDF_FORMFIELD_LISTBOX}
)
_TICKED: Final = frozenset({raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON})
# Text typed onto the page, sticky notes, and comments on marked text; not links or a note's window.
_NOTES: Final = frozenset(
    {
        *(raw.FPDF_ANNOT_FREETEXT, raw.FPDF_ANNOT_TEXT, raw.FPDF_ANNOT_HIGHLIGHT, raw.FPDF_ANNOT_UNDERLINE),
        *(raw.FPDF_ANNOT_SQUIGGLY, raw.FPDF_ANNOT_STRIKEOUT, raw.FPDF_ANNOT_CARET, raw.FPDF_ANNOT_LINE),
        *(raw.FPDF_ANNOT_SQUARE, raw.FPDF_ANNOT_CIRCLE, raw.FPDF_ANNOT_POLYGON, raw.FPDF_ANNOT_INK),
    }
)
_UNSEEN: Final = raw.FPDF_ANNOT_FLAG_HIDDEN | raw.FPDF_ANNOT_FLAG_NOVIEW
_FORM_SECONDS: Final = 5  # ten thousand fields take 2 s
_CHECK: Final = "☒"
_LABEL_POINTS: Final = 200.0  # maximum distance of the words beside a box


class _Box(NamedTuple):
    left: float
    bottom: float
    right: float
    top: float


@contextmanager
def briefly(seconds: int = _FORM_SECONDS) -> Iterator[None]:
    """Limit the processor time for reading a form's fields, or a page, within a child process that has a
    limit already: it is killed when this one is exceeded. A process without a limit is never killed.

    PDFium would spend days on a 500-byte file whose fields contain each other.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
    if soft == resource.RLIM_INFINITY:
        yield
        return
    own = int(time.process_time()) + 1 + seconds  # at least so many: the limit is in whole seconds
    resource.setrlimit(resource.RLIMIT_CPU, (min(soft, own), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def filled_in(document: pypdfium2.PdfDocument, page: pypdfium2.PdfPage, text_page: Any) -> Iterator[str]:
    """Yield a line for each value filled into a page, with the label before a field or after a tick."""
    count = min(raw.FPDFPage_GetAnnotCount(page), _MOST)
    annotations = [raw.FPDFPage_GetAnnot(page, number) for number in range(count)]
    try:
        beside = _Labels(text_page, annotations)
        for annotation in annotations:
            if line := _line(document, annotation, beside):
                yield line
    finally:
        for annotation in annotations:
            raw.FPDFPage_CloseAnnot(annotation)


def _line(document: pypdfium2.PdfDocument, annotation: Any, beside: _Labels) -> str:
    kind = raw.FPDFAnnot_GetSubtype(annotation)
    if raw.FPDFAnnot_GetFlags(annotation) & _UNSEEN:
        return ""
    if kind in _NOTES:
        return _string(lambda *into: raw.FPDFAnnot_GetStringValue(annotation, b"Contents", *into)).strip()
    form = document.formenv
    if kind != raw.FPDF_ANNOT_WIDGET or form is None:
        return ""
    field = raw.FPDFAnnot_GetFormFieldType(form, annotation)
    if field in _WRITTEN:
        value = _string(lambda *into: raw.FPDFAnnot_GetFormFieldValue(form, annotation, *into)).strip()
        return f"{beside.words(annotation, before=True)} {value}".strip() if value else ""
    if field in _TICKED and raw.FPDFAnnot_IsChecked(form, annotation):
        return f"{_CHECK} {beside.words(annotation, before=False)}".strip()
    return ""


def _string(read: Callable[..., int]) -> str:
    """Read a string from PDFium, which gives its size first and ends it with two zero bytes. It writes
    nothing into a buffer that is too small.
    """
    size = read(None, 0)
    if size > _MOST_BYTES:
        omit("part")
    if size <= 2 or size > _MOST_BYTES:
        return ""
    buffer = (ctypes.c_ushort * (size // 2))()
    read(buffer, size)
    return bytes(buffer).decode("utf-16-le", "replace").rstrip("\0")


class _Labels:
    """The words beside a page's fields, which label them."""

    def __init__(self, text_page: Any, annotations: Sequence[Any]) -> None:
        self._text_page = text_page
        widgets = (one for one in annotations if raw.FPDFAnnot_GetSubtype(one) == raw.FPDF_ANNOT_WIDGET)
        self._boxes = [box for widget in widgets if (box := _box(widget))]

    def words(self, annotation: Any, *, before: bool) -> str:
        """The words on a field's line, up to the next field; that field's own label may be among them."""
        box = _box(annotation)
        if box is None:
            return ""
        middle = (box.bottom + box.top) / 2
        others = [other for other in self._boxes if other.bottom <= middle <= other.top]
        if before:
            ends = (other.right for other in others if other.right <= box.left)
            left, right = max((box.left - _LABEL_POINTS, *ends)), box.left
        else:
            begins = (other.left for other in others if other.left >= box.right)
            left, right = box.right, min((box.right + _LABEL_POINTS, *begins))
        return " ".join(str(self._text_page.get_text_bounded(left, box.bottom, right, box.top)).split())


def _box(annotation: Any) -> _Box | None:
    """The place of an annotation; None if it has none."""
    box = raw.FS_RECTF()
    has_place = raw.FPDFAnnot_GetRect(annotation, box)
    return _Box(box.left, box.bottom, box.right, box.top) if has_place else None
