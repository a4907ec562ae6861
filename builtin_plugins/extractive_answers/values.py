"""Values of a kind that a question asks for, such as the last digits of a card, and the line that has one.

Most stand on receipts, invoices and letters, whose lines have few of the question's words. Beside each kind
stands how many more of the 116 questions of `tests.benchmarks.ordinary` get a useful answer by it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from builtin_plugins.extractive_answers.windows import Window, WindowChoice
from builtin_plugins.rag.api import AskedWords, QuotablePassage, QuotableSentence

_MONTH: Final = (
    r"(?:jan|ene|feb|fév|mar|mär|apr|abr|avr|may|mai|jun|juin|jul|juil|aug|août|ago|sep|oct|okt|nov|dec|dez"
    r"|déc|dic)"
    r"[a-zäéû]{0,7}\.?"
)
_DATE: Final = (
    r"(?<!\d)(?:\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4}"
    rf"|\d{{1,2}}\.? (?:de )?{_MONTH}(?: (?:de )?\d{{4}})?|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?"
    r")(?!\d)"
)
_AMOUNT: Final = (  # bounds, here and below, keep long lines of digits, dots or stars from taking long
    r"(?:[€$£] ?\d[\d.,']{0,20}|\d[\d.,']{0,16}(?:[.,]\d\d(?![\d.,])| ?(?:€|\$|£|EUR\b|USD\b|euros?\b)))"
)
_PAYMENT_WORDS: Final = (
    r"|use[ds]?|using|pa(?:y|ys|id|yment)|b(?:uy|ought)|purchased?|shop(?:ped)?|eat|ate|wr(?:ite|ote|itten)"
    r"|issued?|ha(?:ve|s)|my|our|verwendet|benutzt|bezahl(?:t|en)|gekauft|pay(?:é|er)|utilisée?|acheté|pag(?:ado|ué|ar)"
    r"|usad[ao]|comprad[ao]"
)
"""Words about paying, which a receipt proves without saying so."""


class ValueKind(NamedTuple):
    """How a question asks for a kind: `asked` is searched in it, `words` are those of its words that say so.
    `value` is what a line has.

    With `is_only`, nothing else is an answer: if only texts about something else have one, there is none.
    """

    asked: re.Pattern[str]
    words: re.Pattern[str]
    value: re.Pattern[str]
    is_only: bool = False


def _kind(asked: str, words: str, value: str, *, is_only: bool = False) -> ValueKind:
    return ValueKind(
        re.compile(asked, re.IGNORECASE),
        re.compile(words + _PAYMENT_WORDS, re.IGNORECASE),
        re.compile(value),
        is_only,
    )


_CARD: Final = _kind(  # 5
    r"\b(?:(?:which|what)(?: \w+)? card|(?:digits|number) of (?:the |my |our )?(?:\w+ )?card|card number"
    r"|(?:welche\w?|mit welcher) (?:\w*karte)|quelle carte|qué tarjeta)\b",
    r"(?:credit|debit)?cards?|credit|debit|digits?|last|four|number|\w*karte|carte|tarjeta",
    r"(?<![*•xX#])[*•xX#]{2,}(?:[ -][*•xX#]{2,}){0,5}[ -]?\d{4}\b|\b(?i:ending (?:in|with)|endet auf) \d{4}\b"
    r"|\b(?i:visa|mastercard|amex|american express|maestro|girocard)\b.{0,60}\d{4}\b",
    is_only=True,
)
_IBAN: Final = _kind(  # 1
    r"\biban\b", r"iban", r"\b[A-Z]{2}\d\d(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b", is_only=True
)
_KINDS: Final = (_CARD, _IBAN)
_UNITS: Final = (  # 2
    (r"kilowatt[- ]?hours?|kilowattstunden?|kilowattheures?|kilovatios hora", r"kWh"),
    (r"lit(?:re|er)s?|litros?", r"l|L|lit(?:re|er)s?|litros?"),
    (r"kilomet(?:re|er)s?|kilometern?|kilomètres?|kilómetros?", r"km"),
    (r"kilo(?:gram(?:me)?)?s?|kilogramm|kilogramos?", r"kg"),
    (r"square met(?:re|er)s?|quadratmetern?|mètres carrés|metros cuadrados", r"m²|m2|sqm|qm"),
)
_MEASURES: Final = [
    _kind(
        rf"\b(?:how many|wie ?viele?|combien de|cuánt[oa]s) (?:{asked})\b",
        rf"kilowatt|hours?|{asked}",
        rf"\d ?(?:{unit})(?![\w²])",
    )
    for asked, unit in _UNITS
]
_PAPERS: Final = (
    r"invoice|receipt|order|customer|policy|contract|member(?:ship)?|ticket|tracking|booking|passport|licen[cs]e"
    r"|serial|tax|vat|reference|rechnung|kunden|beleg|bestell|vertrag|auftrag|mitglied|facture|commande|client"
    r"|contrat|factura|pedido|cliente|contrato"
)
_NUMBER_OF: Final = re.compile(  # 4
    rf"\b(?P<before>{_PAPERS})s?[ -]?(?:numbers?|no|nr|id|code|nummer)\b"
    r"|\b(?:number|numéro|número|nummer) (?:of|on|de|der|des|du)(?: \w+['’]?s?){0,2}"
    rf" (?:\w+['’])?(?P<after>{_PAPERS})\b",
    re.IGNORECASE,
)
_NUMBER_WORDS: Final = r"(?:numbers?|num|no|nr|id|code|nummer|numéro|número|n[°º]|#)"
_CODE: Final = re.compile(rf"(?!{_DATE})(?!{_AMOUNT})(?=[\w/.-]{{0,40}}\d)[\w/.-]{{3,40}}", re.IGNORECASE)
_WHEN_WAS: Final = re.compile(  # 5
    r"^\W*(?:when|on (?:what|which) (?:date|day)) (?:was|were|did|have|has)\b"
    r"|^\W*(?:wann|an welchem (?:tag|datum)) (?:wurden?|war(?:en)?|haben?|hat)\b"
    r"|^\W*(?:quand|à quelle date|quel jour) .*\b(?:ai|as|a|avons|ont|été)\b"
    r"|^\W*(?:cuándo|qué día|en qué fecha) (?:se )?(?:fue|compr|pag|hemos|he)\w*"
    r"|\bdate (?:of|on) (?:the|my|our)(?: \w+){0,6} (?:invoice|receipt|bill|purchase)"
    r"|rechnungsdatum|kaufdatum|date (?:de (?:la )?facture|d['’]achat)|fecha de (?:la )?(?:factura|compra)",
    re.IGNORECASE,
)
_DATED: Final = re.compile(rf"^(?:[\w ]{{0,24}}(?:date|datum|fecha|le)\b[ :]*)?{_DATE}", re.IGNORECASE)
_OTHER_DATE: Final = re.compile(
    r"\b(?:due|until|by|before|expir\w+|valid|returns?|warranty|bis|fällig|gültig|zahlbar|avant|échéance"
    r"|jusqu|hasta|vence|vencimiento)\b",
    re.IGNORECASE,
)
_TIME: Final = re.compile(rf"{_DATE}|\b(?:1[5-9]|20)\d\d\b(?!-\d)|\b\d\d?:\d\d\b", re.IGNORECASE)
_LONGEST_LINE: Final = 8
_HOW_MUCH: Final = re.compile(  # 1
    r"\bhow much (?:is|was|were|are|did|do|does)\b|\bwhat (?:did|does|do|was|is) .{0,200}(?:cost|total)\b"
    r"|\bwie ?viel|\bwas kostet|\bcombien|\bcuánto",
    re.IGNORECASE,
)
_SUM: Final = re.compile(
    r"\b(?:total|amount(?: due)?|sum|balance due|gesamt\w*|summe|(?:rechnungs)?betrag|montant|importe)\b"
    rf".{{0,80}}{_AMOUNT}",
    re.IGNORECASE,
)
_MONEY: Final = re.compile(_AMOUNT, re.IGNORECASE)


def answer_by_value(
    asked: AskedWords, passages: Sequence[QuotablePassage], best: Window
) -> WindowChoice | None:
    """The line with a value of the kind that is asked for; None if that is for the best window to say."""
    for kind in (*_KINDS, *_MEASURES):
        if kind.asked.search(asked.text):
            return _of_kind(asked, passages, best, kind)
    if (number := _NUMBER_OF.search(asked.text)) is not None:
        kind = _numbered(number["before"] or number["after"])
        has_code = any(_CODE.search(one.text) for one in best.sentences_of(passages))
        return _of_kind(asked, passages, best, kind._replace(is_only=not has_code))
    if _WHEN_WAS.search(asked.text):
        return _in_form(passages, best, _TIME, _dated)
    return _in_form(passages, best, _MONEY, _sums) if _HOW_MUCH.search(asked.text) else None


def _numbered(paper: str) -> ValueKind:
    """The number of an invoice or the like: "Invoice no. 41-7", "Invoice A70", or on the next line."""
    label = rf"\b{re.escape(paper)}\w{{0,10}}[ .:-]*(?:{_NUMBER_WORDS}(?!\w)[ .:#-]*)?"
    return _kind(r"", rf"{_PAPERS}|{_NUMBER_WORDS}", rf"(?i:{label}\n?{_CODE.pattern})")


def _of_kind(
    asked: AskedWords, passages: Sequence[QuotablePassage], best: Window, kind: ValueKind
) -> WindowChoice | None:
    """The first line of that kind in a text about the rest of the question. In another language, that can't
    be seen by words.
    """
    subject = {at for at, word in enumerate(asked.words) if not kind.words.fullmatch(word)}
    for at, passage in enumerate(passages):
        if 2 * len(subject & passage.words) < len(subject):
            continue
        for first, last, text in _lines(passage.sentences):
            if kind.value.search(text):
                return WindowChoice(Window(at, first, last, best.score, best.share), is_sure=True)
    is_lacking = kind.is_only and subject and not any(passage.is_foreign for passage in passages)
    return WindowChoice(None, is_sure=True) if is_lacking else None


def _lines(sentences: Sequence[QuotableSentence]) -> Iterator[tuple[int, int, str]]:
    """The sentences, and each two of which the second has the value of the first."""
    for index, sentence in enumerate(sentences):
        yield index, index, sentence.text
        if index + 1 < len(sentences) and not any(map(str.isdigit, sentence.text)):
            yield index, index + 1, f"{sentence.text}\n{sentences[index + 1].text}"


def _in_form(
    passages: Sequence[QuotablePassage],
    best: Window,
    value: re.Pattern[str],
    lines: Callable[[Sequence[QuotableSentence]], Iterator[tuple[int, int]]],
) -> WindowChoice | None:
    """A line of a receipt or an invoice, which the best window of it lacks, or has among others."""
    passage = passages[best.passage]
    found = next(lines(passage.sentences), None)
    if found is None or not passage.words or _MONEY.search(passage.passage.text) is None:
        return None
    is_within = best.first <= found[0] <= best.last
    if not is_within and any(value.search(one.text) for one in best.sentences_of(passages)):
        return None
    return WindowChoice(Window(best.passage, *found, best.score, best.share), is_sure=True)


def _dated(sentences: Sequence[QuotableSentence]) -> Iterator[tuple[int, int]]:
    """The lines that say nothing but a date, which is the whole paper's, and no date for something else."""
    before = ""
    for index, sentence in enumerate(sentences):
        is_short = len(sentence.text.split()) <= _LONGEST_LINE
        above = before if not any(map(str.isdigit, before)) else ""
        if is_short and _DATED.search(sentence.text) and not _OTHER_DATE.search(f"{above} {sentence.text}"):
            yield index, index
        before = sentence.text


def _sums(sentences: Sequence[QuotableSentence]) -> Iterator[tuple[int, int]]:
    """The lines with the sum of all."""
    for index, sentence in enumerate(sentences):
        if len(sentence.text.split()) <= _LONGEST_LINE and _SUM.search(sentence.text):
            yield index, index
