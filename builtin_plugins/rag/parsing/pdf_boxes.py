"""Where the letters are on a PDF page."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

from pypdfium2 import raw


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
