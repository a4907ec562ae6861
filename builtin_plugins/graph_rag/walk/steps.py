"""One step from the first passages of a ranking over a shared entity to further passages, with its worth.

Why a passage is reached and how far it counts was found by measurement (`tests/benchmarks/graph.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
"""Passages from which a step is taken."""

FEWEST: Final = 2
MOST: Final = 30
"""How many passages share an entity that is stepped over: others say too little, or nothing."""

_TARGET_TITLE: Final = 1.0
_SOURCE_TITLE: Final = 0.5
_NEITHER: Final = 0.2
_ASKED: Final = 0.2
_IDF_POWER: Final = 2
_SHARE_POWER: Final = 4
_PLAIN_SENTENCE: Final = 0.5
_NOTHING_MISSING: Final = 0.5
_LONGEST_NAME: Final = 100
_LOOKED_AT: Final = 24
_LOOKED_AT_MOST: Final = 96
_MOST_READ: Final = 64  # postings of a key, dead ones too; a segment holds three dead in ten at most

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Source(NamedTuple):
    """A passage of the ranking: its document, its id, its score (0 or more), its text."""

    group: str
    passage_id: str
    score: float
    text: str


class Step(NamedTuple):
    """A passage that was reached: from which source (its place), over which name, and what that is worth.

    `is_title` tells whether the passage stands under that name.
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
    """Passages that share a key with a source, beside one another: segment, slot, whether the key is the
    passage's title, and the place of the key among the source's.
    """

    segments: Ints
    slots: Ints
    titles: npt.NDArray[np.bool_]
    keys: Ints


def steps(
    segments: Sequence[Segment],
    question: str,
    ranked: Sequence[Source],
    among: Collection[str] | None = None,
) -> list[Step]:
    """The best step to each passage that shares an entity with one of the first of `ranked`, best first.

    `segments` are those of all indexes that may be walked; `among` limits the walk to these documents.
    A worth is between 0 and 1. Sources that no segment holds are passed over.
    """
    total = sum(segment.living for segment in segments)
    if not ranked or ranked[0].score <= 0 or total < FEWEST:
        return []
    asked = _question(question)
    best: dict[tuple[int, int], Step] = {}
    for place, source in enumerate(ranked[:SOURCES]):
        share = (max(0.0, source.score) / ranked[0].score) ** _SHARE_POWER
        for step, where in _from(segments, asked, place, source, total, among):
            step = step._replace(worth=step.worth * share)
            if where not in best or best[where].worth < step.worth:
                best[where] = step
    return sorted(best.values(), key=lambda step: (-step.worth, step.group, step.position))


def _question(question: str) -> _Question:
    words = content_words(question)
    keys = frozenset(reach.key for reach in reaches(question, extract(question)))
    return _Question(folded(question), keys, words, frozenset(word_hashes(words).tolist()))


def _from(
    segments: Sequence[Segment],
    asked: _Question,
    place: int,
    source: Source,
    total: int,
    among: Collection[str] | None,
) -> Iterator[tuple[Step, tuple[int, int]]]:
    """Steps from one source, their worth still without its share of the best score."""
    home = _home(segments, source)
    if home is None:
        return
    number, slot = home
    segment = segments[number]
    low, high = segment.starts[slot], segment.starts[slot + 1]
    shared = _shared(segments, segment.keys[low:high])
    degrees = np.bincount(shared.keys, minlength=high - low)
    shared = _kept(shared, (degrees[shared.keys] >= FEWEST) & (degrees[shared.keys] <= MOST))
    shared = _kept(shared, (shared.segments != number) | (shared.slots != slot))
    if among is not None:
        shared = _kept(shared, _within(segments, shared, among))
    if not len(shared.slots):
        return
    names = _names(source, segment.places[low:high], np.unique(shared.keys))
    weights = _key_weights(source, asked, segment, low, names, degrees, total)
    kinds = np.where(
        shared.titles, _TARGET_TITLE, np.where(segment.titles[low:high][shared.keys], _SOURCE_TITLE, _NEITHER)
    )
    worths = weights[shared.keys] * kinds
    first = _best(worths)
    missing = asked.hashes.difference(_words_of(segment, slot).tolist())
    for at in first.tolist():
        other, reached = int(shared.segments[at]), int(shared.slots[at])
        target = segments[other]
        worth = float(worths[at]) * _brought(target, reached, missing)
        step = Step(
            target.groups[target.documents[reached]],
            target.ids[reached].decode(),
            int(target.positions[reached]),
            worth,
            place,
            names[int(shared.keys[at])],
            bool(shared.titles[at]),
        )
        yield step, (other, reached)


