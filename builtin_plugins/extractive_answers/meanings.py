"""What a question means beyond its words: the row with the highest value, the winner, what is in force."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from builtin_plugins.extractive_answers.windows import Window, WindowChoice
from builtin_plugins.rag.api import AskedWords, QuotablePassage, QuotableSentence

_LEAST_ROWS: Final = 2
_LONGEST_NAME: Final = 60
_NUMBER: Final = re.compile(r"[^\d\-]{0,4}(-?\d[\d.,' ]{0,20})[^\d]{0,8}")
_THOUSANDS: Final = re.compile(r"[,.' ](?=\d{3}(?!\d))")
_HIGHEST: Final = re.compile(
    r"\b(highest|most|largest|biggest|greatest|longest|tallest|heaviest|deepest|maximum|latest"
    r"|höchste\w?|meiste\w?|größte\w?|teuerste\w?|längste\w?"
    r"|plus (?:élevé|grand|cher|haut|long)e?|más (?:alt|grand|car|larg)[oae]|mayor)\b",
    re.IGNORECASE,
)
_LOWEST: Final = re.compile(
    r"\b(lowest|least|smallest|cheapest|fewest|shortest|lightest|minimum"
    r"|niedrigste\w?|wenigsten|kleinste\w?|billigste\w?|günstigste\w?|kürzeste\w?"
    r"|moins (?:élevé|cher)e?|plus (?:bas|petit)(?:se|te)?|más (?:baj|barat|pequeñ)[oa]|menor)\b",
    re.IGNORECASE,
)
_WON: Final = re.compile(
    r"\b(won|wins|winner|first place|(?:came|comes|finished|ranked) (?:in )?first|gewonnen|gewann"
    r"|sieger\w*|gewinner\w*|gagné|vainqueur|gagnant\w*|ganó|ganador\w*)\b",
    re.IGNORECASE,
)
_IMPLIED: Final = [
    (re.compile(rf"\b(?:{asked})\b", re.IGNORECASE), re.compile(rf"\b(?:{columns})", re.IGNORECASE))
    for asked, columns in (
        (
            r"cheapest|(?:most|least) expensive|costs? the (?:most|least)|teuerste\w?|billigste\w?"
            r"|günstigste\w?|(?:plus|moins) chère?s?|más (?:car|barat)[oa]s?",
            r"price|cost|rent|fee|amount|preis|kosten|miete|gebühr|betrag|prix|coût|loyer|montant|precio"
            r"|coste|alquiler|importe",
        ),
        (
            r"earns? the (?:most|least)|verdient am (?:meisten|wenigsten)|gagne le (?:plus|moins)"
            r"|gana (?:más|menos)",
            r"salary|income|wage|pay|gehalt|lohn|einkommen|salaire|revenu|salario|sueldo",
        ),
        (
            r"longest|shortest|längste\w?|kürzeste\w?",
            r"length|duration|years|months|weeks|days|hours|minutes|dauer|länge|jahre|monate|wochen|tage",
        ),
        (r"heaviest|lightest|schwerste\w?|leichteste\w?", r"weight|gewicht|poids|peso|kg"),
        (r"tallest|höchste\w?|größte\w?", r"height|höhe|größe|hauteur|altura"),
    )
]
"""Columns that a question means without their names: what is asked, and what they are called. They answer 3
more of the 116 questions of `tests.benchmarks.ordinary`."""
_RANKS: Final = frozenset({"rank", "place", "position", "platz", "rang", "puesto", "posición"})
_LABELS: Final = (
    (  # what is in force
        r"in force|in effect|is valid|currently valid|still valid|applies now|in kraft|gültig|en vigueur"
        r"|vigente",
        r"replaces|supersedes|(?:applies|valid|effective|in force) (?:from|since|as of)|takes effect"
        r"|ersetzt|gilt (?:ab|seit)|in kraft (?:ab|seit)|remplace|en vigueur (?:depuis|à)|sustituye|reemplaza"
        r"|vigente desde",
    ),
    (  # who was there
        r"who (?:attended|took part|participated|was present|was there)|wer (?:nahm|war)|participants"
        r"|teilnehmer\w*|qui (?:a participé|était présent)|quién (?:asistió|participó)",
        r"^(?:present|attendees|attending|participants|in attendance|anwesend\w*|teilnehmer\w*|présents?"
        r"|participants?|asistentes|presentes)(?=:)",
    ),
    (  # until when
        r"by when|until when|deadline|due date|bis wann|frist|avant quand|jusqu'à quand|hasta cuándo|plazo",
        r"(?:payable|due|to be paid|pay|reply|return|register) (?:by|until|before|on)|due date|deadline"
        r"|zahlbar bis|fällig (?:am|bis)|zu zahlen bis|à payer avant|échéance|pagadero|vencimiento",
    ),
)
"""Questions whose answers use other words: what is asked, and what the answer says."""
_LABEL_PATTERNS: Final = [
    (re.compile(rf"\b(?:{asked})\b", re.IGNORECASE), re.compile(rf"(?:{label})\b", re.IGNORECASE))
    for asked, label in _LABELS
]


def answer_by_meaning(
    asked: AskedWords, passages: Sequence[QuotablePassage], best: Window
) -> WindowChoice | None:
    """The row or sentence that the question means, instead of the best window by its words; None for most."""
    for question, label in _LABEL_PATTERNS:
        if (phrase := question.search(asked.text)) is not None:
            place = _labelled(asked, passages, label, phrase[0])
            return place and WindowChoice(Window(*place, best.score, best.share))
    winner = _WON.search(asked.text)
    row = _row(asked, passages) if winner is None else _extreme(passages, _is_rank, lowest=True)
    if row is None:
        return None
    at, index = row
    is_sure = winner is not None and _is_about(passages[at], _subject(asked, winner[0]))
    return WindowChoice(Window(at, index, index, best.score, best.share), is_sure)


def _row(asked: AskedWords, passages: Sequence[QuotablePassage]) -> tuple[int, int] | None:
    lowest = _LOWEST.search(asked.text) is not None
    if not lowest and _HIGHEST.search(asked.text) is None:
        return None
    stems = _stems(asked)
    place = _extreme(passages, lambda name: _has_stem(name, stems), lowest=lowest)
    columns = next((columns for question, columns in _IMPLIED if question.search(asked.text)), None)
    if place is not None or columns is None:
        return place
    return _extreme(passages, lambda name: columns.search(name) is not None, lowest=lowest)


def _stems(asked: AskedWords) -> frozenset[str]:
    return frozenset(word[:4].casefold() for word in asked.words if len(word) >= 4)


def _is_rank(name: str) -> bool:
    return not _RANKS.isdisjoint(re.findall(r"\w+", name.casefold()))


def _has_stem(name: str, stems: frozenset[str]) -> bool:
    return any(word[:4] in stems for word in re.findall(r"\w+", name.casefold()))


def _subject(asked: AskedWords, phrase: str) -> frozenset[int]:
    """The question's words but those that say what is asked of it."""
    words = frozenset(re.findall(r"\w+", phrase.casefold()))
    return frozenset(at for at, word in enumerate(asked.words) if word.casefold() not in words)


