"""Numbers that a period makes ordinals: am 12. Mai, II. Mehmed."""

from __future__ import annotations

import re
from functools import cache

from builtin_plugins.rag.answering.words import is_function_word

_ORDINAL = re.compile(r"\d{1,2}|[IVXL]+")


@cache
def writes_ordinals_with_a_stop(language: str | None) -> bool:
    """Whether a language does, by how it writes a first quarter: 1. Quartal, 1. çeyrek, but 1st quarter."""
    from babel.core import Locale, UnknownLocaleError

    try:
        quarters = Locale.parse(language).quarters if language else {}
    except (UnknownLocaleError, ValueError):
        return False
    return bool(quarters) and quarters["format"]["wide"][1].startswith("1. ")


def is_ordinal(word: str, following: str, language: str | None) -> bool:
    """Whether a period between a word and the following one makes it an ordinal.

    A sentence that ends in a number is recognized by the next one's first word, if it is a function word.
    """
    if _ORDINAL.fullmatch(word) is None or not writes_ordinals_with_a_stop(language):
        return False
    return not is_function_word(following, language)
