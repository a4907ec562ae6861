"""Written forms as words, by language: dates, times, amounts, numbers, abbreviations.

The words come from num2words, names of months and currencies from the CLDR data of Babel.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Final

from babel.core import Locale
from babel.dates import format_date
from babel.numbers import get_currency_name, get_group_symbol
from num2words import num2words

_ABBREVIATIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "de": {
        "z. B.": "zum Beispiel",
        "z.B.": "zum Beispiel",
        "d. h.": "das heißt",
        "d.h.": "das heißt",
        "u. a.": "unter anderem",
        "bzw.": "beziehungsweise",
        "usw.": "und so weiter",
        "ca.": "circa",
        "vgl.": "vergleiche",
        "Nr.": "Nummer",
        "Dr.": "Doktor",
        "Str.": "Straße",
    },
    "en": {
        "e.g.": "for example",
        "i.e.": "that is",
        "etc.": "et cetera",
        "approx.": "approximately",
        "No.": "number",
        "Dr.": "Doctor",
        "Mr.": "Mister",
        "Mrs.": "Missus",
        "vs.": "versus",
    },
    "tr": {
        "vb.": "ve benzeri",
        "vs.": "vesaire",
        "Dr.": "Doktor",
        "Sn.": "Sayın",
        "No.": "numara",
        "örn.": "örneğin",
        "bkz.": "bakınız",
        "Prof.": "Profesör",
    },
    "fr": {"p. ex.": "par exemple", "c.-à-d.": "c'est-à-dire", "etc.": "et cetera", "M.": "Monsieur"},
    "es": {"p. ej.": "por ejemplo", "etc.": "etcétera", "Sr.": "señor", "Sra.": "señora"},
    "it": {"ad es.": "ad esempio", "ecc.": "eccetera", "Sig.": "signor"},
    "pt": {"p. ex.": "por exemplo", "etc.": "et cetera", "Sr.": "senhor", "Sra.": "senhora"},
    "nl": {"bijv.": "bijvoorbeeld", "d.w.z.": "dat wil zeggen", "enz.": "enzovoort", "o.a.": "onder andere"},
    "ru": {"т. е.": "то есть", "т. д.": "так далее", "напр.": "например", "руб.": "рублей"},
}
_CURRENCIES: Final = {"€": "EUR", "$": "USD", "£": "GBP", "₺": "TRY", "¥": "JPY", "₽": "RUB", "₩": "KRW"}
# Symbols that are spoken as words.
_PERCENT: Final = {
    "en": "percent",
    "de": "Prozent",
    "fr": "pour cent",
    "es": "por ciento",
    "it": "per cento",
    "pt": "por cento",
    "nl": "procent",
    "ru": "процентов",
    "ja": "パーセント",
    "ko": "퍼센트",
}
# Neither part of a word or a code ("AB-12", "v2"), nor of a longer number ("1.2.3", "0171 …").
_NUMBER: Final = (
    r"(?<![\w.,/:+-])(?<!\d )(?!0\d)(\d{1,3}(?:[.,\u00a0\u202f' ]\d{3})+|\d{1,12})(?:([.,])(\d{1,6}))?"
)
_AFTER_NUMBER: Final = r"(?![\w/:]|[.,]\d|-\d)"
_ISO_DATE: Final = re.compile(r"(?<![\d-])(\d{4})-(\d{2})-(\d{2})(?![\d-])")
_LOCAL_DATE: Final = re.compile(r"(?<![\d./-])(\d{1,2})([./-])(\d{1,2})\2(\d{4})(?!\d)")
_SIGNS: Final = "".join(map(re.escape, _CURRENCIES))
# num2words drops fractions in these languages, or says ".5" as "fifty".
_POINT: Final = {"tr": "virgül", "it": "virgola"}
# num2words joins Turkish number words, as only done on checks; espeak-ng then stresses only the last
# syllable.
_TURKISH_NUMBER: Final = re.compile(
    "sıfır|bir|iki|üç|dört|beş|altmış|altı|yedi|sekiz|dokuz|on|yirmi|otuz|kırk|elli|yetmiş|seksen|doksan|yüz"
    "|bin|milyon|milyar|trilyon"
)
_CLOCK: Final = {
    "de": (re.compile(r"(?<![\d.,:])(\d{1,2})[.:](\d{2}) Uhr\b"), "{0} Uhr {1}"),
    "tr": (re.compile(r"(?<=\b[Ss]aat )(\d{1,2})[.:](\d{2})(?!\d)"), "{0} {1}"),
}
_DATIVE: Final = r"(?:\b([Aa]m|[Vv]om|[Zz]um|[Dd]em|[Dd]en|[Bb]is|[Ss]eit|[Aa]b)\s+)?"


class Normalizer:
    """Prepares the text of one language for speech."""

    def __init__(self, language: str) -> None:
        self._language = language
        self._locale = Locale.parse(language)
        self._steps = (
            *self._abbreviations(),
            (_ISO_DATE, self._iso_date),
            (_LOCAL_DATE, self._local_date),
            *self._days(),
            *self._clock(),
            (re.compile(rf"(?<!\w)([{_SIGNS}])\s?{_NUMBER}{_AFTER_NUMBER}"), self._amount_after_sign),
            (re.compile(rf"{_NUMBER}\s?([{_SIGNS}])"), self._amount_before_sign),
            (re.compile(rf"{_NUMBER}\s?%"), self._percentage),
            (re.compile(rf"%\s?{_NUMBER}{_AFTER_NUMBER}"), self._percentage),
            (re.compile(_NUMBER + _AFTER_NUMBER), self._number),
        )

    def __call__(self, text: str) -> str:
        """The text with its written forms as words; what isn't recognized stays as it is."""
        for pattern, replace in self._steps:
            text = pattern.sub(replace, text)
        return text

    def _abbreviations(self) -> list[tuple[re.Pattern[str], Callable[[re.Match[str]], str]]]:
        abbreviations = _ABBREVIATIONS.get(self._language, {})
        if not abbreviations:
            return []
        longest_first = sorted(abbreviations, key=len, reverse=True)
        pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})")
        return [(pattern, lambda match: abbreviations[match[0]])]

    def _days(self) -> list[tuple[re.Pattern[str], Callable[[re.Match[str]], str]]]:
        """Days of a month, which are ordinals in German and English."""
        months = "|".join(map(re.escape, self._locale.months["format"]["wide"].values()))
        if self._language == "de":
            return [(re.compile(rf"{_DATIVE}(?<!\d)(\d{{1,2}})\.\s?({months})\b"), self._german_day)]
        if self._language == "en":
            return [
                (re.compile(rf"(?<![\d.,])(?:the )?(\d{{1,2}}) ({months})\b"), self._english_day),
                (re.compile(rf"\b({months}) (\d{{1,2}})(?![\d:])"), self._american_day),
            ]
        return []

    def _german_day(self, match: re.Match[str]) -> str:
        before, day, month = match.groups()
        ordinal = self._ordinal(day)
        return f"{before} {ordinal}n {month}" if before else f"{ordinal} {month}"

    def _english_day(self, match: re.Match[str]) -> str:
        return f"the {self._ordinal(match[1])} of {match[2]}"

    def _american_day(self, match: re.Match[str]) -> str:
        return f"{match[1]} {self._ordinal(match[2])}"

    def _ordinal(self, day: str) -> str:
        return str(num2words(int(day), lang=self._language, to="ordinal"))

    def _clock(self) -> list[tuple[re.Pattern[str], Callable[[re.Match[str]], str]]]:
        """Times of day whose mark would make them fractions, or whose unit would be said twice."""
        if self._language not in _CLOCK:
            return []
        pattern, spoken = _CLOCK[self._language]

        def render(match: re.Match[str]) -> str:
            return spoken.format(*(self._words(Decimal(part)) for part in match.groups()))

        return [(pattern, render)]

    def _iso_date(self, match: re.Match[str]) -> str:
        return self._date(match, int(match[1]), int(match[2]), int(match[3]))

    def _local_date(self, match: re.Match[str]) -> str:
        """Day before month, except in English with slashes, as in the USA."""
        first, second, year = int(match[1]), int(match[3]), int(match[4])
        if self._language == "en" and match[2] == "/":
            first, second = second, first
        return self._date(match, year, second, first)

    def _date(self, match: re.Match[str], year: int, month: int, day: int) -> str:
        try:
            day_meant = date(year, month, day)
        except ValueError:
            return match[0]
        if self._language in ("en", "de"):
            name = format_date(day_meant, "MMMM", locale=self._locale)
            years = num2words(year, lang=self._language, to="year")
            return f"{name} {day}, {years}" if self._language == "en" else f"{day}. {name} {years}"
        return format_date(day_meant, format="long", locale=self._locale).replace(" г.", " года")

    def _amount_after_sign(self, match: re.Match[str]) -> str:
        return self._amount(match[0], match[1], self._value(match[2], match[3], match[4]))

    def _amount_before_sign(self, match: re.Match[str]) -> str:
        return self._amount(match[0], match[4], self._value(match[1], match[2], match[3]))

    def _amount(self, written: str, sign: str, value: Decimal | None) -> str:
        if value is None:
            return written
        if self._language == "en" and _CURRENCIES[sign] in ("EUR", "USD", "GBP"):
            return self._english_amount(value, _CURRENCIES[sign])
        name = get_currency_name(_CURRENCIES[sign], value, locale=self._locale)
        whole, cents = divmod(value, 1)
        if not cents or value.as_tuple().exponent != -2:
            return f"{self._words(value)} {name}"
        return f"{self._words(whole)} {name} {self._words(cents * 100)}"

    def _english_amount(self, value: Decimal, currency: str) -> str:
        """An amount with its cents, which have no names in the CLDR."""
        as_money = partial(num2words, lang="en", to="currency", currency=currency, separator=" and")
        if value == int(value):
            return str(as_money(Decimal(f"{int(value)}.00"))).partition(" and zero ")[0]
        if value.as_tuple().exponent == -2:
            return str(as_money(value))
        return f"{self._words(value)} {get_currency_name(currency, value, locale=self._locale)}"

    def _percentage(self, match: re.Match[str]) -> str:
        value = self._value(match[1], match[2], match[3])
        if value is None:
            return match[0]
        if self._language == "tr":
            return f"yüzde {self._words(value)}"
        return f"{self._words(value)} {_PERCENT[self._language]}"

    def _number(self, match: re.Match[str]) -> str:
        value = self._value(match[1], match[2], match[3])
        return match[0] if value is None else self._words(value)

    def _value(self, whole: str, mark: str | None, fraction: str | None) -> Decimal | None:
        """A number as written in this language; None if it would be written differently.

        "1,5" is one and a half in German, and "1.5" as well: nobody groups three digits into one.
        """
        if fraction and len(fraction) == 3 and mark == self._group:
            whole, fraction = whole + fraction, None
        digits = re.sub(r"\D", "", whole)
        return Decimal(f"{digits}.{fraction}" if fraction else digits)

    @property
    def _group(self) -> str:
        return get_group_symbol(self._locale)

    def _words(self, value: Decimal) -> str:
        number = int(value) if value == value.to_integral_value() else value
        if isinstance(number, Decimal) and self._language in _POINT:
            whole, _, fraction = f"{number.normalize():f}".partition(".")
            parts = [self._words(Decimal(whole)), _POINT[self._language]]
            return " ".join([*parts, *(self._words(Decimal(digit)) for digit in fraction)])
        words = str(num2words(number, lang=self._language))
        if self._language == "tr":
            return " ".join(_TURKISH_NUMBER.findall(words))
        return words.replace(" punto ", " coma ") if self._language == "es" else words
