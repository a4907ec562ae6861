"""One immutable file of vectors that all processes map, and which of them are still there.

```
FOLDER/NUMBER.faiss       the vectors, as FAISS writes them: their ids are their places, 0 to n - 1
      /NUMBER.labels.npy  int64 [n]: the label of each place
      /NUMBER.order.npy   int64 [n]: the places in the order of their labels
      /NUMBER.gone.npy    int64: the places that are gone; missing if none is
```

Only marks of what is gone are in this process's memory. A mapped index of FAISS ends the process if it is
changed, so nothing here changes one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from builtin_plugins.vectors.dense import FEW, limited_faiss
from builtin_plugins.vectors.fusion import Labels, Ranking
from builtin_plugins.vectors.selections import OfSelections
from kernel.sdk import sync

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

COMPARED = 20_000
"""With a filter, an approximate index compares at least so many of the vectors that it leaves, or all."""

_VECTORS, _LABELS, _ORDER, _GONE = ".faiss", ".labels.npy", ".order.npy", ".gone.npy"


@dataclass(frozen=True)
class _Selection:
    """Which of a segment's vectors a filter leaves: a bit for each, 0.1 MB of a million.

    `numbers` int64 [nlist]: how many are in each list of an approximate index.
    """

    count: int
    selector: Any
    numbers: Labels | None


class VectorSegment:
    """A file of vectors. `search` may be called from any thread, other methods only from one at a time."""

    def __init__(self, folder: Path, name: str, dimension: int) -> None:
        """Raises OSError or ValueError if the files can't be read or are of another dimension."""
        import numpy as np

        faiss = limited_faiss()
        self._folder, self.name = folder, name
        try:
            self._index: Any = faiss.read_index(str(folder / (name + _VECTORS)), faiss.IO_FLAG_MMAP_IFC)
        except RuntimeError as error:
            raise ValueError(f"{folder / name} is no index of vectors: {error}") from None
        self._labels: Labels = np.load(folder / (name + _LABELS), mmap_mode="r")
        self._order: Labels = np.load(folder / (name + _ORDER), mmap_mode="r")
        self._ascending = bool((self._labels[1:] > self._labels[:-1]).all())
        self._lists: npt.NDArray[np.int32] | None = None
        self._selections = OfSelections(self._selection)
        self.size = len(self._labels)
        if (self._index.d, self._index.ntotal, len(self._order)) != (dimension, self.size, self.size):
            raise ValueError(f"the files of {folder / name} don't belong together")
        self.approximate = hasattr(self._index, "nprobe")
        self._present = np.ones(self.size, dtype=bool)
        gone = folder / (name + _GONE)
        if gone.exists():
            self._present[np.load(gone)] = False
        self.count = int(self._present.sum())

    def forget(self, labels: Labels) -> int:
        """Mark these labels as gone; returns how many were there."""
        import numpy as np

        places = np.unique(self._places(labels))
        self._present[places] = False
        self.count -= len(places)
        if len(places):
            self._selections.clear()
        return len(places)

    def search(self, vector: np.ndarray, k: int, among: Labels | None) -> Ranking:
        """The `k` nearest to `vector` float32 [1, dimension], among labels when given.

        A filter's labels, the same array again, are looked up only once.
        """
        selection = None
        if among is not None:
            selection = (self._selections.get if len(among) > FEW else self._selection)(among)
        if not self.count or (selection is not None and not selection.count):
            return Ranking.empty()
        most = min(k, self.size)
        if selection is not None and selection.numbers is not None:
            scores, nearest = self._search_lists(vector, most, selection.selector, selection.numbers)
        else:
            selector = self._selector_of_present() if selection is None else selection.selector
            scores, nearest = self._index.search(vector, most, params=self._parameters(selector))
        is_hit = nearest[0] >= 0
        return Ranking(self._labels[nearest[0][is_hit]], scores[0][is_hit])

    def content(self) -> tuple[Labels, npt.NDArray[np.float16]]:
        """Labels [n] and vectors [n, dimension] of what is there. Only of an exact one."""
        import numpy as np

        codes = self._index.codes
        halves = limited_faiss().rev_swig_ptr(codes.data(), codes.size()).view(np.float16)
        there = self._present
        return self._labels[there], halves.reshape(self.size, -1)[there]

    def link_to(self, folder: Path) -> None:
        """Link the files into another folder, and write there what is gone. Raises OSError."""
        import numpy as np

        for suffix in (_VECTORS, _LABELS, _ORDER):
            os.link(self._folder / (self.name + suffix), folder / (self.name + suffix))
        if self.count < self.size:
            with new_file(folder / (self.name + _GONE)) as stream:
                np.save(stream, np.flatnonzero(~self._present))

    def _places(self, labels: Labels) -> Labels:
        """The places of those labels that are there."""
        import numpy as np

        if not self.size:
            return np.empty(0, np.int64)
        order = None if self._ascending else self._order
        at = np.searchsorted(self._labels, labels, sorter=order).clip(max=self.size - 1)
        places: Labels = at if order is None else order[at]
        present_places: Labels = places[(self._labels[places] == labels) & self._present[places]]
        return present_places

    def _selection(self, labels: Labels) -> _Selection:
        import numpy as np

        faiss, places = limited_faiss(), self._places(labels)
        if len(places) <= FEW:
            selector = faiss.IDSelectorBatch(places)
        else:
            marks = np.zeros(self.size, dtype=bool)
            marks[places] = True
            selector = _bitmap(marks)
        numbers = None
        if self.approximate:
            numbers = np.bincount(self._lists_of(places), minlength=self._index.nlist)
        return _Selection(len(places), selector, numbers)

    def _search_lists(self, vector: np.ndarray, k: int, selector: Any, numbers: Labels) -> tuple[Any, Any]:
        """Search the lists that have any of the selection, the nearest first, until enough was compared."""
        import numpy as np

        faiss, index = limited_faiss(), self._index
        near, lists = index.quantizer.search(vector, index.nlist)
        in_order = numbers[lists[0]]
        before = np.cumsum(in_order) - in_order
        is_searched = (before < COMPARED) | (np.arange(index.nlist) < index.nprobe)
        read = np.flatnonzero(is_searched & (in_order > 0))
        parameters = faiss.SearchParametersIVF(sel=selector, nprobe=len(read))
        scores, nearest = np.empty((1, k), np.float32), np.empty((1, k), np.int64)
        probes = np.ascontiguousarray(lists[:, read]), np.ascontiguousarray(near[:, read])
        pointers = [faiss.swig_ptr(one) for one in (vector, *probes, scores, nearest)]
        index.search_preassigned_c(1, pointers[0], k, *pointers[1:], False, parameters)
        return scores, nearest

    def _lists_of(self, places: Labels) -> npt.NDArray[np.int32]:
        """For each place, the list of the approximate index that has its vector."""
        import numpy as np

        if self._lists is None:
            faiss, lists = limited_faiss(), np.empty(self.size, np.int32)
            inverted = self._index.invlists
            for number in range(self._index.nlist):
                size = inverted.list_size(number)
                if size:
                    lists[faiss.rev_swig_ptr(inverted.get_ids(number), size)] = number
            self._lists = lists
        return self._lists[places]

    def _parameters(self, selector: Any) -> Any:
        faiss = limited_faiss()
        if self.approximate:
            return faiss.SearchParametersIVF(sel=selector, nprobe=self._index.nprobe)
        return None if selector is None else faiss.SearchParameters(sel=selector)

    def _selector_of_present(self) -> Any:
        return None if self.count == self.size else _bitmap(self._present)


