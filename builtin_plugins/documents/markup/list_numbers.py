"""The numbers of list items in HTML (`ol`), as a browser shows them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from builtin_plugins.documents.office.docx_numbering import written_number

_NUMBER: Final = re.compile(r"\s*(-?\d{1,9})")
_UNNUMBERED: Final = re.compile(r"list-style(?:-type)?:[^;]*\b(?:none|disc|circle|square)\b", re.IGNORECASE)
_FORMS: Final = {"a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"}


@dataclass
class ListNumbers:
    """Counts the items of a list."""

    following: int
    step: int
    kind: str

    def label(self, attributes: Mapping[str, str]) -> str:
        """The number of the next item, with what separates it from the text."""
        number = _number(attributes.get("value"), self.following)
        self.following = number + self.step
        form = _FORMS.get(attributes.get("type", self.kind), "decimal")
        return f"{written_number(number, form)}. "


def numbers_of(attributes: Mapping[str, str]) -> ListNumbers | None:
    """The numbers of an `ol`; None if it shows none, or counts down from a number that is not named."""
    is_reversed = "reversed" in attributes
    if _UNNUMBERED.search(attributes.get("style", "")[:500]) or (is_reversed and "start" not in attributes):
        return None
    start = _number(attributes.get("start"), 1)
    return ListNumbers(start, -1 if is_reversed else 1, attributes.get("type", "1"))


def _number(written: str | None, otherwise: int) -> int:
    number = _NUMBER.match(written or "")
    return int(number[1]) if number else otherwise
