"""What a question means beyond its words: the row with the highest value, the winner, what is in force."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from builtin_plugins.extractive_answers.windows import Window
from builtin_plugins.rag.api import AskedWords, QuotablePassage, QuotableSentence

_LEAST_ROWS: Final = 2
_LONGEST_NAME: Final = 60
_NUMBER: Final = re.compile(r"[^\d\-]{0,4}(-?\d[\d.,' ]{0,20})[^\d]{0,8}")
_THOUSANDS: Final = re.compile(r"[,.' ](?=\d{3}(?!\d))")
_HIGHEST: Final = re.compile(
    r"\b(highest|most|largest|biggest|greatest|longest|maximum|latest"
    r"|höchste\w?|meiste\w?|größte\w?|teuerste\w?|längste\w?"
    r"|plus (?:élevé|grand|cher|haut|long)e?|más (?:alt|grand|car|larg)[oae]|mayor)\b",
    re.IGNORECASE,
)
_LOWEST: Final = re.compile(
    r"\b(lowest|least|smallest|cheapest|fewest|shortest|minimum"
    r"|niedrigste\w?|wenigsten|kleinste\w?|billigste\w?|günstigste\w?|kürzeste\w?"
    r"|moins (?:élevé|cher)e?|plus (?:bas|petit)(?:se|te)?|más (?:baj|barat|pequeñ)[oa]|menor)\b",
    re.IGNORECASE,
)
_WON: Final = re.compile(
    r"\b(won|wins|winner|first place|gewonnen|gewann|sieger\w*|gewinner\w*|gagné|vainqueur|gagnant\w*"
    r"|ganó|ganador\w*)\b",
    re.IGNORECASE,
)
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
"""Questions whose answers are told by other words: what is asked, and what tells it."""
_MEANT: Final = [
    (re.compile(rf"\b(?:{asked})\b", re.IGNORECASE), re.compile(rf"(?:{told})\b", re.IGNORECASE))
    for asked, told in _LABELS
]


def meant_window(asked: AskedWords, passages: Sequence[QuotablePassage], best: Window) -> Window | None:
    """The row or sentence that the question means, instead of the best window by its words; None for most."""
    if (place := _meant(asked, passages)) is None:
        return None
    passage, index = place
    return Window(passage, index, index, best.score, best.share)


def _meant(asked: AskedWords, passages: Sequence[QuotablePassage]) -> tuple[int, int] | None:
    for meant, label in _MEANT:
        if meant.search(asked.text):
            return _labelled(asked, passages, label)
    if _WON.search(asked.text):
        return _extreme(passages, frozenset(), lowest=True, ranks=True)
    if lowest := _LOWEST.search(asked.text):
        return _extreme(passages, _stems(asked), lowest=bool(lowest))
    return _extreme(passages, _stems(asked), lowest=False) if _HIGHEST.search(asked.text) else None


def _stems(asked: AskedWords) -> frozenset[str]:
    return frozenset(word[:4].casefold() for word in asked.words if len(word) >= 4)


def _labelled(
    asked: AskedWords, passages: Sequence[QuotablePassage], label: re.Pattern[str]
) -> tuple[int, int] | None:
    """The first sentence with a label, in a passage with most of the question's words."""
    for at, passage in enumerate(passages):
        if 2 * len(passage.words) >= len(asked.words):
            for index, sentence in enumerate(passage.sentences):
                if not sentence.is_heading and label.search(sentence.text):
                    return at, index
    return None


def _extreme(
    passages: Sequence[QuotablePassage], stems: frozenset[str], *, lowest: bool, ranks: bool = False
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
            words = [word.casefold() for word in re.findall(r"\w+", name)]
            is_meant = _RANKS.intersection(words) if ranks else any(word[:4] in stems for word in words)
            values = [
                (value, place) for place, fields in rows if (value := _value(fields.get(name))) is not None
            ]
            if not is_meant or len(values) < _LEAST_ROWS:
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
