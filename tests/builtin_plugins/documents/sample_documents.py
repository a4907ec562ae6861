"""Makes small real documents of every kind that the platform reads, and some that were made to do harm."""

from __future__ import annotations

import ctypes
import io
import struct
import zipfile
from collections.abc import Callable, Mapping, Sequence
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import docx
import openpyxl
import pptx
import pypdfium2
from PIL import Image, ImageDraw, ImageFont
from pptx.util import Inches
from pypdfium2 import raw
from reportlab.pdfgen import canvas

SENTENCE = "The quick brown fox number {0} jumps over the lazy dog near the river bank while it rains."


def prose(lines: int, start: int = 0) -> list[str]:
    """Return lines of different text."""
    return [SENTENCE.format(number) for number in range(start, start + lines)]


def pdf(path: Path, pages: Sequence[Sequence[str]], password: str | None = None) -> Path:
    """Write a PDF with a text layer; a page is a list of lines. `password` encrypts it."""
    document = canvas.Canvas(str(path), encrypt=password)
    for lines in pages:
        text = document.beginText(50, 800)
        for line in lines:
            text.textLine(line)
        document.drawText(text)
        document.showPage()
    document.save()
    return path


def scanned_pdf(path: Path, pages: int = 2) -> Path:
    """Write a PDF with drawings and no text."""
    document = canvas.Canvas(str(path))
    for _ in range(pages):
        document.rect(100, 100, 200, 200, fill=1)
        document.showPage()
    document.save()
    return path


def partly_scanned_pdf(path: Path) -> Path:
    """Write a PDF of three pages: text, and two pictures."""
    document = canvas.Canvas(str(path))
    document.drawString(50, 800, "The harbour master signed on Friday.")
    document.showPage()
    for _ in range(2):
        document.drawInlineImage(picture("The lock keeper"), 0, 500, 595, 96)
        document.showPage()
    document.save()
    return path


def word(path: Path, build: Callable[[docx.document.Document], object]) -> Path:
    """Write a Word document that `build` fills."""
    document = docx.Document()
    build(document)
    document.save(str(path))
    return path


def slides(path: Path, texts: Sequence[tuple[str, str]], notes: str = "") -> Path:
    """Write a presentation of (title, body) slides; `notes` go under the first."""
    show = pptx.Presentation()
    for title, body in texts:
        slide = show.slides.add_slide(show.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = body
    if notes:
        show.slides[0].notes_slide.notes_text_frame.text = notes
    show.save(str(path))
    return path


def slide_with_table(path: Path, rows: Sequence[Sequence[str]]) -> Path:
    """Write a presentation whose only slide is a table."""
    show = pptx.Presentation()
    slide = show.slides.add_slide(show.slide_layouts[6])
    size = (Inches(1), Inches(1), Inches(6), Inches(3))
    table = slide.shapes.add_table(len(rows), len(rows[0]), *size).table
    for row_number, row in enumerate(rows):
        for column, value in enumerate(row):
            table.cell(row_number, column).text = value
    show.save(str(path))
    return path


def workbook(path: Path, sheets: dict[str, Sequence[Sequence[object]]]) -> Path:
    """Write a workbook with the given rows per sheet."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(list(row))
    # openpyxl insists on the suffix, so the bytes are written by us.
    buffer = io.BytesIO()
    book.save(buffer)
    path.write_bytes(buffer.getvalue())
    return path


def rewrite(package: Path, change: Callable[[str, bytes], bytes]) -> Path:
    """Replace the members of a zip by what `change(name, data)` returns."""
    with zipfile.ZipFile(package) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(package, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, change(name, data))
    return package


def add_member(package: Path, name: str, size: int) -> Path:
    """Add a member of `size` zero bytes, which deflate to a thousandth."""
    with (
        zipfile.ZipFile(package, "a", zipfile.ZIP_DEFLATED) as archive,
        archive.open(name, "w", force_zip64=True) as member,
    ):
        for _ in range(size // 1_048_576):
            member.write(bytes(1_048_576))
    return package


def billion_laughs(package: Path, part: str) -> Path:
    """Put nested entities before the root of a part, and a reference to them into its text."""
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    doctype = f'<!DOCTYPE bomb [<!ENTITY l0 "lol">{entities}]>'.encode()

    def change(name: str, data: bytes) -> bytes:
        if name != part:
            return data
        end = data.index(b"?>") + 2 if data.startswith(b"<?xml") else 0
        return data[:end] + doctype + data[end:].replace(b"LAUGH", b"&l9;")

    return rewrite(package, change)


def package(path: Path, members: dict[str, str | bytes]) -> Path:
    """Write a zip with these members in this order: EPUB and OpenDocument want the kind first."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data, zipfile.ZIP_STORED if name == "mimetype" else None)
    return path


CONTAINER = (
    '<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/>'
    "</rootfiles></container>"
)


def book(path: Path, chapters: Sequence[str], extra: dict[str, str | bytes] | None = None) -> Path:
    """Write an EPUB whose spine has the chapters (XHTML bodies) in order, and its files in another."""
    names = [f"chapter {number}.xhtml" for number in range(len(chapters))]
    items = "".join(
        f'<item id="c{at}" href="{name.replace(" ", "%20")}" media-type="application/xhtml+xml"/>'
        for at, name in reversed(list(enumerate(names)))
    )
    spine = "".join(f'<itemref idref="c{at}"/>' for at in range(len(names)))
    opf = (
        '<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0">'
        '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>The Keepers</dc:title></metadata>'
        f'<manifest><item id="css" href="a.css" media-type="text/css"/>{items}</manifest>'
        f"<spine>{spine}</spine></package>"
    )
    page = (
        '<?xml version="1.0" encoding="utf-8"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml">'
        '<head><title/><script src="a.js"/></head><body>{}</body></html>'
    )
    members: dict[str, str | bytes] = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": CONTAINER,
        "OEBPS/book.opf": opf,
    }
    members |= {f"OEBPS/{name}": page.format(body) for name, body in zip(names, chapters, strict=True)}
    return package(path, members | (extra or {}))


