"""Documents as they look: what is shown of each kind, and what hostile files can't do."""

from __future__ import annotations

import base64
import io
import re
import zipfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from email.message import EmailMessage
from pathlib import Path

import docx
import openpyxl
import pytest
import pytest_asyncio
from lxml import html
from PIL import Image, ImageDraw, ImageFont
from pptx import Presentation
from pptx.enum.dml import MSO_THEME_COLOR
from pptx.util import Inches

from builtin_plugins.documents.detection import detect_media_type
from builtin_plugins.documents.previewing import PreviewFailed, preview
from builtin_plugins.documents.runner import ParseLimits, parser_processes
from tests.builtin_plugins.documents.sample_documents import billion_laughs, book, picture

pytestmark = pytest.mark.asyncio(loop_scope="module")

LIMITS = ParseLimits(memory_mb=512, cpu_seconds=20, wall_seconds=30, max_text_chars=5_000_000)
Page = html.HtmlElement
Show = Callable[..., Awaitable[Page]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def show(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Show]:
    """Shows a file's bytes as a page; nothing is left of it on the disk."""
    folder = tmp_path_factory.mktemp("previews")
    async with aclosing(parser_processes()) as children:

        async def render(name: str, content: bytes, limits: ParseLimits = LIMITS) -> Page:
            path, sink = folder / name, folder / "page"
            path.write_bytes(content)
            try:
                page = await preview(children, path, detect_media_type(path, name) or "", limits, sink)
            finally:
                assert not sink.exists()
            return html.document_fromstring(page.decode())

        yield render


def _picture() -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (60, 40), "teal").save(file, "PNG")
    return file.getvalue()


def _texts(page: Page, path: str) -> list[str]:
    return [" ".join(element.text_content().split()) for element in page.xpath(f"//{path}")]


async def test_word(show: Show, tmp_path: Path) -> None:
    """Headings, lists, tables and pictures are there as such."""
    document = docx.Document()
    document.add_heading("Travel", 1)
    document.add_paragraph("Book early", style="List Bullet")
    table = document.add_table(1, 2)
    table.rows[0].cells[0].text, table.rows[0].cells[1].text = "Bergen", "215"
    document.add_picture(io.BytesIO(_picture()))
    document.save(tmp_path / "a.docx")
    page = await show("a.docx", (tmp_path / "a.docx").read_bytes())
    assert (_texts(page, "h1"), _texts(page, "li")) == (["Travel"], ["Book early"])
    assert _texts(page, "td") == ["Bergen", "215"]
    data = base64.b64encode(_picture()).decode()
    assert page.xpath("//img/@src") == [f"data:image/png;base64,{data}"]


async def test_slides(show: Show, tmp_path: Path) -> None:
    """A slide has its proportions, and what is on it stands in its place; hidden ones are left out."""
    deck = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    slide.shapes.title.text = "Hotels"
    slide.shapes.add_picture(io.BytesIO(_picture()), Inches(5), Inches(3), Inches(2), Inches(1))
    table = slide.shapes.add_table(1, 2, 0, 0, Inches(3), Inches(1)).table
    table.cell(0, 0).text, table.cell(0, 1).text = "Bergen", "215"
    slide.notes_slide.notes_text_frame.text = "Ask about Oslo."
    hidden = deck.slides.add_slide(deck.slide_layouts[5])
    hidden.shapes.title.text = "Draft"
    hidden.element.set("show", "0")
    deck.save(tmp_path / "a.pptx")
    page = await show("a.pptx", (tmp_path / "a.pptx").read_bytes())
    (shown,) = page.xpath("//section[@class='slide']")
    assert "aspect-ratio:9144000 / 6858000" in shown.get("style")
    picture = page.xpath("//img")[0].getparent().get("style")
    assert "left:50.0%" in picture and "width:20.0%" in picture
    assert _texts(page, "td") == ["Bergen", "215"]
    assert _texts(page, "*[@class='notes']") == ["Ask about Oslo."] and "Draft" not in page.text_content()


