"""Media types are found by content; names only break ties between flavours of text."""

from __future__ import annotations

import json
import struct
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from builtin_plugins.documents.archives.archive import MAX_DIRECTORY_BYTES
from builtin_plugins.documents.detection import detect_media_type
from builtin_plugins.documents.parsers import BUILTIN_PARSERS
from builtin_plugins.documents.text.encoding import detect_encoding, read_portions
from tests.builtin_plugins.documents.sample_documents import pdf, prose, rewrite, slides, word, workbook

WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
SHOW = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
SHEET = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


def detect(folder: Path, data: bytes, name: str | None = None) -> str | None:
    path = folder / "blob"
    path.write_bytes(data)
    return detect_media_type(path, name)


def test_office_documents_by_their_main_part(tmp_path: Path) -> None:
    assert detect_media_type(word(tmp_path / "a", lambda d: d.add_paragraph("x")), "a.pdf") == WORD
    assert detect_media_type(slides(tmp_path / "b", [("t", "b")]), "b.txt") == SHOW
    assert detect_media_type(workbook(tmp_path / "c", {"s": [["x"]]}), "c.docx") == SHEET


def test_macro_variant_has_its_own_type(tmp_path: Path) -> None:
    package = word(tmp_path / "m", lambda d: d.add_paragraph("x"))
    main = f"{WORD}.main+xml".encode()
    macro = b"application/vnd.ms-word.document.macroEnabled.main+xml"
    rewrite(package, lambda name, data: data.replace(main, macro))
    found = detect_media_type(package)
    assert found == "application/vnd.ms-word.document.macroEnabled.12"
    assert any(found in parser.media_types for parser in BUILTIN_PARSERS)


def test_main_part_declared_by_its_suffix(tmp_path: Path) -> None:
    """.NET programs declare the type of the main part for all XML parts, and the others one by one."""
    package = word(tmp_path / "d", lambda d: d.add_paragraph("x"))
    own = f'<Override PartName="/word/document.xml" ContentType="{WORD}.main+xml"/>'.encode()
    usual = b'<Default Extension="xml" ContentType="application/xml"/>'
    suffix = f'<Default Extension="xml" ContentType="{WORD}.main+xml"/>'.encode()
    rewrite(package, lambda name, data: data.replace(own, b"").replace(usual, suffix))
    assert detect_media_type(package) == WORD


def test_word_document_with_embedded_sheet_stays_word(tmp_path: Path) -> None:
    package = word(tmp_path / "e", lambda d: d.add_paragraph("x"))
    extra = f'<Override PartName="/word/embeddings/s.xlsx" ContentType="{SHEET}"/></Types>'.encode()
    rewrite(package, lambda name, data: data.replace(b"</Types>", extra))
    assert detect_media_type(package) == WORD


def test_declared_but_missing_main_part_is_unsupported(tmp_path: Path) -> None:
    """Content types that promise a part which is not in the zip do not make an office document."""
    path = tmp_path / "z"
    with zipfile.ZipFile(path, "w") as archive:
        override = f'<Types><Override PartName="/word/document.xml" ContentType="{WORD}.main+xml"/></Types>'
        archive.writestr("[Content_Types].xml", override)
    assert detect_media_type(path) is None


def test_other_zip_is_an_archive(tmp_path: Path) -> None:
    """A zip of anything else is an archive, even one called docx; a package nobody reads is none."""
    path = tmp_path / "z"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("hello.txt", "hello")
    assert detect_media_type(path, "report.docx") == "application/zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.presentation")
    assert detect_media_type(path, "talk.odp") is None


