"""Superscript that follows a number: 10 to the 6th is not 106, whatever program wrote it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import docx
import pptx
import pytest
from docx.oxml import parse_xml
from docx.oxml.ns import qn
from pptx.util import Inches
from reportlab.pdfgen import canvas

from builtin_plugins.documents.blocks import Block
from builtin_plugins.documents.markup import from_html
from builtin_plugins.documents.office import from_docx, from_odt, from_pptx, from_rtf
from builtin_plugins.documents.pdf import from_pdf
from tests.builtin_plugins.documents.sample_documents import package

PARTS = [
    ("There are 10", ""),
    ("6", "raised"),
    (" bacteria, 10", ""),
    ("-3", "raised"),
    (" mol and 5 m", ""),
    ("2", "raised"),
    (", the 1", ""),
    ("st", "raised"),
    (" of 3", ""),
    ("4", "lowered"),
]
EXPECTED = "There are 10^6 bacteria, 10^-3 mol and 5 m2, the 1st of 34"
MATH = "http://schemas.openxmlformats.org/officeDocument/2006/math"
OFFICE = "urn:oasis:names:tc:opendocument:xmlns:"


def page(folder: Path) -> Path:
    tags = {"": "{}", "raised": "<sup>{}</sup>", "lowered": "<sub>{}</sub>"}
    text = "".join(tags[how].format(part) for part, how in PARTS)
    (folder / "a.html").write_text(f"<html><body><p>{text}</p></body></html>")
    return folder / "a.html"


def word(folder: Path) -> Path:
    document = docx.Document()
    paragraph = document.add_paragraph()
    for text, how in PARTS:
        font = paragraph.add_run(text).font
        if how == "raised":
            font.superscript = True
        elif how:
            font.subscript = True
    document.save(str(folder / "a.docx"))
    return folder / "a.docx"


def word_of_libreoffice(folder: Path) -> Path:
    document = docx.Document()
    paragraph = document.add_paragraph()
    for text, how in PARTS:
        properties = paragraph.add_run(text)._r.get_or_add_rPr()
        if how:
            place = properties.makeelement(qn("w:position"), {qn("w:val"): "8" if how == "raised" else "-4"})
            properties.append(place)
    document.save(str(folder / "b.docx"))
    return folder / "b.docx"


def slide(folder: Path) -> Path:
    show = pptx.Presentation()
    shape = show.slides.add_slide(show.slide_layouts[6]).shapes.add_textbox(0, 0, Inches(5), Inches(1))
    for text, how in PARTS:
        run: Any = shape.text_frame.paragraphs[0].add_run()
        run.text = text
        if how:
            run.font._element.set("baseline", "30000" if how == "raised" else "-25000")
    show.save(str(folder / "a.pptx"))
    return folder / "a.pptx"


def open_document(folder: Path) -> Path:
    styles = "".join(
        f'<style:style style:name="{name}" style:family="text">'
        f'<style:text-properties style:text-position="{place}"/></style:style>'
        for name, place in (("T1", "super 58%"), ("T2", "33% 80%"), ("T3", "sub 58%"), ("T4", "-8% 80%"))
    )
    named = {"raised": ("T1", "T2"), "lowered": ("T3", "T4")}
    text = "".join(
        f'<text:span text:style-name="{named[how][number // 2 % 2]}">{part}</text:span>' if how else part
        for number, (part, how) in enumerate(PARTS)
    )
    names = " ".join(f'xmlns:{name}="{OFFICE}{name}:1.0"' for name in ("office", "text", "style"))
    content = (
        f'<?xml version="1.0"?><office:document-content {names}><office:automatic-styles>{styles}'
        f"</office:automatic-styles><office:body><office:text><text:p>{text}</text:p></office:text>"
        "</office:body></office:document-content>"
    )
    kind = "application/vnd.oasis.opendocument.text"
    return package(folder / "a.odt", {"mimetype": kind, "content.xml": content})


def rich_text(folder: Path) -> Path:
    groups = {"": "{}", "raised": "{{\\fs13\\super\\lang9 {}}}", "lowered": "{{\\sub {}}}"}
    text = "".join(groups[how].format(part) for part, how in PARTS)
    text = text.replace("\\super\\lang9 -", "{\\*\\updnprop8000}\\up8\\loch\n-")
    sheet = "{\\stylesheet{\\s1\\super mark;}}"
    (folder / "a.rtf").write_text(f"{{\\rtf1\\ansi {sheet}\\super0 {text}\\par}}")
    return folder / "a.rtf"


def printed(folder: Path) -> Path:
    """A page that also has a number which only looks like a power."""
    page = canvas.Canvas(str(folder / "a.pdf"))
    line = page.beginText(50, 700)
    for text, how in PARTS:
        line.setFont("Helvetica", 7 if how else 12)
        line.setRise({"raised": 4, "lowered": -2}.get(how, 0))
        line.textOut(text)
    page.drawText(line)
    page.drawString(50, 600, "In room 106 are 42 chairs.")
    page.save()
    return folder / "a.pdf"


@pytest.mark.parametrize(
    ("write", "parse"),
    [
        (page, from_html.parse),
        (word, from_docx.parse),
        (word_of_libreoffice, from_docx.parse),
        (slide, from_pptx.parse),
        (open_document, from_odt.parse),
        (rich_text, from_rtf.parse),
        (printed, from_pdf.parse),
    ],
)
def test_superscript_is_no_digit_of_the_number_before(
    tmp_path: Path, write: Callable[[Path], Path], parse: Callable[[Path], list[Block]]
) -> None:
    read = "\n".join(block.text for block in parse(write(tmp_path))).strip()
    assert read.split("\n")[0] == EXPECTED
    assert "room 10^6" not in read


def test_powers_in_a_formula_of_word(tmp_path: Path) -> None:
    document = docx.Document()
    formula = (
        f'<m:oMath xmlns:m="{MATH}"><m:sSup><m:e><m:r><m:t>10</m:t></m:r></m:e>'
        "<m:sup><m:r><m:t>6</m:t></m:r></m:sup></m:sSup></m:oMath>"
    )
    document.add_paragraph("Cells: ")._p.append(parse_xml(formula))
    document.save(str(tmp_path / "a.docx"))
    assert [block.text for block in from_docx.parse(tmp_path / "a.docx")] == ["Cells: 10^6"]