async def test_sheets(show: Show) -> None:
    """A table for each visible sheet, with merged cells and numbers as the workbook shows them."""
    book = openpyxl.Workbook()
    book.active.title = "Costs"
    for row in (["Costs of 2026"], ["City", "Share"], ["Oslo", 0.25]):
        book.active.append(row)
    book.active.merge_cells("A1:B1")
    book.active["B3"].number_format = "0%"
    book.create_sheet("Plan").sheet_state = "hidden"
    file = io.BytesIO()
    book.save(file)
    page = await show("a.xlsx", file.getvalue())
    assert _texts(page, "h2") == ["Costs"]
    assert _texts(page, "tbody//td") == ["Costs of 2026", "City", "Share", "Oslo", "25%"]
    assert page.xpath("//tbody//td")[0].get("colspan") == "2"
    assert _texts(page, "tr[@class='names']/td") == ["City", "Share"]


async def test_rows_of_csv(show: Show) -> None:
    page = await show("a.csv", b'City;Limit\nOslo;185\n"Bergen; west";215\n')
    assert _texts(page, "tbody//td") == ["City", "Limit", "Oslo", "185", "Bergen; west", "215"]


async def test_open_document(show: Show) -> None:
    """A text with its looks, a list, a table and a picture."""
    names = {
        "office": "office", "text": "text", "table": "table", "draw": "drawing", "style": "style",
        "fo": "xsl-fo-compatible",
    }  # fmt: skip
    spaces = " ".join(
        f'xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for short, name in names.items()
    )
    content = (
        f'<office:document-content {spaces} xmlns:xlink="http://www.w3.org/1999/xlink">'
        "<office:automatic-styles>"
        '<style:style style:name="T1"><style:text-properties fo:color="#c80000"/></style:style>'
        '</office:automatic-styles><office:body><office:text><text:h text:outline-level="2">Rules</text:h>'
        '<text:p>Quiet <text:span text:style-name="T1">from ten</text:span></text:p>'
        "<text:list><text:list-item><text:p>one</text:p></text:list-item></text:list>"
        "<table:table><table:table-row><table:table-cell><text:p>Key</text:p></table:table-cell>"
        "</table:table-row></table:table>"
        '<text:p><draw:frame><draw:image xlink:href="Pictures/1.png"/></draw:frame></text:p>'
        "</office:text></office:body></office:document-content>"
    )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.text")
        archive.writestr("content.xml", content)
        archive.writestr("Pictures/1.png", _picture())
    page = await show("a.odt", file.getvalue())
    assert (_texts(page, "h2"), _texts(page, "li"), _texts(page, "td")) == (["Rules"], ["one"], ["Key"])
    assert page.xpath("//span")[0].get("style") == "color:#c80000"
    assert page.xpath("//img")[0].get("src").startswith("data:image/png;base64,")


async def test_mail(show: Show) -> None:
    """Headers, the formatted text with its own pictures but none from elsewhere, the names of attachments."""
    mail = EmailMessage()
    mail["Subject"], mail["From"], mail["To"] = "Hotels <b>", "ana@example.org", "ben@example.org"
    mail.set_content("plain")
    mail.add_alternative(
        '<p><b>Bergen</b></p><img src="cid:one"><img src="http://outside.example/seen.gif">', subtype="html"
    )
    mail.get_payload()[1].add_related(_picture(), "image", "png", cid="<one>")
    mail.add_attachment(b"x", maintype="application", subtype="pdf", filename="offer.pdf")
    page = await show("a.eml", bytes(mail))
    assert _texts(page, "h1") == ["Hotels <b>"] and not page.xpath("//*[@class='plain']")
    assert _texts(page, "*[@class='headers']//td") == ["ana@example.org", "ben@example.org", "offer.pdf"]
    sources = [image.get("src") for image in page.xpath("//img")]
    assert sources[0].startswith("data:image/png;base64,") and sources[1] is None


