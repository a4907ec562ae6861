"""Article codes, error codes and the like: letters and digits that identify one thing among similar ones."""

from __future__ import annotations

import re
from collections.abc import Sequence
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
    return _is_beside(asked, best) and _numbers(passages).isdisjoint(digits for _, digits in asked)


def about_asked(question: str, pieces: list[Candidate]) -> list[Candidate]:
    """The pieces, without entries about other codes if the question's code is in one of them: rows, and
    paragraphs under a heading.
    """
    asked = _codes(question)
    if not asked or not any(asked & _told(one) for one in pieces):
        return pieces
    return [one for one in pieces if not ((one.is_row or one.under) and _is_beside(asked, one))]


def _is_beside(asked: set[tuple[str, str]], one: Candidate) -> bool:
    """Whether a sentence has a code similar to those of the question, but none of them."""
    told = _told(one) if asked else set[tuple[str, str]]()
    return not asked & told and not set(map(_kind, asked)).isdisjoint(map(_kind, told))


def _told(one: Candidate) -> set[tuple[str, str]]:
    return _codes(f"{one.under} {one.text}")


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
