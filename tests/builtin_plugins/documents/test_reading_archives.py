"""Archives from other systems, and what is said of those that hold too much."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import shutil
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from builtin_plugins.documents.archives import from_tar, from_zip
from builtin_plugins.documents.blocks import UnparsableDocument
from builtin_plugins.documents.detection import detect_media_type
from builtin_plugins.documents.extraction import LEFT_OUT, Bounds, ExtractedFile, extract_into
from builtin_plugins.documents.images import from_image
from tests.builtin_plugins.documents.sample_documents import picture

RUSSIAN = ["Отчёт за март.txt", "Договоры/Аренда.txt", "Фото.txt"]
JAPANESE = ["報告書.txt", "資料/会議の議事録.txt", "写真.txt"]
WESTERN = ["Müller.txt", "résumé.txt", "Übersicht.txt", "señal.txt"]


def foreign(path: Path, names: list[str], codec: str) -> Path:
    """An archive with the raw names of a system in that code page, without the flag of UTF-8."""
    stand_ins = [chr(ord("A") + number) * len(name.encode(codec)) for number, name in enumerate(names)]
    with zipfile.ZipFile(path, "w") as archive:
        for stand_in in stand_ins:
            archive.writestr(stand_in, "Words.")
    data = path.read_bytes()
    for stand_in, name in zip(stand_ins, names, strict=True):
        data = data.replace(stand_in.encode(), name.encode(codec))
    path.write_bytes(data)
    return path


FOREIGN = [
    (["报告.txt", "合同/租赁合同.txt", "照片.txt"], "gb18030"),
    (["報告書.txt", "合約/租賃合約.txt", "會議記錄.txt"], "big5"),
    (["보고서.txt", "계약/임대 계약.txt"], "cp949"),
    (["Αναφορά έτους.txt", "Συμβόλαια/Σύμβαση.txt"], "cp737"),
    (["דוח שנתי.txt", "חוזה שכירות.txt", "תמונות מהטיול.txt"], "cp862"),
    (["Relatório de São João.txt", "Ações.txt"], "cp850"),
    (["Årsmøte.txt", "Fjære og flø.txt"], "cp850"),
    (["Łódź umowa.txt", "Książka świąteczna.txt", "Środa.txt"], "cp852"),
]


class TestNames:
    @pytest.mark.parametrize(("names", "codec"), FOREIGN)
    def test_of_more_systems(self, tmp_path: Path, names: list[str], codec: str) -> None:
        """Windows writes names in the code page that its MS-DOS had."""
        path = foreign(tmp_path / "a.zip", names, codec)
        assert [one.name for one in from_zip.extract(path)] == names

    @pytest.mark.parametrize(
        ("names", "codec"),
        [(RUSSIAN, "cp866"), (JAPANESE, "cp932"), (WESTERN, "cp437"), (RUSSIAN, "utf-8"), (WESTERN, "utf-8")],
    )
    def test_of_other_systems(self, tmp_path: Path, names: list[str], codec: str) -> None:
        """The names together show their code page, in the archive's text and of the files."""
        path = foreign(tmp_path / "a.zip", names, codec)
        assert "\n".join(names) in [block.text for block in from_zip.parse(path)]
        assert [one.name for one in from_zip.extract(path)] == names

    @pytest.mark.parametrize(
        ("name", "codec"),
        [(RUSSIAN[0], "cp866"), (RUSSIAN[2], "cp866"), (JAPANESE[0], "cp932")]
        + [(name, "cp437") for name in WESTERN],
    )
    def test_single_names(self, tmp_path: Path, name: str, codec: str) -> None:
        """One name may be enough; where it is not, it is read as zip's own code page says."""
        (file,) = from_zip.extract(foreign(tmp_path / "a.zip", [name], codec))
        assert file.name == name

    def test_told_by_the_archive(self, tmp_path: Path) -> None:
        """Names with the flag of UTF-8 are what they are, also beside others."""
        path = tmp_path / "a.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for name in ("plain.txt", *RUSSIAN, *JAPANESE, *WESTERN):
                archive.writestr(name, "Words.")
        assert [one.name for one in from_zip.extract(path)] == ["plain.txt", *RUSSIAN, *JAPANESE, *WESTERN]

    def test_nonsense(self, tmp_path: Path) -> None:
        """Bytes that are a name in none of them come out as zip's own code page has them."""
        path = tmp_path / "a.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("xxxx.txt", "Words.")
        path.write_bytes(path.read_bytes().replace(b"xxxx", b"\xff\x00\xb0\xdb"))
        assert len(list(from_zip.extract(path))) == 1


