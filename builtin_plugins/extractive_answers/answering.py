"""An answer without a model: the best windows of sentences, if the passages support an answer, and what
another document says differently."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from builtin_plugins.extractive_answers.meanings import answer_by_meaning
from builtin_plugins.extractive_answers.support import Signs, confidence_of, support_of
from builtin_plugins.extractive_answers.values import answer_by_value
from builtin_plugins.extractive_answers.weights import ENOUGH, HOPEFUL
from builtin_plugins.extractive_answers.windows import Rarity, Window, WindowChoice, best_windows, text_of
from builtin_plugins.rag.api import (
    AskedWords,
    QuotablePassage,
    QuotableSentence,
    Quote,
    Support,
    contradicting,
)

_LONGEST_HEADING = 80


def answer(question: AskedWords, passages: Sequence[QuotablePassage]) -> Support:
    """What the passages say, and how well that is an answer; nothing to a question without content."""
    windows = best_windows(Rarity(question, passages), passages)
    if not windows or not question.words:
        return Support(0.0, is_enough=False, is_hopeful=False)
    choice = answer_by_value(question, passages, windows[0]) or answer_by_meaning(
        question, passages, windows[0]
    )
    if choice is not None and choice.window is not None:
        windows = [choice.window]
    signs = Signs.read(question, passages, windows[0].passage, text_of(windows[0], passages))
    support = support_of(signs)
    contradiction = find_contradiction(windows[0], passages)
    return Support(
        confidence_of(signs),
        is_enough=_is_enough(support, choice) and signs.unnamed < 1.0,
        is_hopeful=support >= HOPEFUL,
        quotes=[_quote(one, passages) for one in windows]
        if contradiction is None
        else [_sentence(place, passages) for place in contradiction],
        differ=contradiction is not None,
    )


def _is_enough(support: float, choice: WindowChoice | None) -> bool:
    return support >= ENOUGH if choice is None or not choice.is_sure else choice.window is not None


def _sentence(place: tuple[int, int], passages: Sequence[QuotablePassage]) -> Quote:
    passage, index = place
    sentence = passages[passage].sentences[index]
    return Quote(passage, sentence.start, sentence.text)


def _quote(window: Window, passages: Sequence[QuotablePassage]) -> Quote:
    """The window's text; below a heading that has a word of the question that the text lacks, with that."""
    sentences = passages[window.passage].sentences[window.first : window.last + 1]
    text = text_of(window, passages)
    heading = _heading(sentences[0], passages[window.passage].sentences)
    words = frozenset[int]().union(*(one.words for one in sentences))
    if heading is None or heading.words <= words or len(heading.text) > _LONGEST_HEADING:
        return Quote(window.passage, sentences[0].start, text)
    return Quote(window.passage, sentences[0].start, f"{heading.text.rstrip(' :')}: {text}")


def _heading(below: QuotableSentence, sentences: Sequence[QuotableSentence]) -> QuotableSentence | None:
    return next((one for one in sentences if one.is_heading and one.text == below.under), None)


class Contradiction(NamedTuple):
    """Two sentences that contradict each other, by passage and index."""

    first: tuple[int, int]
    second: tuple[int, int]


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
    tokens = contradicting.tokens_of(sentence.text)
    for passage, index, other in _others(home, passages):
        if contradicting.contradict(tokens, contradicting.tokens_of(other.text)):
            return Contradiction((window.passage, best), (passage, index))
    return None


def _others(
    home: QuotablePassage, passages: Sequence[QuotablePassage]
) -> Iterator[tuple[int, int, QuotableSentence]]:
    name = contradicting.subject_words(home.passage.source)
    for at, passage in enumerate(passages):
        of_it = passage.passage.document_id == home.passage.document_id
        if of_it or not name or contradicting.subject_words(passage.passage.source) != name:
            continue
        for index, sentence in enumerate(passage.sentences):
            if not (sentence.is_heading or sentence.stands_alone):
                yield at, index, sentence
