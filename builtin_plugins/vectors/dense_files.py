"""The vectors of one collection in files that all processes of the machine map, with what changed in memory.

What was loaded or saved is in segments, which are never changed; later vectors are in an index in memory
until they are saved as a further segment. Deleted vectors stay in the file of their segment, only marked,
until the index is built again from the rows.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builtin_plugins.vectors.dense import (
    EXACT_UP_TO,
    DenseIndex,
    approximate_index,
    limited_faiss,
    write_index,
)
from builtin_plugins.vectors.dense_segments import VectorSegment, remove_segment, segment_names, write_segment
from builtin_plugins.vectors.fusion import Labels, Ranking, as_labels
from builtin_plugins.vectors.index_saving import FORM
from builtin_plugins.vectors.locks import SharedLock

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_MOST_IN_MEMORY = 100_000  # vectors while loading; then they are written
_MOST_SEGMENTS = 12  # each search reads all; one more comes with each twentieth that was added
_FORMAT = 1


class SegmentedDenseIndex:
    """An index in files, with the methods of `DenseIndex`. All may be called from any thread."""

    def __init__(
        self,
        dimension: int,
        folder: Path,
        parameters: Mapping[str, str] | None = None,
        *,
        exact_up_to: int = EXACT_UP_TO,
    ) -> None:
        """In `folder`: empty, or with the files of an index that had these `parameters`.

        Raises OSError or ValueError if the folder can't be read.
        """
        self.folder: Path | None = folder
        self.deleted = int((parameters or {}).get("deleted", 0))
        self._folder = folder
        self._dimension = dimension
        self._exact_up_to = exact_up_to
        self._lock = SharedLock()
        self._building = threading.Lock()
        self._loading = False
        self._segments = tuple(VectorSegment(folder, name, dimension) for name in segment_names(folder))
        self._number = max((int(one.name) for one in self._segments), default=0)
        self._recent = self._new_recent()
        # Labels that were changed while an approximate index is being built; otherwise None.
        self._touched: list[Labels] | None = None

    @property
    def count(self) -> int:
        with self._lock.read():
            return self._recent.count + sum(one.count for one in self._segments)

    @property
    def approximate(self) -> bool:
        """Whether an unfiltered search may miss a near vector."""
        return any(one.approximate for one in self._segments)

    @property
    def wants_approximate(self) -> bool:
        """Whether the collection has outgrown the exact index: call `build_approximate` in the background."""
        return not self.approximate and self.count > self._exact_up_to

    @property
    def stale(self) -> float:
        """The share of vectors in the files that are gone, 0 to 1; 1 if there are too many segments."""
        segments = self._segments
        if len(segments) > _MOST_SEGMENTS and not self.wants_approximate:
            return 1.0
        size = sum(one.size for one in segments)
        return 1.0 - sum(one.count for one in segments) / size if size else 0.0

    @property
    def parameters(self) -> dict[str, str]:
        """What the files don't say about the index."""
        return {"deleted": str(self.deleted), FORM: "approximate" if self.approximate else ""}

    def link_to(self, folder: Path) -> None:
        """Link the files into another folder, with a further segment of what came since. Nobody may change
        the index meanwhile. Raises OSError.
        """
        self._write_recent()
        with self._lock.write():
            for segment in self._segments:
                segment.link_to(folder)

    def begin_loading(self) -> None:
        """Until `end_loading`, added labels are new."""
        self._loading = True
        self._recent.begin_loading()

    def end_loading(self) -> None:
        """Write what was added since `begin_loading`. Raises OSError."""
        self._loading = False
        self._write_recent()

    def add(self, labels: npt.ArrayLike, vectors: npt.ArrayLike) -> None:
        """Store `vectors` float32 [n, dimension] of length 1 under `labels` [n], replacing what they had.

        Raises:
            ValueError: the shapes do not fit, a label occurs twice, or a vector is not finite.
        """
        with self._lock.write():
            self._recent.add(labels, vectors)
            self._forget(as_labels(labels))
        if self._loading and self._recent.count >= _MOST_IN_MEMORY:
            self._write_recent()

    def remove(self, labels: npt.ArrayLike) -> None:
        """Forget `labels`; unknown ones are ignored. `deleted` counts those that stay in files."""
        ids = as_labels(labels)
        if len(ids):
            with self._lock.write():
                self._recent.remove(ids)
                self.deleted += self._forget(ids)

    def search(self, query: npt.ArrayLike, k: int, allowed: npt.ArrayLike | None = None) -> Ranking:
        """The `k` nearest by inner product to `query` float32 [dimension], among `allowed` when given.

        As `DenseIndex.search`.
        """
        with self._lock.read():
            recent = self._recent.search(query, k, allowed)
            if k <= 0:
                return recent
            vector, among = _row(query), None if allowed is None else as_labels(allowed)
            return _best([one.search(vector, k, among) for one in self._segments] + [recent], k)

    def build_approximate(self) -> bool:
        """Train an approximate index on the vectors, write it, and answer from it.

        Returns False if there already is one or another thread is building it. Searches and changes continue.
        Raises OSError.
        """
        if not self._building.acquire(blocking=False):
            return False
        try:
            if self.approximate:
                return False
            with self._lock.write():
                self._touched = []
                before = self._segments
                contents = [one.content() for one in before] + [self._recent.content()]
            self._switch(before, *_joined(contents))
            return True
        finally:
            self._touched = None
            self._building.release()

    def _switch(
        self, before: Sequence[VectorSegment], labels: Labels, halves: npt.NDArray[np.float16]
    ) -> None:
        import numpy as np

        index = approximate_index(self._dimension, np.arange(len(labels)), halves)
        segment = self._write(labels, partial(write_index, index))
        with self._lock.write():
            touched = np.concatenate([np.empty(0, np.int64), *(self._touched or ())])
            moved = np.setdiff1d(labels, touched)
            later = tuple(one for one in self._segments if one not in before)
            segment.forget(np.unique(touched))
            for later_segment in later:
                later_segment.forget(moved)
            self._recent.remove(moved)
            self._segments = (segment, *later)
        for old_segment in before:
            remove_segment(self._folder, old_segment.name)

    def _write_recent(self) -> None:
        """Make a segment of what is in memory. Nobody may change the index meanwhile."""
        recent = self._recent
        segment = self._write(recent.labels(), recent.write_to) if recent.count else None
        with self._lock.write():
            if segment is not None:
                self._segments = (*self._segments, segment)
            self._recent = self._new_recent()

    def _write(self, labels: Labels, write: Any) -> VectorSegment:
        with self._lock.write():
            self._number += 1
            name = f"{self._number:06d}"
        write_segment(self._folder, name, labels, write)
        return VectorSegment(self._folder, name, self._dimension)

    def _new_recent(self) -> DenseIndex:
        recent = DenseIndex(self._dimension, exact_up_to=sys.maxsize)
        if self._loading:
            recent.begin_loading()
        return recent

    def _forget(self, labels: Labels) -> int:
        """Mark labels as gone in all segments; returns how many were there."""
        if self._touched is not None:
            self._touched.append(labels)
        return sum(one.forget(labels) for one in self._segments)


def dense_software(dimension: int) -> str:
    """All that the content of the files depends on, besides the rows."""
    return f"vectors {_FORMAT}, faiss {limited_faiss().__version__}, {dimension} numbers"


def _row(query: npt.ArrayLike) -> npt.NDArray[np.float32]:
    import numpy as np

    return np.ascontiguousarray(query, np.float32)[np.newaxis]


def _best(rankings: Sequence[Ranking], k: int) -> Ranking:
    import numpy as np

    if len(rankings) == 1:
        return rankings[0]
    scores = np.concatenate([one.scores for one in rankings])
    labels = np.concatenate([one.labels for one in rankings])
    order = np.argsort(-scores, kind="stable")[:k]
    return Ranking(labels[order], scores[order])


def _joined(
    contents: Sequence[tuple[Labels, npt.NDArray[np.float16]]],
) -> tuple[Labels, npt.NDArray[np.float16]]:
    import numpy as np

    return np.concatenate([one for one, _ in contents]), np.concatenate([one for _, one in contents])
