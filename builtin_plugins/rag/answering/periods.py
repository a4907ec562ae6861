"""Periods within sentences: of abbreviations, initials and ordinals (am 12. Mai, II. Mehmed)."""

from __future__ import annotations

import re
from functools import cache

from builtin_plugins.rag.answering.words import is_function_word, word_list

_ABBREVIATIONS = word_list(
    """
    dr mr mrs ms prof st sr jr inc ltd co corp dept vs etc approx al cf eg ie gen col lt sgt capt rev hon gov
    sen rep mt ave blvd bzw usw ggf ca vgl evtl sog örn vb yy av doç mio mrd u fa fr hrn med jur dipl geb
    gest inkl exkl zzgl ggü tel sra srta dña ud uds ee admón mme mlle sok blk ул пр просп пер обл стр корп
    руб коп тыс млн млрд рис табл гл им проф акад др гг डॉ श्री रु प्रो
    """
)
_BEFORE_NUMBER = word_list(
    """
    no nr fig figs eq sec art vol p pp ch tab abb abs par s nos núm pág
    est jan feb mar apr jun jul aug sep sept oct nov dec
    """
)
"""Words in other languages: "mar" is the sea, "est" the east."""

_BEFORE = re.compile(r"((?:[^\W_]|[\u0900-\u0903\u093a-\u094f])+(?:\.[^\W_]+)*)$")  # with the vowels of Hindi
_WORD = re.compile(r"[^\W_]+")
_THAI = re.compile(r"(?<![\u0e00-\u0eff])[\u0e00-\u0eff]{1,4}$")  # a period after this few is part of "พ.ศ."
_NEXT_LETTER = re.compile(r"\s+[^\W\d_]\.")  # part of an abbreviation with spaces, as in German: "z. B."
_ORDINAL = re.compile(r"\d{1,2}|[IVXL]+")
_LONGEST_ABBREVIATION = 20
_NO_ABBREVIATION = 7
"""Consecutive letters, more than any abbreviation has."""


def is_within_sentence(body: str, end: re.Match[str], language: str | None) -> bool:
    """Whether a mark is a period that ends no sentence."""
    at = end.start()
    if body[at] == "." and body[at - 3 : at].lower() == "str":  # "Hauptstr. 5", however long its name is
        return True
    if body[at] != "." or (at >= _NO_ABBREVIATION and body[at - _NO_ABBREVIATION : at].isalnum()):
        return False
    if not body[at - 1 : at].isascii() and _THAI.search(body, max(at - _LONGEST_ABBREVIATION, 0), at):
        return True
    if not (before := _BEFORE.search(body, max(at - _LONGEST_ABBREVIATION, 0), at)):
        return False
    word, following = before.group(1), _WORD.search(body, end.end())
    if _is_abbreviation(word, body[end.end() :].lstrip()[:1]):
        return True
    if len(word) == 1 and word.isalpha() and _NEXT_LETTER.match(body, end.end()):
        return True
    return _is_ordinal(word, following[0] if following else "", language)


def _is_abbreviation(word: str, following: str) -> bool:
    """Whether a period between a word and the next character belongs to an abbreviation.

    Consecutive letters with periods are one: e.g., B.V. A single small letter is one in non-Latin scripts,
    where it doesn't name a plan, row or vitamin: в г.
    """
    lowered = word.lower()
    if lowered in _ABBREVIATIONS or (lowered in _BEFORE_NUMBER and following.isdigit()):
        return True
    letters = word.split(".")
    if not all(len(one) == 1 and one.isalpha() for one in letters):
        return False
    return len(letters) > 1 or word.isupper() or not word.isascii()


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
