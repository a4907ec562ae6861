"""Where the letters are on a PDF page, and which way up."""

from __future__ import annotations

import ctypes
from collections import Counter
from math import pi
from typing import Any, Final, NamedTuple

from pypdfium2 import raw

_SAMPLE: Final = 200


class Box(NamedTuple):
    """The place of a letter."""

    left: float
    right: float
    bottom: float
    top: float


def box_of(text_page: Any, at: int) -> Box:
    """Where a letter is, including the space to its neighbors."""
    box = raw.FS_RECTF()
    raw.FPDFText_GetLooseCharBox(text_page, at, ctypes.byref(box))
    return Box(box.left, box.right, box.bottom, box.top)


def quarter_turns(text_page: Any) -> int:
    """How many quarter turns clockwise bring most letters upright."""
    count = text_page.count_chars()
    sample = range(0, count, count // _SAMPLE + 1)
    angles = Counter(round(2 * raw.FPDFText_GetCharAngle(text_page, at) / pi) for at in sample)
    return -angles.most_common(1)[0][0] % 4 if angles else 0


def turned(x: float, y: float, quarters: int) -> tuple[float, float]:
    """A point after some quarter turns clockwise."""
    for _ in range(quarters):
        x, y = y, -x
    return x, y
