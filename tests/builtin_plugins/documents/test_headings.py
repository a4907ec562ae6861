"""Headings of documents, and the sections that passages are in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextvars import copy_context
from pathlib import Path

import docx
import pptx
import pytest
from pptx.util import Inches
from reportlab.pdfgen.canvas import Canvas

from builtin_plugins.documents.blocks import Block, Heading
from builtin_plugins.documents.child import parse_into
from builtin_plugins.documents.chunking import chunk, section_at
from builtin_plugins.documents.protocol import read_blocks
from tests.builtin_plugins.documents.sample_documents import open_document

PROSE = "The company sold more aircraft than in the year before, and paid its debt. " * 3
TOLD = [
    (1, "Item 7. Management's discussion"),
    (2, "Liquidity"),
    (0, "We have cash for the next twelve months, and more from our banks if we need it, as we told."),
    (2, "Results of operations"),
    (0, "Revenues rose by a tenth, as airlines ordered more aircraft than in the years of the pandemic."),
    (1, "Item 8. Financial statements"),
    (0, "The statements were audited by a firm from Chicago, which has no reserve against any of them."),
]
SECTIONS = {
    "We have cash": "Item 7. Management's discussion › Liquidity",
    "Revenues rose": "Item 7. Management's discussion › Results of operations",
    "The statements": "Item 8. Financial statements",
}
FONTS = {0: ("Times-Roman", 10), 1: ("Times-Bold", 14), 2: ("Times-Bold", 10)}


def pdf_of(path: Path, fonts: dict[int, tuple[str, float]], *, outline: bool = False) -> None:
    canvas = Canvas(str(path), pagesize=(600, 800))
    height = 780
    for at, (level, text) in enumerate(TOLD):
        if outline and level:
            canvas.bookmarkPage(str(at))
            canvas.addOutlineEntry(text.partition(". ")[2] or text, str(at), level - 1)
        canvas.setFont(*fonts[level])
        height -= 30
        canvas.drawString(50, height, text)
        if not level:
            for line in range(3):
                canvas.drawString(50, height - 14 * (line + 1), PROSE[:90])
            height -= 60
    canvas.save()


def by_size(path: Path) -> None:
    pdf_of(path, FONTS)


def by_weight(path: Path) -> None:
    """Chapters are numbered, and no larger than their parts."""
    pdf_of(path, {0: ("Helvetica", 10), 1: ("Helvetica-Bold", 10), 2: ("Helvetica-Bold", 10)})


def by_outline(path: Path) -> None:
    """All type is the same; numbers stand on the page only."""
    pdf_of(path, dict.fromkeys(range(3), ("Times-Roman", 10)), outline=True)


def markdown(path: Path) -> None:
    lines = (f"{'#' * level} {text}" if level else f"{text}\n{PROSE}" for level, text in TOLD)
    path.write_text("```\n# no heading\n```\n\n" + "\n\n".join(lines))


def html(path: Path) -> None:
    told = (
        f"<h{level}>{text}</h{level}>" if level else f"<p>{text}</p><p>{PROSE}</p>" for level, text in TOLD
    )
    path.write_text(f"<html><body>{''.join(told)}</body></html>")


def word(path: Path) -> None:
    document = docx.Document()
    for level, text in TOLD:
        if level:
            document.add_heading(text, level)
        else:
            document.add_paragraph(text)
            document.add_paragraph(PROSE)
    document.save(str(path))


def open_text(path: Path) -> None:
    told = (
        f'<text:h text:outline-level="{level}">{text}</text:h>'
        if level
        else f"<text:p>{text}</text:p><text:p>{PROSE}</text:p>"
        for level, text in TOLD
    )
    open_document(path, "".join(told))


def rich_text(path: Path) -> None:
    styles = "".join(f"{{\\s{level}\\outlinelevel{level - 1} heading {level};}}" for level in (1, 2))
    told = (
        f"\\pard\\plain\\s{level}\\keepn\\outlinelevel{level - 1} {{\\b {text}}}\\par "
        if level
        else f"\\pard\\plain\\s0\\outlinelevel9 {text}\\par {PROSE}\\par "
        for level, text in TOLD
    )
    path.write_text(f"{{\\rtf1\\ansi{{\\stylesheet{{\\s0 Normal;}}{styles}}}{''.join(told)}}}")


WRITERS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "larger": ("pdf.from_pdf", by_size),
    "bold": ("pdf.from_pdf", by_weight),
    "outline": ("pdf.from_pdf", by_outline),
    "markdown": ("markup.from_markdown", markdown),
    "html": ("markup.from_html", html),
    "word": ("office.from_docx", word),
    "open": ("office.from_odt", open_text),
    "rich": ("office.from_rtf", rich_text),
}


def parsed(path: Path, parser: str) -> list[Block]:
    """What a parser's process hands to the platform."""
    sink = path.with_suffix(".sink")
    target = f"builtin_plugins.documents.{parser}" + ("" if ":" in parser else ":parse")
    copy_context().run(parse_into, str(path), target, str(sink), 1_000_000, [])
    return list(read_blocks(sink))


