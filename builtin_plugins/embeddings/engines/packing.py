"""The texts of a batch side by side in few rows: padding costs as much as text does.

Sentences of an answer differ in length by a factor of five: padded to the longest, they would cost two thirds
more. Passages of similar length get a row each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from builtin_plugins.embeddings.engines.base import Ids

_STEP = 8
_ROW = 128
"""Tokens of a row that short texts share: attention looks from each of its tokens at all others."""
_TRIES = 4
_ALIKE = 1000
"""The length of a row at which attention takes as long as all else."""

Integers = npt.NDArray[np.int32]


class Packed(NamedTuple):
    """A batch as the network reads it.

    `ids`, `places` and `texts` are int32 [rows, length]: of each token its id, its place in its text, and the
    number of its text, from 1; 0 is padding. `tokens` is int32 [tokens]: where in the rows, read one after
    another, the tokens of the first text are, then of the second …; `starts` is int32 [texts]: where in
    `tokens` each text begins.
    """

    ids: Integers
    places: Integers
    texts: Integers
    tokens: Integers
    starts: Integers


def packed(tokens: Sequence[Ids]) -> Packed:
    """The texts in as few rows as they need, the longest first."""
    length, rows = _arranged([len(ids) for ids in tokens])
    size, shape = len(rows) * length, (len(rows), length)
    ids, places, texts = (np.zeros(size, np.int32) for _ in range(3))
    found: list[Integers] = [places] * len(tokens)
    for row, numbers in enumerate(rows):
        start = row * length
        for number in numbers:
            own = tokens[number]
            order = np.arange(len(own), dtype=np.int32)
            here = slice(start, start + len(own))
            ids[here], places[here], texts[here] = own, order, number + 1
            found[number] = order + np.int32(start)
            start += len(own)
    starts = np.cumsum([0, *(len(own) for own in tokens[:-1])], dtype=np.int32)
    tables = (ids.reshape(shape), places.reshape(shape), texts.reshape(shape))
    return Packed(*tables, np.concatenate(found), starts)


def padded_length(tokens: int) -> int:
    """The least length of a row for so many tokens.

    A runtime makes its own kernels for each length, and keeps them: that takes it milliseconds, and most
    of a megabyte. Of eight lengths it sees one.
    """
    return -(-tokens // _STEP) * _STEP


def _arranged(lengths: Sequence[int]) -> tuple[int, list[list[int]]]:
    """The length of the rows, and the numbers of the texts in each: of a few lengths, the one that takes the
    least time.
    """
    total, order = sum(lengths), sorted(range(len(lengths)), key=lambda number: -lengths[number])
    even = -(-total // -(-total // _ROW))  # were there no text longer than that
    longest = padded_length(max(lengths))
    shared = max(longest, padded_length(even))
    tried = [longest, *(shared + more * _STEP for more in range(_TRIES)), padded_length(total)]
    found = [(length, _rows(lengths, order, length)) for length in tried]
    return min(found, key=lambda one: len(one[1]) * one[0] * (_ALIKE + one[0]))


def _rows(lengths: Sequence[int], order: Sequence[int], length: int) -> list[list[int]]:
    """Each text in the first row that has room for it."""
    rows: list[list[int]] = []
    free: list[int] = []
    for number in order:
        row = next((at for at, left in enumerate(free) if left >= lengths[number]), len(rows))
        if row == len(rows):
            rows.append([])
            free.append(length)
        rows[row].append(number)
        free[row] -= lengths[number]
    return rows
