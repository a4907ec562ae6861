"""Numbers of headings and list items in Word documents, which Word computes and the text lacks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import docx
import pytest
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls

from builtin_plugins.documents.office import from_docx
from tests.builtin_plugins.documents.sample_documents import rewrite, word

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
        "3": (level(0, "decimal", "%1." * 300_000),),
        "4": (level(0, "russianUpper", "%1)"), level(1, "russianLower", "%2)")),
    }.items()
)
NUMBERING = (
    f'<?xml version="1.0"?><w:numbering {NAMES}>{LISTS}'
    '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
    '<w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num><w:num w:numId="3"><w:abstractNumId w:val="2"/>'
    '</w:num><w:num w:numId="4"><w:abstractNumId w:val="2"/><w:lvlOverride w:ilvl="0"><w:startOverride '
    'w:val="7"/></w:lvlOverride></w:num><w:num w:numId="5"><w:abstractNumId w:val="2"/><w:lvlOverride '
    f'w:ilvl="0">{level(0, "upperLetter", "Part %1:")}</w:lvlOverride></w:num><w:num w:numId="6">'
    '<w:abstractNumId w:val="3"/></w:num><w:num w:numId="7"><w:abstractNumId w:val="4"/></w:num>'
    "</w:numbering>"
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


def test_levels_that_are_passed_over(tmp_path: Path) -> None:
    """A clause right below a chapter begins the section that it lacks: the next section is the second."""
    paragraphs: list[tuple[str, tuple[int, int] | str]] = [
        *(("Scope", "Heading 1"), ("Ferries", (1, 2)), ("Boats", "Heading 2"), ("Barges", (1, 2)))
    ]
    assert texts(tmp_path / "a", paragraphs) == ["I. Scope", "(a) Ferries", "1.2 Boats", "(a) Barges"]


def test_list_with_a_level_of_its_own(tmp_path: Path) -> None:
    assert texts(tmp_path / "a", [("Moor", (3, 0)), ("Sign", (5, 0))]) == ["Step 01: Moor", "Part B: Sign"]


def test_cyrillic_letters(tmp_path: Path) -> None:
    """Russian lists leave out letters that look like others."""
    found = texts(tmp_path / "a", [("x", (7, 0)), *[("x", (7, 1))] * 30])
    assert [text.split()[0] for text in found] == [
        *("А)", "а)", "б)", "в)", "г)", "д)", "е)", "ж)", "з)", "и)", "к)", "л)", "м)", "н)", "о)", "п)"),
        *("р)", "с)", "т)", "у)", "ф)", "х)", "ц)", "ч)", "ш)", "щ)", "ы)", "э)", "ю)", "я)", "аа)"),
    ]


@pytest.mark.parametrize("kind", ["del", "moveFrom"])
def test_paragraphs_that_were_taken_out(tmp_path: Path, kind: str) -> None:
    def build(document: docx.document.Document) -> None:
        for text in ("Moor", "Wait", "Unload"):
            paragraph = document.add_paragraph(text, style="List Number")._p
            if text == "Wait":
                properties = paragraph.get_or_add_pPr()
                properties.append(parse_xml(f"<w:rPr {NAMES}><w:{kind} w:id='1'/></w:rPr>"))
                removed = parse_xml(f"<w:{kind} {NAMES} w:id='2'/>")
                removed.extend(paragraph.r_lst)
                paragraph.append(removed)

    package = word(tmp_path / "a", build)
    assert [block.text for block in from_docx.parse(package)] == ["1. Moor", "2. Unload"]


def test_hostile_numbering(tmp_path: Path) -> None:
    """A huge text of a level is cut, and a style with very many properties is read once."""
    found = texts(tmp_path / "a", [("Moor", (6, 0))] * 2)
    assert [len(text) < 1_000 for text in found] == [True, True]
    package = word(tmp_path / "b", lambda document: [document.add_paragraph("x") for _ in range(2_000)])
    style = f"<w:styles {NAMES}><w:style w:styleId='Odd'>{'<w:pPr/>' * 200_000}</w:style></w:styles>"
    placed = b"<w:p><w:pPr><w:pStyle w:val='Odd'/></w:pPr><w:r>"

    def spoil(name: str, data: bytes) -> bytes:
        return style.encode() if name == "word/styles.xml" else data.replace(b"<w:p><w:r>", placed)

    rewrite(package, spoil)
    assert sum(1 for _ in from_docx.parse(package)) == 2_000


def test_broken_numbering(tmp_path: Path) -> None:
    package = word(tmp_path / "a", lambda document: document.add_paragraph("Moor", style="List Number"))
    assert [block.text for block in from_docx.parse(package)] == ["1. Moor"]
    rewrite(package, lambda name, data: data[:-40] if name == "word/numbering.xml" else data)
    assert [block.text for block in from_docx.parse(package)] == ["Moor"]
