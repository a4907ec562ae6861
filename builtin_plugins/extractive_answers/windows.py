"""The window of neighboring sentences that says most of what is asked."""

from __future__ import annotations

import math
import operator
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from builtin_plugins.rag.api import AskedWords, QuotablePassage, QuotableSentence, bare_text

LONGEST = 60
"""Words of the best window, unless its first sentence alone is longer."""
SECOND = 24
"""Words of a window of another passage, quoted if it is nearly as good."""
_NEARLY = 0.6
_RANK, _EACH, _LENGTH = 1.5, 0.1, 0.3
"""What a passage's rank counts, the words of each sentence again, and the room that is used: a window that is
longer holds the answer more often. Doubled or halved, each changes less than a point of the right answers."""
_KIND = 0.5
"""What a number counts in a window, if the question asks how many or how much, and a name, if it asks who:
8 instead of 4 of 20 plain questions about annual reports are answered with both this and `_ROW`."""
_ROW = 0.6
"""What a row of a table counts that has all words of the question."""
_ALL = 0.99
_DIGITS = re.compile(r"[0-9]+")
_ASKS_FIGURE = re.compile(
    r"\b(?:how (?:many|much)|wie ?viele?|combien|cuánt[oa]s?|quant[oaie]s?|hoeveel|сколько|kaç)\b"
    r"|\b(?:bao nhiêu|mấy)\b"
    r"|多少|几|幾|كم |कितन|เท่าไร|เท่าไหร่|กี่|いくつ|いくら|얼마|몇",
    re.IGNORECASE,
)
_ASKS_NAME = re.compile(
    r"\b(?:whom?|whose|we[rnm]|wessen|qui|quién(?:es)?|chi|quem|кто|кого|кем)\b", re.IGNORECASE
)
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Window:
    """Sentences `first` to `last` of a passage, by their indexes; `share` is their share of the question's
    words, weighted by rarity.
    """

    passage: int
    first: int
    last: int
    score: float
    share: float

    def sentences_of(self, passages: Sequence[QuotablePassage]) -> Sequence[QuotableSentence]:
        """Its sentences."""
        return passages[self.passage].sentences[self.first : self.last + 1]


class WindowChoice(NamedTuple):
    """The window to answer with instead of the best by its words; None if no text has what is asked for.

    With `is_sure`, that decides whether there is an answer, however many words are shared.
    """

    window: Window | None
    is_sure: bool = False


class Rarity:
    """The weights of a question's words: the fewer of the sentences have one, the more it counts."""

    def __init__(self, question: AskedWords, passages: Sequence[QuotablePassage]) -> None:
        sentences = [one for passage in passages for one in passage.sentences]
        count, having = len(sentences), Counter(word for one in sentences for word in one.words)
        self._weights = [
            math.log1p((count - having[at] + 0.5) / (having[at] + 0.5)) for at in range(len(question.words))
        ]
        self._total = sum(self._weights) or 1.0
        self._asks_figure = _ASKS_FIGURE.search(question.text) is not None
        self._asks_name = not self._asks_figure and _ASKS_NAME.search(question.text) is not None
        self._known_figures = frozenset(_DIGITS.findall(question.text))
        self._known_words = frozenset(_WORD.findall(question.text.casefold()))

    def kind(self, text: str) -> float:
        """What a sentence counts for a number or a name that the question lacks, if it asks for one."""
        if self._asks_figure and not self._known_figures.issuperset(_DIGITS.findall(text)):
            return _KIND
        return _KIND if self._asks_name and self._has_name(text) else 0.0

    def _has_name(self, text: str) -> bool:
        """Whether two neighboring words are capitalized that the question lacks, past the first word."""
        words = [
            len(one) > 1 and one[0].isupper() and one.casefold() not in self._known_words
            for one in _WORD.findall(text)[1:]
        ]
        return any(map(operator.and_, words, words[1:]))

    def share(self, words: Iterable[int]) -> float:
        """Between 0 and 1, for all of the question's words."""
        return sum(self._weights[one] for one in words) / self._total


def best_windows(rarity: Rarity, passages: Sequence[QuotablePassage]) -> list[Window]:
    """The best window, and one of another passage that is nearly as good; none without a sentence."""
    best = _best(rarity, passages, LONGEST)
    if best is None:
        return []
    short = {at: _best(rarity, passages, SECOND, at) for at in range(len(passages))}
    own, others = short.pop(best.passage), [one for one in short.values() if one is not None]
    second = max(others, key=lambda one: one.score, default=None)
    if (
        own is None
        or second is None
        or second.score < own.score - _NEARLY
        or second.share < own.share / 2  # else it is another subject's
        or _repeats(second, best, passages)
    ):
        return [best]
    return [best, second]


def _best(
    rarity: Rarity, passages: Sequence[QuotablePassage], longest: int, only: int | None = None
) -> Window | None:
    """The best window of at most so many words, of all passages or one."""
    highest = max((one.passage.score for one in passages), default=0.0) or 1.0
    windows = (
        window
        for at, passage in enumerate(passages)
        if only is None or only == at
        for window in _windows(rarity, at, passage, max(0.0, passage.passage.score / highest), longest)
    )
    return max(windows, key=lambda one: round(one.score, 9), default=None)


def _windows(
    rarity: Rarity, at: int, passage: QuotablePassage, rank: float, longest: int
) -> Iterator[Window]:
    sentences = passage.sentences
    has_text = any(not sentence.is_heading for sentence in sentences)
    kinds = [rarity.kind(sentence.text) for sentence in sentences]
    for first, begin in enumerate(sentences):
        if begin.is_heading and has_text:
            continue
        length, words, peak, each, kind = 0, frozenset[int](), 0.0, 0.0, 0.0
        for last in range(first, len(sentences)):
            sentence = sentences[last]
            is_apart = sentence.stands_alone or begin.stands_alone or sentence.page != begin.page
            ends = is_apart or (sentence.is_heading and has_text)
            if last > first and (ends or length + sentence.length > longest):
                break
            length += sentence.length
            words |= sentence.words
            own = rarity.share(sentence.words)
            each += own
            peak = max(peak, own + rarity.share(sentence.context))
            kind = max(kind, own * kinds[last])
            share = rarity.share(words)
            used = min(length, longest) / longest
            row = _ROW if sentence.stands_alone and share > _ALL else 0.0
            score = peak + share + _RANK * rank + _EACH * each + _LENGTH * used + kind + row
            yield Window(at, first, last, score, share)


def text_of(window: Window, passages: Sequence[QuotablePassage]) -> str:
    """The sentences of a window."""
    return " ".join(one.text for one in window.sentences_of(passages))


def _repeats(window: Window, other: Window, passages: Sequence[QuotablePassage]) -> bool:
    """Whether two windows share a sentence, as the passages of a document overlap, and mails are quoted."""
    return not {bare_text(each.text) for each in window.sentences_of(passages)}.isdisjoint(
        bare_text(each.text) for each in other.sentences_of(passages)
    )