def _bitmap(marks: npt.NDArray[np.bool_]) -> Any:
    import numpy as np

    return limited_faiss().IDSelectorBitmap(np.packbits(marks, bitorder="little"))


def write_segment(folder: Path, name: str, labels: Labels, write: Callable[[IO[bytes]], None]) -> None:
    """Write a segment's files; `write` writes the index. Raises OSError, also on a full disk."""
    import numpy as np

    try:
        with new_file(folder / (name + _VECTORS)) as stream:
            write(stream)
        for suffix, array in ((_LABELS, labels), (_ORDER, np.argsort(labels, kind="stable"))):
            with new_file(folder / (name + suffix)) as stream:
                np.save(stream, array)
    except (OSError, RuntimeError) as error:  # FAISS raises RuntimeError
        remove_segment(folder, name)
        raise OSError(f"vectors can't be written into {folder}: {error}") from error


def remove_segment(folder: Path, name: str) -> None:
    """Remove the files of a segment; who has it open can still search it. Raises OSError."""
    for suffix in (_VECTORS, _LABELS, _ORDER, _GONE):
        (folder / (name + suffix)).unlink(missing_ok=True)


def segment_names(folder: Path) -> list[str]:
    """The names of the segments in a folder, oldest first. Raises OSError."""
    return sorted(file.name.removesuffix(_VECTORS) for file in folder.glob("*" + _VECTORS))


@contextmanager
def new_file(file: Path) -> Iterator[IO[bytes]]:
    """A new private file, synced to disk at the end."""
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        yield stream
    sync(file)
