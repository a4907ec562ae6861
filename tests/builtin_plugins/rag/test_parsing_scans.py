"""Scans and pictures, read by the real tesseract where it is installed; files in old code pages."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from functools import partial
from io import BytesIO
from pathlib import Path
from textwrap import wrap

import pytest
import pytest_asyncio
from reportlab.pdfgen.canvas import Canvas

from builtin_plugins.documents.blocks import SlowDocument, UnparsableDocument
from builtin_plugins.documents.detection import detect_media_type
from builtin_plugins.documents.images import from_image
from builtin_plugins.documents.images.ocr import OPTIONS, OcrOptions
from builtin_plugins.documents.parsers import BUILTIN_PARSERS
from builtin_plugins.documents.pdf import from_pdf
from builtin_plugins.documents.protocol import ParserPosition, last_place, read_blocks
from builtin_plugins.documents.runner import ParsedDocument, ParseLimits, parser_processes
from builtin_plugins.documents.runner import parse as parse_by
from kernel.testing import platforms
from tests.builtin_plugins.documents import sample_documents as documents
from tests.builtin_plugins.rag.rag_support import ingest, make_base, somebody
from tests.fakes.hash_embeddings import HashEmbeddings

pytestmark = pytest.mark.asyncio(loop_scope="module")
needs_tesseract = pytest.mark.skipif(shutil.which("tesseract") is None, reason="tesseract is not installed")

Parse = Callable[..., Awaitable[ParsedDocument]]
Read = Callable[[Path, OcrOptions], Awaitable[list[tuple[int | None, str]]]]
LIMITS = ParseLimits(memory_mb=1024, cpu_seconds=20, wall_seconds=60, max_text_chars=5_000_000)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def read() -> AsyncIterator[Read]:
    async def one(
        parse: Callable[..., Awaitable[ParsedDocument]], path: Path, ocr: OcrOptions
    ) -> list[tuple[int | None, str]]:
        kind = detect_media_type(path)
        parser = next(parser for parser in BUILTIN_PARSERS if kind in parser.media_types)
        found = await parse(path, parser, LIMITS._replace(ocr=ocr), path.parent / "sink")
        return [(block.page, " ".join(block.text.split())) for block in read_blocks(found.sink)]

    async with aclosing(parser_processes()) as children:
        yield partial(one, partial(parse_by, children))


@needs_tesseract
async def test_a_scan(read: Read, tmp_path: Path) -> None:
    """Pages without text are recognized, each under its number."""
    path = documents.scan(tmp_path / "scan", [["The harbour master"], ["signed on Friday"]])
    assert await read(path, OcrOptions()) == [(1, "The harbour master"), (2, "signed on Friday")]
    with pytest.raises(SlowDocument):
        await read(path, OcrOptions(most_pages=1))


@needs_tesseract
@pytest.mark.parametrize("strips", [1, 7])
async def test_a_scan_with_a_stamp(read: Read, tmp_path: Path, strips: int) -> None:
    stamp = "Scanned with PaperBoy - ABC 000123"
    path = documents.stamped_scan(tmp_path / "scan", stamp, "The harbour master", strips=strips)
    [(_, text)] = await read(path, OcrOptions())
    assert text.startswith("The harbour master") and text.count("ABC 000123") == 1


async def test_a_text_above_a_picture_is_read_as_it_is(read: Read, tmp_path: Path) -> None:
    lines = [f"The lock keeper signed for the barge number {number} on Friday." for number in range(3)]
    path = documents.stamped_scan(tmp_path / "scan", "\n".join(lines), "The harbour master")
    assert await read(path, OcrOptions()) == [(1, " ".join(lines))]


@needs_tesseract
@pytest.mark.parametrize("form", ["GIF", "WEBP", "PNG", "JPEG", "BMP", "TIFF"])
async def test_pictures_of_every_kind(read: Read, tmp_path: Path, form: str) -> None:
    documents.picture("The harbour master").save(tmp_path / "photo", form)
    assert await read(tmp_path / "photo", OcrOptions()) == [(None, "The harbour master")]


@needs_tesseract
async def test_which_page_is_read_of_how_many(read: Read, tmp_path: Path) -> None:
    path = documents.scan(tmp_path / "scan", [["The harbour master"], ["signed on Friday"], ["at noon"]])
    await read(path, OcrOptions())
    assert last_place(tmp_path / "sink") == ParserPosition(3, 3, 2)


@needs_tesseract
async def test_a_picture_of_several_pages(read: Read, tmp_path: Path) -> None:
    pages = [documents.picture(f"Invoice 471{number}") for number in (1, 2, 3)]
    path = tmp_path / "fax"
    pages[0].save(path, "TIFF", save_all=True, append_images=pages[1:])
    assert await read(path, OcrOptions()) == [(n, f"Invoice 471{n}") for n in (1, 2, 3)]
    assert last_place(tmp_path / "sink") == ParserPosition(3, 3, 2)
    with pytest.raises(SlowDocument):
        await read(path, OcrOptions(most_pages=2))


def fax(path: Path, pages: int, **options: object) -> Path:
    """A TIFF of several pages; the pixels of each follow its entry in the list."""
    first, *others = (documents.picture(f"Invoice 471{number}") for number in range(1, pages + 1))
    first.save(path, "TIFF", save_all=True, append_images=others, **options)
    return path


@needs_tesseract
@pytest.mark.parametrize("big", [False, True])
async def test_a_picture_that_was_cut_off(read: Read, tmp_path: Path, big: bool) -> None:
    """Of a transfer that broke off, the pages that came say nothing about those that are missing."""
    path = fax(tmp_path / "fax", 4, big_tiff=big)
    assert len(await read(path, OcrOptions())) == 4
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2 - 100])
    with pytest.raises(UnparsableDocument) as caught:
        await read(path, OcrOptions())
    assert caught.value.code == "corrupt"


@needs_tesseract
async def test_a_page_that_is_damaged_is_told(platform_home: Path, tmp_path: Path) -> None:
    """The others are read, and it is said that one is missing. When none can be read, the file is damaged."""
    path = fax(tmp_path / "fax", 3)
    content = path.read_bytes()
    async with platforms(platform_home) as start:
        running = await start("rag", HashEmbeddings())
        ann = await somebody(running)
        base = await make_base(ann)
        part = await ingest(running, ann, base, "part.tiff", content[:-1_000])
        gone = await ingest(running, ann, base, "gone.tiff", without_pixels(content))
    assert (part["status"], part["page_count"]) == ("completed", 3)
    assert part["notice"].startswith("One page ") and " 3 " in part["notice"]
    assert gone["status"] == "failed" and "damaged" in gone["error"]


def without_pixels(tiff: bytes) -> bytes:
    """The same TIFF, whose strips are said to lie beyond its end."""
    changed, link = bytearray(tiff), 4
    while start := int.from_bytes(tiff[link : link + 4], "little"):
        entries = int.from_bytes(tiff[start : start + 2], "little")
        link = start + 2 + 12 * entries
        for entry in range(start + 2, link, 12):
            if tiff[entry : entry + 2] == (273).to_bytes(2, "little"):
                changed[entry + 4 : entry + 12] = (1).to_bytes(4, "little") + b"\xff\xff\xff\x7f"
    return bytes(changed)


@needs_tesseract
@pytest.mark.parametrize("kind", ["scan", "fax"])
async def test_too_many_pages_are_known_before_one_is_recognized(tmp_path: Path, kind: str) -> None:
    if kind == "scan":
        path = documents.scan(tmp_path / kind, [[f"Page {number}"] for number in range(4)])
    else:
        path = fax(tmp_path / kind, 4)
    options = OPTIONS.set(OcrOptions(most_pages=3))
    try:
        with pytest.raises(SlowDocument):
            for block in (from_pdf if kind == "scan" else from_image).parse(path):
                raise AssertionError(block)
    finally:
        OPTIONS.reset(options)


@needs_tesseract
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF"])
async def test_a_picture(read: Read, tmp_path: Path, kind: str) -> None:
    """Photos in the usual formats; one that is damaged says so."""
    path = tmp_path / "photo"
    documents.picture("Invoice 4711").save(path, kind)
    assert await read(path, OcrOptions()) == [(None, "Invoice 4711")]
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(UnparsableDocument) as caught:
        await read(path, OcrOptions())
    assert caught.value.code in ("corrupt", "no_text")


async def test_a_scan_without_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has no tesseract is told to install it; a page without text is none the less no scan."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnparsableDocument) as caught:
        list(from_pdf.parse(documents.scanned_pdf(tmp_path / "scan")))
    assert caught.value.code == "no_ocr" and "tesseract" in caught.value.detail
    assert [block.text for block in from_pdf.parse(documents.pdf(tmp_path / "blank", [[], ["Hello"]]))][1:]


async def test_pages_that_nobody_read_are_told(
    platform_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A document with text is completed; it says how many of its pages are missing, and what to do."""
    monkeypatch.setenv("PATH", str(tmp_path))
    whole = documents.pdf(tmp_path / "whole.pdf", [["The lock keeper waits."]]).read_bytes()
    partly = documents.partly_scanned_pdf(tmp_path / "partly.pdf").read_bytes()
    async with platforms(platform_home) as start:
        running = await start("rag", HashEmbeddings())
        ann = await somebody(running)
        base = await make_base(ann)
        read = await ingest(running, ann, base, "whole.pdf", whole)
        part = await ingest(running, ann, base, "partly.pdf", partly)
    assert (read["status"], read["notice"]) == ("completed", None)
    assert (part["status"], part["error"], part["page_count"]) == ("completed", None, 3)
    assert part["notice"].startswith("2 pages ") and "tesseract" in part["notice"]