def _is_about(passage: QuotablePassage, subject: frozenset[int]) -> bool:
    return 2 * len(subject & passage.words) >= len(subject)


def _labelled(
    asked: AskedWords, passages: Sequence[QuotablePassage], label: re.Pattern[str], phrase: str
) -> tuple[int, int, int] | None:
    """The first sentence with a label, in a passage with most of the question's other words; a line that ends
    with the label, with the next one.
    """
    subject = _subject(asked, phrase)
    for at, passage in enumerate(passages):
        if not _is_about(passage, subject):
            continue
        for index, sentence in enumerate(passage.sentences):
            if (match := label.search(sentence.text)) is None:
                continue
            if not sentence.text[match.end() :].strip(" :.") and index + 1 < len(passage.sentences):
                return at, index, index + 1
            if not sentence.is_heading or any(map(str.isdigit, sentence.text)):
                return at, index, index
    return None


def _extreme(
    passages: Sequence[QuotablePassage], is_meant: Callable[[str], bool], *, lowest: bool
) -> tuple[int, int] | None:
    """The only row with the highest or lowest value, of the first document with a meant column: a long
    table is in several passages, some of which may have the same rows.
    """
    found = [
        (at, passage.passage.document_id, list(_rows(passage.sentences)))
        for at, passage in enumerate(passages)
    ]
    for document in dict.fromkeys(one for _, one, _ in found):
        rows = [((at, index), fields) for at, one, some in found if one == document for index, fields in some]
        for name in dict.fromkeys(name for _, fields in rows for name in fields):
            values = [
                (value, place) for place, fields in rows if (value := _value(fields.get(name))) is not None
            ]
            if not is_meant(name) or len(values) < _LEAST_ROWS:
                continue
            best = (min if lowest else max)(value for value, _ in values)
            having = [place for value, place in values if value == best]
            texts = {passages[at].sentences[index].text for at, index in having}
            if len(texts) == 1:
                return having[0]
    return None


def _rows(sentences: Sequence[QuotableSentence]) -> Iterator[tuple[int, Mapping[str, str]]]:
    """The rows that are written with the names of their columns."""
    for index, sentence in enumerate(sentences):
        pairs = [part.partition(":") for part in sentence.text.split("; ")]
        fields = {
            name.strip(): value.strip()
            for name, colon, value in pairs
            if colon and len(name) <= _LONGEST_NAME
        }
        if len(fields) >= _LEAST_ROWS:
            yield index, fields


def _value(text: str | None) -> float | None:
    """The number of a cell, whatever its unit."""
    found = _NUMBER.fullmatch(text or "")
    if found is None:
        return None
    digits = _THOUSANDS.sub("", found[1].strip()).replace(",", ".")
    try:
        return float(digits)
    except ValueError:
        return None
