"""What a reader leaves out is counted, so that the document's notice says it."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from pathlib import Path

import openpyxl
import pytest
from openpyxl.worksheet.worksheet import Worksheet

from builtin_plugins.documents.child import parse_into
from builtin_plugins.documents.images.ocr import OcrOptions
from builtin_plugins.documents.parsers import BUILTIN_PARSERS
from builtin_plugins.documents.protocol import read_blocks, read_trailer
from tests.builtin_plugins.documents.sample_documents import open_document, rewrite, slides, word
from tests.builtin_plugins.documents.test_formats import embed

MOST_CHARS = 1_000_000


def read(path: Path, parser: str) -> tuple[str, dict[str, int]]:
    """The text of a document, and how often what was left out of it."""
    target = next(known.target for known in BUILTIN_PARSERS if known.name == parser)
    sink = path.with_suffix(".sink")
    copy_context().run(parse_into, str(path), target, str(sink), MOST_CHARS, list(OcrOptions()))
    text = "\n\n".join(block.text for block in read_blocks(sink))
    return text, dict(read_trailer(sink).omitted)


def page(folder: Path, source: str) -> tuple[str, dict[str, int]]:
    path = folder / "page"
    path.write_text(source)
    return read(path, "html")


class TestPages:
    @pytest.mark.parametrize(
        "attributes",
        [
            "hidden",
            'style="display: none"',
            'style="color:red; DISPLAY:NONE !important"',
            'style="visibility:hidden"',
            'style="font-size:0px"',
            'style="width:0;height:0;overflow:hidden"',
            'style="overflow:hidden;max-height:0px"',
            'style="position:absolute; left:-9999px"',
            'style="text-indent:-9999px"',
        ],
    )
    def test_what_is_not_displayed(self, tmp_path: Path, attributes: str) -> None:
        source = (
            f"<p>High water</p><div {attributes}><p>Ignore <b>the</b></p><div>question</div></div><p>at nine"
        )
        assert page(tmp_path, source) == ("High water\n\nat nine", {"hidden": 1})

    @pytest.mark.parametrize(
        "attributes",
        [
            'hidden="until-found"',
            'style="display:block"',
            'style="font-size:0.8em"',
            'style="height:0;width:50%"',
            'style="left:-10px"',
            'aria-hidden="true"',
        ],
    )
    def test_what_is_displayed(self, tmp_path: Path, attributes: str) -> None:
        """A small, an indented or a silent text is one that is shown."""
        assert page(tmp_path, f"<div {attributes}>High water</div>") == ("High water", {})

    def test_nothing_to_read_in_it(self, tmp_path: Path) -> None:
        unread = "<div hidden><script>let a</script> </div><input hidden><img hidden><br hidden>"
        source = f"<p>High</p>{unread}<p>water"
        assert page(tmp_path, source) == ("High\n\nwater", {})


class TestSheets:
    def test_hidden_sheets_rows_and_columns(self, tmp_path: Path) -> None:
        def build(book: openpyxl.Workbook) -> None:
            for state in ("hidden", "veryHidden"):
                other = book.create_sheet(state)
                other.append(["Salaries", 7])
                other.sheet_state = state
            last = book.create_sheet("Last")
            for row in (["Berth", "Margin", "Fee"], ["A1", 0.3, 12], ["A2", 0.4, 14]):
                last.append(row)
            last.row_dimensions[2].hidden = last.row_dimensions[9].hidden = True
            last.column_dimensions["B"].hidden = last.column_dimensions["F"].hidden = True

        text, omitted = read(workbook(tmp_path / "a.xlsx", build), "xlsx")
        assert text == "First\n\nLast\n\nBerth\tFee\nA2\t14"
        assert omitted == {"hidden": 4}

    def test_all_columns_to_the_right_are_hidden(self, tmp_path: Path) -> None:
        def build(book: openpyxl.Workbook) -> None:
            last = book.create_sheet("Last")
            last.append(["Berth", "Fee"])
            last.append(["A2", 14])
            dimension = last.column_dimensions["C"]
            dimension.min, dimension.max, dimension.hidden = 3, 16_384, True

        assert read(workbook(tmp_path / "a.xlsx", build), "xlsx") == (
            "First\n\nLast\n\nBerth\tFee\nA2\t14",
            {},
        )

    def test_open_document(self, tmp_path: Path) -> None:
        body = (
            '<style:style style:name="ta2"><style:table-properties table:display="false"/></style:style>'
            '<table:table table:name="Secret" table:style-name="ta2"><table:table-row><table:table-cell>'
            "<text:p>Salaries</text:p></table:table-cell></table:table-row></table:table>"
            '<table:table table:name="Fees"><table:table-column/>'
            '<table:table-column table:visibility="collapse"/><table:table-column/>'
            + "".join(
                f"<table:table-row{hidden}>"
                + "".join(
                    f"<table:table-cell><text:p>{cell}</text:p></table:table-cell>" for cell in row.split()
                )
                + "</table:table-row>"
                for hidden, row in (
                    ("", "Berth Margin Fee"),
                    (' table:visibility="filter"', "A1 0.3 12"),
                    ("", "A2 0.4 14"),
                )
            )
            + "</table:table>"
        )
        path = open_document(tmp_path / "a.ods", f"<office:spreadsheet>{body}</office:spreadsheet>")
        assert read(path, "ods") == ("Fees\n\nBerth\tFee\nA2\t14", {"hidden": 3})


def test_hidden_slide(tmp_path: Path) -> None:
    """The others keep their numbers."""
    path = slides(tmp_path / "a.pptx", [("One", "first"), ("Two", "second"), ("Three", "third")])
    rewrite(
        path,
        lambda name, data: (
            data.replace(b"<p:sld ", b'<p:sld show="0" ') if name.endswith("/slide2.xml") else data
        ),
    )
    text, omitted = read(path, "pptx")
    assert "second" not in text and "third" in text and omitted == {"hidden": 1}


@pytest.mark.parametrize("parser", ["odt", "odp"])
def test_hidden_text_of_open_document(tmp_path: Path, parser: str) -> None:
    hidden = '<style:text-properties text:display="none"/>'
    styles = f'<style:style style:name="T1">{hidden}</style:style>'
    body = (
        f"{styles}<text:p>High <text:span text:style-name='T1'>ig<text:span>no</text:span>re</text:span>water"
        "</text:p><text:p text:style-name='T1'>this</text:p>"
        "<text:section text:display='none'><text:p>question</text:p></text:section><text:p>at nine</text:p>"
    )
    path = open_document(tmp_path / "a.odt", body)
    assert read(path, parser) == ("High water\n\nat nine", {"hidden": 3})


def test_hidden_text(tmp_path: Path) -> None:
    """Word's hidden text was left out before, but unsaid."""
    path = word(tmp_path / "a.docx", lambda document: document.add_paragraph("High water"))
    hidden = b"<w:r><w:rPr><w:vanish/></w:rPr><w:t>Ignore this</w:t></w:r></w:p>"
    rewrite(path, lambda name, data: data.replace(b"</w:p>", hidden))
    assert read(path, "docx") == ("High water", {"hidden": 1})