def test_huge_zip_directory_is_not_loaded(tmp_path: Path) -> None:
    path = tmp_path / "z"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(MAX_DIRECTORY_BYTES // 240 + 1):
            archive.writestr(f"{number:0200d}", b"")
        override = f'<Types><Override PartName="/word/document.xml" ContentType="{WORD}.main+xml"/></Types>'
        archive.writestr("word/document.xml", "<x/>")
        archive.writestr("[Content_Types].xml", override)
    assert detect_media_type(path) is None


@pytest.mark.parametrize("name", ["mimetype", "[Content_Types].xml"])
@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_bomb_in_place_of_a_type(tmp_path: Path, name: str, method: int) -> None:
    """The beginning of a member is not read where that would unpack all of it: the server itself reads it."""
    with zipfile.ZipFile(tmp_path / "z", "w", method) as archive:
        archive.writestr(name, bytes(40 << 20))
    tracemalloc.start()
    try:
        assert detect_media_type(tmp_path / "z") is None
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 20 << 20


@pytest.mark.parametrize("cut", [4, 30, 200, -10])
def test_broken_zip_is_unsupported(tmp_path: Path, cut: int) -> None:
    data = word(tmp_path / "w", lambda d: d.add_paragraph("x")).read_bytes()
    assert detect(tmp_path, data[:cut]) is None


@pytest.mark.parametrize("cut", [7, 900])
def test_zip_with_a_piece_missing(tmp_path: Path, cut: int) -> None:
    data = word(tmp_path / "w", lambda d: d.add_paragraph("x")).read_bytes()
    assert detect(tmp_path, data[:100] + data[100 + cut :]) is None


@pytest.mark.parametrize("sign", [b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"])
def test_tiff(tmp_path: Path, sign: bytes) -> None:
    """In both byte orders, with offsets of 32 and of 64 bits."""
    assert detect(tmp_path, sign + b"\x08\0\0\0 and some words", "a.txt") == "image/tiff"


def test_pdf_after_other_bytes(tmp_path: Path) -> None:
    """The PDF mark counts within the first 1,024 bytes, and not later."""
    data = pdf(tmp_path / "p", [prose(3)]).read_bytes()
    assert detect(tmp_path, data, "a.txt") == "application/pdf"
    assert detect(tmp_path, b"junk " * 100 + data) == "application/pdf"
    assert detect(tmp_path, b"junk " * 300 + data) != "application/pdf"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<!DOCTYPE html><html><body>x", "text/html"),
        ("\n<!-- c --> <!-- d --><html lang=en>", "text/html"),
        ('<?xml version="1.0"?>\n<!DOCTYPE html PUBLIC "x"><html>', "text/html"),
        ('{"a": [1, 2.5e3, null], "b": {"c": "d"}}', "application/json"),
        ('[{"a": "cut in the mid', "application/json"),
        ("[]", "application/json"),
        ('{"a": 1}\n{"a": 2}\n', "application/x-ndjson"),
        ('{"a": 1}\n{"a": ', "application/x-ndjson"),
        ("[1] Smith, J. 2003. On foxes.\n[2] Doe.", "text/plain"),
        ("[section]\nkey = value\n", "text/plain"),
        ("{{ template }} text", "text/plain"),
        ("name;age;town\nAnn;31;Oslo\nBob;40;Rome\n", "text/csv"),
        ('a,b\n"x, y",2\n"z",3\n', "text/csv"),
        ("a\tb\n1\t2\n3\t4\n", "text/csv"),
        ("Hello, world\nGoodbye, world\n", "text/plain"),
        ("# Title\n\n- one\n- two\n", "text/markdown"),
        ("See [here](http://x.y) and **bold**.", "text/markdown"),
        ("Just a line of words.", "text/plain"),
        ("日本語のテキストです。", "text/plain"),
    ],
)
def test_flavours_of_text(tmp_path: Path, text: str, expected: str) -> None:
    """Each flavour is recognised without a name; what only looks like one stays plain text."""
    assert detect(tmp_path, text.encode()) == expected


def test_name_breaks_ties_only_between_text_flavours(tmp_path: Path) -> None:
    assert detect(tmp_path, b"plain words", "notes.MD") == "text/markdown"
    assert detect(tmp_path, b"plain words", "list.csv") == "text/csv"
    assert detect(tmp_path, b"a,b,c\n1,2,3\n4,5,6", "list.txt") == "text/plain"
    assert detect(tmp_path, b"plain words", "paper.pdf") == "text/plain"
    assert detect(tmp_path, b'{"a": 1}', "data.md") == "application/json"


@pytest.mark.parametrize(
    "text",
    [
        "Åse\x85måler\x85vind\x85på\x85Senja",  # NEL for line ends, from a mainframe
        "\x93Été\x94 à l’œuvre \x96 déjà",  # windows-1252 quotes, converted as if they were Latin-1
        "\ue000\ue001 naïve \ue002",  # an icon font
    ],
)
def test_valid_utf_8_is_text(tmp_path: Path, text: str) -> None:
    """Strictly valid UTF-8 is text, whatever controls above U+007F it has, and keeps every letter."""
    file = tmp_path / "notes.txt"
    file.write_bytes(text.encode())
    assert detect_media_type(file, file.name) == "text/plain"
    assert detect_encoding(file.read_bytes()) == "utf-8"
    assert "".join(read_portions(file, 1000)) == text


@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16", "utf-32", "cp1252"])
def test_encodings(tmp_path: Path, codec: str) -> None:
    """Marked Unicode and printable windows-1252 are text."""
    assert detect(tmp_path, "Über 20 Füchse – «schnell»".encode(codec)) == "text/plain"


def test_character_cut_at_the_end_of_the_head(tmp_path: Path) -> None:
    """A character that the 64 KiB head cuts in two does not turn UTF-8 into something else."""
    data = ("x" + "я" * 70_000).encode()
    assert detect(tmp_path, data) == "text/plain"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x7fELF" + bytes(4000),
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600),
        struct.pack("<500h", *range(500)),  # sound, for example
        b"%!PS-Adobe-3.0 hello",
        b"RIFF" + bytes(range(256)) * 10,
    ],
)
def test_binary_is_unsupported(tmp_path: Path, data: bytes) -> None:
    """Programs, sounds, old office files and PostScript are no text, whatever the name."""
    assert detect(tmp_path, data, "a.txt") is None


def test_few_control_characters_are_tolerated(tmp_path: Path) -> None:
    assert detect(tmp_path, b"a" * 999 + b"\x01") == "text/plain"
    assert detect(tmp_path, b"a" * 95 + b"\x01" * 5) is None


def test_content_types_without_end(tmp_path: Path) -> None:
    """Tags left open are passed over at once (reading on from each would take minutes)."""
    path = tmp_path / "z"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Override " * 100_000)
    assert detect_media_type(path) is None


def test_deep_json_is_json(tmp_path: Path) -> None:
    assert detect(tmp_path, b"[" * 100_000 + b"]" * 100_000) == "application/json"
    assert detect(tmp_path, json.dumps([{"k": "v" * 70_000}]).encode()) == "application/json"


def test_every_detected_type_has_one_parser() -> None:
    claimed = [kind for parser in BUILTIN_PARSERS for kind in parser.media_types]
    assert len(claimed) == len(set(claimed))
