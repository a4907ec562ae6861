"""Questions, and files as people have them: made here, so that nobody's papers are in the repository."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from email.message import EmailMessage

import docx
import openpyxl
from PIL import Image, ImageDraw, ImageFilter, ImageFont
from reportlab.pdfgen import canvas


@dataclass(frozen=True)
class Asked:
    """A question; all of `parts` make a right answer, and none means that it is to be refused.

    `wrong` is what would be a false answer.
    """

    text: str
    parts: Sequence[str] = ()
    wrong: str = r"(?!)"


def word(paragraphs: Sequence[tuple[str, str | None]]) -> bytes:
    """A Word document of paragraphs, each with its style."""
    document, file = docx.Document(), io.BytesIO()
    for text, style in paragraphs:
        document.add_paragraph(text, style)
    document.save(file)
    return file.getvalue()


def pdf(*lines: str) -> bytes:
    """A page of lines."""
    file = io.BytesIO()
    page = canvas.Canvas(file)
    text = page.beginText(60, 780)
    for line in lines:
        text.textLine(line)
    page.drawText(text)
    page.save()
    return file.getvalue()


def scan(lines: Sequence[str], kind: str, *, blurred: bool = False) -> bytes:
    """A picture of printed lines, a little askew."""
    sheet = Image.new("L", (1240, 200 + 80 * len(lines)), 245)
    font = ImageFont.load_default(38)
    for number, line in enumerate(lines):
        ImageDraw.Draw(sheet).text((80, 80 + 80 * number), line, fill=20, font=font)
    sheet = sheet.rotate(0.6, fillcolor=245)
    if blurred:
        sheet = sheet.filter(ImageFilter.GaussianBlur(2))
    file = io.BytesIO()
    sheet.save(file, kind)
    return file.getvalue()


def book(title: str, rows: Sequence[Sequence[object]]) -> bytes:
    """A workbook of one sheet."""
    book, file = openpyxl.Workbook(), io.BytesIO()
    sheet = book.active
    sheet.title = title
    for row in rows:
        sheet.append(row)
    book.save(file)
    return file.getvalue()


def mail(subject: str, text: str) -> bytes:
    """A mail to Ada."""
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "booking@example.org", "ada@example.org", subject
    mail["Date"] = "Mon, 04 May 2026 09:00:00 +0200"
    mail.set_content(text)
    return mail.as_bytes()
