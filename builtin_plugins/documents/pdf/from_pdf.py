"""PDF through PDFium: one block per page, lines joined where a sentence visibly continues."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice, takewhile
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pypdfium2
from pypdfium2 import raw

from builtin_plugins.documents.blocks import Block, Heading, UnparsableDocument
from builtin_plugins.documents.images.ocr import Recognizer, begin_page
from builtin_plugins.documents.pdf.accents import with_accents
from builtin_plugins.documents.pdf.attachments import names_in
from builtin_plugins.documents.pdf.forms import briefly, filled_in
from builtin_plugins.documents.pdf.headings import HeadingReader, is_of_outline
from builtin_plugins.documents.pdf.pdf_properties import note_pdf_properties
from builtin_plugins.documents.pdf.powers import Written, with_powers, written
from builtin_plugins.documents.pdf.rtl import read_lines
from builtin_plugins.documents.pdf.tables import Arranged, TableReader
from builtin_plugins.documents.pdf.unspaced import joined

# PDFium marks a hyphen that splits a word at the end of a line with U+FFFE (U+0002 in older releases).
_CUT_WORD: Final = re.compile("[\ufffe\x02]\n?")
_CUT_HERE: Final = re.compile("[\ufffe\x02](?!\r?\n)")
# A small letter continues the line before, unless that line ended a sentence or the letter is a list number.
_CONTINUED: Final = re.compile(r"(?<=[^\s.!?:;•]) ?\n(?=[a-zß-öø-ÿα-ωа-яё](?![.)]))")
_DOTS_PER_INCH: Final = 200
_MOST_PIXELS: Final = 3_500  # of the longer side: a page may claim any size
_LONGEST_STAMP: Final = 120
"""Characters: a page with more text has a text layer, such as a scan that was already recognized."""
_WHOLE_PAGE: Final = 0.85
"""The share of a page that pictures must cover to make it a scan, in one piece or in strips."""
_MOST_STRIPS: Final = 1_000
_PICTURE_DEPTH: Final = 3
_MOST_NAMES: Final = 1_000
_MOST_PIECES: Final = 12  # of a table's row
_PAGE_SECONDS: Final = 2
"""For loading one page, in which a drawing may draw itself without end: PDFium makes 200 MB a second."""
_BYTES_PER_SECOND: Final = 50_000
"""A larger file has that much longer: a map of a million lines loads for seconds, and takes megabytes."""
_ROW: Final = "\x1f"  # white space to regular expressions; never in PDFium's text
_LIGATURE: Final = re.compile("[\ufb00-\ufb06]")


def parse(path: Path) -> Iterator[Block]:
    """Yield one block per page, empty for a page without text, then the names of the files inside, which
    become separate documents (`attached`). Pages that are pictures, even with a small stamp of text, are read
    by tesseract if it is installed, else marked as unread.

    Raises `UnparsableDocument`: `encrypted` when a password is needed, `corrupt` when the file or one of its
    pages cannot be loaded (a document silently read in part would give wrong answers), `no_ocr` when it is
    all pictures and tesseract is not installed.
    """
    document = _open(path)
    recognizer, tables, headings = Recognizer(), TableReader(), HeadingReader(document)
    seconds = _PAGE_SECONDS + path.stat().st_size // _BYTES_PER_SECOND
    has_text = has_pictures = False
    try:
        note_pdf_properties(document, path)
        for index in range(len(document)):
            begin_page(index + 1, len(document))
            page = _read(document, index, tables, seconds, headings)
            filled, text = page.filled, _reflow(page.text)
            is_picture = _is_picture(document, index, text)
            if is_picture and recognizer.is_installed:
                if not has_pictures:
                    recognizer.expect(_pictures_ahead(document, index, recognizer.most_pages, seconds))
                filled, text = [*text.splitlines(), *filled], _recognized(document, index, recognizer)
                filled = [line for line in filled if not _says(text, line)]
            text = "\n".join(filter(None, (text, *filled)))
            has_pictures = has_pictures or is_picture
            has_text = has_text or bool(text.strip())
            can_read = recognizer.is_installed
            above = _headings_in(text, page.headings)
            yield Block(text, index + 1, is_picture and not can_read, is_picture and can_read, headings=above)
        if names := names_in(document, path, _MOST_NAMES):
            has_text = True
            yield Block("Attachments: " + ", ".join(names), len(document))
        if has_pictures and not has_text and not recognizer.is_installed:
            raise UnparsableDocument("no_ocr", "tesseract is not installed")
    finally:
        document.close()


def _open(path: Path) -> pypdfium2.PdfDocument:
    try:
        document = pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        if raw.FPDF_GetLastError() in (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY):
            raise UnparsableDocument("encrypted", str(error)) from error
        raise UnparsableDocument("corrupt", str(error)) from error
    with suppress(pypdfium2.PdfiumError), briefly():  # a broken form only costs its values
        document.init_forms()
        if document.formenv is not None and len(document):
            document[0].close()  # PDFium reads the fields on loading the first page
    return document


class _Page(NamedTuple):
    """The text of a page, the values filled into its form, and its headings."""

    text: str
    filled: list[str]
    headings: Sequence[Heading]


def _read(
    document: pypdfium2.PdfDocument,
    index: int,
    tables: TableReader,
    seconds: int,
    headings: HeadingReader | None = None,
) -> _Page:
    """Read a page, which loads within so many seconds."""
    try:
        with briefly(seconds):
            page = document[index]
        text_page = page.get_textpage()
    except pypdfium2.PdfiumError as error:
        raise UnparsableDocument("corrupt", f"page {index + 1}: {error}") from error
    whole = str(text_page.get_text_range())
    text, powers = _lines(text_page, whole)
    lines = _CUT_HERE.sub(r"\g<0>\n", text).splitlines()
    layout = tables.read(page, text_page, lines)
    text = with_powers(read_lines(text_page, _arranged(text, lines, layout)), powers)
    text = with_accents(text_page, text)  # last: the others look for PDFium's words
    filled = list(filled_in(document, page, text_page))
    within = {" ".join(lines[at].split()) for places, _ in layout.grids for at in places}
    above = headings.read(index, text_page, whole, within.union(layout.rows)) if headings else ()
    text_page.close()
    page.close()
    return _Page(text, filled, above)


def _headings_in(text: str, headings: Sequence[Heading]) -> list[Heading]:
    """Those headings that are lines of the text, as their places in it are known, and before them those that
    only the outline names.
    """
    lines = {" ".join(line.split()): line for line in text.splitlines()} if headings else {}
    return [
        heading._replace(text=lines.get(heading.text, heading.text))
        for heading in headings
        if heading.text in lines or is_of_outline(heading)
    ]


def _lines(text_page: pypdfium2.PdfTextPage, whole: str) -> Written:
    """The text inside the page, and its powers. PDFium's bounded text loses the line breaks of rotated text;
    then the `whole` text is taken, provided that none of it is outside the page.
    """
    text = str(text_page.get_text_bounded())
    reading = written(text_page, whole)
    is_better = len(reading.text) < len(whole) or text.count("\n") < reading.text.count("\n")
    is_same = is_better and "".join(text.split()) == "".join(whole.split())
    return reading if is_same else reading._replace(text=text)


def _arranged(text: str, lines: Sequence[str], layout: Arranged) -> str:
    """The text with its columns one after the other, and its table rows with tabs between the cells, in marks
    that keep `_reflow` from joining them.
    """
    if not any(layout):
        return text
    grids = {at: table if at == places[0] else "" for places, table in layout.grids for at in places}
    rows = {_letters(key): deque(ones) for key, ones in layout.rows.items()}
    letters = [*map(_letters, lines)] if rows else []
    ordered = sorted(rows)
    keys = [" ".join(line.split()) for line in lines]
    visible = set(keys)  # some may be outside the page
    columns = {rows[0]: (rows, text) for rows, text in layout.columns if visible.issuperset(rows)}
    within = {key for rows, _ in columns.values() for key in rows}
    pieces: list[str] = []
    end = 0  # of a row's lines
    for at, (line, key) in enumerate(zip(lines, keys, strict=True)):
        if at in grids:
            pieces.extend(filter(None, [_marked(grids[at]) if grids[at] else ""]))
        elif key in columns:
            pieces.append(columns.pop(key)[1])
        elif key not in within and at >= end:
            end = at + _count_lines(letters, at, rows, ordered)
            row = rows["".join(letters[at:end])].popleft() if end > at else line
            pieces.extend([] if row is None else [_marked(row) if end > at else line])
    return "\n".join(pieces)


def _letters(line: str) -> str:
    return "".join(line.split())


def _count_lines(
    lines: Sequence[str], start: int, rows: Mapping[str, Sequence[object]], ordered: Sequence[str]
) -> int:
    """How many lines make a row of a table, by their letters: PDFium may break it; 0 if they make none.
    `ordered` are the rows that there were, sorted.
    """
    text = ""
    for count, line in enumerate(islice(lines, start, start + _MOST_PIECES), start=1):
        text += line
        if not line:
            break
        if rows.get(text):
            return count
        at = bisect_left(ordered, text)
        if at == len(ordered) or not ordered[at].startswith(text):
            break
    return 0


def _marked(row: str) -> str:
    return "\n".join(f"{_ROW}{line}{_ROW}" for line in row.split("\n"))


def _is_picture(document: pypdfium2.PdfDocument, index: int, text: str) -> bool:
    """Whether a page needs recognition: it shows something but has no text, or a picture covers it all and
    there is hardly more text than the stamp of a scanner or a fax.
    """
    if len(text) > _LONGEST_STAMP:
        return False
    page = document[index]
    try:
        if not text.strip():
            return next(page.get_objects(max_depth=1), None) is not None
        pictures = page.get_objects(filter=(raw.FPDF_PAGEOBJ_IMAGE,), max_depth=_PICTURE_DEPTH)
        # A photo is often drawn several times in the same place: with a shadow, or as its own mask.
        places = {tuple(map(round, picture.get_bounds())) for picture in islice(pictures, _MOST_STRIPS)}
        covered = sum(map(_area, places))
        return covered > _WHOLE_PAGE * _area(page.get_bbox())
    finally:
        page.close()


def _area(box: tuple[float, ...]) -> float:
    left, bottom, right, top = box
    return abs(right - left) * abs(top - bottom)


def _pictures_ahead(document: pypdfium2.PdfDocument, index: int, most: int, seconds: int) -> int:
    """How many consecutive pages are pictures from this one on, at most `most` + 1."""
    ahead = range(index, min(len(document), index + most + 1))
    if len(ahead) <= most:
        return len(ahead)
    tables = TableReader()
    pictures = (_is_picture(document, page, _read(document, page, tables, seconds).text) for page in ahead)
    return sum(takewhile(bool, pictures))


def _recognized(document: pypdfium2.PdfDocument, index: int, recognizer: Recognizer) -> str:
    """The text that tesseract recognizes on a page."""
    page = document[index]
    try:
        longest = max(page.get_width(), page.get_height(), 1.0)
        bitmap = page.render(scale=min(_DOTS_PER_INCH / 72, _MOST_PIXELS / longest), grayscale=True)
        pixels = bitmap.to_numpy()
        head = f"P5 {pixels.shape[1]} {pixels.shape[0]} 255\n".encode()
        return recognizer.read(head + np.ascontiguousarray(pixels.reshape(pixels.shape[:2])).tobytes())
    except pypdfium2.PdfiumError as error:
        raise UnparsableDocument("corrupt", f"page {index + 1}: {error}") from error
    finally:
        page.close()


def _says(text: str, line: str) -> bool:
    """Whether a text contains a line: a recognized page may already show the filled-in values."""
    return f" {' '.join(line.split())} " in f" {' '.join(text.split())} "


def _reflow(text: str) -> str:
    text = _CUT_WORD.sub("", text.replace("\r\n", "\n"))
    text = _LIGATURE.sub(lambda ligature: unicodedata.normalize("NFKC", ligature[0]), text)
    return joined(_CONTINUED.sub(" ", text), _ROW).replace(_ROW, "")
