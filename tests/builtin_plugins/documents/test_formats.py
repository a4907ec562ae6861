"""Every built-in parser reads real documents: what is kept, in which order, on which page."""

from __future__ import annotations

import datetime
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docx
import pytest
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls

from builtin_plugins.documents.archives.archive import MAX_UNPACKED_BYTES
from builtin_plugins.documents.blocks import Block, UnparsableDocument, parsed_text
from builtin_plugins.documents.cleaning import clean, pieces
from builtin_plugins.documents.detection import detect_media_type
from builtin_plugins.documents.markup import from_html, from_markdown
from builtin_plugins.documents.office import from_docx, from_pptx, from_xlsx, ooxml
from builtin_plugins.documents.pdf import from_pdf
from builtin_plugins.documents.text import from_csv, from_json, from_text
from tests.builtin_plugins.documents.sample_documents import (
    add_member,
    billion_laughs,
    pdf,
    prose,
    rewrite,
    scanned_pdf,
    slide_with_table,
    slides,
    word,
    workbook,
)


def write(folder: Path, content: str | bytes) -> Path:
    """Write a nameless file."""
    path = folder / "blob"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def html(folder: Path, source: str | bytes) -> list[str]:
    return [text for block in from_html.parse(write(folder, source)) if (text := clean(block.text))]


# PDF


def test_pdf_pages_in_order(tmp_path: Path) -> None:
    blocks = list(from_pdf.parse(pdf(tmp_path / "p", [prose(2), [], prose(1, 7)])))
    assert [block.page for block in blocks] == [1, 2, 3]
    assert "number 1 jumps" in blocks[0].text and blocks[1].text == "" and "number 7" in blocks[2].text


def test_pdf_joins_lines_of_one_sentence(tmp_path: Path) -> None:
    """A line that goes on in small letters is joined; headings and new sentences keep their line."""
    lines = ["Results", "The fox was seen to jump", "over the dog.", "Then it slept.", "a) item"]
    (block,) = from_pdf.parse(pdf(tmp_path / "p", [lines]))
    expected = ["Results", "The fox was seen to jump over the dog.", "Then it slept.", "a) item"]
    assert block.text.splitlines() == expected


def test_encrypted_pdf(tmp_path: Path) -> None:
    with pytest.raises(UnparsableDocument) as caught:
        list(from_pdf.parse(pdf(tmp_path / "p", [prose(1)], password="secret")))
    assert caught.value.code == "encrypted"


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5])
def test_truncated_pdf(tmp_path: Path, share: float) -> None:
    """A PDF that lost its end, or was never one, ends as `corrupt`."""
    data = pdf(tmp_path / "p", [prose(40)] * 3).read_bytes()
    broken = write(tmp_path, data[: 20 + int(len(data) * share)])
    with pytest.raises(UnparsableDocument) as caught:
        list(from_pdf.parse(broken))
    assert caught.value.code == "corrupt"


def test_scanned_pdf_has_empty_pages(tmp_path: Path) -> None:
    blocks = from_pdf.parse(scanned_pdf(tmp_path / "p"))
    assert [(block.text, block.page) for block in blocks] == [("", 1), ("", 2)]


# Word