async def test_markdown(show: Show) -> None:
    table = "| A | B |\n|---|---|\n| 1 | **2** |"
    page = await show("a.md", f"---\ntitle: x\n---\n# Travel\n\n{table}\n\n<script>x</script>\n".encode())
    assert (_texts(page, "h1"), _texts(page, "td"), _texts(page, "strong")) == (["Travel"], ["1", "2"], ["2"])
    assert not page.xpath("//script | //body//hr")


async def test_words_of_a_picture(show: Show) -> None:
    """A picture is there whole."""
    page = await show("a.png", _picture())
    assert len(page.xpath("//*[@class='picture']/img")) == 1


STYLES = [
    ("@import 'http://outside.example/a.css'; h1 {color: red}", "h1 {color: red}"),
    ("h1 {background: URL( http://outside.example/b )}", "h1 {background: }"),
    (
        "h1 {background: u@import x;rl(http://outside.example/c)}",
        "h1 {background: u rl(http://outside.example/c)}",
    ),
    (r"h1 {background: u\72 l(http://outside.example/d)}", "h1 {background: }"),
    (r'@\69mport "http://outside.example/e"; p {color: red}', "p {color: red}"),
    ("h1 {background: image-set('http://outside.example/f' 1x)}", "h1 {background: }"),
    (r"h1::before {content: '\201C \3c'}", r"h1::before {content: '\201C \3c'}"),
    ("</style\n><script>x</script>", ""),
]


@pytest.mark.parametrize(("styles", "kept"), STYLES)
async def test_style_sheets_load_nothing(show: Show, styles: str, kept: str) -> None:
    page = await show("a.html", f"<html><style>{styles}</style><h1>Travel</h1></html>".encode())
    text = " ".join(page.xpath("//style")[0].text_content().split())
    assert text.endswith(kept) and "outside" not in text.removesuffix(kept)
    assert not page.xpath("//script") and _texts(page, "h1") == ["Travel"]


BODIES = [
    '<img src="x" onerror="x()">',
    '<a href="javascript:x()">more</a>',
    '<p style="position:fixed;background-image:url(http://outside.example/)">more</p>',
    '<img src="data:image/svg+xml;base64,PHN2Zz4=">',
    '<svg><a xlink:href="javascript:x()"><text>more</text></a></svg>',
    "<math><mtext><table><mglyph><style><img src=x onerror=x()></style></mglyph></table></mtext></math>",
    '<object data="http://outside.example/"></object><embed src="http://outside.example/">',
    '<base href="http://outside.example/"><link rel="stylesheet" href="http://outside.example/">',
    '<form action="http://outside.example/"><input name="a" formaction="javascript:x()"></form>',
    '<video src="http://outside.example/" poster="http://outside.example/"></video>',
]


@pytest.mark.parametrize("body", BODIES)
async def test_markup_runs_and_loads_nothing(show: Show, body: str) -> None:
    """Of each hostile element, no script, address or place is left."""
    page = await show("a.html", f"<html><body><h1>Travel</h1>{body}</body></html>".encode())
    values = " ".join(value for element in page.body.iter() for value in element.attrib.values())
    assert not [word for word in ("outside", "javascript", "x()", "svg", "fixed") if word in values]
    names = {name for element in page.body.iter() for name in element.attrib}
    assert names <= {"style", "class", "src", "alt"}


async def test_style_sheets_without_an_end(show: Show) -> None:
    """However many begin, they are read in one pass; the last one ends with the page."""
    limits = LIMITS._replace(cpu_seconds=2)
    for begin in ("<style ", "<style>"):
        page = await show("a.html", f"<html><h1>Travel</h1>{begin * 100_000}".encode(), limits)
        assert _texts(page, "h1") == ["Travel"]


def _word_with(folder: Path, parts: dict[str, bytes], without: str = "") -> bytes:
    """A document with a picture, with further parts and without one."""
    document, file = docx.Document(), io.BytesIO()
    document.add_paragraph("Bergen 215")
    document.add_picture(io.BytesIO(_picture()))
    document.save(folder / "whole.docx")
    with zipfile.ZipFile(folder / "whole.docx") as whole, zipfile.ZipFile(file, "w") as changed:
        for name in whole.namelist():
            if name != without:
                changed.writestr(name, whole.read(name))
        for name, content in parts.items():
            changed.writestr(name, content)
    return file.getvalue()


