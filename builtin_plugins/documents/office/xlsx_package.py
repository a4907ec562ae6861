"""What openpyxl leaves out when it reads a workbook row by row (merged cells, comments, text boxes), and what
it refuses workbooks for (faulty styles, strict names).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import RawIOBase
from typing import IO, Any, Final, cast
from xml.parsers import expat
from zipfile import ZipFile

from lxml import etree
from openpyxl.reader.excel import ExcelReader
from openpyxl.utils import range_boundaries
from openpyxl.xml.constants import (
    ARC_CORE,
    ARC_CUSTOM,
    ARC_STYLE,
    ARC_THEME,
    REL_NS,
    SHARED_STRINGS,
    SHEET_MAIN_NS,
)

from builtin_plugins.documents.archives.archive import CheckedArchive
from builtin_plugins.documents.office.number_formats import LONGEST_FORMAT
from builtin_plugins.documents.office.ooxml import events, forget, relationships, safe_parser, texts
from builtin_plugins.documents.tables.sheets import Layout, Merged
from builtin_plugins.documents.tables.spans import MOST_COLUMNS

_UNREAD: Final = (ARC_CORE, ARC_CUSTOM, ARC_THEME)
# Excludes "<": otherwise each unclosed tag would make the match scan the rest of the portion.
_LAID_OUT: Final = re.compile(
    rb"<(?:\w+:)?(?:mergeCell\s[^<>]*?ref=[\"']([A-Z]{1,3}\d{1,7}:[A-Z]{1,3}\d{1,7})[\"']"
    rb"|(row|col)\s(?=[^<>]*?\bhidden=[\"'](?:1|true)[\"'])([^<>]{1,400}+)>)"
)
_NUMBERED: Final = re.compile(rb"(?:^|\s)(r|min|max)=[\"'](\d{1,7})[\"']")
_PLAIN_STYLES: Final = (
    f'<styleSheet xmlns="{SHEET_MAIN_NS}"><numFmts/><fonts><font/></fonts>'
    "<fills><fill><patternFill/></fill></fills><borders><border/></borders><cellStyleXfs><xf/></cellStyleXfs><cellXfs/>"
    '<cellStyles><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>'
)
_STRICT: Final = {  # ISO/IEC 29500-1 and -4: the names in strict files, and in all others
    b"http://purl.oclc.org/ooxml/spreadsheetml/main": SHEET_MAIN_NS.encode(),
    b"http://purl.oclc.org/ooxml/officeDocument/relationships": REL_NS.encode(),
}
_HEAD: Final = 65_536
_MOST_HIDDEN: Final = 16_384  # columns of a sheet
_PORTION: Final = 1024 * 1024
_LONGEST: Final = 512  # bytes of the element of a merged cell, a row or a column


class _Package(CheckedArchive):
    """A workbook with none of its styles but the number formats: for one border or font that violates the
    standard, openpyxl would refuse all of it. Strict workbooks get the names that openpyxl knows.
    """

    def read(self, name: Any, pwd: bytes | None = None) -> bytes:
        data = _usual(super().read(name, pwd))
        return _number_formats(data) if name == ARC_STYLE else data

    def open(self, name: Any, *arguments: Any, **options: Any) -> IO[bytes]:
        file = super().open(name, *arguments, **options)
        return cast(IO[bytes], _Usual(file)) if str(name).endswith(".xml") else file


class _Usual(RawIOBase):
    """A part whose beginning, where it declares its names, has the usual ones."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._head = _usual(file.read(_HEAD))

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if size < 0:
            content, self._head = self._head + self._file.read(), b""
        else:
            content, self._head = self._head[:size], self._head[size:]
        return content or self._file.read(size)

    def close(self) -> None:
        self._file.close()
        super().close()


def _usual(data: bytes) -> bytes:
    for strict, usual in _STRICT.items():
        data = data.replace(strict, usual)
    return data


class _Reader(ExcelReader):
    """`read_strings` takes a tenth of openpyxl's time: a list of customers has a million shared texts."""

    def read_strings(self) -> None:
        part = self.package.find(SHARED_STRINGS)
        if part is not None:
            with self.archive.open(part.PartName[1:]) as file:
                self.shared_strings = _Strings().read(file)


