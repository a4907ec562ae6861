"""Numbers of headings and list items in OpenDocument files and on slides; headers and comments of texts."""

from __future__ import annotations

from pathlib import Path

import pytest
from pptx import Presentation

from builtin_plugins.documents.office import from_odt, from_pptx
from tests.builtin_plugins.documents.sample_documents import package

NAMES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for name in ("office", "text", "table", "style", "drawing")
)
DECIMAL = 'style:num-format="1"'


def level(at: int, more: str, kind: str = "list-level-style-number") -> str:
    return f'<text:{kind} text:level="{at}" {more}/>'


def outline(*levels: str) -> str:
    named = "".join(level(at, more, "outline-level-style") for at, more in enumerate(levels, 1))
    return f'<text:outline-style style:name="Outline">{named}</text:outline-style>'


def style(name: str, *levels: str) -> str:
    return f'<text:list-style style:name="{name}">{"".join(levels)}</text:list-style>'


def heading(at: int, text: str, more: str = "") -> str:
    return f'<text:h text:outline-level="{at}" {more}>{text}</text:h>'


def items(*texts: str, more: str = "") -> str:
    written = "".join(
        f"<text:list-item>{text if text.startswith('<') else f'<text:p>{text}</text:p>'}</text:list-item>"
        for text in texts
    )
    return f"<text:list {more}>{written}</text:list>"


def document(path: Path, body: str, styles: str = "", own: str = "") -> Path:
    content = f"<office:automatic-styles>{own}</office:automatic-styles><office:body>{body}</office:body>"
    members = {"mimetype": "application/vnd.oasis.opendocument.text", "META-INF/manifest.xml": "<m/>"}
    for name, inside in (("content", content), ("styles", styles)):
        members[f"{name}.xml"] = f"<office:document-{name} {NAMES}>{inside}</office:document-{name}>"
    return package(path, {**members})


def texts(path: Path) -> list[str]:
    return [block.text for block in from_odt.parse(path)]


def test_headings_of_a_text(tmp_path: Path) -> None:
    """A section is found by its number; empty headings and those without numbers aren't shown with one."""
    body = heading(1, "Scope") + heading(2, "Port") + heading(2, "") + heading(2, "Sea")
    body += heading(1, "Preface", 'text:is-list-header="true"') + heading(1, "Terms")
    body += heading(3, "Rebates") + heading(1, "Annex", 'text:restart-numbering="true" text:start-value="9"')
    numbers = outline(*(f'{DECIMAL} text:display-levels="{at}"' for at in (1, 2, 3)))
    assert texts(document(tmp_path / "a", body, numbers)) == [
        *("1 Scope", "1.1 Port", "1.3 Sea", "Preface", "2 Terms", "2.1.1 Rebates", "9 Annex")
    ]


def test_lists_of_a_text(tmp_path: Path) -> None:
    """A list counts its items, may go on from an earlier one, and only an item's first paragraph counts."""
    own = style(
        "L1",
        level(1, 'style:num-format="I" style:num-prefix="Article "'),
        level(2, 'style:num-format="a" style:num-suffix=")" text:start-value="2"'),
        level(3, 'text:bullet-char="-"', "list-level-style-bullet"),
    )
    item = "<text:p>Dues</text:p><text:p>more</text:p>" + items("due", items("point"))
    body = items("Keys", item, more='text:style-name="L1" xml:id="x"')
    body += items("Again", more='text:style-name="L1"')
    body += items("Goes on", more='text:style-name="L1" text:continue-list="x"')
    body += items("Further", more='text:style-name="L1" text:continue-numbering="true"')
    assert "\n".join(texts(document(tmp_path / "a", body, own=own))).splitlines() == [
        *("Article I Keys", "Article II Dues", "more", "b) due", "point"),
        *("Article I Again", "Article III Goes on", "Article IV Further"),
    ]


def test_a_list_named_by_the_style_of_its_paragraphs(tmp_path: Path) -> None:
    named = '<style:style style:name="Step" style:list-style-name="L"/>'
    named += '<style:style style:name="P1" style:parent-style-name="Step"/>'
    styles = style("L", level(1, f'{DECIMAL} style:num-suffix="."')) + named
    body = items('<text:p text:style-name="P1">Open</text:p>', '<text:p text:style-name="P1">Shut</text:p>')
    assert "\n".join(texts(document(tmp_path / "a", body, styles))).splitlines() == ["1. Open", "2. Shut"]


