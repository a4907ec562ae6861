"""The passages of one knowledge base by their keys; documents are added and removed one by one.

New documents go to small segments, which are merged as they grow, so that each passage is copied a
logarithmic number of times. Removed passages are dead at once and disappear with the next merge.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

from builtin_plugins.graph_rag.walk.digests import Digest
from builtin_plugins.graph_rag.walk.segments import Segment, merged, segment_of

_GROWTH = 4
_MOST_DEAD = 0.3


class WalkIndex:
    """All methods may be called from any thread; a result of `segments` never changes."""

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._segments: tuple[Segment, ...] = ()

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The current segments."""
        return self._segments

    @property
    def count(self) -> int:
        """How many passages can be reached."""
        return sum(segment.living for segment in self._segments)

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""
        return sum(segment.nbytes for segment in self._segments)

    def put(self, documents: Sequence[tuple[str, Sequence[Digest]]]) -> None:
        """Add documents, each with its passages by position; an existing one is replaced."""
        fresh = segment_of(documents)
        with self._changing:
            segments = _without(self._segments, (group for group, _ in documents))
            self._segments = _settled([*segments, fresh])

    def remove(self, groups: Iterable[str]) -> None:
        """Forget documents; unknown ones are ignored."""
        with self._changing:
            self._segments = _settled(_without(self._segments, groups))


def _without(segments: Iterable[Segment], groups: Iterable[str]) -> list[Segment]:
    remaining = list(segments)
    for group in groups:
        remaining = [segment.without(group) for segment in remaining]
    return remaining


def _settled(segments: list[Segment]) -> tuple[Segment, ...]:
    """The segments, largest first, after merging small ones and mostly dead ones."""
    ordered = sorted((_cleared(segment) for segment in segments), key=lambda segment: -segment.size)
    while len(ordered) > 1 and ordered[-2].size < _GROWTH * ordered[-1].size:
        ordered[-2:] = [merged(ordered[-2:])]
    return tuple(segment for segment in ordered if segment.size)


def _cleared(segment: Segment) -> Segment:
    return merged([segment]) if segment.living < (1 - _MOST_DEAD) * segment.size else segment