def _best(worths: Floats) -> Ints:
    """Places of the best, with as many equal ones as can be looked at: which those are says nothing."""
    order = np.argsort(-worths, kind="stable")[:_LOOKED_AT_MOST]
    least = worths[order[min(_LOOKED_AT, len(order)) - 1]]
    kept: Ints = order[worths[order] >= least]
    return kept


def _home(segments: Sequence[Segment], source: Source) -> tuple[int, int] | None:
    for number, segment in enumerate(segments):
        slot = segment.slot(source.group, source.passage_id)
        if slot is not None:
            return number, slot
    return None


def _shared(segments: Sequence[Segment], keys: Keys) -> _Shared:
    """The living passages under each key. Keys of far too many passages come without any."""
    bounds = [
        (np.searchsorted(one.ordered, keys), np.searchsorted(one.ordered, keys, "right")) for one in segments
    ]
    counts = sum((high - low for low, high in bounds), np.zeros(len(keys), np.int64))
    wanted = np.flatnonzero((counts >= FEWEST) & (counts <= _MOST_READ))
    parts = [
        _postings(number, one, *bound, wanted)
        for number, (one, bound) in enumerate(zip(segments, bounds, strict=True))
    ]
    return _Shared(
        np.concatenate([part.segments for part in parts]),
        np.concatenate([part.slots for part in parts]),
        np.concatenate([part.titles for part in parts]),
        np.concatenate([part.keys for part in parts]),
    )


def _postings(number: int, segment: Segment, low: Ints, high: Ints, wanted: Ints) -> _Shared:
    lengths = (high - low)[wanted]
    keys = np.repeat(wanted, lengths)
    ends = np.cumsum(lengths)
    at = np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(low[wanted] - ends + lengths, lengths)
    edges = segment.order[at]
    slots = segment.owners[edges].astype(np.int64)
    found = _Shared(np.full(len(slots), number), slots, segment.titles[edges], keys)
    return _kept(found, segment.alive[slots])


def _kept(shared: _Shared, which: npt.NDArray[np.bool_]) -> _Shared:
    return _Shared(shared.segments[which], shared.slots[which], shared.titles[which], shared.keys[which])


def _within(segments: Sequence[Segment], shared: _Shared, among: Collection[str]) -> npt.NDArray[np.bool_]:
    allowed = frozenset(among)
    places = zip(shared.segments.tolist(), shared.slots.tolist(), strict=True)
    return np.array(
        [segments[one].groups[segments[one].documents[slot]] in allowed for one, slot in places], np.bool_
    )


def _names(source: Source, places: npt.NDArray[np.uint16], keys: Ints) -> dict[int, str]:
    """The names behind some of a source's keys as its text has them; its first line for its file's name."""
    spans = ((int(key), places[key].tolist()) for key in keys)
    first = source.text.lstrip().partition("\n")[0][:_LONGEST_NAME]
    return {key: source.text[start:end].strip() or first for key, (start, end) in spans}


def _key_weights(
    source: Source,
    asked: _Question,
    segment: Segment,
    low: int,
    names: Mapping[int, str],
    degrees: Ints,
    total: int,
) -> Floats:
    """What a step over each of the source's keys is worth, whatever it leads to. 0 for those without name."""
    weights = np.zeros(len(degrees))
    keys = np.fromiter(names, np.int64, len(names))
    rarity = np.log1p(total / degrees[keys]) / np.log1p(total / FEWEST)
    shares = sentence_shares(source.text, asked.words, segment.places[low + keys, 0].tolist())
    weights[keys] = rarity**_IDF_POWER * (_PLAIN_SENTENCE + (1 - _PLAIN_SENTENCE) * shares)
    for key, name in names.items():
        if _is_asked(key_of(name), asked):
            weights[key] *= _ASKED
    return weights


def _is_asked(key: str, asked: _Question) -> bool:
    return key in asked.keys or (len(key) > 3 and key in asked.folded)


def _words_of(segment: Segment, slot: int) -> Words:
    return segment.words[segment.word_starts[slot] : segment.word_starts[slot + 1]]


def _brought(target: Segment, slot: int, missing: frozenset[int]) -> float:
    """A factor up to 1: how many of the words that the source lacks the target has."""
    if not missing:
        return _NOTHING_MISSING
    held = len(missing.intersection(_words_of(target, slot).tolist()))
    return _NOTHING_MISSING + (1 - _NOTHING_MISSING) * held / len(missing)
