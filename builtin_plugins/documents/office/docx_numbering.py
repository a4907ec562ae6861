"""The numbers of headings and list items in a Word document (ECMA-376-1, 17.9), which its text lacks, and the
levels of its headings.
"""

from __future__ import annotations

import re
import zipfile
from contextlib import suppress
from string import ascii_lowercase, ascii_uppercase
from typing import Final, NamedTuple

from lxml import etree

from builtin_plugins.documents.office.ooxml import relationships, safe_parser
from builtin_plugins.documents.office.ooxml_values import value_of

_MAX_BYTES: Final = 8 * 1024 * 1024
_MOST_LEVELS: Final = 9
_MOST_STYLES: Final = 20  # that are based on each other
_PLACE: Final = re.compile("%([1-9])")
_ROMAN: Final = (
    *((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl")),
    *((10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")),
)
_MOST_ROMAN: Final = 3_999
_ALPHABETS: Final = {
    "lowerLetter": ascii_lowercase,
    "upperLetter": ascii_uppercase,
    "russianLower": "абвгдежзиклмнопрстуфхцчшщыэюя",
    "russianUpper": "АБВГДЕЖЗИКЛМНОПРСТУФХЦЧШЩЫЭЮЯ",
}
_LONGEST: Final = 10  # repetitions of a letter
_LONGEST_TEXT: Final = 100  # of a level


class _Level(NamedTuple):
    form: str
    text: str
    start: int
    is_decimal: bool  # whatever the levels above are


class _Place(NamedTuple):
    """Which list a paragraph is in, and on which level; None if nothing says so."""

    number: str | None
    level: int | None


class _Style(NamedTuple):
    place: _Place
    based_on: str
    outline: int | None = None


class DocxNumbering:
    """Numbers the paragraphs of a document in their order."""

    def __init__(self, archive: zipfile.ZipFile, main: str) -> None:
        lists, styles = (_part(archive, main, kind) for kind in ("numbering", "styles"))
        self._styles = {one.get(_own(one, "styleId"), ""): _style(one) for one in _children(styles, "style")}
        abstract = {one.get(_own(one, "abstractNumId"), ""): one for one in _children(lists, "abstractNum")}
        linked = {_child(one, "styleLink"): key for key, one in abstract.items() if _child(one, "styleLink")}
        levels = {key: _levels(one) for key, one in abstract.items()}
        self._of_style = {
            value_of(mark): int(level.get(_own(level, "ilvl"), "0")[:1] or 0)
            for definition in abstract.values()
            for level in definition.iterfind("{*}lvl")
            for mark in level.iterfind("{*}pStyle")
        }
        self._lists: dict[str, str] = {}
        self._levels: dict[str, dict[int, _Level]] = {}  # by number
        self._starts: dict[tuple[str, int], int] = {}
        for num in _children(lists, "num"):
            number, key = num.get(_own(num, "numId"), ""), _child(num, "abstractNumId")
            link = _child(abstract[key], "numStyleLink") if key in abstract else ""
            self._lists[number] = linked.get(link, key)
            self._levels[number] = levels.get(self._lists[number], {})
            for other in num.findall("{*}lvlOverride")[:_MOST_LEVELS]:
                if own := _levels(other):
                    self._levels[number] = self._levels[number] | own
                if start := _child(other, "startOverride"):
                    at = number_in(other.get(_own(other, "ilvl"), ""), 0)
                    self._starts[number, at] = number_in(start, 1)
        self._counts: dict[str, dict[int, int]] = {}

    def label(self, properties: etree._Element) -> str:
        """The number before a paragraph with these properties; empty if it has none, or a bullet."""
        style = _child(properties, "pStyle")
        place = self._place(properties, style)
        number, at = place.number or "", place.level or 0
        levels = self._levels.get(number, {})
        if at not in levels or _is_removed(properties):
            return ""
        counts = self._counted(number, at, levels)
        is_decimal = levels[at].is_decimal

        def written(match: re.Match[str]) -> str:
            other = int(match[1]) - 1
            level = levels.get(other, levels[at])
            return written_number(counts.get(other, level.start), "decimal" if is_decimal else level.form)

        return "" if levels[at].form == "bullet" else _PLACE.sub(written, levels[at].text).strip()

    def heading_level(self, properties: etree._Element) -> int | None:
        """The level of a heading with these properties, 0 for the title; None for other paragraphs."""
        own, style = _outline(properties), _child(properties, "pStyle")
        for _ in range(_MOST_STYLES):
            if own is not None or style not in self._styles:
                break
            _, style, own = self._styles[style]
        return own if own is not None and own <= _MOST_LEVELS else None

    def _place(self, properties: etree._Element, style: str) -> _Place:
        own = _place_in(properties)
        if own.number is not None and own.level is not None:
            return own
        for _ in range(_MOST_STYLES):
            if style not in self._styles:
                break
            inherited, based_on, _ = self._styles[style]
            if inherited.number is not None:
                level = inherited.level if inherited.level is not None else self._of_style.get(style)
                number = own.number if own.number is not None else inherited.number
                return _Place(number, own.level if own.level is not None else level)
            style = based_on
        return own

    def _counted(self, number: str, at: int, levels: dict[int, _Level]) -> dict[int, int]:
        counts = self._counts.setdefault(self._lists[number], {})
        start = self._starts.pop((number, at), None)
        counts[at] = counts.get(at, levels[at].start - 1) + 1 if start is None else start
        for above in [one for one in levels if one < at]:  # skipped levels count as begun
            counts.setdefault(above, levels[above].start)
        for below in [one for one in counts if one > at]:
            del counts[below]
        return counts


def _part(archive: zipfile.ZipFile, main: str, kind: str) -> etree._Element | None:
    for relationship in relationships(archive, main):
        info = archive.NameToInfo.get(relationship.target)
        if relationship.kind == kind and info and info.file_size <= _MAX_BYTES:
            with suppress(etree.XMLSyntaxError):  # a broken part only costs the numbers
                return etree.fromstring(archive.read(info), safe_parser())
    return None


def _children(root: etree._Element | None, name: str) -> list[etree._Element]:
    return [] if root is None else root.findall(f"{{*}}{name}")


def _own(element: etree._Element, name: str) -> str:
    """The name of an attribute in its element's namespace, as Word's attributes are."""
    return f"{{{etree.QName(element).namespace}}}{name}"


def _child(element: etree._Element, name: str) -> str:
    child = element.find(f"{{*}}{name}")
    return "" if child is None else value_of(child)


def _is_removed(properties: etree._Element) -> bool:
    """Whether the end of the paragraph was removed, so that what is left belongs to the next one."""
    return any(properties.find(f"{{*}}rPr/{{*}}{kind}") is not None for kind in ("del", "moveFrom"))


def _place_in(properties: etree._Element) -> _Place:
    numbering = properties.find("{*}numPr")
    if numbering is None:
        return _Place(None, None)
    number, level = _child(numbering, "numId"), _child(numbering, "ilvl")
    return _Place(number or None, number_in(level, 0) if level else None)


def _style(element: etree._Element) -> _Style:
    properties = element.find("{*}pPr")
    place = _Place(None, None) if properties is None else _place_in(properties)
    outline = None if properties is None else _outline(properties)
    if outline is None and _child(element, "name").casefold() == "title":
        outline = 0
    return _Style(place, _child(element, "basedOn"), outline)


def _outline(properties: etree._Element) -> int | None:
    """A level from 1; body text is above 9."""
    level = _child(properties, "outlineLvl")
    return number_in(level, _MOST_LEVELS) + 1 if level else None


def _levels(abstract: etree._Element) -> dict[int, _Level]:
    levels = {}
    for element in abstract.findall("{*}lvl")[:_MOST_LEVELS]:
        form, start = _child(element, "numFmt") or "decimal", number_in(_child(element, "start"), 0)
        level = _Level(
            form, _child(element, "lvlText")[:_LONGEST_TEXT], start, element.find("{*}isLgl") is not None
        )
        levels[number_in(element.get(_own(element, "ilvl"), ""), 0)] = level
    return levels


def number_in(text: str, default: int) -> int:
    """The number that an attribute holds."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else default


def written_number(count: int, form: str) -> str:
    """A number in one of the forms that Word names; OpenDocument has some of them."""
    if form == "none":
        return ""
    if form in _ALPHABETS and count > 0:
        times, letter = divmod(count - 1, len(_ALPHABETS[form]))
        return _ALPHABETS[form][letter] * min(times + 1, _LONGEST)
    if form in ("lowerRoman", "upperRoman") and 0 < count <= _MOST_ROMAN:
        text = ""
        for value, sign in _ROMAN:
            text += sign * (count // value)
            count %= value
        return text.upper() if form == "upperRoman" else text
    return f"{count:02d}" if form == "decimalZero" else str(count)