@needs_tesseract
async def test_a_language_that_is_missing(read: Read, tmp_path: Path) -> None:
    path = tmp_path / "photo"
    documents.picture("Hello").save(path, "PNG")
    with pytest.raises(UnparsableDocument) as caught:
        await read(path, OcrOptions("tlh"))
    assert caught.value.code == "no_ocr" and "PLATFORM_RAG_OCR_LANGUAGES" in caught.value.detail


OLD_FILES = {
    "cp1251": "Обсерватория была основана в 1897 году. Съешь же ещё этих мягких французских булок.",
    "koi8_r": "Обсерватория была основана в 1897 году. Съешь же ещё этих мягких французских булок.",
    "cp932": "この天文台は1897年に設立されました。吾輩は猫である。名前はまだ無い。",
    "gb18030": "我们在北京的天文台成立于1897年，目前有三十名工作人员。",
    "big5": "我們在台北的天文台成立於1897年，目前有三十名工作人員。",
    "cp949": "우리 천문대는 1897년에 설립되었으며 현재 직원은 서른 명입니다.",
    "cp1250": "Příliš žluťoučký kůň úpěl ďábelské ódy. Hvězdárna byla založena v roce 1897.",
    "cp1253": "Το αστεροσκοπείο ιδρύθηκε το 1897. Η ταχύτατη αλεπού πηδάει πάνω από το σκυλί.",
    "cp1254": "Gözlemevi 1897 yılında kuruldu ve şimdi otuz çalışanı var. Gece gündüz ölçüyorlar.",
    "cp1255": "המצפה נוסד בשנת 1897 וכיום עובדים בו שלושים איש.",
    "cp1256": "تأسس المرصد عام 1897 ويعمل فيه الآن ثلاثون شخصا.",
    "cp874": "หอดูดาวก่อตั้งขึ้นในปี 2440 และปัจจุบันมีพนักงานสามสิบคน",
    "cp1252": "Das Observatorium wurde 1897 gegründet. Große Höhe, überall Nässe – „schön“ für 5 €.",
    "latin-1": "El niño comió jamón en la montaña. ¿Dónde está el observatorio? Según el señor Núñez.",
}


