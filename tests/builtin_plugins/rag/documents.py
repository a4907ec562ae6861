"""Makes small real documents of every kind that the platform reads, and some that were made to do harm."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import docx
import openpyxl
import pptx
from pptx.util import Inches
from reportlab.pdfgen import canvas

SENTENCE = "The quick brown fox number {0} jumps over the lazy dog near the river bank while it rains."


def prose(lines: int, start: int = 0) -> list[str]:
    """Return lines of different text."""
    return [SENTENCE.format(number) for number in range(start, start + lines)]


def pdf(path: Path, pages: Sequence[Sequence[str]], password: str | None = None) -> Path:
    """Write a PDF with a text layer; a page is a list of lines. `password` encrypts it."""
    document = canvas.Canvas(str(path), encrypt=password)
    for lines in pages:
        text = document.beginText(50, 800)
        for line in lines:
            text.textLine(line)
        document.drawText(text)
        document.showPage()
    document.save()
    return path


def scanned_pdf(path: Path, pages: int = 2) -> Path:
    """Write a PDF with drawings and no text."""
    document = canvas.Canvas(str(path))
    for _ in range(pages):
        document.rect(100, 100, 200, 200, fill=1)
        document.showPage()
    document.save()
    return path


def word(path: Path, build: Callable[[docx.document.Document], object]) -> Path:
    """Write a Word document that `build` fills."""
    document = docx.Document()
    build(document)
    document.save(str(path))
    return path


def slides(path: Path, texts: Sequence[tuple[str, str]], notes: str = "") -> Path:
    """Write a presentation of (title, body) slides; `notes` go under the first."""
    show = pptx.Presentation()
    for title, body in texts:
        slide = show.slides.add_slide(show.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = body
    if notes:
        show.slides[0].notes_slide.notes_text_frame.text = notes
    show.save(str(path))
    return path


def slide_with_table(path: Path, rows: Sequence[Sequence[str]]) -> Path:
    """Write a presentation whose only slide is a table."""
    show = pptx.Presentation()
    slide = show.slides.add_slide(show.slide_layouts[6])
    size = (Inches(1), Inches(1), Inches(6), Inches(3))
    table = slide.shapes.add_table(len(rows), len(rows[0]), *size).table
    for row_number, row in enumerate(rows):
        for column, value in enumerate(row):
            table.cell(row_number, column).text = value
    show.save(str(path))
    return path


def workbook(path: Path, sheets: dict[str, Sequence[Sequence[object]]]) -> Path:
    """Write a workbook with the given rows per sheet."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(list(row))
    # openpyxl insists on the suffix, so the bytes are written by us.
    buffer = io.BytesIO()
    book.save(buffer)
    path.write_bytes(buffer.getvalue())
    return path


def rewrite(package: Path, change: Callable[[str, bytes], bytes]) -> Path:
    """Replace the members of a zip by what `change(name, data)` returns."""
    with zipfile.ZipFile(package) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(package, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, change(name, data))
    return package


def add_member(package: Path, name: str, size: int) -> Path:
    """Add a member of `size` zero bytes, which deflate to a thousandth."""
    with (
        zipfile.ZipFile(package, "a", zipfile.ZIP_DEFLATED) as archive,
        archive.open(name, "w", force_zip64=True) as member,
    ):
        for _ in range(size // 1_048_576):
            member.write(bytes(1_048_576))
    return package


def billion_laughs(package: Path, part: str) -> Path:
    """Put nested entities before the root of a part, and a reference to them into its text."""
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    doctype = f'<!DOCTYPE bomb [<!ENTITY l0 "lol">{entities}]>'.encode()

    def change(name: str, data: bytes) -> bytes:
        if name != part:
            return data
        end = data.index(b"?>") + 2 if data.startswith(b"<?xml") else 0
        return data[:end] + doctype + data[end:].replace(b"LAUGH", b"&l9;")

    return rewrite(package, change)