async def test_a_document_chooses_no_elements(show: Show, tmp_path: Path) -> None:
    """Rules of mammoth inside a document could hide what is searched."""
    content = _word_with(tmp_path, {"mammoth/style-map": b"p => script:fresh"})
    assert "Bergen 215" in (await show("a.docx", content)).text_content()


async def test_a_picture_that_is_not_there(show: Show, tmp_path: Path) -> None:
    content = _word_with(tmp_path, {}, without="word/media/image1.png")
    page = await show("a.docx", content)
    assert "Bergen 215" in page.text_content() and not page.xpath("//img/@src")


async def test_a_design_chooses_only_colors(show: Show, tmp_path: Path) -> None:
    """What stands for a color is no style and no element."""
    deck = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    box = slide.shapes.add_textbox(0, 0, Inches(3), Inches(1))
    box.text_frame.text = "Bergen 215"
    box.fill.solid()
    box.fill.fore_color.theme_color = MSO_THEME_COLOR.ACCENT_1
    deck.save(tmp_path / "a.pptx")
    hostile = b'val="fff; position: fixed&quot;&gt;&lt;h1&gt;'
    file = io.BytesIO()
    with zipfile.ZipFile(tmp_path / "a.pptx") as whole, zipfile.ZipFile(file, "w") as changed:
        for name in whole.namelist():
            old = whole.read(name)
            new = re.sub(rb'(<a:accent1><a:srgbClr )val="\w+', rb"\1" + hostile, old)
            changed.writestr(name, new if "theme" in name else old)
    page = await show("a.pptx", file.getvalue())
    assert "Bergen 215" in page.text_content() and not page.xpath("//h1")
    assert not [style for style in page.xpath("//@style") if "fixed" in style]


async def test_files_that_are_too_much(show: Show, tmp_path: Path) -> None:
    """Entities that multiply and unknown files end with a reason, and a huge sheet is cut off."""
    document = docx.Document()
    document.add_paragraph("LAUGH")
    document.save(tmp_path / "a.docx")
    with pytest.raises(PreviewFailed) as raised:
        await show("a.docx", billion_laughs(tmp_path / "a.docx", "word/document.xml").read_bytes())
    assert raised.value.fault == "corrupt"
    with pytest.raises(PreviewFailed) as raised:
        await show("a.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 old")
    assert raised.value.fault == "unsupported"
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("Long")
    for row in range(6_000):
        sheet.append([row] * 10)
    file = io.BytesIO()
    book.save(file)
    page = await show("a.xlsx", file.getvalue())
    assert 4_000 < len(page.xpath("//tbody/tr")) < 5_000 and page.xpath("//*[@class='note']")


async def test_a_slide_with_a_shape_of_no_known_kind(show: Show, tmp_path: Path) -> None:
    """A shape without a geometry is shown with its text, and the others with it."""
    deck = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    slide.shapes.title.text = "Hotels"
    box = slide.shapes.add_textbox(0, 0, Inches(3), Inches(1))
    box.text_frame.text = "Bergen 215"
    properties = box.element.nvSpPr.find("{*}cNvSpPr")
    del properties.attrib["txBox"]
    box.element.spPr.remove(box.element.spPr.find("{*}prstGeom"))
    deck.save(tmp_path / "a.pptx")
    page = await show("a.pptx", (tmp_path / "a.pptx").read_bytes())
    assert "Bergen 215" in page.text_content() and "Hotels" in page.text_content()


