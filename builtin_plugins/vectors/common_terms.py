"""Which texts have the commonest terms, so that how many a filter leaves of them is counted quickly."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from builtin_plugins.vectors.fusion import Labels

_MOST_BYTES = 64_000_000  # with a million texts, each term takes 0.1 MB

Bits: TypeAlias = "npt.NDArray[np.uint8]"
"""A bit for each label."""


class CommonTerms:
    """Which texts have a term, for some common ones. May be used from any thread."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._terms: OrderedDict[str, Bits] = OrderedDict()
        self._bytes = 0

    def get(self, term: str) -> Bits | None:
        """The texts that have this term; None if that is not known."""
        with self._guard:
            if term in self._terms:
                self._terms.move_to_end(term)
            return self._terms.get(term)

    def put(self, term: str, bits: Bits) -> Bits:
        """Keep them; the terms that were least recently used are dropped."""
        with self._guard:
            self._bytes += bits.nbytes - self._terms.pop(term, bits[:0]).nbytes
            self._terms[term] = bits
            while self._bytes > _MOST_BYTES:
                _, dropped = self._terms.popitem(last=False)
                self._bytes -= dropped.nbytes
        return bits


def bits_of(labels: Labels) -> Bits:
    """A bit for each label from 0 to the highest of these [n]."""
    marks = np.zeros(int(labels.max(initial=-1)) + 1, np.bool_)
    marks[labels] = True
    return np.packbits(marks)