@pytest.mark.parametrize(("sync", "expected"), [("", ["z", "aa", "ab"]), ("true", ["z", "aa", "bb"])])
def test_letters_after_z(tmp_path: Path, sync: str, expected: list[str]) -> None:
    """They count on, or repeat the letter if the list says so."""
    more = f'style:num-format="a" style:num-letter-sync="{sync}" text:start-value="26"'
    body = items("", "", "", more='text:style-name="L"').replace("<text:p>", "<text:p>x")
    written = texts(document(tmp_path / "a", body, own=style("L", level(1, more))))
    assert "\n".join(written).splitlines() == [f"{letters} x" for letters in expected]


def test_removed_paragraphs_do_not_count(tmp_path: Path) -> None:
    note = "<office:annotation><text:p>gone</text:p></office:annotation>"
    removed = f"<text:tracked-changes>{heading(1, 'Old')}{items(f'<text:p>{note}x</text:p>')}"
    body = removed + "</text:tracked-changes>" + heading(1, "New")
    assert texts(document(tmp_path / "a", body, outline(DECIMAL))) == ["1 New"]


def test_comments_headers_and_footers(tmp_path: Path) -> None:
    """They come after the text, as in Word documents, and what several pages share comes once."""
    note = "<office:annotation><creator>Ann</creator><text:p>Ask Bo</text:p></office:annotation>"
    footer = "<style:footer><text:p>Draft 7</text:p></style:footer>"
    styles = f"<style:header><text:p>Port of Kiel</text:p></style:header>{footer}<style:page/>{footer}"
    body = f"<text:p>The quay {note}is closed.</text:p>"
    expected = ["The quay is closed.", "Ask Bo", "Port of Kiel", "Draft 7"]
    assert texts(document(tmp_path / "a", body, styles)) == expected


@pytest.mark.parametrize("kind", ["broken", "deep", "circle"])
def test_hostile_numbering_of_a_text(tmp_path: Path, kind: str) -> None:
    styles = {
        "broken": "<",
        "deep": outline(*[f'{DECIMAL} text:display-levels="99999999"'] * 300),
        "circle": '<style:style style:name="A" style:parent-style-name="A"/>',
    }[kind]
    body = heading(99_999_999, "x") + items('<text:p text:style-name="A">y</text:p>') + heading(10, "z")
    written = texts(document(tmp_path / "a", body, styles))
    assert written[:2] == ["x", "y"] and len(written) == 3


def test_lists_on_slides(tmp_path: Path) -> None:
    """Steps go on after those of a level below, and begin again after another paragraph."""
    show = Presentation()
    body = show.slides.add_slide(show.slide_layouts[1]).placeholders[1].text_frame
    steps = [
        *(("Close", 0, "arabicPeriod"), ("left", 1, "alphaLcParenR"), ("right", 1, "alphaLcParenR")),
        *(("Drain", 0, "arabicPeriod"), ("Rest", 0, ""), ("Open", 0, "arabicPeriod")),
        ("Check", 99_999_999, "romanUcParenBoth"),
    ]
    for text, at, kind in steps:
        paragraph = body.add_paragraph()
        paragraph.text = text
        properties = paragraph._p.get_or_add_pPr()
        properties.set("lvl", str(at))
        if kind:
            mark = properties.makeelement(properties.tag.replace("}pPr", "}buAutoNum"), {"type": kind})
            properties.append(mark)
    show.save(str(tmp_path / "a.pptx"))
    assert [block.text for block in from_pptx.parse(tmp_path / "a.pptx") if block.text] == [
        *("1. Close", "a) left", "b) right", "2. Drain", "Rest", "1. Open", "(I) Check")
    ]


def test_lists_on_open_document_slides(tmp_path: Path) -> None:
    """Impress divides a list into several, whose numbers go on as long as they are written alike."""
    lists = [style(name, level(1, f'{DECIMAL} style:num-suffix="."')) for name in ("L1", "L2")]
    lists.append(style("L3", level(1, 'text:bullet-char="-"', "list-level-style-bullet")))
    boxes = [("L1", "Close"), ("L2", "Drain"), ("L3", "Rest"), ("L1", "Open")]
    inside = "".join(items(text, more=f'text:style-name="{name}"') for name, text in boxes)
    body = f"<text:page><text:text-box>{inside}</text:text-box></text:page>"
    path = document(tmp_path / "a", body, own="".join(lists))
    written = [block.text for block in from_odt.parse_slides(path) if block.text]
    assert "\n".join(written).splitlines() == ["1. Close", "2. Drain", "Rest", "1. Open"]
