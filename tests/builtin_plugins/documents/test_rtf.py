"""RTF as word processors write it: rows of tables, notes, boxes and tracked changes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from builtin_plugins.documents.cleaning import clean
from builtin_plugins.documents.detection import RTF, detect_media_type
from builtin_plugins.documents.office import from_rtf
from builtin_plugins.documents.omissions import COUNTED, Omission

ROW = "\\trowd\\cellx2000\\cellx4000\\pard\\intbl {}\\cell {}\\cell\\trowd\\cellx2000\\cellx4000\\row\n"


def texts(folder: Path, body: str) -> list[str]:
    path = folder / "a.rtf"
    path.write_bytes(b"{\\rtf1\\ansi\\uc1 " + body.encode() + b"}")
    return [text for block in from_rtf.parse(path) if (text := clean(block.text))]


def test_rows_have_tabs_and_names(tmp_path: Path) -> None:
    """A table is parted from the text around it, and each portion begins with the names of the columns."""
    rows = "".join(ROW.format(f"Station {number}", f"{number} kW\\par peak") for number in range(100))
    first, *tables, last = texts(
        tmp_path, f"Before a | bar.\\par {ROW.format('Name', 'Power')}{rows}\\pard After.\\par"
    )
    assert (first, last) == ("Before a | bar.", "After.")
    assert len(tables) > 2 and all(table.startswith("Name\tPower\nStation ") for table in tables)
    assert "Station 7\t7 kW peak" in tables[0].split("\n")


def test_row_that_does_not_end(tmp_path: Path) -> None:
    assert texts(tmp_path, "\\trowd\\cellx9 One\\cell Two\\cell\\pard After.") == ["One\tTwo\tAfter."]


@pytest.mark.parametrize(
    "beside",
    [
        "{\\footnote \\pard A note.}",
        "{\\*\\footnote\\ftnalt {\\super 1}A note.}",
        "{\\shp{\\*\\shpinst{\\sp{\\sn x}{\\sv 1}}{\\shptxt \\pard A note.\\par}}}",
        "{\\*\\atnid AB}{\\*\\annotation{\\*\\atndate 1}A note.}",
        "{\\*\\do\\dptxbx{\\dptxbxtext \\pard A note.\\par}}",
        "{\\shp{\\*\\shpinst{\\shptxt A note.}}{\\shprslt{\\*\\do\\dptxbx{\\dptxbxtext A note.}}}}",
        "{\\header \\pard A note.\\par}{\\header \\pard A note.\\par}",
        "{\\footerf \\pard A note.}",
        "{\\footnote A {\\deleted long }note.}",
    ],
)
def test_notes_boxes_and_comments(tmp_path: Path, beside: str) -> None:
    """What stands beside the text is read after it, and does not interrupt its sentence."""
    (text,) = texts(tmp_path, f"The limit is{beside} 85 degrees.\\par The end.\\par")
    assert text.startswith("The limit is 85 degrees.\nThe end.")
    assert text.endswith("A note.") and text.count("note") == 1


@pytest.mark.parametrize("words", ["\\deleted", "\\rtlch\\fcs1 \\af0 \\ltrch\\fcs0 \\deleted\\revauthdel1 "])
def test_deleted_text(tmp_path: Path, words: str) -> None:
    """What a tracked change removed is gone; what is not deleted any more is there."""
    body = f"The rent is {{{words} forty}}{{\\revised fifty}} euro{{\\deleted0 , all told}} \\{{gross\\}}."
    assert texts(tmp_path, body) == ["The rent is fifty euro, all told {gross}."]


def test_many_words_at_the_beginning_of_a_group(tmp_path: Path) -> None:
    """The space between two words is read in one way alone: with two, sixty words would never end."""
    assert texts(tmp_path, "{" + "\\plain " * 60 + "Text.}") == ["Text."]


def test_braces_without_end(tmp_path: Path) -> None:
    """Parsing time grows only in proportion to the number of groups."""
    body = "{\\footnote x" * 20_000 + "}" * 20_000 + "{\\b \\i " * 20_000 + "}" * 20_000
    assert texts(tmp_path, "Text." + body)[0].startswith("Text.")


def test_pictures_in_binary(tmp_path: Path) -> None:
    """A picture may hold bytes that look like the end of a group."""
    (text,) = texts(tmp_path, "Before {\\pict\\bin7 }}{\\row}after{\\footnote x}.")
    assert text.split() == ["Before", "after.", "x"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            "{\\object\\objemb{\\*\\objname A}{\\*\\objdata 00}{\\result {\\pict 00}High water.}}",
            "High water.",
        ),
        ("{\\upr{High {\\b wasser}}{\\*\\ud High {\\b w\\u228 ?sser}}}.", "High wässer."),
    ],
)
def test_what_other_readers_show(tmp_path: Path, body: str, expected: str) -> None:
    """What an object shows in its place, and text that is there with and without Unicode, once."""
    assert texts(tmp_path, body) == [expected]


@pytest.mark.parametrize("before", [b"\xef\xbb\xbf", b"\r\n "])
def test_bytes_before_the_first_brace(tmp_path: Path, before: bytes) -> None:
    path = tmp_path / "a.rtf"
    path.write_bytes(before + b"{\\rtf1 High water at nine.}")
    assert detect_media_type(path) == RTF
    assert "".join(block.text for block in from_rtf.parse(path)).strip() == "High water at nine."


@pytest.mark.parametrize(
    ("code_page", "expected", "written"),
    [
        (
            932,
            "東京の会議は10時からです。",
            r"\'93\'8c\'8b\'9e\'82\'cc\'89\'ef\'8bc\'82\'cd10\'8e\'9e\'82\'a9\'82\'e7\'82\'c5\'82\'b7\'81B",
        ),
        (932, "料金表 {能}", r"\'97\'bf\'8b\'e0\'95\\ \{\'94\\\}"),
        (936, "首尔在也", r"\'ca\'d7\'b6\'fb\'d4\'da\'d2\'b2"),
        (950, "測試功能", r"\'b4\'fa\'b8\'d5\'a5\\\'af\'e0"),
        (1252, "résumés é\\", r"r\'e9sum\'e9s \'e9\\"),
    ],
)
def test_letters_of_two_bytes(tmp_path: Path, code_page: int, expected: str, written: str) -> None:
    """The second byte of an Asian letter may be an ASCII character, even an escaped one."""
    path = tmp_path / "a.rtf"
    path.write_bytes(rf"{{\rtf1\ansi\ansicpg{code_page} {written}\par}}".encode())
    (block,) = from_rtf.parse(path)
    assert clean(block.text) == expected


@pytest.mark.parametrize("after", [b"\0\0junk", b"\n<!-- sent by a scanner -->", b"{not closed"])
def test_bytes_after_the_last_brace(tmp_path: Path, after: bytes) -> None:
    path = tmp_path / "a.rtf"
    path.write_bytes(b"{\\rtf1 High {\\b water} at nine.}" + after)
    assert "".join(block.text for block in from_rtf.parse(path)).strip() == "High water at nine."


@pytest.mark.parametrize(
    "drawing",
    [
        # Word 97 and later, with what older readers show; two boxes; older programs; only the old form.
        "{\\shp{\\*\\shpinst{\\shptxt A note.}}{\\shprslt{\\*\\do\\dptxbx{\\dptxbxtext A note.}\\dpx1}}}",
        "{\\shp{\\*\\shpinst{\\shptxt A note.}}{\\shprslt \\pard A note.\\par}}",
        "{\\shp{\\*\\shpinst\\shpz1}{\\shprslt \\pard A note.\\par}}{\\footnote {\\shptxt Other.}}",
        "{\\shp{\\*\\shpinst\\shpz1}{\\shprslt{\\*\\do\\dptxbx{\\dptxbxtext A note.}}}}{\\shptxt Other.}",
    ],
)
def test_drawings_for_older_readers(tmp_path: Path, drawing: str) -> None:
    (text,) = texts(tmp_path, f"The limit is{drawing} 85 degrees.\\par")
    assert text.startswith("The limit is 85 degrees.") and text.count("A note.") == 1


@pytest.mark.parametrize(
    "number",
    [
        "{\\pntext\\f0 1.\\tab}{\\*\\pn\\pnlvlbody{\\pntxta .}}",
        "{\\listtext\\pard\\plain 1.\\tab}",
        "{\\listtext 1.\\tab}{\\*\\pn{\\pntxta .}}{\\pntext 1.\\tab}",
    ],
)
def test_numbers_of_lists(tmp_path: Path, number: str) -> None:
    assert texts(tmp_path, f"{number}Rinse the filter.\\par") == ["1.\tRinse the filter."]


MATH = "{{\\mmath {{\\*\\moMathPara{{\\*\\moMathParaPr{{\\mjc2}}}}{{\\*\\moMath {}}}}}{{\\mmathPict x}}}}"


@pytest.mark.parametrize(
    "formula, expected",
    [
        (
            "{\\mr\\mscr0\\msty2\\f34 E=m}{\\msSup{\\msSupPr{\\mctrlPr}}{\\me{\\mr c}}{\\msup{\\mr 2}}}",
            "E=mc^2",
        ),
        ("{\\mf{\\mfPr{\\mtype bar}}{\\mnum{\\mr a+b}}{\\mden{\\mr {\\f34 2}}}}", "(a+b)/2"),
        ("{\\mrad{\\mradPr{\\mdegHide on}}{\\mdeg}{\\me{\\mr x}}}", "√x"),
        (
            "{\\mnary{\\mnaryPr{\\mchr \\u8721?}}{\\msub{\\mr i=1}}{\\msup{\\mr n}}{\\me{\\mr i}}}",
            "∑_(i=1)^n i",
        ),
        ("{\\md{\\mdPr{\\mbegChr [}{\\mendChr ]}}{\\me{\\mr \\u-10187?\\u-9115?+\\'b1}}}", "[𝑥+±]"),
        ("{" * 500 + "\\mr x" + "}" * 500, ""),
    ],
)
def test_formulas(tmp_path: Path, formula: str, expected: str) -> None:
    """Office Math is read as in .docx, whatever other readers show in its place."""
    (text,) = texts(tmp_path, f"We write {MATH.format(formula)} for it.\\par")
    assert text.split() == ["We", "write", *expected.replace("𝑥", "x").split(), "for", "it."]


@pytest.mark.parametrize(
    "hidden",
    [
        "{\\v secret \\u233?\\'e9\\tab}",
        "\\v secret{\\b  more}\\v0 ",
        "{\\v1\\f0 secret}",
        "{\\v a{\\v0}b\\plain}",
    ],
)
def test_hidden_text(tmp_path: Path, hidden: str) -> None:
    """What the reader doesn't see is left out, and counted."""
    path = tmp_path / "a.rtf"
    index = "{\\xe\\v an entry}{\\stylesheet{\\s1\\v Unseen;}}\\viewkind4\\v0 "
    path.write_bytes(f"{{\\rtf1\\ansi {index}The limit is {hidden}85 degrees.\\par}}".encode())
    counted = Counter[Omission]()
    token = COUNTED.set(counted)
    try:
        (text,) = [found for block in from_rtf.parse(path) if (found := clean(block.text))]
    finally:
        COUNTED.reset(token)
    assert text == "The limit is 85 degrees." and counted == {"hidden": 1}


def test_headings(tmp_path: Path) -> None:
    """By their level of the outline; a row of a table and body text are none, and no mark stays in a text."""
    path = tmp_path / "a.rtf"
    rows = ROW.format("\\outlinelevel1 Berth", "Fee")
    prose = "\\pard\\outlinelevel1 Moorings\\par \\pard\\outlinelevel9 Boats.\\par "
    path.write_text(f"{{\\rtf1\\ansi\\uc1 {prose}{rows}\\pard\\outlinelevel8 Last}}")
    blocks = list(from_rtf.parse(path))
    assert [(one.level, one.text) for block in blocks for one in block.headings] == [
        (2, "Moorings"),
        (9, "Last"),
    ]
    assert [clean(block.text) for block in blocks] == ["Moorings\nBoats.", "Berth\tFee", "Last"]
