"""Spreadsheets and presentations in OpenDocument formats: sheets and slides are pages."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from builtin_plugins.documents.blocks import UnparsableDocument
from builtin_plugins.documents.detection import detect_media_type
from builtin_plugins.documents.office import from_ods, from_odt
from tests.builtin_plugins.documents.sample_documents import billion_laughs, package

NAMESPACES = (
    " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "text", "table", "presentation")
    )
    + ' xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0"'
)
ENCRYPTED = "<manifest><file-entry><encryption-data/></file-entry></manifest>"


def written(path: Path, kind: str, body: str, manifest: str = "<manifest/>") -> Path:
    content = (
        f'<?xml version="1.0"?><office:document-content {NAMESPACES}><office:body>'
        f"<office:{kind}>{body}</office:{kind}></office:body></office:document-content>"
    )
    mimetype = f"application/vnd.oasis.opendocument.{kind}"
    members = {"mimetype": mimetype, "content.xml": content, "META-INF/manifest.xml": manifest}
    return package(path, {**members})


def cell(text: str, attributes: str = "") -> str:
    return (
        f"<table:table-cell {attributes}>" + f"<text:p>{text}</text:p>" * bool(text) + "</table:table-cell>"
    )


def row(*cells: str, attributes: str = "") -> str:
    return f"<table:table-row {attributes}>{''.join(cells)}</table:table-row>"


def sheet(name: str, *rows: str) -> str:
    return f'<table:table table:name="{name}">{"".join(rows)}</table:table>'


class TestSpreadsheets:
    @pytest.mark.parametrize(
        "between", ["<text:s/>", '<text:s text:c="3"/>', "<text:tab/>", "<text:line-break/>"]
    )
    def test_words_in_a_cell_stay_apart(self, tmp_path: Path, between: str) -> None:
        """Spaces, tabs and line breaks may be elements; formatted parts of a word are not parted."""
        body = sheet("A", row(cell(f"<text:span>on</text:span>e{between}two")))
        path = written(tmp_path / "a", "spreadsheet", body)
        assert [block.text for block in from_ods.parse(path)] == ["A", "one two"]

    def test_names_below_a_merged_cell_and_a_second_table(self, tmp_path: Path) -> None:
        two = 'table:number-columns-spanned="2"'
        covered = "<table:covered-table-cell/>"
        rows = [
            row(cell("Output", 'table:number-columns-spanned="3"'), covered, covered),
            row(cell("Region"), cell("2024", two), covered),
            row(cell(""), cell("Wind"), cell("Sun")),
            row(cell("Lund"), cell("12"), cell("7")),
            row(cell("", 'table:number-columns-repeated="3"'), attributes='table:number-rows-repeated="9"'),
            row(cell("Ferry"), cell("Seats")),
            row(cell("MS Lund"), cell("410")),
        ]
        path = written(tmp_path / "a", "spreadsheet", sheet("A", *rows))
        assert [block.text for block in from_ods.parse(path)] == [
            *("A", "Output", "Region\t2024 Wind\t2024 Sun\nLund\t12\t7", "Ferry\tSeats\nMS Lund\t410")
        ]

    def test_paragraphs_within_paragraphs(self, tmp_path: Path) -> None:
        """No program writes them; what is said once is not read again for each that it is in."""
        body = sheet("A", row(cell("<text:p>" * 40 + "deep" + "</text:p>" * 40)))
        path = written(tmp_path / "a", "spreadsheet", body)
        assert [block.text for block in from_ods.parse(path)] == ["A", "deep"]

    @pytest.mark.parametrize("digits", [3, 7, 5_000])
    def test_numbers_without_end(self, tmp_path: Path, digits: int) -> None:
        """Cells and rows are repeated as often as helps to read them, whatever number a file claims."""
        cells, rows = (f'table:number-{what}-repeated="{"9" * digits}"' for what in ("columns", "rows"))
        body = sheet("A", row(cell("x", cells), attributes=rows))
        texts = [block.text for block in from_ods.parse(written(tmp_path / "a", "spreadsheet", body))]
        assert {line for text in texts[1:] for line in text.split("\n")} == {"\t".join("x" * 256)}
        assert len(texts) < 300

    def test_a_note_beside_one_row_names_no_columns(self, tmp_path: Path) -> None:
        rows = [row(cell("Keeper")), row(cell("Ann")), row(cell("Bob"), cell("sick")), row(cell("Cid"))]
        path = written(tmp_path / "a", "spreadsheet", sheet("A", *rows, row(cell("Dee"))))
        assert [block.text for block in from_ods.parse(path)] == ["A", "Keeper\nAnn\nBob\tsick\nCid\nDee"]

    def test_sheets_are_pages(self, tmp_path: Path) -> None:
        """Values are as they are shown; empty cells keep their place, comments and empty ends are no text."""
        note = "<office:annotation><text:p>a comment</text:p></office:annotation>"
        first = sheet(
            "Prices",
            row(cell("Lamp"), cell("", 'table:number-columns-repeated="2"'), cell("25 %")),
            row(f"<table:table-cell>{note}<text:p>one</text:p><text:p>two</text:p></table:table-cell>"),
            row(
                cell("", 'table:number-columns-repeated="16384"'), attributes='table:number-rows-repeated="9"'
            ),
            row(cell("7", 'table:number-columns-repeated="2"'), attributes='table:number-rows-repeated="2"'),
        )
        path = written(tmp_path / "a", "spreadsheet", first + sheet("Empty") + sheet("Last", row(cell("x"))))
        assert detect_media_type(path) == "application/vnd.oasis.opendocument.spreadsheet"
        assert [(block.page, block.text) for block in from_ods.parse(path)] == [
            (1, "Prices"),
            (1, "Lamp\t\t\t25 %\none two\n7\t7\n7\t7"),
            (2, "Empty"),
            (3, "Last"),
            (3, "x"),
        ]

    def test_names_of_columns_are_repeated(self, tmp_path: Path) -> None:
        rows = [row(cell(f"Keeper {number}"), cell("Oslo")) for number in range(200)]
        body = sheet("Keepers", row(cell("Stock of 2024")), row(cell("Name"), cell("Town")), *rows)
        texts = [block.text for block in from_ods.parse(written(tmp_path / "a", "spreadsheet", body))]
        assert texts[:2] == ["Keepers", "Stock of 2024"] and len(texts) > 4
        assert texts[2].startswith("Name\tTown\nKeeper")
        assert all(text.startswith("Stock of 2024\nName\tTown\nKeeper") for text in texts[3:])
        assert sum(text.count("Keeper ") for text in texts) == 200


def test_slides_are_pages(tmp_path: Path) -> None:
    """Each with its notes; one without text counts too."""
    note = "<presentation:notes><text:p>Say it slowly</text:p></presentation:notes>"
    slides = (
        f"<draw:page><draw:frame><draw:text-box><text:p>Tides</text:p></draw:text-box></draw:frame>{note}"
        "</draw:page><draw:page/><draw:page><text:p>Storms</text:p></draw:page>"
    )
    path = written(tmp_path / "a", "presentation", slides)
    assert detect_media_type(path) == "application/vnd.oasis.opendocument.presentation"
    assert [(block.page, block.text) for block in from_odt.parse_slides(path) if block.text] == [
        (1, "Tides"),
        (1, "Say it slowly"),
        (3, "Storms"),
    ]


@pytest.mark.parametrize(
    ("kind", "parse"), [("spreadsheet", from_ods.parse), ("presentation", from_odt.parse_slides)]
)
def test_passwords_and_bombs(tmp_path: Path, kind: str, parse: object) -> None:
    """Both end with a code that says what can be done."""
    assert callable(parse)
    path = written(tmp_path / "a", kind, sheet("x", row(cell("LAUGH"))), ENCRYPTED)
    with pytest.raises(UnparsableDocument) as caught:
        list(parse(path))
    assert caught.value.code == "encrypted"
    path = billion_laughs(written(tmp_path / "b", kind, sheet("x", row(cell("LAUGH")))), "content.xml")
    with pytest.raises(UnparsableDocument) as caught:
        list(parse(path))
    assert caught.value.code == "corrupt"


def test_macros_with_document_types(tmp_path: Path) -> None:
    """LibreOffice begins macros, dialogs and toolbars with a document type; none of them is read."""
    path = written(tmp_path / "a", "text", "<text:p>With macros.</text:p>")
    with zipfile.ZipFile(path, "a") as archive:
        declared = (
            '<!DOCTYPE library:libraries PUBLIC "-//OpenOffice.org//DTD OfficeDocument 1.0//EN" "l.dtd">'
        )
        archive.writestr("Basic/script-lc.xml", f'<?xml version="1.0"?>{declared}<library:libraries/>')
    assert [block.text for block in from_odt.parse(path)] == ["With macros."]


@pytest.mark.parametrize(("kind", "page"), [("text", None), ("presentation", 1), ("spreadsheet", 1)])
def test_charts(tmp_path: Path, kind: str, page: int | None) -> None:
    """The numbers of a chart, which stand in a part of its own, are a table below its title."""
    odf = "urn:oasis:names:tc:opendocument:xmlns:"
    names = " ".join(f'xmlns:{one}="{odf}{one}:1.0"' for one in ("office", "text", "table", "chart"))
    drawing = f'xmlns:draw="{odf}drawing:1.0" xmlns:xlink="http://www.w3.org/1999/xlink"'
    frame = '<draw:frame><draw:object xlink:href="./Object 1"/></draw:frame>'
    shown = f"<text:p>Sales</text:p><text:p>{frame}</text:p>"
    if kind == "presentation":
        shown = f"<draw:page>{shown}</draw:page>"
    elif kind == "spreadsheet":
        shown = sheet("Sales", f"<table:shapes>{frame}</table:shapes>") + sheet("Empty")
    rows = "".join(
        f"<table:table-row>{''.join(map(cell, one))}</table:table-row>"
        for one in (("", "Boats"), ("May", "12"), ("June", "31"))
    )
    chart = (
        "<chart:chart><chart:title><text:p>Boats by month</text:p></chart:title>"
        f"<table:table><table:table-rows>{rows}</table:table-rows></table:table></chart:chart>"
    )
    content = (
        "<office:document-content {}><office:body><office:{}>{}</office:{}></office:body>"
        "</office:document-content>"
    )
    path = tmp_path / "a"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", f"application/vnd.oasis.opendocument.{kind}")
        archive.writestr("content.xml", content.format(f"{names} {drawing}", kind, shown, kind))
        archive.writestr("Object 1/content.xml", content.format(names, "chart", chart, "chart"))
    parse = {
        "text": from_odt.parse,
        "presentation": from_odt.parse_slides,
        "spreadsheet": from_ods.parse,
    }[kind]
    blocks = [(block.text, block.page) for block in parse(path) if block.text]
    assert blocks[:3] == [("Sales", page), ("Boats by month", page), ("\tBoats\nMay\t12\nJune\t31", page)]
