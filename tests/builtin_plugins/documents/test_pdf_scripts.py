"""Pages of a PDF in scripts that run from right to left, or put no spaces between words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from reportlab.pdfgen import canvas

from builtin_plugins.documents.pdf import from_pdf

LAM_ALEF = "\ufefb"
"""Stands for the one glyph that fonts have for the two letters."""


def drawn(line: str) -> list[str]:
    """The glyphs of a line from left to right, as a reader of it sees them."""
    tokens = line.replace("لا", LAM_ALEF).split(" ")
    turned = [
        token if token[0].isascii() and token[0].isalnum() else token[::-1] for token in reversed(tokens)
    ]
    return list(" ".join(turned))


def pdf(
    path: Path,
    lines: list[list[str]],
    size: int = 14,
    between: float = 0,
    places: Sequence[tuple[int, int]] = (),
    borders: str = "",
    wider: float = 0,
) -> Path:
    """A page with these glyphs: each is a letter of Helvetica, and the file says what it stands for.
    `between` are points of room between two letters; spaces are `wider` than letters. Lines are below each
    other, unless they have places.
    """
    places = places or [(50, 700 - 20 * at) for at in range(len(lines))]
    glyphs = sorted({glyph for line in lines for glyph in line})
    codes = {glyph: code for code, glyph in enumerate(glyphs, 0x41)} | {" ": 0x20}
    meant = "\n".join(
        f"<{code:02x}> <{('لا' if glyph == LAM_ALEF else glyph).encode('utf-16-be').hex()}>"
        for glyph, code in codes.items()
    )
    cmap = (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /A def\n"
        f"1 begincodespacerange <00> <ff> endcodespacerange {len(codes)} beginbfchar\n{meant}\n"
        "endbfchar endcmap CMapName currentdict /CMap defineresource pop end end"
    )
    font = f"{between} Tc {wider} Tw /F {size} Tf"
    shown = borders + "\n".join(
        f"BT {font} {x} {y} Td <{bytes(codes[glyph] for glyph in line).hex()}> Tj ET"
        for (x, y), line in zip(places, lines, strict=True)
    )
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 5 0 R"
        " /Resources << /Font << /F 4 0 R >> >> >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Courier /ToUnicode 6 0 R >>",
        f"<< /Length {len(shown)} >>\nstream\n{shown}\nendstream",
        f"<< /Length {len(cmap)} >>\nstream\n{cmap}\nendstream",
    ]
    body = "".join(f"{number} 0 obj\n{one}\nendobj\n" for number, one in enumerate(objects, 1))
    path.write_text(f"%PDF-1.7\n{body}trailer << /Root 1 0 R >>\n%%EOF\n")
    return path


def read(path: Path) -> str:
    (block,) = from_pdf.parse(path)
    return block.text


@pytest.mark.parametrize(
    "line",
    [
        "الحد الأقصى في أوسلو 185 يورو. ماذا عن لندن؟ لا يزيد.",
        "התקרה באוסלו 185 אירו. במלון בלונדון, 210 אירו.",
        "نظام SAP الداخلي. بلغ 12.5 دولار، ثم 5,300 دولار.",
    ],
)
def test_numbers_and_stops_stay_in_their_sentences(tmp_path: Path, line: str) -> None:
    """A number is in its sentence, a stop at its end, and the letters of a ligature in their order."""
    assert read(pdf(tmp_path / "a.pdf", [drawn(line)])) == line


def test_brackets(tmp_path: Path) -> None:
    """Brackets that are drawn the other way round open before they close."""
    line = "السنوي (2024) كان"
    glyphs = [*drawn("كان"), " ", *"(2024)", " ", *drawn("السنوي")]
    assert read(pdf(tmp_path / "a.pdf", [glyphs])) == line


def test_lines_of_a_paragraph(tmp_path: Path) -> None:
    """A sentence that goes on in the next line is one; a short line before a paragraph is none of it."""
    lines = [
        "تقرير الفنادق",
        "يبلغ الحد الأقصى لتكلفة الفندق في أوسلو 185",
        "يورو لليلة الواحدة.",
        "كل شيء آخر ممنوع.",
    ]
    text = read(pdf(tmp_path / "a.pdf", list(map(drawn, lines))))
    assert text == f"{lines[0]}\n{lines[1]} {lines[2]}\n{lines[3]}"


def test_letters_with_room_between_them(tmp_path: Path) -> None:
    line = "سعر الغرفة في الفندق الجديد"
    assert read(pdf(tmp_path / "a.pdf", [drawn(line)], between=2.5)) == line


def test_narrow_spaces(tmp_path: Path) -> None:
    """Some fonts have narrow spaces, as many of XeTeX's have: words stay apart, of two scripts, too."""
    line = "سعر الغرفة في الفندق Astoria الجديد"
    assert read(pdf(tmp_path / "a.pdf", [drawn(line)], wider=-6.5)) == line


