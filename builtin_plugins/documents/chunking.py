"""Cut a parsed text into overlapping chunks with exact offsets, in one pass and bounded memory.

A greedy form of the recursive character splitter: each chunk takes as much as fits and ends at the best
separator in its second half: a blank line, a line, a sentence, a word; if there is none, at exactly `size`.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from builtin_plugins.documents.blocks import SEPARATOR, Block, Heading
from builtin_plugins.documents.sentence_marks import ends_sentence, other_ends

Pages = tuple[tuple[int, int | None], ...]
"""Pages that begin within a text: (offset in characters, page)."""

Sections = tuple[tuple[int, str], ...]
"""The headings above parts of a text, from the highest: (offset in characters, "Item 7 › Liquidity")."""

MAX_SIZE: Final = 8_192
_ABOVE: Final = " › "
_LONGEST_SECTION: Final = 200
_MAX_DEPTH: Final = 4
_MAX_HEADING_CHARS: Final = 100
_MAX_HEADINGS: Final = 3
_VISIBLE: Final = re.compile(r"\S")
_WORD_START: Final = re.compile(r"\s\S")
# Bounded: otherwise a long run of blank lines would be rescanned from each of its lines.
_SENTENCE_START: Final = re.compile(r"(?:\n|[.!?] )\s{0,8}(?=\S)")
_GAP: Final = re.compile(r"\s{0,8}(?=\S)")
_IDEOGRAPH: Final = re.compile(r"[\u2e80-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]")
_MOST_IDEOGRAPHS: Final = 512
_SENTENCE_ENDS: Final = (". ", "? ", "! ")
_NOT_HEADING_STARTS: Final = ("-", "*", "+", "|", ">", "•")
_NOT_HEADING_ENDS: Final = (";", ",")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage, `text == parsed_text[char_start:char_end]`, and the page where it starts, if any.

    `pages` are the later pages that begin inside it. `sections` are the headings that it stands below: the
    first where it begins, if any, later ones where they begin.
    """

    index: int
    text: str
    page: int | None
    char_start: int
    char_end: int
    pages: Pages = ()
    sections: Sections = ()


def chunk(blocks: Iterable[Block], size: int, overlap: int) -> Iterator[Chunk]:
    """Yield the chunks of a document: up to `size` characters, up to `overlap` of them repeated.

    - every visible character is in a chunk, no chunk begins or ends with white space;
    - a chunk holds at most `size / 2` ideographs, or 512 if that is more;
    - a chunk ends with its page once it fills a quarter of `size`, and no overlap crosses pages;
    - an overlap begins at a sentence or a word, and a heading stays with its text, where possible;
    - the same blocks, size and overlap always give the same chunks.

    Memory is bounded by the longest block. Raises `ValueError` unless 1 <= size <= 8192 and 0 <= overlap <
    size.
    """
    if not 1 <= size <= MAX_SIZE:
        raise ValueError(f"chunk size must be between 1 and {MAX_SIZE}, not {size}")
    if not 0 <= overlap < size:
        raise ValueError(
            f"chunk overlap must be at least 0 and less than the chunk size {size}, not {overlap}"
        )
    return _chunks(_Window(blocks, size), size, overlap)


def section_at(place: int, sections: Sections) -> str:
    """The headings above a character of a text; empty without one."""
    return next((section for start, section in reversed(sections) if start <= place), "")


def page_at(place: int, first: int | None, pages: Pages) -> int | None:
    """The page of a character of a text that begins on the `first`."""
    return next((page for start, page in reversed(pages) if start <= place), first)


def _chunks(window: _Window, size: int, overlap: int) -> Iterator[Chunk]:
    index = 0
    start = fresh = window.next_visible(0)
    while fresh >= 0:
        page, _ = window.page_at(fresh)
        end = _end(window, start, fresh, size)
        text = window.text[start:end].rstrip()
        position = window.offset + start
        pages = window.pages_between(start, start + len(text))
        sections = _without_empty(window.sections_between(start, start + len(text)), text)
        yield Chunk(index, text, page, position, position + len(text), pages, sections)
        index += 1
        fresh = window.next_visible(end)
        if fresh >= 0:
            lowest = max(position + 1 - window.offset, fresh + 1 - size)
            start = _overlap_start(window, lowest, position + len(text) - window.offset, fresh, overlap)