def _open_document(kind: str, body: str, styles: str = "", **more: bytes) -> bytes:
    names = {
        "office": "office", "text": "text", "table": "table", "draw": "drawing", "style": "style",
        "fo": "xsl-fo-compatible", "svg": "svg-compatible", "presentation": "presentation",
    }  # fmt: skip
    spaces = " ".join(
        f'xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for short, name in names.items()
    )
    content = (
        f'<office:document-content {spaces} xmlns:xlink="http://www.w3.org/1999/xlink">{styles}'
        f"<office:body>{body}</office:body></office:document-content>"
    )
    common = (
        f"<office:document-styles {spaces}><style:page-layout style:name='P'><style:page-layout-properties "
        "fo:page-width='20cm' fo:page-height='10cm'/></style:page-layout><style:master-page "
        "style:name='D' style:page-layout-name='P'/></office:document-styles>"
    )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("mimetype", f"application/vnd.oasis.opendocument.{kind}")
        archive.writestr("content.xml", content)
        archive.writestr("styles.xml", common)
        for name, data in more.items():
            archive.writestr(f"Pictures/{name}.png", data)
    return file.getvalue()


async def test_open_spreadsheet(show: Show) -> None:
    """Each sheet with its letters and numbers; a hidden one is left out."""
    rows = "<table:table-row>{}</table:table-row>"
    cell = "<table:table-cell><text:p>{}</text:p></table:table-cell>"
    texts = (("City", "Limit"), ("Oslo", "185"))
    first = "".join(rows.format("".join(map(cell.format, row))) for row in texts)
    hidden = (
        '<office:automatic-styles><style:style style:name="H" style:family="table">'
        '<style:table-properties table:display="false"/></style:style></office:automatic-styles>'
    )
    body = (
        f'<office:spreadsheet><table:table table:name="Hotels">{first}</table:table>'
        f'<table:table table:name="Secret" table:style-name="H">{first}</table:table>'
        f'<table:table table:name="Meals">{rows.format(cell.format("Lunch"))}</table:table>'
        "</office:spreadsheet>"
    )
    page = await show("a.ods", _open_document("spreadsheet", body, hidden))
    assert _texts(page, "h2") == ["Hotels", "Meals"]
    assert _texts(page, "tbody//td") == ["City", "Limit", "Oslo", "185", "Lunch"]
    assert page.xpath("//td[@class='n']")[0].text == "185"


async def test_open_presentation(show: Show) -> None:
    """Texts, a table and a picture in their places; what can't be shown leaves a mark."""
    place = 'svg:x="5cm" svg:y="1cm" svg:width="10cm" svg:height="5cm"'
    body = (
        '<office:presentation><draw:page draw:name="one">'
        f'<draw:frame {place} presentation:class="title"><draw:text-box><text:p>Hotels</text:p>'
        "</draw:text-box></draw:frame>"
        f"<draw:g><draw:frame {place}><table:table><table:table-row><table:table-cell><text:p>Oslo</text:p>"
        "</table:table-cell></table:table-row></table:table></draw:frame></draw:g>"
        f'<draw:frame {place}><draw:image xlink:href="Pictures/one.png"/></draw:frame>'
        f'<draw:frame {place} draw:name="Chart 1"><draw:object xlink:href="./Object 1"/></draw:frame>'
        "<presentation:notes><draw:frame><draw:text-box><text:p>Say hello</text:p></draw:text-box>"
        "</draw:frame></presentation:notes></draw:page></office:presentation>"
    )
    page = await show("a.odp", _open_document("presentation", body, one=_picture()))
    (slide,) = page.xpath("//*[@class='slide']")
    assert "aspect-ratio:566.9 / 283.5" in slide.get("style")
    assert "left:25.0%;top:10.0%;width:50.0%;height:50.0%" in slide[0].get("style")
    assert (slide[0].text_content(), _texts(page, "td")) == ("Hotels", ["Oslo"])
    assert len(page.xpath("//img")) == 1 and _texts(page, "*[@class='no-picture']") == ["Chart 1"]
    assert _texts(page, "*[@class='notes']") == ["Say hello"]