def test_latin_lines_are_left_alone(tmp_path: Path) -> None:
    latin = list("The word ") + drawn("سلام") + list(" means peace (mostly).")
    text = read(pdf(tmp_path / "a.pdf", [latin]))
    assert text.startswith("The word ") and text.endswith(" means peace (mostly).")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            [
                "旅費規程",
                "オスロのホテルの宿泊費は最高一万円までとし、ロン",
                "ドンでは二万円までとする。",
                "以上です。",
            ],
            "旅費規程\nオスロのホテルの宿泊費は最高一万円までとし、ロンドンでは二万円までとする。\n以上です。",
        ),
        (
            [
                "公司差旅政策规定，奥斯陆的酒店每晚费用不得超过二百一",
                "十欧元。",
                "二",
                "报销应在七天内完成。",
            ],
            "公司差旅政策规定，奥斯陆的酒店每晚费用不得超过二百一十欧元。\n二\n报销应在七天内完成。",
        ),
        (
            ["오슬로의 호텔 요금은 하룻밤에 백팔십오 유로를", "넘을 수 없습니다."],
            "오슬로의 호텔 요금은 하룻밤에 백팔십오 유로를 넘을 수 없습니다.",
        ),
        (
            ["次の書類を出発の十日前までに上司に提出すること", "・旅費の申請書", "・領収書"],
            "次の書類を出発の十日前までに上司に提出すること\n・旅費の申請書\n・領収書",
        ),
        *(
            (
                ["公司差旅政策规定的适用范围以及费用标准说明", f"{sign}奥斯陆的酒店费用"],
                f"公司差旅政策规定的适用范围以及费用标准说明\n{sign}奥斯陆的酒店费用",
            )
            for sign in ("➢ ", "►", "① ", "（一）", "十二、", "第三条　", "第二章 ", "(3) ", "– ")
        ),
        (
            ["公司差旅政策规定的费用标准应当符合本规定", "第三条的要求。"],
            "公司差旅政策规定的费用标准应当符合本规定第三条的要求。",
        ),
    ],
)
def test_words_are_whole(tmp_path: Path, lines: list[str], expected: str) -> None:
    """A word or a sentence that two lines share is one again; titles and items of a list stay lines."""
    assert read(pdf(tmp_path / "a.pdf", list(map(list, lines)))) == expected


def test_pieces_of_a_line_that_are_not_level(tmp_path: Path) -> None:
    """What is beside a letter of these scripts may come before it: it is not put behind it."""
    path = pdf(tmp_path / "a.pdf", [["."], drawn("و"), drawn("ميناء")])
    path.write_text(path.read_text().replace("50 680 Td", "58 709 Td"))
    assert read(path) == ".\nو\nميناء"


def test_a_table_with_borders(tmp_path: Path) -> None:
    """The first column is the one on the right, and brackets are the right way round."""
    cells = [drawn("נמל"), drawn("רציפים"), list("(ןופצ) הפיח"), ["4", "2"], drawn("אילת"), ["3", "7"]]
    places = [(x, 700 - 20 * row) for row in range(3) for x in (260, 60)]
    borders = "".join(f"50 {715 - 20 * row} m 450 {715 - 20 * row} l S\n" for row in range(4))
    borders += "".join(f"{x} 655 m {x} 715 l S\n" for x in (50, 250, 450))
    path = pdf(tmp_path / "a.pdf", cells, places=places, borders=borders)
    assert read(path).splitlines() == ["נמל\tרציפים", "חיפה (צפון)\t42", "אילת\t37"]


def accented(path: Path, lines: list[str]) -> Path:
    """A page whose accents are drawn onto the letters that they precede here, after their line."""
    page = canvas.Canvas(str(path))
    page.setFont("Courier", 10)
    for number, line in enumerate(lines):
        letters = re.sub("[´¨]", "", line)
        page.drawString(50, 700 - 12 * number, letters)
        for count, accent in enumerate(re.finditer("[´¨]", line)):
            page.drawString(50 + 6 * (accent.start() - count), 700 - 12 * number, accent[0])
    page.save()
    return path


def test_accents_on_letters(tmp_path: Path) -> None:
    """An accent that is drawn as a character of its own belongs to the letter below it, and to no other."""
    lines = [
        "Die Leute, die schon l¨anger in der sch¨onen und",
        "gro´zen Stadt M¨unster leben, z¨ah-",
        "len sie.",
    ]
    expected = "Die Leute, die schon länger in der schönen und groźen Stadt Münster leben, zählen sie."
    assert read(accented(tmp_path / "a.pdf", lines)) == expected


def test_accents_on_their_own(tmp_path: Path) -> None:
    page = canvas.Canvas(str(tmp_path / "a.pdf"))
    page.drawString(50, 700, "The sign ¨ is a diaeresis, and ´ an acute.")
    page.save()
    assert read(tmp_path / "a.pdf") == "The sign ¨ is a diaeresis, and ´ an acute."


def test_accents_and_a_power(tmp_path: Path) -> None:
    page = canvas.Canvas(str(tmp_path / "a.pdf"))
    line = page.beginText(50, 700)
    for text, size, rise in (("zur Dauer fur 10", 10, 0), ("6", 6, 4), (" Leute in Munchen", 10, 0)):
        line.setFont("Courier", size)
        line.setRise(rise)
        line.textOut(text)
    page.drawText(line)
    page.setFont("Courier", 10)
    page.drawString(50 + 6 * 11, 700, "¨")
    page.save()
    assert "10^6" in read(tmp_path / "a.pdf")
