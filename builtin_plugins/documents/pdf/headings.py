"""Headings on a PDF page: lines in larger or bolder type than the rest, and those that the outline names."""

from __future__ import annotations

import ctypes
import re
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, Final

import pypdfium2
from pypdfium2 import raw

from builtin_plugins.documents.blocks import Heading
from builtin_plugins.documents.pdf.boxes import box_of

_LONGEST: Final = 100
_LONGEST_NUMBER: Final = 15
_EDGE: Final = 2  # lines at the top and at the bottom of a page
_MOST_LETTERS: Final = 50_000  # on a page
_MOST_ENTRIES: Final = 5_000  # of an outline
_LARGER: Final = 1.12  # times the height of most letters
_BOLD: Final = 600
_BOLD_NAME: Final = re.compile(rb"bold|black|heavy|demi", re.IGNORECASE)
_NAME_BYTES: Final = 128
_MOST_HEADINGS: Final = 25  # on a page: with more, it is a list or a form
_BY_STYLE: Final = 1_000  # the level of the smallest type; levels of an outline are lower
_PER_POINT: Final = 20
_PART: Final = re.compile(r"(?:part|teil|partie|parte)\s+[\divxl]+\b", re.IGNORECASE)
_CHAPTER: Final = re.compile(
    r"(?:item|chapter|kapitel|chapitre|capítulo|section|abschnitt|annex|appendix|anhang|note)\s+[\divxl]+[a-c]?\b",
    re.IGNORECASE,
)
_NO_ENDS: Final = (".", ":", ";", ",", "。")
_NUMBERS: Final = re.compile(r"\d+")
_NUMBER_ABOVE: Final = re.compile(
    r"(?:[^\W\d_]{1,12}\.?\s+)?(?:\d[\d.]*|[IVXLC]+|[ivxlc]{1,4}(?=[.)])|[A-Z])\b"
)


class HeadingReader:
    """Finds the headings of one document, page by page."""

    def __init__(self, document: pypdfium2.PdfDocument) -> None:
        self._outline = _outline_of(document)
        self._before = deque[Collection[str]](maxlen=2)
        """What was on the last two pages, without numbers: running headers may alternate."""

    def read(self, page: int, text_page: Any, text: str, tables: Collection[str]) -> list[Heading]:
        """The headings on a page (from 0), from the top. An entry of the outline that is not a line of the
        page stands above it, if it is the only one. `text` is the whole text of the page, `tables` are lines
        that belong to tables.
        """
        entries = self._outline.get(page, {})
        lines = [(at, line) for at, line in _lines(text) if line]
        edges = {at for at, _ in (*lines[:_EDGE], *lines[-_EDGE:])}
        before = [*self._before]
        self._before.append({_NUMBERS.sub("", line) for _, line in lines})
        headings: list[Heading] = []
        titled = _titled(entries, lines)
        letters = _Letters(text_page, text)
        styled = dict(_styled(letters, lines)) if len(text) <= _MOST_LETTERS else {}
        for at, line in lines:
            level = entries[titled[at]] if at in titled else None
            pages = before if at in edges else before[-1:]
            is_running = any(_NUMBERS.sub("", line) in page for page in pages)
            if level is None and at in styled and line not in tables and not is_running:
                level = styled[at] - 40 * bool(_PART.match(line)) - 20 * bool(_CHAPTER.match(line))
            if level is not None:
                headings.append(Heading(level, line))
        if len(headings) > _MOST_HEADINGS:
            headings = [one for one in headings if is_of_outline(one)]
        alone = entries.items() if len(entries) == 1 and not titled else ()
        return [*(Heading(level, title) for title, level in alone), *headings]


def is_of_outline(heading: Heading) -> bool:
    """Whether a heading is known from the outline."""
    return heading.level < _BY_STYLE // 2


