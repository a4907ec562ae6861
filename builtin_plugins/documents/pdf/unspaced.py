"""Joins the lines of paragraphs in Chinese, Japanese and Korean PDFs.

Lines end in the middle of words, and no small letter shows that the next one continues: a name split between
two lines would not be found, and a sentence would end with its line.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

_IDEOGRAPHS: Final = "\u3005-\u3007\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
_HANGUL: Final = "\uac00-\ud7a3"
_LETTER: Final = re.compile(f"[{_IDEOGRAPHS}{_HANGUL}]")
_UNSPACED: Final = re.compile(f"[{_IDEOGRAPHS}\u3001\u3002\uff01-\uff1f]")
_ENDS: Final = re.compile(r"[。．！？!?.:：]\W*$")
# List items and parts of a law; a mention within a sentence has no space after it.
_NUMBER: Final = "[0-9０-９一二三四五六七八九十百]{1,4}"
_BEGINS: Final = re.compile(
    rf"\s*(?:[・•●■□◆○※*–‣▪▫▶►➢➤◇★①-⑳㈠-㈩\uf000-\uf0ff-]|[(（]?{_NUMBER}[.)）．、]|第{_NUMBER}[章节節条條款項项]\s)"
)
_SPACED: Final = re.compile(f"[{_HANGUL}]")
_TAIL: Final = 8  # closing quotes and brackets, and the punctuation before them
_FULL: Final = 0.7  # of the longest line: a shorter one ends a paragraph, or is a heading


def joined(text: str, apart: str) -> str:
    """Join such lines of a page's text, except those that contain `apart`."""
    lines = text.split("\n")
    lengths = [len(line) if _is_unspaced(line) and apart not in line else 0 for line in lines]
    full = _FULL * max(lengths)
    pieces = lines[:1]
    for (above, length), (line, unspaced) in pairwise(zip(lines, lengths, strict=True)):
        is_prose = length > full and (unspaced or _LETTER.match(line))
        is_joined = is_prose and not _ENDS.search(above[-_TAIL:]) and not _BEGINS.match(line)
        space = " " if _SPACED.match(line) else ""
        pieces.append(f"{space}{line}" if is_joined else f"\n{line}")
    return "".join(pieces)


def goes_on(above: str, below: str) -> bool:
    """Whether a line continues in the next one without a space, judging by the letters where they meet."""
    return bool(_UNSPACED.match(above) and _UNSPACED.match(below))


def _is_unspaced(line: str) -> bool:
    return 2 * len(_LETTER.findall(line)) > len(line)
