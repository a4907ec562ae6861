"""The vectors of one collection in memory, searched with FAISS. Derived from rows, never the only copy.

`IDMap2,SQfp16` is exact and takes half of the memory and a third of the time of a flat index. Above some
200,000 vectors `IVF,SQ8` answers ten times faster at the cost of a few percent of recall. HNSW cannot remove
vectors, and `IndexIDMap2` over IVF aborts the process on removal, so IVF gets its ids directly.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from builtin_plugins.vectors.fusion import Labels, Ranking, as_labels
from builtin_plugins.vectors.locks import SharedLock

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

EXACT_UP_TO = 200_000
"""Number of vectors up to which the exact index is fast enough."""

Vectors: TypeAlias = "npt.NDArray[np.float32]"

_LEAST_PER_LIST = 40  # with fewer, centroids are not worthwhile, and FAISS warns
_TRAINING_PER_LIST = 64
_LISTS_PROBED = 300  # a fixed number: time grows with the square root of the collection, recall falls slowly
_BLOCK = 20_000
FEW = 200
"""Up to this many allowed labels, a set of them is faster than a mark for each vector."""


class DenseIndex:
    """An index of one collection. All methods may be called from any thread; searches run in parallel.

    A label is stored once: adding it again replaces its vector.
    """

    def __init__(self, dimension: int, *, exact_up_to: int = EXACT_UP_TO) -> None:
        self.folder: Path | None = None
        self.deleted = 0
        self.stale = 0.0
        self._dimension = dimension
        self._exact_up_to = exact_up_to
        self._lock = SharedLock()
        self._building = threading.Lock()
        self._index = _exact_index(dimension)
        self._approximate = False
        self._loading = False
        # Changes made while an approximate index is being built, to repeat on it; otherwise None.
        self._missed: list[Callable[[Any], None]] | None = None

    @property
    def dimension(self) -> int:
        return self._dimension

    @property
    def count(self) -> int:
        with self._lock.read():
            return int(self._index.ntotal)

    @property
    def approximate(self) -> bool:
        """Whether an unfiltered search may miss a near vector."""
        return self._approximate

    @property
    def wants_approximate(self) -> bool:
        """Whether the collection has outgrown the exact index: call `build_approximate` in the background."""
        return not self._approximate and self.count > self._exact_up_to

    def begin_loading(self) -> None:
        """Until `end_loading`, added labels are new: looking for each among all of them takes longest."""
        self._loading = True

    def end_loading(self) -> None:
        """From now on, added labels may replace others."""
        self._loading = False

    def add(self, labels: npt.ArrayLike, vectors: npt.ArrayLike) -> None:
        """Store `vectors` float32 [n, dimension] of length 1 under `labels` [n], replacing what they had.

        Raises:
            ValueError: the shapes do not fit, a label occurs twice, or a vector is not finite.
        """
        ids, rows = self._checked(labels, vectors)
        if len(ids):
            put = _add if self._loading else _replace
            self._change(lambda index: put(index, ids, rows))

    def remove(self, labels: npt.ArrayLike) -> None:
        """Forget `labels`; unknown ones are ignored."""
        ids = as_labels(labels)
        if len(ids):
            self._change(lambda index: _remove(index, ids))

    def search(self, query: npt.ArrayLike, k: int, allowed: npt.ArrayLike | None = None) -> Ranking:
        """The `k` nearest by inner product to `query` float32 [dimension], among `allowed` when given.

        The filter works inside the search: `k` come back whenever `allowed` holds `k` known labels. A
        filtered search misses nothing; an unfiltered one may, once `approximate`.
        """
        vector = self._query(query)
        among = None if allowed is None else as_labels(allowed)
        if k <= 0 or (among is not None and not len(among)):
            return Ranking.empty()
        with self._lock.read():
            most = min(k, self._index.ntotal)
            if not most:
                return Ranking.empty()
            if among is not None and len(among) > FEW and not self._approximate:
                scores, labels = _search_marked(self._index, vector, most, among)
            else:
                parameters = _parameters(self._index, self._approximate, among)
                scores, labels = self._index.search(vector, most, params=parameters)
        is_hit = labels[0] >= 0
        return Ranking(labels[0][is_hit], scores[0][is_hit])

    def build_approximate(self) -> bool:
        """Train an approximate index on the stored vectors and answer from it.

        Returns False if there already is one or another thread is building it.

        Takes seconds to minutes on one core; meanwhile searches and changes continue, and none is lost.
        """
        if not self._building.acquire(blocking=False):
            return False
        try:
            if self._approximate:
                return False
            self._switch(*self._snapshot())
            return True
        finally:
            self._missed = None
            self._building.release()

    def _change(self, change: Callable[[Any], None]) -> None:
        with self._lock.write():
            change(self._index)
            if self._missed is not None:
                self._missed.append(change)

    def labels(self) -> Labels:
        """The labels [n] in the order of their vectors. Only while it is exact."""
        with self._lock.read():
            return _labels(self._index)

    def content(self) -> tuple[Labels, npt.NDArray[np.float16]]:
        """Labels [n] and vectors [n, dimension], copied. Only while it is exact."""
        with self._lock.read():
            return _labels(self._index), _halves(self._index, self._dimension)

    def write_to(self, stream: IO[bytes]) -> None:
        """Write the vectors without labels, as FAISS does. Only while it is exact. Raises RuntimeError."""
        with self._lock.read():
            write_index(self._index.index, stream)

    def _snapshot(self) -> tuple[Labels, npt.NDArray[np.float16]]:
        with self._lock.write():
            self._missed = []
            return _labels(self._index), _halves(self._index, self._dimension)

    def _switch(self, labels: Labels, halves: npt.NDArray[np.float16]) -> None:
        index = approximate_index(self._dimension, labels, halves)
        with self._lock.write():
            for change in self._missed or ():
                change(index)
            self._index, self._approximate = index, True

    def _checked(self, labels: npt.ArrayLike, vectors: npt.ArrayLike) -> tuple[Labels, Vectors]:
        import numpy as np

        ids = as_labels(labels)
        rows = np.array(vectors, np.float32, order="C", ndmin=2)  # a copy: the change may be repeated later
        expected = (len(ids), self._dimension)
        if rows.shape != expected and len(ids) + rows.size:
            raise ValueError(f"{len(ids)} labels need vectors of shape {expected}, not {rows.shape}")
        if len(np.unique(ids)) != len(ids):
            raise ValueError("a label occurs twice in one call: give each label one vector")
        if len(ids) and int(ids.min()) < 0:
            raise ValueError("labels must not be negative")
        if not np.isfinite(rows).all():
            raise ValueError("a vector holds a value that is not finite")
        return ids, rows

    def _query(self, query: npt.ArrayLike) -> Vectors:
        import numpy as np

        vector = np.ascontiguousarray(query, np.float32)
        if vector.shape != (self._dimension,):
            raise ValueError(f"the query must be {self._dimension} numbers, not of shape {vector.shape}")
        return vector[np.newaxis]


def limited_faiss() -> Any:
    """FAISS, loaded when first needed and limited to one thread.

    With two threads and other load, a query took a hundred times longer. OpenMP keeps the number per calling
    thread, so it is set on each use.
    """
    import faiss

    faiss.omp_set_num_threads(1)
    return faiss


def write_index(index: Any, stream: IO[bytes]) -> None:
    """Write an index of FAISS. Raises RuntimeError if the stream can't be written."""
    faiss = limited_faiss()
    faiss.write_index(index, faiss.PyCallbackIOWriter(stream.write))