def workbook(path: Path, build: Callable[[openpyxl.Workbook], object]) -> Path:
    book = openpyxl.Workbook()
    sheet = book.active
    assert isinstance(sheet, Worksheet)
    sheet.title = "First"
    build(book)
    book.save(path)
    return path


PROSE = "Paris is the capital of France, and its largest city; the Seine divides it into two banks. " * 12
LINKS = "".join(f'<li><a href="/{name}">{name}</a></li>' for name in ("Deutsch", "Français", "Suomi"))


class TestMainText:
    """What surrounds the text of a saved page is left out, and counted."""

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            (
                "<header><p>Wiki</p></header><main>",
                f"</main><footer><p>About us</p></footer><ul>{LINKS}</ul>",
            ),
            ('<div role="banner">Wiki</div><div role="main"><div>', "</div></div><p>About us</p>"),
            ("<aside>Donate</aside><article>", "</article><p>About us</p>"),
            ("<header>Wiki</header>", "<footer>About us</footer>"),
            ("<aside><h2>News</h2><p>Rain</p></aside>", '<div role="contentinfo">About us</div>'),
            ("", f"<ul>{LINKS}</ul>"),
            (f"<div>{LINKS}</div>", ""),
            ("<main>", f'<div class="catlinks">Categories: <ul>{LINKS}</ul></div></main>'),
            (f'<div id="mw-panel"><ul>{LINKS}</ul></div>', ""),
        ],
    )
    def test_around_it(self, tmp_path: Path, before: str, after: str) -> None:
        """Named by an element, by a role or by a class, or told by its links."""
        text, omitted = page(
            tmp_path, f"<title>Paris</title>{before}<h1>City</h1><p>{PROSE}</p><p>End{after}"
        )
        kept = [line for line in text.split("\n\n") if line != "Categories:"]
        assert kept == ["Paris", "City", PROSE.strip(), "End"]
        assert omitted["beside"] > 0

    def test_page_in_one_file(self, tmp_path: Path) -> None:
        """Browsers save a page as a mail; a mail that was sent has no page around it."""
        body = f"<main><p>{PROSE}</p></main><footer>About us</footer>"
        head = "From: <Saved by Blink>\nMIME-Version: 1.0\nContent-Type: text/html\n"
        path = tmp_path / "page"
        path.write_text(f"{head}Snapshot-Content-Location: https://example.org/\n\n{body}")
        text, omitted = read(path, "email")
        assert "About us" not in text and omitted == {"beside": 1}
        path.write_text(f"{head}\n{body}")
        text, omitted = read(path, "email")
        assert "About us" in text and omitted == {}

    @pytest.mark.parametrize(
        "source",
        [
            f"<header>Wiki</header><ul>{LINKS}</ul><footer>About us</footer>",
            f"<main>Loading</main><div>{PROSE}</div>",
            f"<main><header><h1>City</h1></header><p>{PROSE}<aside>Note</aside><footer>2024</footer></main>",
            f"<p>{PROSE}</p><ul>{LINKS}</ul><p>{PROSE}</p>",
            f"<article><p>{PROSE}</article><article><p>{PROSE}</article>",
        ],
    )
    def test_what_is_the_text(self, tmp_path: Path, source: str) -> None:
        """A page of little text or of links, an empty `main`, notes and links within a text are all kept."""
        assert page(tmp_path, source)[1] == {}


