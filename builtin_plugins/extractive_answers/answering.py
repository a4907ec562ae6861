"""An answer without a model: the best windows of sentences, if the passages support an answer."""

from __future__ import annotations

from collections.abc import Sequence

from builtin_plugins.extractive_answers.contradictions import find_contradiction
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
