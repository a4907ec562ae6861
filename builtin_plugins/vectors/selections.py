"""What filters left, kept for searches with the same filter."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from builtin_plugins.vectors.fusion import Labels

_MOST_KEPT = 4_000_000  # labels, of 8 bytes
_MOST_QUERIES = 1000
_MOST_DERIVED = 64

T = TypeVar("T")


class KeptSelections:
    """The labels that filters left, for searches with the same filter. May be used from any thread."""

    def __init__(self, most: int = _MOST_KEPT) -> None:
        """`most` is how many labels are kept in all; the least recently used are dropped first."""
        self._guard = threading.Lock()
        self._entries: OrderedDict[tuple[int, str], tuple[tuple[int, int], Labels]] = OrderedDict()
        self._most = most
        self._count = 0

    def get(self, collection_id: int, key: str, state: tuple[int, int]) -> Labels | None:
        """What a query found in a state of the collection and of what the query reads; None if unknown."""
        with self._guard:
            entry = self._entries.get((collection_id, key))
            if entry is None or entry[0] != state:
                return None
            self._entries.move_to_end((collection_id, key))
            return entry[1]

    def put(self, collection_id: int, key: str, state: tuple[int, int], labels: Labels) -> None:
        """Keep what a query found in this state."""
        with self._guard:
            before = self._entries.pop((collection_id, key), None)
            self._count += len(labels) - (0 if before is None else len(before[1]))
            self._entries[collection_id, key] = (state, labels)
            while self._count > self._most or len(self._entries) > _MOST_QUERIES:
                _, (_, dropped) = self._entries.popitem(last=False)
                self._count -= len(dropped)


class OfSelections(Generic[T]):
    """What an index makes of the labels of a filter, made once for the same array of labels.

    It goes with that array: nothing here keeps labels. May be used from any thread.
    """

    def __init__(self, make: Callable[[Labels], T]) -> None:
        self._make = make
        self._made: tuple[tuple[weakref.ref[Labels], T], ...] = ()

    def get(self, labels: Labels) -> T:
        """What was made of these labels, or is now."""
        made = self._made
        for known, value in made:
            if known() is labels:
                return value
        value = self._make(labels)
        present = [one for one in made if one[0]() is not None]
        self._made = ((weakref.ref(labels), value), *present[: _MOST_DERIVED - 1])
        return value

    def clear(self) -> None:
        """Forget everything: the index has changed."""
        self._made = ()
