"""Abbreviations: words whose full stop does not end a sentence."""

from __future__ import annotations

from builtin_plugins.rag.answering.words import word_list

_ABBREVIATIONS = word_list(
    """
    dr mr mrs ms prof st sr jr inc ltd co corp dept vs etc approx est al cf e.g i.e eg ie a.m p.m u.s
    u.k gen col lt sgt capt rev hon gov sen rep mt ave blvd bzw z.b d.h u.a usw ggf ca vgl evtl sog örn
    vb yy av doç jan feb mar apr jun jul aug sep sept oct nov dec mio mrd m.e
    u fa fr hrn med jur dipl geb gest inkl exkl zzgl ggü tel sra srta dña ud uds ee admón mme mlle sok blk ул
    пр просп пер обл стр корп руб коп тыс млн млрд рис табл гл им проф акад др гг डॉ श्री रु प्रो
    """
)
_BEFORE_NUMBER = word_list("no nr fig figs eq sec art vol p pp ch tab abb abs par s nos núm pág н")


def is_abbreviation(word: str, following: str) -> bool:
    """Whether a full stop between a word and the next character belongs to an abbreviation.

    A single small letter does so in scripts other than Latin, where it names no plan, row or vitamin: в г.
    """
    lowered = word.lower()
    if lowered in _ABBREVIATIONS or (lowered in _BEFORE_NUMBER and following.isdigit()):
        return True
    return len(word) == 1 and word.isalpha() and (word.isupper() or not word.isascii())
