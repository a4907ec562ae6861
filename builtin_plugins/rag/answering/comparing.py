"""Questions that compare two things: "Does Ann earn more than Bob?", "Which is higher, Rigi or Pilatus?"

Two sentences that tell of one thing each don't answer them: somebody has to compare.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from builtin_plugins.rag.answering.candidate import Candidate
from builtin_plugins.rag.answering.coverage import tells
from builtin_plugins.rag.answering.passages import Passage
from builtin_plugins.rag.answering.words import (
    content_stems,
    fold,
    found_in,
    has_number,
    named_terms,
    words,
)

_ROMANCE = r"(?:plus|moins|meilleure?s?|mas|menos|mejor(?:es)?|peor(?:es)?|mayor(?:es)?|menor(?:es)?)"
_DEGREE = (
    r"\b(?:more|less|fewer|better|worse|taller|higher|lower|larger|smaller|bigger|longer|shorter|older|younger"
    r"|newer|cheaper|faster|slower|heavier|lighter|earlier|later|sooner|warmer|colder|deeper|wider|richer"
    r"|stronger|closer|nearer|further|farther|hotter|busier"
    r"|mehr|weniger|besser|schlechter|grosser|kleiner|hoher|tiefer|langer|kurzer|alter|junger|neuer|teurer"
    rf"|billiger|gunstiger|schneller|langsamer|schwerer|leichter|fruher|spater|kalter|breiter|{_ROMANCE}"
    r"|daha|больше|меньше|лучше|хуже|дороже|дешевле|раньше|позже|выше|ниже|короче|моложе|старше|\w{3,}ее)\b"
)
_THAN = (
    r"(?<!\bother )(?<!\brather )\bthan (.+)",
    rf"{_DEGREE}(?: \w+)? als (.+)",
    rf"\b{_ROMANCE}\b.* qu(?:e |['’])(.+)",
    r"\w+(?:ее|[шжч]е|ле),? чем (.+)",
    r"(\w+)['’]?[dt][ae]n daha\b",
    r"比(.{1,12}?)(?:[更还還多少高低大小长長短早晚贵貴快慢重轻輕远遠近好强強老]|便宜|年[轻輕])",
)
_EITHER = rf"{_DEGREE}.*[,:–] ?(.+?),? (?:or|oder|ou|o|u|yoksa|veya|или) (.+)"


class _Pair(NamedTuple):
    """What is compared, by any of its names or by all its words where it has none, and what with: stems."""

    any_of: Sequence[Collection[str]]
    other: Collection[str]


def leaves_comparing(question: str, best: Candidate, passages: Sequence[Passage]) -> bool:
    """Whether the question compares two things, and the best sentence tells of one and the passages of both.

    A bound, as in "longer than 10 km", is not a thing; a sentence that compares needs no other one.
    """
    pairs = _compared(question)
    if not pairs or any(_parts(fold(best.text))):
        return False
    return any(
        _is_elsewhere([pair.other], best, passages) or _is_elsewhere(pair.any_of, best, passages)
        for pair in pairs
    )


def _is_elsewhere(any_of: Sequence[Collection[str]], best: Candidate, passages: Sequence[Passage]) -> bool:
    if any(all(found_in(word, best.stems) for word in words) for words in any_of):
        return False
    return any(tells(passage, words) for passage in passages for words in any_of)


@lru_cache(maxsize=256)
def _compared(question: str) -> Sequence[_Pair]:
    names = named_terms(question)
    found = (_made(names, *parts) for parts in _parts(fold(question)) if not _is_bound(parts[1]))
    return [pair for pair in found if pair.other]


def _made(names: set[str], one: str, other: str) -> _Pair:
    """Names alone tell things apart where there are any: "Person 13", and not what it earns."""
    with_it = content_stems(other)
    named = names.intersection(with_it)
    first = [stem for stem in content_stems(re.sub(_DEGREE, " ", one)) if stem not in with_it]
    alone = [[name] for name in first if name in names]
    return _Pair(alone or ([first] if first else []), named or with_it)


def _parts(folded: str) -> Iterator[tuple[str, str]]:
    """What is compared, and what with, as far as a question tells them apart."""
    for pattern in _THAN:
        if match := re.search(pattern, folded):
            yield folded[: match.start()], match[1]
    if match := re.search(_EITHER, folded):
        yield match[1], match[2]


def _is_bound(part: str) -> bool:
    return any(map(has_number, words(part)[:1]))
