"""The numbers of list items on PowerPoint slides (ECMA-376-1, 21.1.2.4.1), which their text lacks."""

from __future__ import annotations

import re
from typing import Final

from lxml import etree

from builtin_plugins.documents.office.docx_numbering import number_in, written_number

_MOST_LEVELS: Final = 9
_TYPE: Final = re.compile("(arabic|alphaLc|alphaUc|romanLc|romanUc)(Period|ParenR|ParenBoth|Plain)")
_FORMS: Final = {
    "arabic": "decimal",
    "alphaLc": "lowerLetter",
    "alphaUc": "upperLetter",
    "romanLc": "lowerRoman",
    "romanUc": "upperRoman",
}
_AROUND: Final = {"Period": ("", "."), "ParenR": ("", ")"), "ParenBoth": ("(", ")"), "Plain": ("", "")}


class PptxNumbering:
    """Numbers the paragraphs of a slide in their order: each goes on from the last one on its level that is
    numbered in the same way, unless there is a higher one between.
    """

    def __init__(self) -> None:
        self._body: etree._Element | None = None
        self._counts: dict[int, tuple[tuple[str, int], int]] = {}

    def label(self, properties: etree._Element) -> str:
        """The number before a paragraph with these properties; empty if it has none, or a bullet."""
        paragraph = properties.getparent()
        body = None if paragraph is None else paragraph.getparent()
        if body is not self._body:
            self._body, self._counts = body, {}
        at = min(number_in(properties.get("lvl", ""), 0), _MOST_LEVELS)
        self._counts = {level: count for level, count in self._counts.items() if level <= at}
        mark = properties.find("{*}buAutoNum")
        numbering_type = None if mark is None else _TYPE.fullmatch(mark.get("type", ""))
        if mark is None or numbering_type is None:
            self._counts.pop(at, None)
            return ""
        form = numbering_type[0], number_in(mark.get("startAt", ""), 1)
        last, count = self._counts.get(at, (form, form[1] - 1))
        count = count + 1 if last == form else form[1]
        self._counts[at] = form, count
        before, after = _AROUND[numbering_type[2]]
        return before + written_number(count, _FORMS[numbering_type[1]]) + after
