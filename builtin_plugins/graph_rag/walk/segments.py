"""Passages and their keys as arrays, in both directions. Immutable, except for which are alive."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from builtin_plugins.graph_rag.walk.digests import Digest, Keys, Words

Slots = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Segment:
    """n passages of d documents, e keys and w words in all.

    The keys of passage p are `keys[ends[p-1]:ends[p]]`; `order` [e] sorts them, so that the passages of a key
    are `owners[order[low:high]]`.
    """

    groups: tuple[str, ...]  # [d]
    ranges: Mapping[str, tuple[int, int]]  # from and to: the passages of a document
    documents: Slots  # [n] index of the document
    positions: Slots  # [n]
    ids: npt.NDArray[np.bytes_]  # [n] ids of the passages
    alive: npt.NDArray[np.bool_]  # [n]
    starts: npt.NDArray[np.int64]  # [n + 1]
    keys: Keys  # [e]
    titles: npt.NDArray[np.bool_]  # [e]
    places: npt.NDArray[np.uint16]  # [e, 2]
    owners: Slots  # [e]
    order: Slots  # [e]
    ordered: Keys  # [e]
    word_starts: npt.NDArray[np.int64]  # [n + 1]
    words: Words  # [w]

    @property
    def size(self) -> int:
        """The number of passages, including dead ones."""
        return len(self.documents)

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""
        return sum(one.nbytes for one in vars(self).values() if isinstance(one, np.ndarray))

    @cached_property
    def living(self) -> int:
        """The number of living passages."""
        return int(self.alive.sum())

    def slot(self, group: str, passage_id: str) -> int | None:
        """The slot of a document's passage; None if it is missing or dead."""
        low, high = self.ranges.get(group, (0, 0))
        matches = np.flatnonzero(self.ids[low:high] == passage_id.encode())
        if not len(matches) or not self.alive[low + int(matches[0])]:
            return None
        return low + int(matches[0])

    def without(self, group: str) -> Segment:
        """The same segment with a document's passages marked dead."""
        low, high = self.ranges.get(group, (0, 0))
        if not self.alive[low:high].any():
            return self
        alive = self.alive.copy()
        alive[low:high] = False
        return replace(self, alive=alive)

    def only(self, groups: Collection[str]) -> Segment:
        """The same segment with the passages of all other documents marked dead."""
        is_included = np.fromiter((one in groups for one in self.groups), np.bool_, len(self.groups))
        return replace(self, alive=self.alive & is_included[self.documents])


def segment_of(documents: Sequence[tuple[str, Sequence[Digest]]]) -> Segment:
    """The passages of these documents, in order."""
    passages = [one for _, digests in documents for one in digests]
    numbers = [at for at, (_, digests) in enumerate(documents) for _ in digests]
    return _segment(
        tuple(group for group, _ in documents),
        np.array(numbers, np.int32),
        np.array([one.position for one in passages], np.int32),
        np.array([one.passage_id.encode() for one in passages], np.bytes_),
        _starts([len(one.keys) for one in passages]),
        _joined([one.keys for one in passages], np.int64),
        _joined([one.titles for one in passages], np.bool_),
        _joined([one.places for one in passages], np.uint16).reshape(-1, 2),
        _starts([len(one.words) for one in passages]),
        _joined([one.words for one in passages], np.int32),
    )


def merged(segments: Sequence[Segment]) -> Segment:
    """One segment with all living passages of these."""
    parts = [_compact(segment) for segment in segments]
    offsets = np.cumsum([0, *(len(part.groups) for part in parts)])
    return _segment(
        tuple(group for part in parts for group in part.groups),
        _joined([part.documents + offset for part, offset in zip(parts, offsets, strict=False)], np.int32),
        _joined([part.positions for part in parts], np.int32),
        np.concatenate([part.ids for part in parts]),
        _starts(_joined([np.diff(part.starts) for part in parts], np.int64)),
        _joined([part.keys for part in parts], np.int64),
        _joined([part.titles for part in parts], np.bool_),
        _joined([part.places for part in parts], np.uint16),
        _starts(_joined([np.diff(part.word_starts) for part in parts], np.int64)),
        _joined([part.words for part in parts], np.int32),
    )


def _compact(segment: Segment) -> Segment:
    if segment.alive.all():
        return segment
    alive = segment.alive
    groups = np.unique(segment.documents[alive])
    edges = alive[segment.owners]
    words = np.repeat(alive, np.diff(segment.word_starts))
    return _segment(
        tuple(segment.groups[at] for at in groups),
        np.searchsorted(groups, segment.documents[alive]).astype(np.int32),
        segment.positions[alive],
        segment.ids[alive],
        _starts(np.diff(segment.starts)[alive]),
        segment.keys[edges],
        segment.titles[edges],
        segment.places[edges],
        _starts(np.diff(segment.word_starts)[alive]),
        segment.words[words],
    )


def _segment(
    groups: tuple[str, ...],
    documents: Slots,
    positions: Slots,
    ids: npt.NDArray[np.bytes_],
    starts: npt.NDArray[np.int64],
    keys: Keys,
    titles: npt.NDArray[np.bool_],
    places: npt.NDArray[np.uint16],
    word_starts: npt.NDArray[np.int64],
    words: Words,
) -> Segment:
    owners = np.repeat(np.arange(len(documents), dtype=np.int32), np.diff(starts))
    order = np.argsort(keys, kind="stable").astype(np.int32)
    alive = np.ones(len(documents), np.bool_)
    bounds = np.searchsorted(documents, np.arange(len(groups) + 1)).tolist()
    ranges = dict(zip(groups, pairwise(bounds), strict=True))
    return Segment(
        groups,
        ranges,
        documents,
        positions,
        ids,
        alive,
        starts,
        keys,
        titles,
        places,
        owners,
        order,
        keys[order],
        word_starts,
        words,
    )


def _starts(lengths: Sequence[int] | npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


def _joined(parts: Sequence[npt.NDArray[np.generic]], kind: type[np.generic]) -> np.ndarray:
    return np.concatenate(parts).astype(kind, copy=False) if parts else np.empty(0, kind)
