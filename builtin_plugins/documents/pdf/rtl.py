"""Right-to-left lines of a PDF, with their letters put in reading order.

PDFium puts digits, brackets and periods of such lines in the wrong places, so that a sentence ends before its
number, and reverses a ligature of lam and alef. Here the letters of a line are taken from right to left, and
left-to-right runs (Latin words, numbers) are reversed: a simple inverse of UAX #9.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, Final, NamedTuple

from pypdfium2 import raw

from builtin_plugins.documents.pdf.boxes import box_of

_RTL: Final = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_LATIN: Final = re.compile(r"[^\W\d_\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
# Left-to-right runs: numbers with their signs, or words of another script and all between two of them.
_TURNED: Final = re.compile(
    r"(?:[%$€£°]|(?<!\S)[+-])?\d(?:[\d.,:/'-]*\d)?"
    r"|(?=[^\W_])[^\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]*[^\W_\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]"
)
_BACKWARDS: Final = {
    **{f"{alef}ل": f"ل{alef}" for alef in "اأإآٱ"},
    "هلل": "لله",
    "هللا": "الله",
}
"""Ligatures as PDFium returns them, in a single box, unlike letters side by side."""
_WORD: Final = re.compile(r"\S+")
_MIRRORED: Final = str.maketrans("()[]{}<>«»", ")(][}{><»«")
_CLOSED_FIRST: Final = re.compile(r"[^(\[]*[)\]]")
# In a paragraph set from left to right by mistake, the period is on the right.
_STOP_FIRST: Final = re.compile("[.!?؟۔]+")
_STOP_BEFORE: Final = re.compile("(?<=\\S) ([.,:;!?،؛؟]+)(?=[֐-ࣿ])")
_ENDS: Final = re.compile(r"[.!?:؟۔]\W*$")
_TAIL: Final = 8  # closing quotes and brackets, and the punctuation before them
_FULL: Final = 0.7  # of the longest line: a shorter one ends a paragraph, or is a heading
_SPACE: Final = 0.2  # of the height: a gap this wide separates words
_NARROW_SPACE: Final = 0.08  # likewise, where PDFium has a space or another script begins
_CELL: Final = 1.5  # of the height: a gap this wide separates cells
_MOST_LETTERS: Final = 20_000  # of a page


class _Letter(NamedTuple):
    text: str
    left: float
    right: float
    bottom: float
    top: float


def read_lines(text_page: Any, text: str) -> str:
    """The text of a page, its right-to-left lines in reading order."""
    if not _RTL.search(text):
        return text
    lines = [letters for letters in _lines(text_page) if _is_from_right(letters)]
    ordered_lines = {_key(_written(letters)): _ordered(letters) for letters in lines if _is_level(letters)}
    words = {
        word: right
        for letters in lines
        for word, right in zip(_written(letters).split(), _written(_ligatures(letters)).split(), strict=True)
        if word != right
    }
    read = [
        _WORD.sub(lambda match: words.get(match[0], match[0]), line)
        if "\t" in line
        else ordered_lines.get(_key(line), line)
        for line in text.splitlines()
    ]
    return _joined(read, set(ordered_lines.values()))


def is_from_right(text: str) -> bool:
    """Whether a table with this text is read from right to left."""
    return len(_RTL.findall(text)) > len(_LATIN.findall(text))


def mirrored(text: str) -> str:
    """A text with its brackets the right way round: PDFium may return them as they look."""
    return text.translate(_MIRRORED) if _CLOSED_FIRST.match(text) else text


def _joined(lines: list[str], ordered: set[str]) -> str:
    """Join the lines of a paragraph: these scripts have no small letters to show that it continues."""
    full = _FULL * max(map(len, ordered), default=0)
    pieces = lines[:1]
    for above, line in pairwise(lines):
        are_prose = above in ordered and line in ordered and "\t" not in above + line
        goes_on = are_prose and len(above) > full and not _ENDS.search(above[-_TAIL:])
        pieces.append(f" {line}" if goes_on else f"\n{line}")
    return "".join(pieces)


def _key(line: str) -> str:
    return "".join(line.split())


def _written(letters: Iterable[_Letter]) -> str:
    return "".join(letter.text for letter in letters)


def _is_from_right(letters: list[_Letter]) -> bool:
    written = _written(letters)
    return 2 * len(_RTL.findall(written)) > len(_LATIN.findall(written))


def _lines(text_page: Any) -> Iterator[list[_Letter]]:
    line: list[_Letter] = []
    for at in range(min(text_page.count_chars(), _MOST_LETTERS)):
        char = chr(raw.FPDFText_GetUnicode(text_page, at))
        if char in "\r\n":
            yield line
            line = []
        elif line and unicodedata.combining(char):
            line[-1] = line[-1]._replace(text=line[-1].text + char)
        else:
            line.append(_Letter(char, *box_of(text_page, at)))
    yield line


def _is_level(letters: list[_Letter]) -> bool:
    """Whether all letters stand side by side; rotated text is left as it is."""
    visible = [letter for letter in letters if not letter.text.isspace()]
    highest = max(letter.top - letter.bottom for letter in visible)
    return max(one.top for one in visible) - min(one.bottom for one in visible) < 2 * highest


def _ordered(letters: list[_Letter]) -> str:
    merged = list(_ligatures(letters))
    spaced = {(a, c) for a, b, c in zip(merged, merged[1:], merged[2:], strict=False) if b.text.isspace()}
    visible = (letter for letter in merged if not letter.text.isspace())
    from_right = sorted(visible, key=lambda letter: -(letter.left + letter.right))
    pieces = [from_right[0].text]
    for one, other in pairwise(from_right):
        gap = (one.left - other.right) / max(one.top - one.bottom, other.top - other.bottom, 0.1)
        mixes = any(_LATIN.match(a.text) and _RTL.match(b.text) for a, b in ((one, other), (other, one)))
        space = _NARROW_SPACE if mixes or (one, other) in spaced else _SPACE
        pieces.append(("\t" if gap > _CELL else " " if gap > space else "") + other.text)
    line = _TURNED.sub(lambda turned: turned[0][::-1], "".join(pieces))
    line = _STOP_BEFORE.sub(r"\1 ", line)
    line = mirrored(line)
    stop = _STOP_FIRST.match(line)
    return line[stop.end() :] + stop[0] if stop else line


def _ligatures(letters: list[_Letter]) -> Iterator[_Letter]:
    """Merge letters that share a box into one."""
    run = letters[0]
    for letter in letters[1:]:
        if letter[1:] == run[1:] and letter.text[0] > "\u0590":
            run = run._replace(text=run.text + letter.text)
        else:
            yield run._replace(text=_BACKWARDS.get(run.text, run.text))
            run = letter
    yield run._replace(text=_BACKWARDS.get(run.text, run.text))
