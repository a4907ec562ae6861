"""Abbreviations: words whose period does not end a sentence."""

from __future__ import annotations

from builtin_plugins.rag.answering.words import word_list

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


def is_abbreviation(word: str, following: str) -> bool:
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
