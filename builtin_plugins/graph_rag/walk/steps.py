"""Steps from the first passages of a ranking over a shared entity to other passages, with their worth.

The rules and weights were found by measurement (`tests/benchmarks/graph.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappush, heappushpop
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from builtin_plugins.graph_rag.extraction.mentions import folded, key_of
from builtin_plugins.graph_rag.extraction.rules import extract
from builtin_plugins.graph_rag.walk.digests import Keys, Words, word_hashes
from builtin_plugins.graph_rag.walk.keys import reaches
from builtin_plugins.graph_rag.walk.segments import Segment
from builtin_plugins.graph_rag.walk.sentences import sentence_shares
from builtin_plugins.graph_rag.walk.words import content_words

SOURCES: Final = 3
"""Passages that steps are taken from."""

FEWEST: Final = 2
MOST: Final = 30
"""The maximum of passages that share an entity for a step: more common ones mean too little."""

_TARGET_TITLE: Final = 1.0
_SOURCE_TITLE: Final = 0.5
_NEITHER: Final = 0.2
_ASKED: Final = 0.2
_IDF_POWER: Final = 2
_SHARE_POWER: Final = 4
_PLAIN_SENTENCE: Final = 0.5
_NOTHING_MISSING: Final = 0.5
_LONGEST_NAME: Final = 100
_LOOKED_AT_MOST: Final = 256
_MOST_READ: Final = 64  # postings of a key, including dead ones, of which a segment has at most 30 %

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class RankedSource(NamedTuple):
    """A passage of the ranking: its document, its id, its score (0 or more), its text."""

    group: str
    passage_id: str
    score: float
    text: str


class WalkStep(NamedTuple):
    """A reached passage: the index of its source, the shared name, and what the step is worth.

    `is_title`: whether that name is the passage's title.
    """

    group: str
    passage_id: str
    position: int
    worth: float
    source: int
    entity: str
    is_title: bool


@dataclass(frozen=True)
class _Question:
    folded: str
    keys: frozenset[str]
    words: list[str]
    hashes: frozenset[int]


class _Shared(NamedTuple):
    """Passages that share a key with a source, as parallel arrays: segment, slot, whether the key is the
    passage's title, and the index of the key among the source's.
    """

    segments: Ints
    slots: Ints
    titles: npt.NDArray[np.bool_]
    keys: Ints


class _Candidates(NamedTuple):
    """Passages that the source at `place` leads to, each with its maximum worth.

    `missing` are the words of the question that the source lacks.
    """

    place: int
    shared: _Shared
    worths: Floats
    names: Mapping[int, str]
    missing: frozenset[int]


class _Chosen(NamedTuple):
    """A candidate: its index among the source's, its target (segment and slot), and its worth."""

    candidates: _Candidates
    place: int
    where: tuple[int, int]
    worth: float


def steps(
    segments: Sequence[Segment],
    question: str,
    ranked: Sequence[RankedSource],
    among: Collection[str] | None = None,
    most: int = 50,
) -> list[WalkStep]:
    """The best step to each passage that shares an entity with one of the first of `ranked`, best first.

    `segments` are those of all indexes that may be walked; `among` limits the walk to these documents, as if
    there were no others, and `most` is how many steps are wanted. A worth is between 0 and 1. Sources that
    are in no segment are skipped.
    """
    most_read: int | None = _MOST_READ
    if among is not None:
        allowed = frozenset(among)
        segments, most_read = [segment.only(allowed) for segment in segments], None
    total = sum(segment.living for segment in segments)
    if not ranked or ranked[0].score <= 0 or total < FEWEST:
        return []
    question_keys = _question(question)
    options = [
        candidates
        for place, source in enumerate(ranked[:SOURCES])
        if (candidates := _from(segments, question_keys, place, source, total, most_read)) is not None
    ]
    shares = [(max(0.0, ranked[one.place].score) / ranked[0].score) ** _SHARE_POWER for one in options]
    walk_steps = [_step(segments, *one) for one in _best(segments, options, shares, most)]
    return sorted(walk_steps, key=lambda step: (-step.worth, step.group, step.position))[:most]


def _question(question: str) -> _Question:
    words = content_words(question)
    keys = frozenset(reach.key for reach in reaches(question, extract(question)))
    return _Question(folded(question), keys, words, frozenset(word_hashes(words).tolist()))


def _from(
    segments: Sequence[Segment],
    question: _Question,
    place: int,
    source: RankedSource,
    total: int,
    most_read: int | None,
) -> _Candidates | None:
    """What one source leads to; worths are not yet scaled by the source's score."""
    home = _home(segments, source)
    if home is None:
        return None
    number, slot = home
    segment = segments[number]
    low, high = segment.starts[slot], segment.starts[slot + 1]
    shared = _shared(segments, segment.keys[low:high], most_read)
    degrees = np.bincount(shared.keys, minlength=high - low)
    own = degrees[shared.keys]
    others = (shared.segments != number) | (shared.slots != slot)
    shared = _select(shared, (own >= FEWEST) & (own <= MOST) & others)
    if not len(shared.slots):
        return None
    names = _names(source, segment.places[low:high], np.unique(shared.keys))
    weights = _key_weights(source, question, segment, low, names, degrees, total)
    kinds = np.where(
        shared.titles, _TARGET_TITLE, np.where(segment.titles[low:high][shared.keys], _SOURCE_TITLE, _NEITHER)
    )
    missing = question.hashes.difference(_words_of(segment, slot).tolist())
    return _Candidates(place, shared, weights[shared.keys] * kinds, names, missing)