@pytest.mark.parametrize(("parser", "write"), WRITERS.values(), ids=WRITERS)
def test_the_headings_above_a_text(tmp_path: Path, parser: str, write: Callable[[Path], None]) -> None:
    write(tmp_path / "a")
    blocks = parsed(tmp_path / "a", parser)
    for size in (200, 4_000):
        found = list(chunk(blocks, size, 0))
        for text, section in SECTIONS.items():
            passage = next(one for one in found if text in one.text)
            assert section_at(passage.text.index(text), passage.sections) == section


def impress(path: Path, titles: Sequence[str]) -> None:
    frame = '<drawing:frame presentation:class="{}"><text:p>{}</text:p></drawing:frame>'
    shown = (
        frame.format("outline", PROSE) + frame.format("title", title)
        if title
        else f"<drawing:frame><text:p>Untitled</text:p><text:p>{PROSE}</text:p></drawing:frame>"
        for title in titles
    )
    open_document(path, "".join(f"<drawing:page>{page}</drawing:page>" for page in shown))


def powerpoint(path: Path, titles: Sequence[str]) -> None:
    show = pptx.Presentation()
    for title in titles:
        slide = show.slides.add_slide(show.slide_layouts[1 if title else 6])
        if title:
            slide.placeholders[1].text = PROSE
            slide.shapes.title.text = title
        else:
            box = slide.shapes.add_textbox(Inches(1), Inches(1), Inches(6), Inches(3))
            box.text_frame.text = f"Untitled\n{PROSE}"
    show.save(str(path))


@pytest.mark.parametrize(
    ("parser", "write"), [("office.from_pptx:parse", powerpoint), ("office.from_odt:parse_slides", impress)]
)
def test_slides(tmp_path: Path, parser: str, write: Callable[[Path, Sequence[str]], None]) -> None:
    """Each is a section by its title, wherever that stands on it, or else by its first line."""
    write(tmp_path / "a", ("Moorings", "", "Fees"))
    blocks = parsed(tmp_path / "a", parser)
    assert [one.text for block in blocks for one in block.headings] == ["Moorings", "Untitled", "Fees"]
    assert [found.sections[-1][1] for found in chunk(blocks, 300, 0)] == ["Moorings", "Untitled", "Fees"]


def test_what_is_no_heading(tmp_path: Path) -> None:
    """Running headers, bold words within a line, and bold rows of tables."""
    canvas = Canvas(str(tmp_path / "a"), pagesize=(600, 800))
    for page in range(3):
        canvas.setFont("Times-Bold", 14)
        canvas.drawString(50, 780, f"Annual report, page {page}")
        for line in range(20):
            canvas.setFont("Times-Roman", 10)
            canvas.drawString(50, 740 - 14 * line, PROSE[:80])
        canvas.setFont("Times-Bold", 10)
        canvas.drawString(50, 400, "Note:")
        canvas.setFont("Times-Roman", 10)
        canvas.drawString(90, 400, "it has been audited")
        for line in range(3):
            canvas.setFont("Times-Bold", 10)
            canvas.drawString(50, 300 - 14 * line, f"Total of part {line}")
            canvas.drawRightString(300, 300 - 14 * line, f"{line}7,000")
        canvas.showPage()
    canvas.save()
    found = [one.text for block in parsed(tmp_path / "a", "pdf.from_pdf") for one in block.headings]
    assert found == ["Annual report, page 0"]