def _labels(index: Any) -> Labels:
    labels: Labels = limited_faiss().vector_to_array(index.id_map)
    return labels


def _halves(index: Any, dimension: int) -> npt.NDArray[np.float16]:
    import numpy as np

    faiss = limited_faiss()
    codes = faiss.vector_to_array(faiss.downcast_index(index.index).codes)
    halves: npt.NDArray[np.float16] = codes.view(np.float16).reshape(-1, dimension)
    return halves


def _exact_index(dimension: int) -> Any:
    faiss = limited_faiss()
    return faiss.index_factory(dimension, "IDMap2,SQfp16", faiss.METRIC_INNER_PRODUCT)


def approximate_index(dimension: int, labels: Labels, halves: npt.NDArray[np.float16]) -> Any:
    """An index of FAISS that was trained on vectors [n, dimension] and has them under `labels` [n]."""
    import numpy as np

    faiss = limited_faiss()
    lists = max(1, min(int(4 * np.sqrt(len(labels))), len(labels) // _LEAST_PER_LIST))
    index = faiss.index_factory(dimension, f"IVF{lists},SQ8", faiss.METRIC_INNER_PRODUCT)
    index.nprobe = min(lists, _LISTS_PROBED)
    index.train(_training_sample(halves, lists * _TRAINING_PER_LIST))
    for start in range(0, len(labels), _BLOCK):
        block = slice(start, start + _BLOCK)
        index.add_with_ids(halves[block].astype(np.float32), labels[block])
    return index


def _training_sample(halves: npt.NDArray[np.float16], size: int) -> Vectors:
    import numpy as np

    if len(halves) <= size:
        return halves.astype(np.float32)
    rows = np.random.default_rng(0).choice(len(halves), size, replace=False)
    return halves[np.sort(rows)].astype(np.float32)


def _replace(index: Any, labels: Labels, vectors: Vectors) -> None:
    if index.ntotal:
        _remove(index, labels)
    _add(index, labels, vectors)


def _add(index: Any, labels: Labels, vectors: Vectors) -> None:
    limited_faiss()
    index.add_with_ids(vectors, labels)


def _remove(index: Any, labels: Labels) -> None:
    index.remove_ids(limited_faiss().IDSelectorBatch(labels))


def _search_marked(index: Any, vector: Vectors, k: int, among: Labels) -> tuple[Any, Any]:
    """Search the exact index with a bit for each of its vectors."""
    import numpy as np

    faiss = limited_faiss()
    labels = faiss.vector_to_array(index.id_map)
    marks = np.packbits(np.isin(labels, among), bitorder="little")
    parameters = faiss.SearchParameters(sel=faiss.IDSelectorBitmap(marks))
    scores, places = index.index.search(vector, k, params=parameters)
    return scores, np.where(places < 0, -1, labels[places])


def _parameters(index: Any, approximate: bool, among: Labels | None) -> Any:
    faiss = limited_faiss()
    selector = None if among is None else faiss.IDSelectorBatch(among)
    if approximate:
        # With a filter, every list is read: few vectors are compared, and none is missed.
        probes = index.nprobe if among is None else index.nlist
        return faiss.SearchParametersIVF(sel=selector, nprobe=probes)
    return None if selector is None else faiss.SearchParameters(sel=selector)
