"""Periods within sentences: of abbreviations, initials and ordinals (am 12. Mai, II. Mehmed)."""

from __future__ import annotations

import re
from functools import cache, lru_cache

from builtin_plugins.rag.answering.words import fold, is_function_word

_BEFORE = re.compile(r"([^\W_]+(?:\.[^\W_]+)*)$")
_NEXT = re.compile(r"\s*[\"'“‘«]?([^\W_]+)")
_THAI = re.compile(r"(?<![\u0e00-\u0eff])[\u0e00-\u0eff]{1,4}$")  # a period after this few is part of "พ.ศ."
_NEXT_LETTER = re.compile(r"\s+[^\W\d_]\.")  # part of an abbreviation with spaces, as in German: "z. B."
_ORDINAL = re.compile(r"\d{1,2}|[IVXL]+")
_CONSONANT = "[b-df-hj-np-tv-xzбвгджзклмнпрстфхцчшщ]"
_VOWELLESS = re.compile(f"{_CONSONANT}{{2,5}}")
_UNIT = re.compile(rf"\d\s?{_CONSONANT}{{2}}$")  # as in 5 kg: it needs no period
_VOWEL = re.compile("(?<=.)[rlрл](?=.)")  # as in Czech: trh, vlk
_LONGEST_BEFORE_NUMBER = 4
"""Letters of an abbreviation before a number: Abs. 3, vol. 2, est. 1897."""
_LONGEST_ABBREVIATION, _LONGEST_UNIT = 20, 4
_NEAR = 300
"""The most characters from a period to the danda of its sentence."""
_NO_ABBREVIATION = 7
"""Consecutive letters, more than any abbreviation has."""


def is_within_sentence(body: str, end: re.Match[str], language: str | None) -> bool:
    """Whether a mark is a period that ends no sentence."""
    at = end.start()
    if body[at] == "." and body[at - 3 : at].lower() == "str":  # "Hauptstr. 5", however long its name is
        return True
    if body[at] != "." or (at >= _NO_ABBREVIATION and body[at - _NO_ABBREVIATION : at].isalnum()):
        return False
    if not body[at - 1 : at].isascii() and _is_within_other_script(body, at):
        return True
    before = _BEFORE.search(body, max(at - _LONGEST_ABBREVIATION, 0), at)
    if before is None or _UNIT.search(body, max(at - _LONGEST_UNIT, 0), at):
        return False
    word, following = before[1], _NEXT.match(body, end.end())
    if len(word) == 1 and word.isalpha() and _NEXT_LETTER.match(body, end.end()):
        return True
    after = following[1] if following else ""
    return _is_abbreviation(word, after, language) or _is_ordinal(word, after, language)


def _is_within_other_script(body: str, at: int) -> bool:
    """Whether a period follows a few letters of Thai, or a word of Hindi whose sentence ends in a danda."""
    if "\u0900" <= body[at - 1] <= "\u097f":
        return body.find("।", at, at + _NEAR) >= 0
    return _THAI.search(body, max(at - _LONGEST_ABBREVIATION, 0), at) is not None


def _is_abbreviation(word: str, following: str, language: str | None) -> bool:
    """Whether a period between a word and the following one belongs to an abbreviation.

    Consecutive letters with periods are one: e.g., B.V. A single small letter is one in non-Latin scripts,
    where it doesn't name a plan, row or vitamin: в г. So are letters without a vowel (Nr., млн) and, before a
    number, any short word or letter. A capitalized function word begins a sentence.
    """
    letters = word.split(".")
    if all(len(one) == 1 and one.isalpha() for one in letters):
        return len(letters) > 1 or word.isupper() or not word.isascii() or following.isdigit()
    if is_function_word(word, language):
        return word[0].isupper() and following.isdigit()
    if is_function_word(following, language):
        return False
    if following.isdigit() and word.isalpha() and len(word) <= _LONGEST_BEFORE_NUMBER:
        return True
    return _is_vowelless(word) or _is_known(word, language)


def _is_vowelless(word: str) -> bool:
    """Whether a word has only consonants; with capitals within, it is another: TVs."""
    folded = fold(word)
    return word[1:].islower() and bool(_VOWELLESS.fullmatch(folded)) and not _VOWEL.search(folded)


@lru_cache(maxsize=4096)
def _is_known(word: str, language: str | None) -> bool:
    """Whether `sentencex` reads on after a word with a period."""
    from sentencex import get_sentence_boundaries

    return len(get_sentence_boundaries(language or "en", f"A {word}. Name")) == 1


@cache
def _writes_ordinals(language: str | None) -> bool:
    """Whether a language does, by how it writes a first quarter: 1. Quartal, 1. çeyrek, but 1st quarter."""
    from babel.core import Locale, UnknownLocaleError

    try:
        quarters = Locale.parse(language).quarters if language else {}
    except (UnknownLocaleError, ValueError):
        return False
    return bool(quarters) and quarters["format"]["wide"][1].startswith("1. ")


def _is_ordinal(word: str, following: str, language: str | None) -> bool:
    """Whether a period between a word and the following one makes it an ordinal.

    A sentence that ends in a number is recognized by the next one's first word, if it is a function word.
    """
    if _ORDINAL.fullmatch(word) is None or not _writes_ordinals(language):
        return False
    return not is_function_word(following, language)