class _Strings:
    """The texts that cells share, without how Asian letters sound (`rPh`)."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._runs: list[str] = []
        self._sounds = False
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end

    def read(self, file: IO[bytes]) -> list[str]:
        self._parser.ParseFile(file)
        return self._texts

    def _start(self, tag: str, _: object) -> None:
        name = tag.rpartition(":")[2]
        if name == "rPh":
            self._sounds = True
        elif name == "t" and not self._sounds:
            self._parser.CharacterDataHandler = self._runs.append

    def _end(self, tag: str) -> None:
        name = tag.rpartition(":")[2]
        if name == "t":
            self._parser.CharacterDataHandler = None
        elif name == "rPh":
            self._sounds = False
        elif name == "si":
            self._texts.append("".join(self._runs))
            self._runs.clear()


def opened(file: IO[bytes]) -> ExcelReader:
    """The workbook in a file, to be read row by row; values as last calculated."""
    reader = _Reader(file, read_only=True, data_only=True, keep_links=False)
    reader.archive = _Package(file)
    reader.valid_files = [name for name in reader.valid_files if name not in _UNREAD]
    reader.read()
    return reader


def parts_of(reader: ExcelReader) -> dict[str, str]:
    """The names of the sheets' parts, by title."""
    return {sheet.name: part.target for sheet, part in reader.parser.find_sheets()}


def layout_of(archive: ZipFile, part: str) -> Layout:
    """The layout of a sheet. Merged cells are listed below the rows, so the part is searched before it is
    parsed.
    """
    layout = Layout({}, set(), set())
    with archive.open(part) as file:
        before = b""
        while portion := file.read(_PORTION):
            for cells, kind, attributes in _LAID_OUT.findall(before + portion):
                if cells:
                    left, top, right, bottom = range_boundaries(cells.decode())
                    if right <= MOST_COLUMNS and (left, top) != (right, bottom):
                        layout.merged.setdefault(top, []).append(Merged(left - 1, right - 1, bottom))
                else:
                    numbers = {name: int(number) for name, number in _NUMBERED.findall(attributes)}
                    if kind == b"row":
                        layout.rows.add(numbers.get(b"r", 0))
                    else:
                        first, last = numbers.get(b"min", 1), numbers.get(b"max", 0)
                        layout.columns.update(range(first - 1, min(last, _MOST_HIDDEN)))
            before = portion[-_LONGEST:]
    return layout


def notes_of(archive: ZipFile, part: str) -> Iterator[str]:
    """The texts of a sheet's text boxes, then its comments, each after the name of its cell."""
    linked = {(one.kind, one.target): None for one in relationships(archive, part)}
    others = [one for one in linked if one[1] in archive.NameToInfo]
    for kind, target in others:
        if kind == "drawing":
            yield from texts(archive, target)
    in_threads = set[str]()
    for comment_kind in ("threadedComment", "comments"):
        for kind, target in others:
            if kind == comment_kind:
                yield from _comments(archive, target, in_threads)


def _comments(archive: ZipFile, part: str, in_threads: set[str]) -> Iterator[str]:
    """The comments in a part, except copies of threads, which begin by saying that Excel is too old."""
    with archive.open(part) as file:
        for event, element in events(file, ("{*}comment", "{*}threadedComment")):
            if event == "end":
                cell, is_thread = element.get("ref", ""), element.tag.endswith("}threadedComment")
                written = (text for one in element.iterfind("{*}text") for text in one.itertext())
                words = "".join(written).split()
                if is_thread:
                    in_threads.add(cell)
                if words and (is_thread or cell not in in_threads):
                    yield f"{cell}: {' '.join(words)}"
                forget(element)


def _number_formats(styles: bytes) -> bytes:
    root = etree.fromstring(styles, safe_parser())
    plain_styles = etree.fromstring(_PLAIN_STYLES)
    for group, name, attributes in (
        ("numFmts", "numFmt", {"numFmtId": "0", "formatCode": "General"}),
        ("cellXfs", "xf", {"numFmtId": "0"}),
    ):
        for under in plain_styles.iterfind(f"{{*}}{group}"):
            for entry in root.iterfind(f"{{*}}{group}/{{*}}{name}"):
                values = {key: entry.get(key, default) for key, default in attributes.items()}
                if len(values.get("formatCode", "")) > LONGEST_FORMAT:
                    continue
                etree.SubElement(under, f"{{{SHEET_MAIN_NS}}}{name}", values)
    return bytes(etree.tostring(plain_styles))