def _end(window: _Window, start: int, fresh: int, size: int) -> int:
    """Return where the chunk from `start` ends: past `fresh`, the first character not yet in a chunk."""
    size = max(_room(window.text, start, size), fresh + 1 - start)
    limit, third = start + size, size // 3
    section = window.next_page(start + max(1, size // 4))
    if section is None and window.ended:
        section = len(window.text)
    if section is not None and section <= limit:
        return section
    if section is not None and section < limit + third:
        # Otherwise the rest of the page would be a tiny chunk, or would run into the next page under this
        # page's number. A third leaves room to cut at a separator and still keep more than a quarter.
        limit = max(fresh + 1, section - third)
    return _separator(window.text, max(start + size // 2, fresh + 1), limit, fresh + 1)


def _room(text: str, start: int, size: int) -> int:
    """Return how many characters fit a chunk: an ideograph is about two tokens, and models read some 500."""
    piece = text[start : start + size]
    most = max(_MOST_IDEOGRAPHS, size // 2)
    if piece.isascii() or size <= most:
        return size
    beyond = next(islice(_IDEOGRAPH.finditer(piece), most, None), None)
    return size if beyond is None else beyond.start()


def _separator(text: str, least: int, limit: int, lowest: int) -> int:
    """Return the best end in [least, limit], else the last white space from `lowest` on, else `limit`."""
    if (cut := text.rfind("\n\n", least, limit + 2)) >= 0:
        return _before_heading(text, least, cut, "\n\n")
    if (cut := text.rfind("\n", least, limit + 1)) >= 0:
        return _before_heading(text, least, cut, "\n")
    cut = max(text.rfind(mark, least - 1, limit + 1) for mark in _SENTENCE_ENDS) + 1
    ends = (end for end in other_ends(text, least - 1, limit + 1) if end <= limit)
    if cut := max([cut, *ends]):
        return cut
    if (cut := max(text.rfind(" ", least, limit + 1), text.rfind("\t", least, limit + 1))) >= 0:
        return cut
    cut = max(text.rfind(mark, lowest, least) for mark in (" ", "\n", "\t"))
    return cut if cut >= 0 else limit


def _before_heading(text: str, least: int, end: int, mark: str) -> int:
    """Move an end to before the headings that it would separate from their text, but not before `least`."""
    for _ in range(_MAX_HEADINGS):
        before = text.rfind(mark, least, end)
        if before < 0 or not _is_heading(text[before:end].strip(), mark):
            break
        end = before
    return end


def _is_heading(text: str, mark: str) -> bool:
    """Whether a text looks like a heading: Markdown, or a short one-line paragraph that ends no sentence."""
    if text.startswith("#"):
        return "\n" not in text
    if mark == "\n" or not 0 < len(text) <= _MAX_HEADING_CHARS or "\n" in text or "\t" in text:
        return False
    if text.startswith(_NOT_HEADING_STARTS) or text.endswith(_NOT_HEADING_ENDS):
        return False
    return not ends_sentence(text)


def _overlap_start(window: _Window, lowest: int, end: int, fresh: int, overlap: int) -> int:
    """Return where the next chunk starts: at `fresh`, or up to `overlap` before the `end` of the last one.

    A sentence that leaves at least half of the overlap is preferred, then a word. Without either, the overlap
    begins inside a word only if the previous chunk had to end inside one. The last rows of a table portion
    are not repeated, as they would lose their column names. A line that is only indented by a tab is not a
    row.
    """
    text = window.text
    line = max(text.rfind("\n", lowest - 1, end) + 1, lowest - 1)
    if fresh > end + 1 and "\t" in text[line:end].lstrip():
        return fresh
    floor = max(end - overlap, lowest, window.page_at(fresh)[1])
    if floor >= end:
        return fresh
    sentence = _sentence_start(text, floor, (floor + end) // 2)
    if sentence is not None:
        return sentence
    if word := _WORD_START.search(text, floor - 1, end):
        return word.end() - 1
    return floor if fresh == end else fresh


def _sentence_start(text: str, least: int, most: int) -> int | None:
    """Return where the first sentence begins in [least, most]."""
    starts = (match.end() for match in _SENTENCE_START.finditer(text, least - 1, most + 1))
    first = next((start for start in starts if start >= least), None)
    for end in other_ends(text, least - 1, most + 1):
        gap = _GAP.match(text, end, most + 1)
        if gap and gap.end() >= least:
            return gap.end() if first is None else min(first, gap.end())
    return first


def _put_below(above: list[Heading], heading: Heading) -> None:
    """Put a heading below those that stand higher, in place of the others."""
    while above and above[-1].level >= heading.level:
        above.pop()
    above.append(heading)


def _section_of(above: Sequence[Heading]) -> str:
    """The headings above a text in one line; of many, the lowest."""
    texts = [one.text for one in above[-_MAX_DEPTH:]]
    while len(texts) > 1 and sum(map(len, texts)) > _LONGEST_SECTION:
        del texts[0]
    return _ABOVE.join(texts)[:_LONGEST_SECTION]


def _without_empty(sections: Sections, text: str) -> Sections:
    """The sections of a text; one that has only its heading is left out for the next one, below it."""
    filled: list[tuple[int, str]] = []
    last = 0
    for start, section in sections:
        heading = filled[-1][1].rpartition(_ABOVE)[2] if filled else None
        if text[last:start].strip("# \t\n") == heading:
            filled[-1] = (filled[-1][0], section)
        else:
            filled.append((start, section))
        last = start
    return tuple(filled)


class _Window:
    """The part of the parsed text in memory; positions are relative to its start and shift as it moves."""

    def __init__(self, blocks: Iterable[Block], size: int) -> None:
        self.text = ""
        self.offset = 0
        self.ended = False
        self._blocks = iter(blocks)
        self._behind, self._ahead = size, 2 * size + 2
        # Offsets of page starts in the whole parsed text, beginning with the last chunk's page.
        self._starts: list[int] = []
        self._pages: list[int | None] = []
        self._headings: list[tuple[int, Heading]] = []  # that begin after the last chunk's start
        self._above: list[Heading] = []  # those above it

    def next_visible(self, start: int) -> int:
        """Return the first visible character from `start` on, with text loaded around it; -1 at the end."""
        start = self._advance(start)
        while not (visible := _VISIBLE.search(self.text, start)):
            if self.ended:
                return -1
            start = self._advance(len(self.text))
        return self._advance(visible.start())

    def page_at(self, start: int) -> tuple[int | None, int]:
        """Return the page of a position and where it begins; forgets the pages before it."""
        position, passed = self.offset + start, 0
        while passed + 1 < len(self._starts) and self._starts[passed + 1] <= position:
            passed += 1
        if passed:
            del self._starts[:passed], self._pages[:passed]
        return self._pages[0], self._starts[0] - self.offset

    def pages_between(self, start: int, end: int) -> Pages:
        """Return the pages that begin after `start` and before `end`, each with its distance from `start`."""
        position = self.offset + start
        begun = bisect_left(self._starts, self.offset + end)
        return tuple(
            (self._starts[at] - position, self._pages[at])
            for at in range(bisect_right(self._starts, position), begun)
        )

    def sections_between(self, start: int, end: int) -> Sections:
        """Return the headings above `start`, and those above each part that begins before `end`, with their
        distances from `start`. Forgets the ones before `start`.
        """
        position = self.offset + start
        passed = 0
        while passed < len(self._headings) and self._headings[passed][0] <= position:
            _put_below(self._above, self._headings[passed][1])
            passed += 1
        del self._headings[:passed]
        sections, above = dict[int, str](), [*self._above]
        if above:
            sections[0] = _section_of(above)
        for place, heading in self._headings:
            if place >= self.offset + end:
                break
            _put_below(above, heading)
            sections[place - position] = _section_of(above)
        return tuple(sections.items())

    def next_page(self, least: int) -> int | None:
        """Return where the next page that begins at or after `least` begins, None if none is loaded."""
        position = self.offset + least
        for index in range(1, len(self._starts)):
            if self._starts[index] >= position:
                return self._starts[index] - self.offset
        return None

    def _advance(self, start: int) -> int:
        """Load more text if too little is ahead of `start`; return the new position of `start`."""
        if self.ended or len(self.text) - start >= self._ahead:
            return start
        dropped = max(0, start - self._behind)
        self.offset += dropped
        remaining = self.text[dropped:]
        start -= dropped
        self.text = "".join(
            [remaining, *self._read(self.offset + len(remaining), self.offset + start + self._ahead)]
        )
        return start

    def _read(self, end: int, enough: int) -> Iterator[str]:
        """Read no further than it takes: the blocks may come from a file that is still being written."""
        while end < enough:
            block = next(self._blocks, None)
            if block is None:
                self.ended = True
                return
            part = SEPARATOR + block.text if self._pages else block.text
            end += len(part)
            begin = end - len(block.text)
            self._headings.extend((begin + one.start, one) for one in block.headings)
            if not self._pages or block.page != self._pages[-1]:
                self._starts.append(end - len(block.text))
                self._pages.append(block.page)
            yield part