def test_too_many_files(tmp_path: Path) -> None:
    """An archive of very many small files is said to hold too many, with the limit, not to be too large."""
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(10_001):
            archive.writestr(str(number), "x")
    with pytest.raises(UnparsableDocument) as caught:
        list(from_zip.parse(path))
    assert caught.value.code == "too_many"
    assert "too many files" in caught.value.detail and "10,000" in caught.value.detail


def offered(path: Path) -> Iterator[ExtractedFile]:
    """The files that the next test takes out: name and size are in the text of the document."""
    for line in path.read_text().splitlines():
        name, size = line.split()
        yield ExtractedFile(name, b"x" * int(size))


def taken(folder: Path, sizes: list[int], bounds: Bounds) -> list[Any]:
    """Why each file of these sizes was left out."""
    path = folder / "sizes"
    path.write_text("".join(f"f{size} {size}\n" for size in sizes))
    return [
        reason for *_, reason in extract_into(str(path), f"{__name__}:offered", str(folder), list(bounds))
    ]


def test_the_sum_is_used_up(tmp_path: Path) -> None:
    assert taken(tmp_path, [200, 80, 10, 90, 0], Bounds(9, 100, 200)) == [
        "too_large",
        None,
        None,
        "used_up",
        "empty",
    ]
    assert taken(tmp_path, [70, 40], Bounds(9, 100, 60)) == ["too_large", "used_up"]
    assert LEFT_OUT["used_up"] == "the limit for all files inside is used up"


def blank_png(width: int, height: int, depth: int) -> bytes:
    """A white picture."""
    packer, rows = zlib.compressobj(1), io.BytesIO()
    row = b"\0" + b"\xff" * (width * depth // 8)
    for _ in range(height):
        rows.write(packer.compress(row))
    rows.write(packer.flush())
    header = struct.pack(">IIBBBBB", width, height, depth, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", rows.getvalue()), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


@pytest.mark.skipif(shutil.which("tesseract") is None, reason="tesseract is not installed")
def test_a_picture_of_too_many_pixels(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    whole = io.BytesIO()
    picture("Invoice").save(whole, "PNG")
    for data, code in ((blank_png(40_000, 40, 1), "too_many_pixels"), (whole.getvalue()[:60], "corrupt")):
        path.write_bytes(data)
        with pytest.raises(UnparsableDocument) as caught:
            list(from_image.parse(path))
        assert caught.value.code == code
    assert "damaged" not in UnparsableDocument("too_many_pixels").detail


@pytest.mark.parametrize("size", [4, 8])
@pytest.mark.parametrize("order", ["little", "big"])
def test_pages_of_a_picture_that_lies(order: Literal["little", "big"], size: int) -> None:
    """A list of pages that leads in a circle ends there, one that leads out of the file was cut off: of TIFFs
    with numbers of 32 and of 64 bits.
    """
    signs = {("little", 4): b"II*\0", ("big", 4): b"MM\0*"}
    head = signs.get((order, size), b"".join(n.to_bytes(2, order) for n in (0x4949, 43, 8, 0)))
    if (order, size) == ("big", 8):
        head = b"MM\0+\0\x08\0\0"
    first = len(head) + size
    second = first + size + size // 2 if size == 4 else first + 16

    def tiff(*links: int) -> bytes:
        pages = (bytes(2 if size == 4 else 8) + link.to_bytes(size, order) for link in links)
        return head + first.to_bytes(size, order) + b"".join(pages)

    assert from_image.count_pages(tiff(second, 0)) == 2
    assert from_image.count_pages(tiff(second, first)) == 2
    assert from_image.count_pages(b"\x89PNG") == 1
    for cut in (tiff(second, 4_000_000_000), tiff(second, 256**size - 1), tiff(second, 0)[: first + 1], head):
        with pytest.raises(UnparsableDocument) as caught:
            from_image.count_pages(cut)
        assert caught.value.code == "corrupt"


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("Error in pixCreateHeader: requested bytes >= 2^31", "too_many_pixels"),
        ("Error in pixCreateNoInit: pixdata_malloc fail for data", "too_many_pixels"),
        ("Failed loading language 'xyz'", "no_ocr"),
        ("Error in pixRead: Unknown format", "corrupt"),
    ],
)
def test_what_tesseract_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, code: str) -> None:
    """Its complaints become reasons that users can act on."""
    program = tmp_path / "tesseract"
    program.write_text(f'#!/bin/sh\ncat >/dev/null\necho "{said}" >&2\nexit 1\n')
    program.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    (tmp_path / "a.png").write_bytes(b"x")
    with pytest.raises(UnparsableDocument) as caught:
        list(from_image.parse(tmp_path / "a.png"))
    assert caught.value.code == code


