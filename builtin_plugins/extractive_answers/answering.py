"""An answer without a model: the best windows of sentences, if the passages support an answer, and what
another document says differently."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from builtin_plugins.extractive_answers.support import Signs, confidence_of, support_of
from builtin_plugins.extractive_answers.weights import ENOUGH, HOPEFUL
from builtin_plugins.extractive_answers.windows import Rarity, Window, best_windows, text_of
from builtin_plugins.rag.api import AskedWords, QuotablePassage, QuotableSentence, Quote, Support

_LONGEST_HEADING = 80


def answer(asked: AskedWords, passages: Sequence[QuotablePassage]) -> Support:
    """What the passages say, and how well that is an answer; nothing to a question without content."""
    windows = best_windows(Rarity(asked, passages), passages)
    if not windows or not asked.words:
        return Support(0.0, is_enough=False, is_hopeful=False)
    signs = Signs.read(asked, passages, windows[0].passage, text_of(windows[0], passages))
    support = support_of(signs)
    contradiction = find_contradiction(windows[0], passages)
    return Support(
        confidence_of(signs),
        is_enough=support >= ENOUGH and signs.unnamed < 1.0,
        is_hopeful=support >= HOPEFUL,
        quotes=[_quote(one, passages) for one in windows]
        if contradiction is None
        else [_sentence(place, passages) for place in contradiction],
        differ=contradiction is not None,
    )


def _sentence(place: tuple[int, int], passages: Sequence[QuotablePassage]) -> Quote:
    passage, index = place
    sentence = passages[passage].sentences[index]
    return Quote(passage, sentence.start, sentence.text)


def _quote(window: Window, passages: Sequence[QuotablePassage]) -> Quote:
    """The window's text; below a heading that has a word of the question that the text lacks, with that."""
    sentences = passages[window.passage].sentences[window.first : window.last + 1]
    text = text_of(window, passages)
    heading = _heading(sentences[0], passages[window.passage].sentences)
    known = frozenset[int]().union(*(one.words for one in sentences))
    if heading is None or heading.words <= known or len(heading.text) > _LONGEST_HEADING:
        return Quote(window.passage, sentences[0].start, text)
    return Quote(window.passage, sentences[0].start, f"{heading.text.rstrip(' :')}: {text}")


def _heading(below: QuotableSentence, sentences: Sequence[QuotableSentence]) -> QuotableSentence | None:
    return next((one for one in sentences if one.is_heading and one.text == below.under), None)


_TOKEN = re.compile(r"\d+(?:[.,:/-]\d+)*|\w+")
_YEAR = re.compile(r"(?:19|20)\d\d")
_LEAST_SHARED = 4
"""Words that two sentences must share: shorter ones are alike by chance."""
_NEGATIONS = frozenset(
    {
        *("not", "no", "never", "without", "nicht", "kein", "keine", "keinen", "nie", "ne", "pas", "aucun"),
        *(
            "aucune",
            "sin",
            "nunca",
            "non",
            "mai",
            "niet",
            "geen",
            "nooit",
            "não",
            "nem",
            "не",
            "нет",
            "никогда",
        ),
        *("değil", "ikke", "aldri", "inte", "aldrig", "ei", "nem", "nu", "fără"),
    }
)


_WORDS_OF_NAME = re.compile(r"[^\W\d_]+\d+\w*|[^\W\d_]+")
_VERSION = re.compile(
    r"v\d{1,2}|rev\d*|version|draft|final|copy|new|old|entwurf|kopie|neu|alt|txt|md|pdf|docx?|odt|html?"
)
"""What tells versions of a document apart in its name, beside numbers."""


class Contradiction(NamedTuple):
    """Two sentences that contradict each other, by passage and index."""

    one: tuple[int, int]
    other: tuple[int, int]


def find_contradiction(window: Window, passages: Sequence[QuotablePassage]) -> Contradiction | None:
    """What another document of the same name says differently than the window's best sentence.

    Documents of different names, such as the rules for two countries, may be about different things.
    """
    home = passages[window.passage]
    places = range(window.first, window.last + 1)
    best = max(places, key=lambda at: (len(home.sentences[at].words), -at))
    sentence = home.sentences[best]
    if sentence.is_heading or sentence.stands_alone or not sentence.words:
        return None
    tokens = _tokens(sentence)
    for passage, index, other in _others(home, passages):
        if contradict(tokens, _tokens(other)):
            return Contradiction((window.passage, best), (passage, index))
    return None


def _others(
    home: QuotablePassage, passages: Sequence[QuotablePassage]
) -> Iterator[tuple[int, int, QuotableSentence]]:
    name = _name_of(home)
    for at, passage in enumerate(passages):
        if passage.passage.document_id == home.passage.document_id or not name or _name_of(passage) != name:
            continue
        for index, sentence in enumerate(passage.sentences):
            if not (sentence.is_heading or sentence.stands_alone):
                yield at, index, sentence


def _name_of(passage: QuotablePassage) -> frozenset[str]:
    """The words of a document's name that say what it is, without what tells its versions apart."""
    words = _WORDS_OF_NAME.findall(unicodedata.normalize("NFKC", passage.passage.source).casefold())
    return frozenset(word for word in words if not _VERSION.fullmatch(word))


def _tokens(sentence: QuotableSentence) -> list[str]:
    return _TOKEN.findall(unicodedata.normalize("NFKC", sentence.text).casefold())


def contradict(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two sentences, as words and numbers, are the same but for one value or a negation.

    A value is a number, with a word on one side at most, or a date. If more differs, they may be about
    different things: "Drill 7 lasts 3 years", "Drill 8 lasts 4 years".
    """
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    end = 0
    while end < min(len(one), len(other)) - start and one[-1 - end] == other[-1 - end]:
        end += 1
    shared = [*one[:start], *(one[len(one) - end :])]
    if sum(not token.isdecimal() for token in shared) < _LEAST_SHARED:
        return False
    own, others = one[start : len(one) - end], other[start : len(other) - end]
    if not own or not others:
        added = [*own, *others]
        return len(added) == 1 and added[0] in _NEGATIONS
    return _is_value(own) and _is_value(others)


def _is_value(tokens: Sequence[str]) -> bool:
    """A number, with a word at most, or a day with its month and year."""
    numbers = [token for token in tokens if token[0].isdigit()]
    if len(tokens) - len(numbers) > 1:
        return False
    return len(numbers) == 1 or (len(numbers) == 2 and _YEAR.fullmatch(tokens[-1]) is not None)