async def test_rich_text(show: Show) -> None:
    """Headings, paragraphs and tables, in their order."""
    text = (
        rb"{\rtf1\ansi\pard\outlinelevel0 Rivers\par\pard First & <line>\par "
        rb"{\trowd\cellx1000\cellx2000 Oslo\intbl\cell 185\intbl\cell\row}"
        rb"\pard Last line\par}"
    )
    page = await show("a.rtf", text)
    assert _texts(page, "h1") == ["Rivers"] and _texts(page, "td") == ["Oslo", "185"]
    assert _texts(page, "p") == ["First & <line>", "Last line"]


async def test_book(show: Show, tmp_path: Path) -> None:
    """The chapters in order, with pictures that are in the book, and without their heads."""
    chapters = [
        '<html><head><title>Head</title></head><body><h1>One</h1><img src="../no.png"/></body></html>',
        '<html><body><h1>Two</h1><p><img alt="" src="one.png"/></p></body></html>',
    ]
    path = book(tmp_path / "a.epub", chapters)
    with zipfile.ZipFile(path) as archive:
        folder = next(name for name in archive.namelist() if name.endswith("html")).rpartition("/")[0]
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(f"{folder}/one.png".lstrip("/"), _picture())
    page = await show("a.epub", path.read_bytes())
    assert _texts(page, "h1") == ["One", "Two"] and "Head" not in page.text_content()
    assert [image.get("src", "")[:22] for image in page.xpath("//img")] == ["", "data:image/png;base64,"]


async def test_pages_of_a_tiff(show: Show) -> None:
    """Each page as a picture that browsers show, with its words; a broken file is refused."""
    file = io.BytesIO()
    pages = [picture("Invoice 4711"), picture("Total 821.14")]
    pages[0].save(file, "TIFF", save_all=True, append_images=pages[1:])
    page = await show("a.tiff", file.getvalue())
    sources = [image.get("src")[:22] for image in page.xpath("//img")]
    assert sources == ["data:image/png;base64,"] * 2
    assert "Invoice" in page.text_content() and "Total" in page.text_content()
    with pytest.raises(PreviewFailed) as refused:
        await show("b.tiff", file.getvalue()[:60])
    assert refused.value.fault == "corrupt"


async def test_a_tiff_of_many_dense_pages(show: Show) -> None:
    """The pages are shown, even if not the words of all can be read in the time that there is."""
    lines = "\n".join(
        f"{at}. The quick brown fox jumps over the lazy dog and back again." for at in range(60)
    )
    page = Image.new("L", (2400, 3400), 255)
    ImageDraw.Draw(page).multiline_text((90, 90), lines, font=ImageFont.load_default(38), fill=0)
    file = io.BytesIO()
    page.save(file, "TIFF", save_all=True, append_images=[page] * 9, compression="tiff_lzw")
    shown = await show("a.tiff", file.getvalue())
    assert len(shown.xpath("//img[starts-with(@src, 'data:image/png')]")) == 10


async def test_a_tiff_of_16_bits(show: Show) -> None:
    """Dark stays darker than bright."""
    page = Image.new("I;16", (2, 1))
    page.putpixel((0, 0), 10_000)
    page.putpixel((1, 0), 60_000)
    file = io.BytesIO()
    page.save(file, "TIFF")
    source = (await show("a.tiff", file.getvalue())).xpath("//img")[0].get("src")
    drawn = Image.open(io.BytesIO(base64.b64decode(source.partition(",")[2])))
    assert [drawn.getpixel((at, 0)) for at in (0, 1)] == [39, 234]


async def test_marks_on_a_slide(show: Show, tmp_path: Path) -> None:
    """A diagram, which is not drawn here, leaves a box with its name."""
    deck = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    frame = slide.shapes.add_table(1, 1, 0, 0, Inches(2), Inches(1))
    frame.name = "Diagram 3"
    data = frame.element.find(".//{*}graphicData")
    data.set("uri", "http://schemas.openxmlformats.org/drawingml/2006/diagram")
    data.remove(data[0])
    deck.save(tmp_path / "a.pptx")
    page = await show("a.pptx", (tmp_path / "a.pptx").read_bytes())
    assert _texts(page, "*[@class='no-picture']") == ["Diagram 3"]