def blocks_with_headings() -> Iterator[Block]:
    for number in range(50):
        text = f"Part {number}\n\n{PROSE}"
        yield Block(text, None, headings=[Heading(1 + (number % 5 > 0), f"Part {number}", 0)])


def test_headings_below_each_other() -> None:
    """A passage that begins with several is in the lowest section."""
    headings = [Heading(1, "Moorings", 0), Heading(2, "Yachts", 12), Heading(2, "Ferries", 70)]
    text = f"# Moorings\n\n## Yachts\n\n{PROSE[:47]}\n## Ferries\n\n{PROSE}"
    (found,) = chunk([Block(text, headings=headings)], 4_000, 0)
    assert found.sections == ((0, "Moorings › Yachts"), (70, "Moorings › Ferries"))


@pytest.mark.parametrize("size", [50, 300, 1500])
def test_sections_of_passages(size: int) -> None:
    """Each begins where its heading does; a passage that begins within one knows it."""
    for one in chunk(blocks_with_headings(), size, size // 10):
        starts = [start for start, _ in one.sections]
        assert starts == sorted(set(starts)) and starts[0] == 0
        for start, section in one.sections[1:]:
            assert one.text[start:].startswith(section.rpartition(" › ")[2])
        number = int(one.sections[0][1].rpartition("Part ")[2])
        assert one.sections[0][1] == (
            f"Part {number // 5 * 5} › Part {number}" if number % 5 else f"Part {number}"
        )


def test_headings_of_markdown_stand_where_they_are(tmp_path: Path) -> None:
    """White space around them changes nothing, and those in comments are none."""
    text = "Before.\n\n<!--\n# Draft\n-->\n\nAfter.\n\n## Terms  \n\nPaid.\n\n  ## Returns\n\nSent back.\n"
    (tmp_path / "a").write_text(text)
    (block,) = parsed(tmp_path / "a", "markup.from_markdown")
    assert [(one.text, block.text[one.start :].split()[1]) for one in block.headings] == [
        ("Terms", "Terms"),
        ("Returns", "Returns"),
    ]


def test_running_headers_that_alternate(tmp_path: Path) -> None:
    canvas = Canvas(str(tmp_path / "a"), pagesize=(600, 800))
    for page in range(6):
        canvas.setFont("Times-Bold", 14)
        canvas.drawString(50, 780, f"{page} Northern Seas Holding" if page % 2 else f"Annual report {page}")
        canvas.drawString(50, 750, f"Chapter {'ABCDEF'[page]}")
        canvas.setFont("Times-Roman", 10)
        for line in range(20):
            canvas.drawString(50, 720 - 14 * line, PROSE[:80])
        canvas.showPage()
    canvas.save()
    found = [one.text for block in parsed(tmp_path / "a", "pdf.from_pdf") for one in block.headings]
    assert [one for one in found if "Chapter" not in one] == ["Annual report 0", "1 Northern Seas Holding"]
    assert len(found) == 8


def test_lines_that_only_end_like_an_entry_of_the_outline(tmp_path: Path) -> None:
    """The end of a paragraph, or a row of a table, above the heading itself."""
    canvas = Canvas(str(tmp_path / "a"), pagesize=(600, 800))
    canvas.setFont("Times-Roman", 10)
    for at, title in enumerate(("Liquidity", "Revenue", "Outlook")):
        canvas.bookmarkPage(str(at))
        canvas.addOutlineEntry(title, str(at), 0)
    told = ("sources of liquidity.", "Revenue 100 90", "2.1 Liquidity", "Revenue", "Market outlook")
    for at, line in enumerate(told):
        canvas.drawString(50, 780 - 40 * at, line)
        canvas.drawString(50, 766 - 40 * at, PROSE[:90])
    canvas.save()
    found = [one.text for block in parsed(tmp_path / "a", "pdf.from_pdf") for one in block.headings]
    assert found == ["2.1 Liquidity", "Revenue", "Market outlook"]