def test_a_pdf_stored_first(tmp_path: Path) -> None:
    """An archive is one, though the first bytes are those of a PDF that is stored in it as it is."""
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("a.pdf", b"%PDF-1.7 and so on")
    assert detect_media_type(tmp_path / "a.zip", "a.zip") == "application/zip"


def tar(path: Path, mode: str, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        folder = tarfile.TarInfo("docs")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        link = tarfile.TarInfo("docs/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    return path


TAR_FILES = {"./docs/Größe.txt": b"Seven apples.", "docs/.DS_Store": b"x", "docs/._Size": b"x"}


class TestTar:
    @pytest.mark.parametrize(
        ("mode", "media_type"),
        [
            ("w", "application/x-tar"),
            ("w:gz", "application/gzip"),
            ("w:bz2", "application/x-bzip2"),
            ("w:xz", "application/x-xz"),
        ],
    )
    def test_files_come_out(self, tmp_path: Path, mode: str, media_type: str) -> None:
        """A tar is an archive as a zip is, in each compression; what systems put there is left out."""
        path = tar(tmp_path / "a", mode, TAR_FILES)
        assert detect_media_type(path, "a.txt") == media_type
        text = "\n".join(block.text for block in from_tar.parse(path))
        assert text == "Archive of 2 files:\ndocs/Größe.txt\ndocs/link"
        (tmp_path / "out").mkdir()
        target, bounds = "builtin_plugins.documents.archives.from_tar:extract", [10, 1000, 1000]
        taken = extract_into(str(path), target, str(tmp_path / "out"), bounds)
        assert taken == [["docs/Größe.txt", 1, None], ["docs/link", None, "link"]]
        assert (tmp_path / "out/1").read_bytes() == b"Seven apples."

    def test_archive_in_the_archive(self, tmp_path: Path) -> None:
        """An archive within stays packed, in a tar and in a zip; a file that is only called so comes out."""
        inner = tar(tmp_path / "b", "w:gz", TAR_FILES).read_bytes()
        path = tar(tmp_path / "a", "w", {"b.tar.gz": inner, "c.gz": b"Words."})
        assert [(one.name, one.left_out) for one in from_tar.extract(path)][:2] == [
            ("b.tar.gz", "archive"),
            ("c.gz", None),
        ]
        with zipfile.ZipFile(tmp_path / "z", "w") as archive:
            archive.writestr("b.tgz", inner)
        assert [one.left_out for one in from_zip.extract(tmp_path / "z")] == ["archive"]

    def test_single_compressed_file(self, tmp_path: Path) -> None:
        """A compressed log comes out under the name that it had."""
        path = tmp_path / "a"
        with path.open("wb") as raw, gzip.GzipFile("server.log", "wb", fileobj=raw) as file:
            file.write(b"Disk full.")
        assert detect_media_type(path) == "application/gzip"
        (one,) = from_tar.extract(path)
        assert one.name == "server.log" and b"".join(one.content) == b"Disk full."  # type: ignore[arg-type]
        assert [block.text for block in from_tar.parse(path)] == ["Archive of one file:", "server.log"]

    @pytest.mark.parametrize(("module", "kind"), [(bz2, "x-bzip2"), (lzma, "x-xz")])
    def test_single_file_without_a_name(self, tmp_path: Path, module: Any, kind: str) -> None:
        """These keep no name; the document's own stands for it. What is cut off does not come out."""
        path, data = tmp_path / "a", module.compress(b"Disk full." * 1000)
        path.write_bytes(data)
        assert detect_media_type(path) == f"application/{kind}"
        (one,) = from_tar.extract(path)
        assert one.name == "" and b"".join(one.content) == b"Disk full." * 1000  # type: ignore[arg-type]
        assert [block.text for block in from_tar.parse(path)] == ["Archive of one file:", "file"]
        path.write_bytes(data[:-9])
        target = "builtin_plugins.documents.archives.from_tar:extract"
        taken = extract_into(str(path), target, str(tmp_path), [10, 100_000, 100_000])
        assert taken == [["", None, "damaged"]]

    def test_a_text_that_begins_as_bzip2(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("BZh9 is how bzip2 begins.")
        assert detect_media_type(tmp_path / "a", "a.txt") == "text/plain"

    def test_tar_of_old(self, tmp_path: Path) -> None:
        """Before 1988 a tar had no sign, only a sum; embedded systems still write such."""
        whole = bytearray(tar(tmp_path / "a", "w", {"a.txt": b"Seven apples."}).read_bytes())
        whole[257:512] = bytes(255)
        whole[148:156] = b" " * 8
        whole[148:156] = b"%06o\0 " % sum(whole[:512])
        (tmp_path / "a").write_bytes(whole)
        assert detect_media_type(tmp_path / "a") == "application/x-tar"
        assert next(from_tar.extract(tmp_path / "a")).name == "a.txt"
        whole[0] ^= 1
        (tmp_path / "a").write_bytes(whole)
        assert detect_media_type(tmp_path / "a") is None

    @pytest.mark.parametrize("mode", ["w", "w:gz"])
    def test_cut(self, tmp_path: Path, mode: str) -> None:
        """An archive that was cut off is damaged; it is not read in part."""
        files = {f"{number}.txt": bytes(3000) + str(number).encode() for number in range(20)}
        path = tar(tmp_path / "a", mode, files)
        path.write_bytes(path.read_bytes()[: -path.stat().st_size // 2])
        with pytest.raises(UnparsableDocument) as caught:
            list(from_tar.parse(path))
        assert caught.value.code == "corrupt"

    @pytest.mark.parametrize("kind", ["cut in a header", "damaged header", "headers alone", "gzip header"])
    def test_damaged_between_files(self, tmp_path: Path, kind: str) -> None:
        """What is lost behind a broken header is not left out in silence."""
        path = tar(tmp_path / "a", "w", {f"{number}.txt": bytes(3000) for number in range(3)})
        whole, second = path.read_bytes(), 512 + 512 + 3072
        extended = tarfile.TarInfo("x")
        extended.type = tarfile.XHDTYPE
        data = {
            "cut in a header": whole[: second + 200],
            "damaged header": whole[:second] + b"x" * 512 + whole[second + 512 :],
            "headers alone": extended.tobuf() * 2000 + whole,
            "gzip header": gzip.compress(whole)[:3],
        }
        path.write_bytes(data[kind])
        assert detect_media_type(path) is not None
        for read in (from_tar.parse, from_tar.extract):
            with pytest.raises(UnparsableDocument) as caught:
                list(read(path))
            assert caught.value.code == "corrupt"

    def test_tar_without_its_end(self, tmp_path: Path) -> None:
        """Some programs leave out the two empty blocks at the end; no file is missing."""
        path = tar(tmp_path / "a", "w", TAR_FILES)
        used = len(path.read_bytes().rstrip(b"\0"))
        path.write_bytes(path.read_bytes()[: -(-used // 512) * 512])
        assert [one.name for one in from_tar.extract(path)] == ["docs/Größe.txt", "docs/link"]

    def test_bounds(self, tmp_path: Path) -> None:
        """Neither many entries nor a bomb of zeros is followed to its end."""
        many = tar(tmp_path / "many", "w:gz", {str(number): b"" for number in range(10_001)})
        with pytest.raises(UnparsableDocument) as caught:
            list(from_tar.parse(many))
        assert caught.value.code == "too_many"
        header = tarfile.TarInfo("zeros")
        header.size = 1 << 40
        (tmp_path / "bomb").write_bytes(gzip.compress(header.tobuf() + bytes(100_000)))
        with pytest.raises(UnparsableDocument) as caught:
            list(from_tar.parse(tmp_path / "bomb"))
        assert caught.value.code == "too_large"


@pytest.mark.parametrize("mode", ["w:gz", "w:bz2", "w:xz"])
def test_tars_that_hardly_shrink(tmp_path: Path, mode: str) -> None:
    """A tar is known as such even if its first bytes unpack only with many others, as those of bzip2 do."""
    noise = random.Random(1).randbytes(1_000_000)
    archive = tar(tmp_path / "a", mode, {"noise.bin": noise})
    assert detect_media_type(archive, "a") is not None
    assert any("noise.bin" in block.text for block in from_tar.parse(archive))