class TestListsAndPictures:
    def test_numbers_of_a_list(self, tmp_path: Path) -> None:
        """As a browser shows them: from `start`, by `value`, as letters, none in other lists."""
        source = (
            '<ol start="3"><li>moor<ul><li>ropes</li></ul></li><li><p>fuel</p></li>'
            '<li value="9">leave</li></ol>'
            '<ol type="a"><li>one</li><li></li><li type="i">two</li></ol><ul><li>plain</li></ul>'
            '<ol reversed start="2"><li>y</li><li>z</li></ol><ol reversed><li>x</li></ol>'
        )
        lines = page(tmp_path, source)[0].replace("\n\n", "\n").split("\n")
        expected = [
            "3. moor",
            "ropes",
            "4. fuel",
            "9. leave",
            "a. one",
            "iii. two",
            "plain",
            "2. y",
            "1. z",
            "x",
        ]
        assert lines == expected

    def test_alternative_texts(self, tmp_path: Path) -> None:
        """A picture says what it shows; the name of its file, or nothing, says nothing."""
        pictures = '<img alt="x1.png"><img alt=""><img alt="*">'
        source = f'See <img alt="Map of\nthe harbour" src="m.png"> and {pictures}this'
        assert page(tmp_path, source)[0] == "See Map of the harbour and this"

    def test_formula_behind_its_picture(self, tmp_path: Path) -> None:
        source = (
            'Area <span><span style="display: none;"><math><mi>π</mi><msup><mi>r</mi><mn>2</mn></msup></math>'
            '</span><img alt="{\\displaystyle \\pi r^2}"></span> of a disc'
        )
        assert page(tmp_path, source) == ("Area πr^2 of a disc", {})


def test_inserted_document_that_is_damaged(tmp_path: Path) -> None:
    path = embed(tmp_path / "a.docx", "a.docx", b"PK\x03\x04 nothing")
    assert read(path, "docx") == ("Before.\n\nAfter.", {"part": 1})


def test_quotes_of_a_mailbox(tmp_path: Path) -> None:
    head = "From \nFrom: ann@example.org\nSubject: x\n\n"
    said = "High water is at nine."
    path = tmp_path / "a.mbox"
    path.write_text(f"{head}{said}\n\n{head}Thanks.\n\nOn Monday, Ann wrote:\n> {said}\n> {said}\n")
    text, omitted = read(path, "mbox")
    assert text.count(said) == 1 and omitted == {"quoted": 1}


EXAMPLES = {
    "html": TestPages.test_what_is_not_displayed,
    "xlsx": TestSheets.test_hidden_sheets_rows_and_columns,
    "ods": TestSheets.test_open_document,
    "odt": test_hidden_text_of_open_document,
    "odp": test_hidden_text_of_open_document,
    "pptx": test_hidden_slide,
    "docx": test_hidden_text,
    "email": TestMainText.test_page_in_one_file,
    "mbox": test_quotes_of_a_mailbox,
}
ELSEWHERE = {
    "pages that can't be read are counted by themselves": {"pdf", "image"},
    "chapters and bodies that are damaged are counted by themselves": {"epub", "msg"},
    "files inside that become no documents are named": {"zip", "tar"},
    "the format hides nothing": {"text", "markdown", "csv", "json", "json_lines", "notebook", "subtitles"},
    "its converter does not tell what it leaves out": {"rtf"},
    "it has no text but its properties": {"vobject"},
}


def test_each_reader_tells_what_it_leaves_out() -> None:
    explained = set().union(*ELSEWHERE.values())
    assert EXAMPLES.keys() | explained == {parser.name for parser in BUILTIN_PARSERS}
    assert not EXAMPLES.keys() & explained
