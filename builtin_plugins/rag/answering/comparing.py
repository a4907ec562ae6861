"""Questions that compare two things: "Does Ann earn more than Bob?", "Which is higher, Rigi or Pilatus?"

Two sentences about one thing each don't answer them: somebody has to compare. Comparisons are recognized by
their words, in a few languages; in doubt, a question isn't taken for one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from builtin_plugins.rag.answering.candidate import Candidate
from builtin_plugins.rag.answering.expectations import has_value, is_bound
from builtin_plugins.rag.answering.passages import Passage
from builtin_plugins.rag.answering.reading import read
from builtin_plugins.rag.answering.words import content_stems, fold, found_in, named_terms, word_list, words

_MOST_CHARS = 300
"""The maximum of words: a longer question is more than a comparison."""
_LEAST_WORDS = 2
"""Of a thing without a name: "longer than the limit" compares with no second thing."""

_THAN = word_list("than als que qu чем")
_OR = word_list("or oder ou o u yoksa veya или")
_IF = word_list("if wenn falls sobald если")
_NOT_COMPARED = word_list("other rather")
_DEGREES = word_list(
    """
    more less fewer better worse taller higher lower larger smaller bigger longer shorter older younger
    newer cheaper faster slower heavier lighter earlier later sooner warmer colder deeper wider richer
    stronger closer nearer further farther hotter busier mehr weniger besser schlechter grosser kleiner
    hoher tiefer langer kurzer alter junger neuer teurer billiger gunstiger schneller langsamer schwerer
    leichter fruher spater kalter breiter plus moins meilleur meilleure mas menos mejor peor mayor menor
    daha больше меньше лучше хуже выше ниже дороже дешевле раньше позже длиннее короче моложе старше
    тяжелее легче быстрее
    """
)
_TURKISH = re.compile(r"\w{2,40}[dt][ae]n")
_CHINESE = re.compile(
    r"比([^，。？]{2,12}?)(?:[更还還多少高低大小长長短早晚贵貴快慢重轻輕远遠近好强強老]|便宜)"
)


class _Pair(NamedTuple):
    """What is compared, and with what, as stems: any of its names, or all its words if it has none."""

    any_of: Sequence[Collection[str]]
    other: Collection[str]


def leaves_comparing(question: str, best: Candidate, passages: Sequence[Passage]) -> bool:
    """Whether a question compares two things, but the best sentence has a value of only one of them."""
    pairs = _compared(question)
    if not pairs or any(_parts(best.text)):
        return False
    return any(
        _is_elsewhere([pair.other], best, passages) or _is_elsewhere(pair.any_of, best, passages)
        for pair in pairs
    )


def _is_elsewhere(any_of: Sequence[Collection[str]], best: Candidate, passages: Sequence[Passage]) -> bool:
    if _has(best.stems, any_of):
        return False
    return any(
        _has(one.stems, any_of) and has_value(one.text)
        for passage in passages
        for one in read(passage)
        if not one.is_heading
    )


def _has(sentence: Collection[str], any_of: Sequence[Collection[str]]) -> bool:
    return any(all(found_in(word, sentence) for word in thing) for thing in any_of)


@lru_cache(maxsize=256)
def _compared(question: str) -> Sequence[_Pair]:
    if len(question) > _MOST_CHARS:
        return ()
    parts = list(_parts(question))
    names = named_terms(question) if parts else set[str]()
    found = (_made(names, *each) for each in parts)
    return [pair for pair in found if pair is not None]


def _made(names: set[str], one: str, other: str, choice: bool) -> _Pair | None:
    """Things are distinguished by their names alone, if any: "Person 13", not what it earns."""
    stems = content_stems(other)
    named = names.intersection(stems)
    if is_bound(other) or not (named or (len(stems) >= _LEAST_WORDS and not choice)):
        return None
    first = [stem for stem in content_stems(one) if stem not in stems]
    alone = [[name] for name in first if name in names]
    return _Pair(alone or ([first] if first else []), named or stems)


def _parts(text: str) -> Iterator[tuple[str, str, bool]]:
    """What is compared, with what, and whether to choose one of them, as far as a text shows it."""
    tokens = words(text[:_MOST_CHARS])
    folded = [fold(token) for token in tokens]
    degrees = {at for at, word in enumerate(folded) if word in _DEGREES}
    for at, word in enumerate(folded):
        if word in _IF and at:
            return
        if word in _THAN and _is_than(folded, at, degrees):
            yield _without(tokens[:at], degrees), " ".join(tokens[at + 1 :]), False
        elif word in _OR and degrees and at:
            after = _without(tokens[at + 1 :], {one - at - 1 for one in degrees})
            yield _without(tokens[:at], degrees), after, True
        elif word == "daha" and at and _TURKISH.fullmatch(folded[at - 1].replace("'", "").replace("’", "")):
            yield " ".join(tokens[: at - 1]), tokens[at - 1], False
    if found := _CHINESE.search(text[:_MOST_CHARS]):
        yield text[: found.start()], found[1], False


def _without(tokens: Sequence[str], places: Collection[int]) -> str:
    return " ".join(token for at, token in enumerate(tokens) if at not in places)


def _is_than(folded: Sequence[str], at: int, degrees: Collection[int]) -> bool:
    """Whether the word says what something is compared with: "als" and "que" say other things too."""
    if folded[at] == "than":
        return at > 0 and folded[at - 1] not in _NOT_COMPARED
    nearest = max((one for one in degrees if one < at), default=-1)
    return nearest >= 0 and at - nearest <= 3
