"""What Word and PowerPoint keep in separate parts: the numbers of charts, the texts of SmartArt."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Final

from lxml import etree

from builtin_plugins.documents.office.number_formats import cached_text
from builtin_plugins.documents.office.ooxml import relationships, safe_parser, texts
from builtin_plugins.documents.tables.spans import MOST_COLUMNS

_MAX_BYTES: Final = 8 * 1024 * 1024
_MOST_POINTS: Final = 1_000
_NUMBERS: Final = ("}numCache", "}numLit")


def in_drawings(archive: zipfile.ZipFile, part: str) -> Iterator[str]:
    """Yield the texts of the diagrams and charts that a part shows; a chart is a table, below its title."""
    for relationship in relationships(archive, part):
        read = _READERS.get(relationship.kind)
        info = archive.NameToInfo.get(relationship.target)
        if read and info and info.file_size <= _MAX_BYTES:
            with suppress(etree.XMLSyntaxError):  # a broken drawing only costs its own text
                yield from read(archive, relationship.target)


def _chart_in(archive: zipfile.ZipFile, name: str) -> Iterator[str]:
    return _chart(etree.fromstring(archive.read(name), safe_parser()))


_READERS: Final[dict[str, Callable[[zipfile.ZipFile, str], Iterator[str]]]] = {
    "diagramData": texts,
    "chart": _chart_in,
}


def _chart(root: etree._Element) -> Iterator[str]:
    title = root.find("{*}chart/{*}title")
    if title is not None:
        yield " ".join("".join(text.text or "" for text in title.iterfind(".//{*}t")).split())
    series = list(islice(root.iterfind(".//{*}ser"), MOST_COLUMNS))
    columns = [_points(one, "val", "yVal") for one in series]
    names = [" ".join((one.findtext("{*}tx//{*}v") or "").split()) for one in series]
    places = list(dict.fromkeys(place for column in columns for place in column))[:_MOST_POINTS]
    labels = [_points(one, "cat", "xVal") for one in series[:1]]
    rows = [[column.get(place, "") for column in labels + columns] for place in places]
    if rows:
        yield "\n".join("\t".join(row).rstrip() for row in [["", *names], *rows])


def _points(series: etree._Element, *kinds: str) -> dict[str, str]:
    """The values of a series by position; of multi-level labels, only the lowest level, which comes first."""
    values: dict[str, str] = {}
    for kind in kinds:
        for point in islice(series.iterfind(f"{{*}}{kind}//{{*}}pt"), _MOST_POINTS):
            values.setdefault(point.get("idx", ""), _value(point))
    return values


def _value(point: etree._Element) -> str:
    text, cache = " ".join((point.findtext("{*}v") or "").split()), point.getparent()
    if cache is None or not cache.tag.endswith(_NUMBERS):
        return text
    own = point.get("formatCode") or cache.findtext("{*}formatCode")
    return cached_text(text, own or "General")