def fill(document: docx.document.Document) -> None:
    document.add_heading("Report", 1)
    document.add_paragraph("Before the table.")
    table = document.add_table(2, 2)
    for index, value in enumerate(["Name", "Age", "Ann", "31"]):
        table.cell(index // 2, index % 2).text = value
    document.add_paragraph("After\tthe table.")


def test_docx_in_document_order(tmp_path: Path) -> None:
    """Tables stand where they stand in the document, cells separated by tabs."""
    texts = [block.text for block in from_docx.parse(word(tmp_path / "w", fill))]
    assert texts == ["Report", "Before the table.", "Name\tAge\nAnn\t31", "After\tthe table."]


def test_docx_nested_table_and_long_table(tmp_path: Path) -> None:
    """A table in a cell is part of that cell; a long table comes in portions without losing a row."""

    def build(document: docx.document.Document) -> None:
        inner = document.add_table(1, 1).cell(0, 0).add_table(1, 2)
        inner.cell(0, 0).text, inner.cell(0, 1).text = "in", "side"
        table = document.add_table(120, 1)
        for row, cell in enumerate(table.columns[0].cells):
            cell.text = f"row {row}"

    first, *rest = (block.text for block in from_docx.parse(word(tmp_path / "w", build)))
    assert first == "in side"
    assert "\n".join(rest).splitlines() == [f"row {row}" for row in range(120)]


def test_docx_portions_of_a_table_begin_with_the_names_of_its_columns(tmp_path: Path) -> None:
    def build(document: docx.document.Document) -> None:
        table = document.add_table(41, 2)
        for number, row in enumerate(table.rows):
            cells = (f"pump {number}", f"{number} bar") if number else ("Name", "Most")
            row.cells[0].text, row.cells[1].text = cells

    texts = [block.text.splitlines() for block in from_docx.parse(word(tmp_path / "w", build))]
    assert len(texts) > 1 and all(lines[0] == "Name\tMost" and len(lines) > 1 for lines in texts)
    assert [line for lines in texts for line in lines[1:]] == [f"pump {n}\t{n} bar" for n in range(1, 41)]


def test_docx_tracked_changes_text_boxes_and_content_controls(tmp_path: Path) -> None:
    """Inserted text is kept, deleted text is not; a text box is read once; controls are read."""
    word_ns = nsdecls("w")
    control = (
        f"<w:sdt {word_ns}><w:sdtContent><w:p><w:r><w:t>control</w:t></w:r></w:p></w:sdtContent></w:sdt>"
    )
    changed = (
        f"<w:p {word_ns}><w:ins><w:r><w:t>new</w:t></w:r></w:ins>"
        "<w:del><w:r><w:delText>old</w:delText></w:r></w:del>"
        "<w:moveFrom><w:r><w:t>gone</w:t></w:r></w:moveFrom></w:p>"
    )
    box = "<w:txbxContent><w:p><w:r><w:t>box</w:t></w:r></w:p></w:txbxContent>"
    alternate = (
        f'<w:p {word_ns} xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"><w:r>'
        f"<mc:AlternateContent><mc:Choice>{box}</mc:Choice><mc:Fallback>{box}</mc:Fallback>"
        "</mc:AlternateContent></w:r></w:p>"
    )

    def build(document: docx.document.Document) -> None:
        for xml in (control, changed, alternate):
            document.element.body.insert(-1, parse_xml(xml))

    assert [block.text for block in from_docx.parse(word(tmp_path / "w", build))] == ["control", "new", "box"]


def test_docx_comments_headers_and_footers(tmp_path: Path) -> None:
    def build(document: docx.document.Document) -> None:
        paragraph = document.add_paragraph("Body")
        for _ in range(2):
            section = document.add_section()
            section.header.is_linked_to_previous = False
            section.header.paragraphs[0].text = "Manual QM-12, revision 3"
        section.footer.paragraphs[0].text = "Confidential"
        document.add_comment(paragraph.runs, "Ask Ann about this.", author="Bob")

    texts = [block.text for block in from_docx.parse(word(tmp_path / "w", build))]
    assert texts == ["Body", "Ask Ann about this.", "Manual QM-12, revision 3", "Confidential"]


def test_docx_tab_stops_are_not_tabs(tmp_path: Path) -> None:
    def build(document: docx.document.Document) -> None:
        paragraph = document.add_paragraph("x")
        paragraph.paragraph_format.tab_stops.add_tab_stop(914_400)

    assert [block.text for block in from_docx.parse(word(tmp_path / "w", build))] == ["x"]


def test_docx_text_as_the_page_shows_it(tmp_path: Path) -> None:
    """Hidden text is not read, text around an alignment tab stays apart, and fractions keep their bars."""
    math_ns = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
    word_ns = nsdecls("w")

    def run(text: str, value: str) -> str:
        return f'<w:r><w:rPr><w:vanish w:val="{value}"/></w:rPr><w:t>{text}</w:t></w:r>'

    def fraction(above: str, below: str) -> str:
        parts = (f"<m:{name}>{part}</m:{name}>" for name, part in (("num", above), ("den", below)))
        return f"<m:f>{''.join(parts)}</m:f>"

    def said(text: str) -> str:
        return f"<m:r><m:t>{text}</m:t></m:r>"

    nested = fraction(said("a+b"), fraction(said("c"), said("d")))
    shown = (
        f"<w:p {word_ns}>{run('secret', '1')}{run('open', '0')}</w:p>",
        f'<w:p {word_ns}><w:r><w:t>Left</w:t><w:ptab w:alignment="right"/><w:t>Right</w:t></w:r></w:p>',
        f"<w:p {word_ns} {math_ns}><m:oMath>{said('x=2')}{fraction(said('1'), said('2'))}</m:oMath></w:p>",
        f"<w:p {word_ns} {math_ns}><m:oMath>{nested}</m:oMath></w:p>",
    )

    def build(document: docx.document.Document) -> None:
        for xml in shown:
            document.element.body.insert(-1, parse_xml(xml))

    texts = [block.text for block in from_docx.parse(word(tmp_path / "w", build))]
    assert texts == ["open", "Left\tRight", "x=2 1/2", "(a+b)/(c/d)"]


def test_docx_with_macros_and_templates(tmp_path: Path) -> None:
    package = word(tmp_path / "w", fill)
    main = b"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    macro = b"application/vnd.ms-word.document.macroEnabled.main+xml"
    rewrite(package, lambda name, data: data.replace(main, macro))
    assert next(from_docx.parse(package)).text == "Report"


def test_docx_with_entity_bomb(tmp_path: Path) -> None:
    """Nested entities are refused at the declaration, before anything could expand."""
    package = billion_laughs(word(tmp_path / "w", lambda d: d.add_paragraph("LAUGH")), "word/document.xml")
    with pytest.raises(UnparsableDocument, match="document type") as caught:
        list(from_docx.parse(package))
    assert caught.value.code == "corrupt"


def test_docx_with_a_drawing_of_another_program(tmp_path: Path) -> None:
    package = word(tmp_path / "w", lambda d: d.add_paragraph("Drawn."))
    with zipfile.ZipFile(package, "a") as archive:
        declared = '<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "svg11.dtd">'
        archive.writestr("word/media/image1.svg", f"<?xml version='1.0'?>{declared}<svg/>")
    assert next(from_docx.parse(package)).text == "Drawn."


def test_zip_bomb(tmp_path: Path) -> None:
    """A package that would unpack beyond the limit is refused by its directory."""
    package = add_member(word(tmp_path / "w", fill), "word/media/bomb.bin", MAX_UNPACKED_BYTES)
    assert package.stat().st_size < 2_000_000
    with pytest.raises(UnparsableDocument) as caught:
        list(from_docx.parse(package))
    assert caught.value.code == "too_large"


def test_zip_that_lies_about_its_size(tmp_path: Path) -> None:
    """A member that inflates to more than its directory says is `corrupt`, and is not inflated further."""
    package = word(tmp_path / "w", lambda d: d.add_paragraph("y" * 4_000))
    data = package.read_bytes()
    entry = data.rindex(b"word/document.xml") - 46
    lie = data[: entry + 24] + (900).to_bytes(4, "little") + data[entry + 28 :]
    with pytest.raises(UnparsableDocument) as caught:
        list(from_docx.parse(write(tmp_path, lie)))
    assert caught.value.code == "corrupt"


# PowerPoint


def test_pptx_slides_are_pages_in_show_order(tmp_path: Path) -> None:
    """Slides come in the order of the show, notes after their slide, the slide's number left out."""
    show = slides(tmp_path / "s", [("One", "first\nsecond"), ("Two", "third")], notes="say this")
    swap = {b"rId7": b"rId8", b"rId8": b"rId7"}

    def reorder(name: str, data: bytes) -> bytes:
        if name != "ppt/presentation.xml":
            return data
        start, end = data.index(b"<p:sldIdLst"), data.index(b"</p:sldIdLst>")
        return data[:start] + b"".join(_swapped(data[start:end], swap)) + data[end:]

    blocks = [block for block in from_pptx.parse(rewrite(show, reorder)) if block.text]
    pages = {1: ["Two", "third"], 2: ["One", "first", "second", "say this"]}
    assert [(b.page, b.text) for b in blocks] == [(page, t) for page, texts in pages.items() for t in texts]


def _swapped(data: bytes, swap: dict[bytes, bytes]) -> list[bytes]:
    return [swap.get(part, part) for part in data.replace(b'"', b'\0"\0').split(b"\0")]


def test_pptx_table(tmp_path: Path) -> None:
    """A table on a slide becomes tab-separated rows."""
    blocks = list(from_pptx.parse(slide_with_table(tmp_path / "s", [["a", "b"], ["c", "d"]])))
    assert blocks == [Block("", 1), Block("a\tb\nc\td", 1)]


# Excel


def test_xlsx_sheets_are_pages(tmp_path: Path) -> None:
    """A sheet begins with its title, values are written as Excel would read them, empty rows vanish."""
    day = datetime.datetime(2026, 11, 20)
    rows = [["name", "when", "n"], ["Ann", day, 1.5], [None, None, None], ["Bob\nB", None, True]]
    blocks = list(from_xlsx.parse(workbook(tmp_path / "x", {"People": rows, "Empty": []})))
    expected = "name\twhen\tn\nAnn\t2026-11-20\t1.5\nBob B\t\tTrue"
    assert blocks == [Block("People", 1), Block(expected, 1), Block("Empty", 2)]


def test_xlsx_repeats_the_header(tmp_path: Path) -> None:
    """Every portion of a long sheet begins with the header, and no row is lost."""
    rows: list[list[object]] = [["id", "text"], *([n, f"value number {n}"] for n in range(500))]
    texts = [b.text.splitlines() for b in from_xlsx.parse(workbook(tmp_path / "x", {"S": rows}))][1:]
    assert len(texts) > 3
    assert {lines[0] for lines in texts} == {"id\ttext"}
    assert [line.split("\t")[0] for lines in texts for line in lines[1:]] == [str(n) for n in range(500)]


def test_xlsx_with_absurd_dimensions(tmp_path: Path) -> None:
    """A declared size is not believed, and a row far beyond Excel's last ends as `too_large`."""
    book = workbook(tmp_path / "x", {"S": [["a"], ["b"]]})
    claim = rewrite(book, lambda name, data: data.replace(b'ref="A1:A2"', b'ref="A1:XFD1048576"'))
    assert [block.text for block in from_xlsx.parse(claim)] == ["S", "a\nb"]
    far = rewrite(claim, lambda name, data: data.replace(b'<row r="2"', b'<row r="999999999999"'))
    with pytest.raises(UnparsableDocument) as caught:
        list(from_xlsx.parse(far))
    assert caught.value.code == "too_large"


def test_xlsx_with_entity_bomb(tmp_path: Path) -> None:
    book = workbook(tmp_path / "x", {"S": [["LAUGH"]]})
    with pytest.raises(UnparsableDocument, match="document type"):
        list(from_xlsx.parse(billion_laughs(book, "xl/worksheets/sheet1.xml")))


# HTML


def test_html_keeps_text_and_drops_noise(tmp_path: Path) -> None:
    """Title, headings, paragraphs, lists and tables are kept; scripts, styles and navigation are not."""
    page = """<!doctype html><head><title>My page</title><style>p {color: red}</style>
      <script>if (1 < 2) { alert("</p>") }</script></head>
      <body><nav><ul><li>Home</li></ul></nav><h1>Big
         title</h1><p>Some <b>bold</b> text<br>and a  line.</p><!-- hidden -->
      <ul><li>one</li><li>two <i>too</i></li></ul>
      <table><tr><th>Name</th> <th>Age</th></tr><tr><td>Ann</td><td>31</td></tr></table>
      <pre>  keep
    this</pre><button>Send</button></body>"""
    assert html(tmp_path, page) == [
        "My page",
        "Big title",
        "Some bold text\nand a line.",
        "one\ntwo too",
        "Name\tAge\nAnn\t31",
        "  keep\n    this",
    ]


def test_html_keeps_the_terms_of_a_definition_together(tmp_path: Path) -> None:
    """An option's short and long name stand above what both do, whichever way a page parts them."""
    by_breaks = (
        "<dl><dt><i>-a</i><br/><i>--all</i></dt><dd><p>Take all.</dd><dt>-b</dt><dd>Be<br>brief.</dd></dl>"
    )
    by_terms = "<dl><dt>-a<dt>--all<dd><p>Take all.</p><dt>-b<dd>Be<br>brief.</dl>"
    read = ["-a, --all", "Take all.", "-b\nBe\nbrief."]
    assert html(tmp_path, by_breaks) == html(tmp_path, by_terms) == read


def test_html_keeps_the_entries_of_contents_apart(tmp_path: Path) -> None:
    """Entries without a definition stand in lines of their own, also above one with a list below it."""
    page = "<dl><dt>1. Pumps<dt>2. Valves<dd> <dl><dt>2.1 Small<dt>2.2 Large</dl></dl>Then<br>more."
    assert html(tmp_path, page) == ["1. Pumps\n2. Valves", "2.1 Small\n2.2 Large", "Then\nmore."]


def test_html_that_is_navigation_as_a_whole(tmp_path: Path) -> None:
    assert html(tmp_path, '<body role="navigation"><p>Pumps hum.') == ["Pumps hum."]


def test_html_leaves_out_what_leads_elsewhere(tmp_path: Path) -> None:
    """Links to neighbouring pages and to the paragraph itself are no text, whatever tag they have."""
    page = """<div class="navheader"><div>Prev</div> Next</div><h2>Pumps<a href="#pumps">¶</a></h2>
      <p>They hum.</p><ul role="navigation"><li>Up<ul><li>Home</li></ul></li></ul><p>Softly.</p>"""
    assert html(tmp_path, page) == ["Pumps", "They hum.", "Softly."]


def test_html_entities_and_charsets(tmp_path: Path) -> None:
    """Entities are resolved, UTF-8 wins over a wrong declaration, other declared charsets are used."""
    assert html(tmp_path, "<p>a &amp; b &lt;c&gt; &eacute;&#8364;") == ["a & b <c> é€"]
    assert html(tmp_path, '<meta charset="iso-8859-1"><p>naïve – ok') == ["naïve – ok"]
    russian = '<html><meta charset="windows-1251"><p>Привет, мир'.encode("cp1251")
    assert html(tmp_path, russian) == ["Привет, мир"]
    assert html(tmp_path, '<html><meta charset="no-such"><p>café'.encode("cp1252")) == ["café"]


def test_html_nested_deeply_and_unclosed(tmp_path: Path) -> None:
    assert html(tmp_path, "<div>" * 10_000 + "deep") == ["deep"]


def test_html_without_paragraphs_is_bounded(tmp_path: Path) -> None:
    words = " ".join(f"word{n}" for n in range(60_000))
    blocks = list(from_html.parse(write(tmp_path, "<html><body>" + words)))
    assert max(len(block.text) for block in blocks) < 200_000
    assert "".join("".join(block.text.split()) for block in blocks) == words.replace(" ", "")


def test_html_of_web_components(tmp_path: Path) -> None:
    """A saved page keeps in templates what its components show; other templates are never shown."""
    shadow = '<template shadowrootmode="open"><p>Shown.</p><template><p>Not shown.</p></template></template>'
    source = (
        f"<html><body><my-card>{shadow}</my-card><template><p>Spare.</p></template><p>End.</p></body></html>"
    )
    assert html(tmp_path, source) == ["Shown.", "End."]


# Markdown, text, CSV, JSON


def test_markdown_drops_what_no_reader_sees(tmp_path: Path) -> None:
    """Inline pictures and comments vanish however long they are; the rest stays as written."""
    data = "A" * 100_000
    source = f"# T\n\n![x](data:image/png;base64,{data}) after\n\n<!-- no\nno -->`code`\n"
    text = parsed_text(from_markdown.parse(write(tmp_path, source)))
    assert text.split() == ["#", "T", "![x](", ")", "after", "`code`"]


def test_markdown_never_cuts_inside_a_fence(tmp_path: Path) -> None:
    code = "```\n" + "\n\n".join(f"line {n}" for n in range(1_200)) + "\n```"
    source = "x" * 100 + "\n\n" + code + "\n\nend\n\n" + "more\n\n" * 3_000
    blocks = [block.text for block in from_markdown.parse(write(tmp_path, source))]
    assert len(blocks) > 1
    assert all(block.count("```") % 2 == 0 for block in blocks)


@pytest.mark.parametrize("fence", ["````", "~~~~~"])
def test_markdown_code_within_a_longer_fence(tmp_path: Path, fence: str) -> None:
    """A shorter fence, or one with more behind it, ends no code; comments in code are part of it."""
    code = f"{fence}html\n{fence[:3]}\n<!-- shown -->\n{fence} x\n<!-- too -->\n{fence}{fence[0]}"
    text = parsed_text(from_markdown.parse(write(tmp_path, f"{code}\n<!-- hidden -->end")))
    assert text == f"{code}\nend"


def test_text_is_read_in_pieces_at_blank_lines(tmp_path: Path) -> None:
    source = "\n\n".join(f"Paragraph {n} with a few words." for n in range(5_000))
    blocks = list(from_text.parse(write(tmp_path, source)))
    assert len(blocks) > 3 and max(len(block.text) for block in blocks) <= from_text.PIECE_CHARS
    assert parsed_text(Block(clean(block.text)) for block in blocks) == source


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_text_encodings(tmp_path: Path, codec: str) -> None:
    """Text in each encoding reads the same, and a mark is not text."""
    assert parsed_text(from_text.parse(write(tmp_path, "Größe – 5 µm".encode(codec)))) == "Größe – 5 µm"


def test_text_with_stray_bytes(tmp_path: Path) -> None:
    """Bytes far into a UTF-8 file that are not UTF-8 are read as windows-1252."""
    source = b"x " * 40_000 + "naïve ".encode() + "naïve".encode("cp1252")
    assert parsed_text(from_text.parse(write(tmp_path, source))).endswith("naïve naïve")


def test_text_that_begins_like_a_picture(tmp_path: Path) -> None:
    path = write(tmp_path, "GIF89a and its loops\n\nThe format is from 1989.\n")
    assert detect_media_type(path, "gif.txt") == "text/plain"


def test_docx_parts_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = []

    def texts(archive: zipfile.ZipFile, part: str, *label: Any) -> Iterator[str]:
        read.append(part)
        return ooxml.texts(archive, part, *label)

    def build(document: docx.document.Document) -> None:
        header = document.sections[0].header
        header.paragraphs[0].text = "Manual QM-12"
        for number in range(3):
            document.part.rels.add_relationship(RELATIONSHIP_TYPE.HEADER, header.part, f"rId{number + 100}")

    monkeypatch.setattr(from_docx, "texts", texts)
    assert "Manual QM-12" in [block.text for block in from_docx.parse(word(tmp_path / "w", build))]
    assert len(read) == len({*read}) > 1


def test_csv_rows_are_records(tmp_path: Path) -> None:
    """Rows become `header: value`, quotes and foreign delimiters are understood, empty cells left out."""
    source = 'name;note;age\r\nAnn;"likes; semicolons";31\r\nBob;;40;extra\r\n\r\n'
    texts = [block.text for block in from_csv.parse(write(tmp_path, source))]
    assert texts == ["name: Ann\nnote: likes; semicolons\nage: 31", "name: Bob\nage: 40\ncolumn 4: extra"]


def test_csv_without_header_and_header_alone(tmp_path: Path) -> None:
    assert [b.text for b in from_csv.parse(write(tmp_path, "1,x\n2,y\n"))] == [
        "column 1: 1\ncolumn 2: x",
        "column 1: 2\ncolumn 2: y",
    ]
    assert [b.text for b in from_csv.parse(write(tmp_path, "a,b\n"))] == ["a\nb"]
    assert list(from_csv.parse(write(tmp_path, ""))) == []


def test_csv_long_line(tmp_path: Path) -> None:
    """A line of 10 MB is read; one beyond the limit ends as `too_large`, an open quote as `corrupt`."""
    (block,) = from_csv.parse(write(tmp_path, "a,b\n1," + "x" * 10_000_000))
    assert len(block.text) == 10_000_000 + len("a: 1\nb: ")
    with pytest.raises(UnparsableDocument) as caught:
        list(from_csv.parse(write(tmp_path, "a,b\n1," + "x" * from_csv.MAX_FIELD_CHARS)))
    assert caught.value.code == "too_large"
    with pytest.raises(UnparsableDocument) as caught:
        list(from_csv.parse(write(tmp_path, 'a,b\n"1' + ",x\n" * (from_csv.MAX_FIELD_CHARS // 2))))
    assert caught.value.code == "corrupt"


def test_json_paths(tmp_path: Path) -> None:
    """Values become `path: value` with their own spelling, records become blocks."""
    value = '{"id": 1.50, "ok": true, "items": [{"n": "a"}, {"n": null}], "last": 12345678901234567890}'
    texts = [block.text for block in from_json.parse(write(tmp_path, value))]
    assert texts == ["id: 1.50\nok: true", "items[0].n: a\nitems[1].n: null", "last: 12345678901234567890"]
    records = [block.text for block in from_json.parse(write(tmp_path, '[{"a": 1, "b": 2}, {"a": 3}, "x"]'))]
    assert records == ["[0].a: 1\n[0].b: 2", "[1].a: 3", "[2]: x"]


def test_json_nested_deeply(tmp_path: Path) -> None:
    """A hundred thousand brackets end as `too_deep`, not in a crash."""
    with pytest.raises(UnparsableDocument) as caught:
        list(from_json.parse(write(tmp_path, "[" * 100_000 + "]" * 100_000)))
    assert caught.value.code == "too_deep" and "Flatten it" in caught.value.detail


def test_json_limits_and_errors(tmp_path: Path) -> None:
    """JSON beyond the limit is refused, damaged JSON is `corrupt`, a huge number is only text."""
    assert [b.text for b in from_json.parse(write(tmp_path, "[" + "9" * 10_000 + "]"))] == [
        "[0]: " + "9" * 10_000
    ]
    for source, code in (('{"a": ', "corrupt"), ("[" + " " * from_json.MAX_JSON_CHARS + "]", "too_large")):
        with pytest.raises(UnparsableDocument) as caught:
            list(from_json.parse(write(tmp_path, source)))
        assert caught.value.code == code


def test_json_lines(tmp_path: Path) -> None:
    """Each line is a record."""
    source = "\n".join(json.dumps({"n": n}) for n in range(3)) + "\n\n"
    assert [block.text for block in from_json.parse_lines(write(tmp_path, source))] == [
        "n: 0",
        "n: 1",
        "n: 2",
    ]


# Cleaning


def test_clean_leaves_only_what_can_be_stored() -> None:
    assert clean("\r\n  a\x00b\r\nc\rd\ud800e\x1b\u2028f \n\n") == "  ab\nc\nd\ufffde\nf"


def test_pieces_lose_nothing() -> None:
    """Cutting long text keeps every character and the limit."""
    text = "word " * 1_000 + "x" * 5_000 + "\n\n" + "y z\n" * 500
    cut = list(pieces(text, 300))
    assert "".join(cut) == text and max(map(len, cut)) <= 300


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (r'1,"He said \"moor, here\" twice",9', 'He said "moor, here" twice'),
        (r'1,"C:\berths\",9', "C:\\berths\\"),
        (r'1,"a ""quoted"" C:\",9', 'a "quoted" C:\\'),
    ],
)
def test_csv_with_backslashes(tmp_path: Path, row: str, expected: str) -> None:
    """Spark and MySQL write one before a quote within quotes; elsewhere it is a character like any other."""
    (block,) = from_csv.parse(write(tmp_path, f'Number,"Net\nremark",Fee\n{row}\n'))
    assert block.text == f"Number: 1\nNet remark: {expected}\nFee: 9"


def embed(path: Path, name: str, content: bytes) -> Path:
    """A document in which another one is inserted between two paragraphs."""

    def change(member: str, data: bytes) -> bytes:
        if member == "word/document.xml":
            names = b'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
            return data.replace(b"</w:p>", b'</w:p><w:altChunk %b r:id="rId77"/>' % names, 1)
        if member == "word/_rels/document.xml.rels":
            kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/aFChunk"
            one = f'<Relationship Id="rId77" Type="{kind}" Target="{name}"/></Relationships>'
            return data.replace(b"</Relationships>", one.encode())
        return data

    def fill(document: docx.document.Document) -> None:
        document.add_paragraph("Before.")
        document.add_paragraph("After.")

    rewrite(word(path, fill), change)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(f"word/{name}", content)
    return path


INSERTED = "<!DOCTYPE html><html><body><p>High water at nine.</p></body></html>"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.html", INSERTED.encode()),
        ("a.mht", f"MIME-Version: 1.0\nContent-Type: text/html\n\n{INSERTED}".encode()),
        ("a.rtf", b"{\\rtf1 High water at nine.}"),
        ("a.txt", b"High water at nine."),
    ],
)
def test_docx_with_another_document_in_it(tmp_path: Path, name: str, content: bytes) -> None:
    blocks = from_docx.parse(embed(tmp_path / "a.docx", name, content))
    assert [clean(block.text) for block in blocks] == ["Before.", "High water at nine.", "After."]


def test_docx_with_a_page_that_nothing_reads(tmp_path: Path) -> None:
    path = word(tmp_path / "a.docx", lambda document: document.add_paragraph("Before."))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("customXml/page.xml", INSERTED)
    assert [block.text for block in from_docx.parse(path)] == ["Before."]