def _lines(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    for line in text.splitlines(keepends=True):
        yield start + len(line) - len(line.lstrip()), " ".join(line.split())
        start += len(line)


def _styled(letters: _Letters, lines: Sequence[tuple[int, str]]) -> Iterator[tuple[int, int]]:
    """The places of lines in larger or bolder type, and their levels."""
    heights = [letters.height(at) for at, _ in lines]
    usual = Counter[float]()
    for height, (_, line) in zip(heights, lines, strict=True):
        usual[height] += len(line)
    body = max(usual, key=usual.__getitem__, default=0.0)
    of_body = [entry for height, entry in zip(heights, lines, strict=True) if height == body]
    has_bold_body = bool(of_body) and letters.is_bold(max(of_body, key=lambda entry: len(entry[1]))[0])
    for height, (at, line) in zip(heights, lines, strict=True):
        if height < body or not _may_head(line):
            continue
        is_bold = letters.is_bold(at)
        is_marked = height >= _LARGER * body or (is_bold and not has_bold_body)
        last = at + len(line) - 1
        if is_marked and letters.height(last) == height and letters.is_bold(last) == is_bold:
            yield at, _BY_STYLE - round(height * _PER_POINT) - 2 * is_bold


def _may_head(line: str) -> bool:
    begins_well = line[0].isupper() or line[0].isdigit() or not line[0].isascii()
    return 2 < len(line) <= _LONGEST and begins_well and not line.endswith(_NO_ENDS) and _has_word(line)


def _has_word(line: str) -> bool:
    return sum(map(str.isalpha, line)) > max(2, len(line) // 3)


class _Letters:
    """The letters of a page, by their places in its text."""

    def __init__(self, text_page: Any, text: str) -> None:
        self._page = text_page
        self._is_plain = len(text) == text_page.count_chars()

    def height(self, place: int) -> float:
        """The height of the type in points, to the half of one."""
        box = box_of(self._page, self._at(place))
        return round(2 * abs(box.top - box.bottom)) / 2

    def is_bold(self, place: int) -> bool:
        """Whether a letter is bold, by its font's weight or name."""
        at = self._at(place)
        if raw.FPDFText_GetFontWeight(self._page, at) >= _BOLD:
            return True
        name, flags = ctypes.create_string_buffer(_NAME_BYTES), ctypes.c_int()
        raw.FPDFText_GetFontInfo(self._page, at, name, _NAME_BYTES, ctypes.byref(flags))
        return _BOLD_NAME.search(name.value) is not None

    def _at(self, place: int) -> int:
        return place if self._is_plain else int(raw.FPDFText_GetCharIndexFromTextIndex(self._page, place))


def _outline_of(document: pypdfium2.PdfDocument) -> Mapping[int, Mapping[str, int]]:
    """The titles in a document's outline with their levels (from 0), by page (from 0)."""
    outline: defaultdict[int, dict[str, int]] = defaultdict(dict)
    with suppress(pypdfium2.PdfiumError):
        for entry in islice(document.get_toc(), _MOST_ENTRIES):
            target = entry.get_dest()
            page = None if target is None else target.get_index()
            title = _plain(entry.get_title())
            if page is not None and 0 < len(title) <= _LONGEST and len(outline[page]) < _MOST_HEADINGS:
                outline[page].setdefault(title, entry.level)
    return outline


def _titled(titles: Iterable[str], lines: Sequence[tuple[int, str]]) -> dict[int, str]:
    """The places of lines that have these titles: those that add at most a number, else words, too."""
    titles_by_place: dict[int, str] = {}
    for title in titles:
        ways = (_is_titled, _ends_with_title)
        places = (at for way in ways for at, line in lines if at not in titles_by_place and way(line, title))
        at = next(places, None)
        if at is not None:
            titles_by_place[at] = title
    return titles_by_place


def _is_titled(line: str, title: str) -> bool:
    """Whether a line has a title, to which the page may add a number ("Item 7.") and hyphens."""
    if not _may_have(line, title):
        return False
    number = _NUMBER_ABOVE.match(line)
    rest = line[number.end() :] if number else line
    return _only_letters(title) in {_only_letters(line), _only_letters(rest)} - {""}


def _ends_with_title(line: str, title: str) -> bool:
    """Whether a line ends with a title and could be a heading."""
    title_letters = _only_letters(title)
    may_have = bool(title_letters) and _may_have(line, title) and _may_head(line)
    return may_have and _only_letters(line).endswith(title_letters)


def _may_have(line: str, title: str) -> bool:
    """Whether a line is short enough for a title, and no row with a number at its end."""
    is_row = line[-1].isdigit() and not title[-1].isdigit()
    return len(line) <= len(title) + _LONGEST_NUMBER and not is_row


def _only_letters(text: str) -> str:
    return "".join(filter(str.isalpha, text.casefold()))


def _plain(text: str) -> str:
    return " ".join(text.split())