def _best(
    segments: Sequence[Segment], candidates: Sequence[_Candidates], shares: Sequence[float], most: int
) -> Iterable[_Chosen]:
    """The best step to each passage, for at least `most` passages if there are so many.

    The target's words can only lower a worth, so the search ends when no bound can reach the best `most`.
    """
    if not candidates:
        return ()
    bounds = np.concatenate([one.worths * share for one, share in zip(candidates, shares, strict=True)])
    owners = [one for one in candidates for _ in range(len(one.worths))]
    places = np.concatenate([np.arange(len(one.worths)) for one in candidates])
    best: dict[tuple[int, int], _Chosen] = {}
    highest: list[float] = []  # the `most` best worths, as a heap
    for at in np.argsort(-bounds, kind="stable")[:_LOOKED_AT_MOST].tolist():
        bound = float(bounds[at])
        if len(highest) == most and bound < highest[0]:
            break
        chosen = _chosen(segments, owners[at], int(places[at]), bound)
        if (before := best.get(chosen.where)) is None:
            (heappush if len(highest) < most else heappushpop)(highest, chosen.worth)
        if before is None or before.worth < chosen.worth:
            best[chosen.where] = chosen
    return best.values()


def _chosen(segments: Sequence[Segment], candidates: _Candidates, place: int, bound: float) -> _Chosen:
    where = int(candidates.shared.segments[place]), int(candidates.shared.slots[place])
    return _Chosen(
        candidates, place, where, bound * _brought(segments[where[0]], where[1], candidates.missing)
    )


def _step(
    segments: Sequence[Segment], candidates: _Candidates, place: int, where: tuple[int, int], worth: float
) -> WalkStep:
    target, slot = segments[where[0]], where[1]
    return WalkStep(
        target.groups[target.documents[slot]],
        target.ids[slot].decode(),
        int(target.positions[slot]),
        worth,
        candidates.place,
        candidates.names[int(candidates.shared.keys[place])],
        bool(candidates.shared.titles[place]),
    )


def _home(segments: Sequence[Segment], source: RankedSource) -> tuple[int, int] | None:
    for number, segment in enumerate(segments):
        slot = segment.slot(source.group, source.passage_id)
        if slot is not None:
            return number, slot
    return None


def _shared(segments: Sequence[Segment], keys: Keys, most_read: int | None) -> _Shared:
    """The living passages of each key; none for keys with more than `most_read`, dead ones among them."""
    bounds = [
        (np.searchsorted(one.ordered, keys), np.searchsorted(one.ordered, keys, "right")) for one in segments
    ]
    counts = sum((high - low for low, high in bounds), np.zeros(len(keys), np.int64))
    valid_keys = np.flatnonzero((counts >= FEWEST) & (counts <= (counts if most_read is None else most_read)))
    parts = [
        _postings(number, one, *bound, valid_keys)
        for number, (one, bound) in enumerate(zip(segments, bounds, strict=True))
    ]
    return _Shared(
        np.concatenate([part.segments for part in parts]),
        np.concatenate([part.slots for part in parts]),
        np.concatenate([part.titles for part in parts]),
        np.concatenate([part.keys for part in parts]),
    )


def _postings(number: int, segment: Segment, low: Ints, high: Ints, valid_keys: Ints) -> _Shared:
    lengths = (high - low)[valid_keys]
    keys = np.repeat(valid_keys, lengths)
    ends = np.cumsum(lengths)
    at = np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(low[valid_keys] - ends + lengths, lengths)
    edges = segment.order[at]
    slots = segment.owners[edges].astype(np.int64)
    shared = _Shared(np.full(len(slots), number), slots, segment.titles[edges], keys)
    return _select(shared, segment.alive[slots])


def _select(shared: _Shared, which: npt.NDArray[np.bool_]) -> _Shared:
    return _Shared(shared.segments[which], shared.slots[which], shared.titles[which], shared.keys[which])


def _names(source: RankedSource, places: npt.NDArray[np.uint16], keys: Ints) -> dict[int, str]:
    """The names of some of a source's keys in its text; its first line if the name is the file's."""
    spans = ((int(key), places[key].tolist()) for key in keys)
    first = source.text.lstrip().partition("\n")[0][:_LONGEST_NAME]
    return {key: source.text[start:end].strip() or first for key, (start, end) in spans}


def _key_weights(
    source: RankedSource,
    question: _Question,
    segment: Segment,
    low: int,
    names: Mapping[int, str],
    degrees: Ints,
    total: int,
) -> Floats:
    """The worth of a step over each of the source's keys, whatever the target; 0 for keys without a name."""
    weights = np.zeros(len(degrees))
    keys = np.fromiter(names, np.int64, len(names))
    rarity = np.log1p(total / degrees[keys]) / np.log1p(total / FEWEST)
    shares = sentence_shares(source.text, question.words, segment.places[low + keys, 0].tolist())
    weights[keys] = rarity**_IDF_POWER * (_PLAIN_SENTENCE + (1 - _PLAIN_SENTENCE) * shares)
    for key, name in names.items():
        if _is_asked(key_of(name), question):
            weights[key] *= _ASKED
    return weights


def _is_asked(key: str, question: _Question) -> bool:
    return key in question.keys or (len(key) > 3 and key in question.folded)


def _words_of(segment: Segment, slot: int) -> Words:
    return segment.words[segment.word_starts[slot] : segment.word_starts[slot + 1]]


def _brought(target: Segment, slot: int, missing: frozenset[int]) -> float:
    """A factor up to 1, by how many of the source's missing words the target has."""
    if not missing:
        return _NOTHING_MISSING
    count = len(missing.intersection(_words_of(target, slot).tolist()))
    return _NOTHING_MISSING + (1 - _NOTHING_MISSING) * count / len(missing)