@pytest.mark.parametrize("codec", OLD_FILES)
async def test_old_code_pages(read: Read, tmp_path: Path, codec: str) -> None:
    path = tmp_path / "old"
    text = "\n".join([OLD_FILES[codec]] * 3)
    path.write_bytes(text.encode(codec))
    assert await read(path, OcrOptions()) == [(None, " ".join(text.split()))]


@needs_tesseract
@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
async def test_animated_webp(tmp_path: Path, mode: str) -> None:
    """Of a WebP that moves, the first frame is read, with transparent places or without."""
    first, second = (documents.picture(line).convert(mode) for line in ("The harbour master", "Someone"))
    if mode == "RGBA":
        first.putpixel((5, 5), (255, 255, 255, 0))
    path = tmp_path / "a.webp"
    first.save(path, save_all=True, append_images=[second], duration=500, lossless=True)
    (block,) = from_image.parse(path)
    assert block.text.strip() == "The harbour master"


async def test_damaged_animation_is_left_as_it_is() -> None:
    """A WebP without a whole frame is given to the reader, which says what is wrong with it."""
    for cut in (b"RIFF\x20\0\0\0WEBPVP8X", b"RIFF\x20\0\0\0WEBPVP8X\x0a\0\0\0", b"RIFFxxxxWEBPVP8 xxxx"):
        assert from_image.still(cut) == cut


