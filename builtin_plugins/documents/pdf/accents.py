"""Accents that a PDF draws as characters of their own, as TeX does with its older fonts.

PDFium puts them anywhere in the line, mostly at its end: "für" would be read as "fur ¨". Only positions show
the letter below (or above) each.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from itertools import islice, pairwise
from typing import Any, Final

from pypdfium2 import raw

from builtin_plugins.documents.pdf.boxes import Box, box_of

_COMBINING: Final = {
    "`": "\u0300",
    "\u00b4": "\u0301",
    "\u02c6": "\u0302",
    "\u02dc": "\u0303",
    "\u00af": "\u0304",
    "\u02d8": "\u0306",
    "\u02d9": "\u0307",
    "\u00a8": "\u0308",
    "\u02da": "\u030a",
    "\u02dd": "\u030b",
    "\u02c7": "\u030c",
    "\u00b8": "\u0327",
    "\u02db": "\u0328",
}
_DOTLESS: Final = {"\u0131": "i", "\u0237": "j"}
_ACCENTS: Final = "".join(_COMBINING)
_ACCENT: Final = re.compile(f"[{_ACCENTS}]")
_RUN: Final = re.compile(f"(?:(?<!\\s)\\s++)?+[{_ACCENTS}][{_ACCENTS} ]*")
_LINE: Final = re.compile("[^\\r\\n\\ufffe\\x02]++")  # PDFium's marks end lines, too: see `from_pdf`
_CUT: Final = "\ufffe"  # PDFium sees no split word if an accent follows the hyphen
_CUT_WORD: Final = re.compile(r"[^\W\d_]-$")
_GOES_ON: Final = re.compile(r"\s+[a-zß-öø-ÿ]")
_LONGEST: Final = 300  # characters of a line: each is compared with each accent
_MOST: Final = 300  # lines of a page: each is looked for in its text
_SHIFTED: Final = 0.5  # how far up an accent may be moved for its letter, as a share of its height
_APART: Final = 0.12  # least width of a space, likewise


def with_accents(text_page: Any, text: str) -> str:
    """Compose the letters and accents that are drawn in the same place."""
    if not _ACCENT.search(text):
        return text
    whole, text = str(text_page.get_text_range()), text.replace("\r\n", "\n")
    for start, end in islice(_accented(whole), _MOST):
        line = whole[start:end]
        written = line.strip().replace("\r\n", "\n")
        if len(line) <= _LONGEST and written in text:
            composed = _composed(line, _boxes(text_page, start, line))
            is_cut = line[-1] != "-" and _CUT_WORD.search(composed) and _GOES_ON.match(whole, end)
            text = text.replace(written, composed[:-1] + _CUT if is_cut else composed)
    return text


def _accented(text: str) -> Iterator[tuple[int, int]]:
    """Where the lines with accents begin and end, with a line below that has nothing else."""
    lines = [line.span() for line in _LINE.finditer(text)]
    for (start, end), (below, last) in pairwise([*lines, (0, 0)]):
        is_below = last > 0 and not text[below:last].strip(f"{_ACCENTS} ")
        if _ACCENT.search(text, start, end) or is_below:
            yield start, last if is_below else end


def _boxes(text_page: Any, start: int, line: str) -> Mapping[int, Box]:
    """The places of a line's characters; characters beyond U+FFFF shift indexes."""
    return {
        at: box_of(text_page, start + at)
        for at, char in enumerate(line)
        if not char.isspace() and raw.FPDFText_GetUnicode(text_page, start + at) == ord(char)
    }


def _composed(line: str, boxes: Mapping[int, Box]) -> str:
    chars = list(line)
    for run in _RUN.finditer(line):
        accents = [at for at in range(*run.span()) if not line[at].isspace()]
        letters = {at: place_and_letter for at in accents if (place_and_letter := _letter(line, boxes, at))}
        if len({place for place, _ in letters.values()}) == len(accents):
            for at, (place, letter) in letters.items():
                chars[at], chars[place] = "", letter
            chars[run.start() : run.end()] = [_between(boxes, *run.span()), *[""] * (len(run[0]) - 1)]
    return "".join(chars).strip()


def _letter(line: str, boxes: Mapping[int, Box], at: int) -> tuple[int, str] | None:
    """The place of the letter that has this accent, and both composed."""
    if at not in boxes:
        return None
    accent = boxes[at]
    middle, reach = (accent.left + accent.right) / 2, _SHIFTED * (accent.top - accent.bottom)
    for place, box in boxes.items():
        if box.left <= middle <= box.right and abs(box.bottom - accent.bottom) <= reach:
            letter = _DOTLESS.get(line[place], line[place])
            both = unicodedata.normalize("NFC", letter + _COMBINING[line[at]])
            if letter.isalpha() and len(both) == 1:
                return place, both
    return None


def _between(boxes: Mapping[int, Box], start: int, end: int) -> str:
    """What stays of a run of accents: a space, unless the characters around it touch."""
    one, other = boxes.get(start - 1), boxes.get(end)
    if one is None or other is None:
        return " "
    return " " if other.left - one.right > _APART * (one.top - one.bottom) else ""