_NAMESPACES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for name in ("office", "text", "table", "style", "drawing", "presentation")
)


def open_document(path: Path, body: str, manifest: str = "<manifest/>", doctype: str = "") -> Path:
    """Write an ODT with this body."""
    content = (
        f'<?xml version="1.0" encoding="UTF-8"?>{doctype}<office:document-content {_NAMESPACES}>'
        f"<office:body><office:text>{body}</office:text></office:body></office:document-content>"
    )
    kind = "application/vnd.oasis.opendocument.text"
    members: dict[str, str | bytes] = {"mimetype": kind, "content.xml": content}
    return package(path, {**members, "META-INF/manifest.xml": manifest})


def rich_text(*paragraphs: str, picture: int = 0) -> bytes:
    """Spell an RTF file, with a picture of some bytes."""
    drawn = (
        "{\\pict\\pngblip\n" + "\n".join(["89504e470d0a1a0a" * 8] * (picture // 64)) + "}" if picture else ""
    )
    spelled = "\\par\n".join(
        "".join(c if c.isascii() else f"\\u{ord(c)}?" for c in text) for text in paragraphs
    )
    fonts = "{\\fonttbl{\\f0 Arial;}}"
    return ("{\\rtf1\\ansi\\ansicpg1252" + fonts + drawn + "\\f0 " + spelled + "}").encode("ascii")


def mail(text: str = "", html: str = "", attachments: Sequence[str] = (), **headers: str) -> bytes:
    """Spell an e-mail as mail programs do."""
    message = EmailMessage()
    known = {"Subject": "Tide tables", "From": "Ann <ann@example.org>", "To": "bob@example.org"}
    for name, value in {**known, "Message-ID": "<1@example.org>", **headers}.items():
        message[name] = value
    if text:
        message.set_content(text)
    if html and text:
        message.add_alternative(html, subtype="html")
    elif html:
        message.set_content(html, subtype="html")
    for name in attachments:
        message.add_attachment(b"%PDF-1.7 secret", maintype="application", subtype="pdf", filename=name)
    return message.as_bytes()


def outlook_message(subject: str, text: str, attachments: dict[str, bytes]) -> bytes:
    """Return an Outlook message ([MS-OXMSG]) with attachments."""
    fields = {0x0037: subject, 0x0C1A: "Ada Lovelace", 0x5D01: "ada@example.org", 0x0E04: "Bob", 0x1000: text}
    return compound_file(outlook_properties(fields, attachments))


Tree = dict[str, Any]


def outlook_properties(
    fields: Mapping[int, str | bytes], attachments: Mapping[str, bytes | Tree], code_page: int | None = None
) -> Tree:
    """Return the streams of an Outlook message: text, binary fields, and attached files and messages.

    With a code page, texts aren't Unicode.
    """
    number = struct.pack("<IIQ", 0x3FFD0003, 6, code_page) if code_page else b""
    tree: Tree = {"__properties_version1.0": bytes(32) + number}
    for tag, value in fields.items():
        if isinstance(value, bytes):
            tree[f"__substg1.0_{tag:04X}0102"] = value
        elif code_page:
            tree[f"__substg1.0_{tag:04X}001E"] = value.encode(f"cp{code_page}")
        else:
            tree[f"__substg1.0_{tag:04X}001F"] = value.encode("utf-16-le")
    for place, (name, data) in enumerate(attachments.items()):
        tree[f"__attach_version1.0_#{place:08X}"] = {
            "__properties_version1.0": bytes(8),
            "__substg1.0_3707001F": name.encode("utf-16-le"),
            f"__substg1.0_3701{'0102' if isinstance(data, bytes) else '000D'}": data,
        }
    return tree


def compound_file(tree: Tree) -> bytes:
    """Return a compound file ([MS-CFB], version 3): streams, and folders of streams.

    Every stream is padded to the size from which streams have sectors of their own, so there is no mini
    stream; siblings are a list rather than a balanced tree, which readers accept.
    """
    sectors: list[bytes] = []
    chain: list[int] = []
    entries: list[tuple[str, int, int, int, int, int]] = []

    def store(data: bytes) -> tuple[int, int]:
        padded = data.ljust(4096, b"\0")
        parts = [padded[at : at + 512].ljust(512, b"\0") for at in range(0, len(padded), 512)]
        first = len(sectors)
        sectors.extend(parts)
        chain.extend([*range(first + 1, first + len(parts)), 0xFFFFFFFE])
        return first, len(padded)

    def add(folder: dict[str, Any]) -> int:
        """Write the entries of a folder; returns the number of its first."""
        first, previous = 0xFFFFFFFF, -1
        for name in sorted(folder, key=lambda one: (len(one), one.upper())):
            value = folder[name]
            number = len(entries)
            if previous >= 0:
                entries[previous] = (*entries[previous][:2], number, *entries[previous][3:])
            else:
                first = number
            start, size = (0, 0) if isinstance(value, dict) else store(value)
            entries.append((name, 1 if isinstance(value, dict) else 2, 0xFFFFFFFF, 0xFFFFFFFF, start, size))
            if isinstance(value, dict):
                child = add(value)
                entries[number] = (*entries[number][:3], child, *entries[number][4:])
            previous = number
        return first

    entries.append(("Root Entry", 5, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFE, 0))
    entries[0] = (*entries[0][:3], add(tree), *entries[0][4:])
    listed = b"".join(
        name.encode("utf-16-le").ljust(64, b"\0")
        + struct.pack("<HBBIII", 2 * len(name) + 2, kind, 1, 0xFFFFFFFF, right, child)
        + bytes(36)
        + struct.pack("<IQ", start, size)
        for name, kind, right, child, start, size in entries
    )
    unused = bytes(64) + struct.pack("<HBBIII", 0, 0, 0, *[0xFFFFFFFF] * 3) + bytes(48)
    listed += unused * (-len(entries) % 4)
    directory = len(sectors)
    parts = [listed[at : at + 512] for at in range(0, len(listed), 512)]
    sectors.extend(parts)
    chain.extend([*range(directory + 1, directory + len(parts)), 0xFFFFFFFE])
    tables = 1
    while tables * 128 < len(chain) + tables:
        tables += 1
    where = range(len(sectors), len(sectors) + tables)
    chain.extend([0xFFFFFFFD] * tables)
    table = struct.pack(f"<{len(chain)}I", *chain).ljust(tables * 512, b"\xff")
    header = struct.pack(
        "<8s16xHHHHH6xIIIIIIIII",
        *(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 0x3E, 3, 0xFFFE, 9, 6, 0, tables, directory),
        *(0, 4096, 0xFFFFFFFE, 0, 0xFFFFFFFE, 0),
    )
    header += struct.pack(f"<{tables}I", *where).ljust(436, b"\xff")
    return header + b"".join(sectors) + table


def picture(*lines: str) -> Any:
    """Return a picture of typed lines, as a scanner makes it."""
    page = Image.new("L", (1240, 200 + 80 * len(lines)), 255)
    font = ImageFont.load_default(40)
    for number, line in enumerate(lines):
        ImageDraw.Draw(page).text((80, 80 + 80 * number), line, fill=0, font=font)
    return page


def scan(path: Path, pages: Sequence[Sequence[str]]) -> Path:
    """Write a PDF whose pages are pictures of text."""
    document = canvas.Canvas(str(path))
    for lines in pages:
        document.drawInlineImage(picture(*lines), 0, 500, 595, 96)
        document.showPage()
    document.save()
    return path


def stamped_scan(path: Path, stamp: str, *lines: str, strips: int = 1) -> Path:
    """Write a PDF of one page: a picture of all of it, in strips, and a stamp as text above it."""
    page = Image.new("L", (1240, 1754), 255)
    page.paste(picture(*lines))
    height = 1754 // strips
    document = canvas.Canvas(str(path))
    for number in range(strips):
        strip = page.crop((0, number * height, 1240, (number + 1) * height))
        document.drawInlineImage(strip, 0, 842 * (1 - (number + 1) / strips), 595, 842 / strips)
    for number, line in enumerate(stamp.splitlines()):
        document.drawString(50, 70 - 15 * number, line)
    document.save()
    return path


def portfolio(path: Path, files: dict[str, bytes], pinned: dict[str, bytes]) -> None:
    """A PDF with an empty page and files inside."""
    document = pypdfium2.PdfDocument.new()
    page = document.new_page(200, 200)
    for name, content in files.items():
        attachment = document.new_attachment(name)
        if content:
            attachment.set_data(content)
    for name, content in pinned.items():
        annotation = raw.FPDFPage_CreateAnnot(page, raw.FPDF_ANNOT_FILEATTACHMENT)
        wide = ctypes.create_string_buffer(f"{name}\0".encode("utf-16-le"))
        held = raw.FPDFAnnot_AddFileAttachment(annotation, ctypes.cast(wide, raw.FPDF_WIDESTRING))
        pypdfium2.PdfAttachment(held, document).set_data(content)
        raw.FPDFPage_CloseAnnot(annotation)
    document.save(path)