@needs_tesseract
async def test_copies_of_a_photo_are_no_page(tmp_path: Path) -> None:
    """A photo that is drawn several times in its place leaves a page of few words what it is."""
    document = Canvas(str(tmp_path / "a.pdf"), pagesize=(600, 800))
    document.drawString(50, 750, "The harbour in May")
    for _ in range(4):
        document.drawInlineImage(documents.picture("No text").convert("RGB"), 50, 300, 400, 300)
    document.save()
    (block,) = from_pdf.parse(tmp_path / "a.pdf")
    assert block.text == "The harbour in May" and not block.recognized


SCANS = {
    "eng": "The members of the club meet on the first Monday of the month. For the rent of the rooms they "
    "pay 900 euro a year, and whoever comes late has to wait at the door.",
    "deu": "Die Mitglieder des Vereins treffen sich am ersten Montag im Monat. Für die Miete der Räume "
    "zahlen sie jährlich 900 Euro, und wer zu spät kommt, der muss vor der Tür warten.",
    "fra": "Les membres de l'association se réunissent le premier lundi du mois. Pour la location des "
    "salles, ils paient chaque année 900 euros, et celui qui arrive en retard doit attendre.",
    "spa": "Los miembros de la asociación se reúnen el primer lunes del mes. Por el alquiler de las salas "
    "pagan cada año 900 euros, y el que llega tarde tiene que esperar en la puerta.",
    "ita": "I soci dell'associazione si riuniscono il primo lunedì del mese. Per l'affitto delle sale "
    "pagano ogni anno 900 euro, e chi arriva in ritardo deve aspettare davanti alla porta.",
    "por": "Os membros da associação reúnem-se na primeira segunda-feira do mês. Pelo aluguel das salas "
    "pagam 900 euros por ano, e quem chega atrasado tem de esperar na porta da sala.",
    "nld": "De leden van de vereniging komen op de eerste maandag van de maand bij elkaar. Voor de huur van "
    "de zalen betalen zij elk jaar 900 euro, en wie te laat komt moet wachten.",
    "swe": "Föreningens medlemmar träffas den första måndagen i månaden. För hyran av lokalerna betalar de "
    "varje år 900 euro, och den som kommer för sent får vänta vid dörren.",
    "pol": "Członkowie stowarzyszenia spotykają się w pierwszy poniedziałek miesiąca. Za wynajem sal płacą "
    "co roku 900 euro, a kto się spóźni, ten musi czekać przed drzwiami.",
    "fin": "Yhdistyksen jäsenet tapaavat kuukauden ensimmäisenä maanantaina. Tilojen vuokrasta he maksavat "
    "joka vuosi 900 euroa, ja se joka tulee myöhässä joutuu odottamaan oven takana.",
    "ron": "Membrii asociației se întâlnesc în prima zi de luni a lunii. Pentru închirierea sălilor plătesc "
    "în fiecare an 900 de euro, iar cine întârzie trebuie să aștepte la ușă.",
}


@pytest.mark.long
@needs_tesseract
async def test_a_scan_in_another_language(platform_home: Path) -> None:
    """The notice names the language that the scan seems to be in; one that was read has none, nor a text."""
    async with platforms(platform_home) as start:
        running = await start("rag", HashEmbeddings())
        ann = await somebody(running)
        base = await make_base(ann)

        async def notice(name: str, content: bytes) -> str:
            record = await ingest(running, ann, base, name, content)
            assert record["status"] == "completed", record
            return record["notice"] or ""

        for code, text in SCANS.items():
            file = BytesIO()
            documents.picture(*wrap(text, 50)).save(file, "PNG")
            told = await notice(f"{code}.png", file.getvalue())
            assert (f"tesseract-ocr-{code}" in told) is (code != "eng"), (code, told)
            assert not await notice(f"{code}.txt", text.encode())
        words = ["Invoice 4711", "Item Qty Price", "A-17 pump die cast 2 41.50", "B-3 gasket 12 3.20"]
        file = BytesIO()
        documents.picture(*words * 4).save(file, "PNG")
        assert not await notice("invoice.png", file.getvalue())
