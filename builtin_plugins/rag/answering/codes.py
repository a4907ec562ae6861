"""Article codes, error codes and the like: letters and digits that identify one thing among similar ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache

from builtin_plugins.rag.answering.candidate import Candidate
from builtin_plugins.rag.answering.passages import Passage

_CODE = re.compile(
    r"(?<![A-Za-z0-9])([A-Za-z]{1,6})[-_/]?([0-9]{2,8}(?:[-_/][0-9]{1,8}){0,3})(?![A-Za-z0-9])"
)
_NO_KINDS = frozenset({"fy", "q", "am", "pm", "ca", "no", "nr"})
"""Prefixes of years, quarters, times and amounts, which identify nothing."""
_DIGITS = re.compile(r"[0-9]+")
_BETWEEN_DIGITS = re.compile(r"(?<=[0-9])[-_/ ](?=[0-9])")


def speaks_of_another(question: str, best: Candidate, passages: Sequence[Passage]) -> bool:
    """Whether the question asks about a code that no passage has, and the best sentence has a similar one.

    The meaning of error E07 doesn't answer what E99 is, however similar the two questions are. Codes are
    similar if they have the same letters and number of digits. The bare digits of a code count as another
    spelling of it.
    """
    asked = _codes(question)
    if not asked:
        return False
    told = _codes(f"{best.under} {best.text}")
    alike = any(_kind(one) == _kind(other) for one in asked for other in told)
    return alike and _numbers(passages).isdisjoint(digits for _, digits in asked)


class Asked:
    """The codes in a question, for comparing with entries of a document: rows, paragraphs under a heading."""

    def __init__(self, question: str, texts: Iterable[str]) -> None:
        codes = _codes(question)
        found = bool(codes) and any(codes & _codes(text) for text in texts)
        self._codes = codes if found else set[tuple[str, str]]()
        self._kinds = {_kind(one) for one in self._codes}

    @property
    def is_there(self) -> bool:
        """Whether any of the texts has a code in the question."""
        return bool(self._codes)

    def is_beside(self, entry: str) -> bool:
        """Whether an entry has a similar code, but none that is in the question."""
        told = _codes(entry)
        return not told & self._codes and any(_kind(one) in self._kinds for one in told)


def _codes(text: str) -> set[tuple[str, str]]:
    found = {(letters.casefold(), _joined(digits)) for letters, digits in _CODE.findall(text)}
    return {one for one in found if one[0] not in _NO_KINDS and one[0] not in _currencies()}


@cache
def _currencies() -> frozenset[str]:
    """ISO 4217 codes: EUR500 is an amount."""
    from babel.core import get_global

    return frozenset(name.casefold() for name in get_global("all_currencies"))


def _kind(code: tuple[str, str]) -> tuple[str, int]:
    return code[0], len(code[1])


def _numbers(passages: Sequence[Passage]) -> set[str]:
    texts = [f"{one.source} {one.text}" for one in passages]
    return {found for text in texts for spelt in (text, _joined(text)) for found in _DIGITS.findall(spelt)}


def _joined(digits: str) -> str:
    """2025-0199 as 20250199, whose parts alone identify nothing."""
    return _BETWEEN_DIGITS.sub("", digits)
