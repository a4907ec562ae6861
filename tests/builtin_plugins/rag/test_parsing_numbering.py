"""Numbers of headings and list items in Word documents, which Word counts and the text does not have."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import docx
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls

from builtin_plugins.rag.parsing import from_docx
from tests.builtin_plugins.rag.documents import rewrite, word

NAMES = nsdecls("w")


def level(at: int, form: str, text: str, more: str = "") -> str:
    return (
        f'<w:lvl w:ilvl="{at}"><w:start w:val="1"/><w:numFmt w:val="{form}"/>{more}'
        f'<w:lvlText w:val="{text}"/></w:lvl>'
    )


LISTS = "".join(
    f'<w:abstractNum w:abstractNumId="{key}">{"".join(levels)}</w:abstractNum>'
    for key, levels in {
        "0": (
            level(0, "upperRoman", "%1.", '<w:pStyle w:val="Heading1"/>'),
            level(1, "decimal", "%1.%2", '<w:pStyle w:val="Heading2"/><w:isLgl/>'),
            level(2, "lowerLetter", "(%3)"),
        ),
        "1": (level(0, "bullet", "\uf0b7"),),
        "2": (level(0, "decimalZero", "Step %1:"),),
    }.items()
)
NUMBERING = (
    f'<?xml version="1.0"?><w:numbering {NAMES}>{LISTS}'
    '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
    '<w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num><w:num w:numId="3"><w:abstractNumId w:val="2"/>'
    '</w:num><w:num w:numId="4"><w:abstractNumId w:val="2"/><w:lvlOverride w:ilvl="0"><w:startOverride '
    'w:val="7"/></w:lvlOverride></w:num></w:numbering>'
)


def texts(path: Path, paragraphs: Sequence[tuple[str, tuple[int, int] | str]]) -> list[str]:
    """The blocks of a document whose paragraphs have a place in a list (number, level), or a style."""

    def build(document: docx.document.Document) -> None:
        for text, place in paragraphs:
            if isinstance(place, str):
                document.add_paragraph(text, style=place)
                continue
            properties = document.add_paragraph(text)._p.get_or_add_pPr()
            number, at = place
            marks = f'<w:numPr {NAMES}><w:ilvl w:val="{at}"/><w:numId w:val="{number}"/></w:numPr>'
            properties.append(parse_xml(marks))
        for name in ("Heading 1", "Heading 2"):
            marks = f'<w:numPr {NAMES}><w:numId w:val="1"/></w:numPr>'
            document.styles[name].element.get_or_add_pPr().append(parse_xml(marks))

    package = word(path, build)
    rewrite(package, lambda name, data: NUMBERING.encode() if name == "word/numbering.xml" else data)
    return [block.text for block in from_docx.parse(package)]


def test_headings_and_clauses(tmp_path: Path) -> None:
    """A clause can be found by its number: of its style or its own, counted on below each heading."""
    paragraphs: list[tuple[str, tuple[int, int] | str]] = [
        ("Scope", "Heading 1"),
        ("Boats", "Heading 2"),
        ("Ferries", (1, 2)),
        ("Barges", (1, 2)),
        ("Berths", "Heading 2"),
        ("Yachts", (1, 2)),
        ("Fees", "Heading 1"),
        ("Rates", "Heading 2"),
        ("Not numbered.", "Normal"),
    ]
    assert texts(tmp_path / "a", paragraphs) == [
        *("I. Scope", "1.1 Boats", "(a) Ferries", "(b) Barges", "1.2 Berths", "(a) Yachts"),
        *("II. Fees", "2.1 Rates", "Not numbered."),
    ]


def test_lists(tmp_path: Path) -> None:
    """A list goes on after other text, and begins where it is told; bullets and empty items show nothing."""
    paragraphs: list[tuple[str, tuple[int, int] | str]] = [
        ("Moor", (3, 0)),
        ("Wait.", "Normal"),
        ("Unload", (3, 0)),
        ("", (3, 0)),
        ("Fenders", (2, 0)),
        ("Sign", (4, 0)),
        ("Leave", (4, 0)),
        ("Of no list", (9, 0)),
        ("Taken out", (0, 0)),
    ]
    assert texts(tmp_path / "a", paragraphs) == [
        *("Step 01: Moor", "Wait.", "Step 02: Unload", "Fenders", "Step 07: Sign", "Step 08: Leave"),
        *("Of no list", "Taken out"),
    ]


def test_broken_numbering(tmp_path: Path) -> None:
    """A broken part costs only the numbers."""
    package = word(tmp_path / "a", lambda document: document.add_paragraph("Moor", style="List Number"))
    assert [block.text for block in from_docx.parse(package)] == ["1. Moor"]
    rewrite(package, lambda name, data: data[:-40] if name == "word/numbering.xml" else data)
    assert [block.text for block in from_docx.parse(package)] == ["Moor"]
