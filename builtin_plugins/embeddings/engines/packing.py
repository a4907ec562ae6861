"""Packs the texts of a batch side by side into few rows, as padding costs as much as text.

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
"""Tokens of a row that short texts share; few, as attention compares each token with all others."""
_TRIES = 4
_ALIKE = 1000
"""The length of a row at which attention takes as long as everything else."""

Integers = npt.NDArray[np.int32]


class Packed(NamedTuple):
    """A batch as the network reads it.

    `ids`, `places` and `texts` are int32 [rows, length]: each token's id, its position in its text, and its
    text's number from 1; 0 is padding. `tokens` is int32 [tokens]: the indexes, in the flattened rows, of the
    tokens of the first text, then of the second …; `starts` is int32 [texts]: where in `tokens` each text
    begins.
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
    token_places: list[Integers] = [places] * len(tokens)
    for row, numbers in enumerate(rows):
        start = row * length
        for number in numbers:
            own = tokens[number]
            order = np.arange(len(own), dtype=np.int32)
            here = slice(start, start + len(own))
            ids[here], places[here], texts[here] = own, order, number + 1
            token_places[number] = order + np.int32(start)
            start += len(own)
    starts = np.cumsum([0, *(len(own) for own in tokens[:-1])], dtype=np.int32)
    tables = (ids.reshape(shape), places.reshape(shape), texts.reshape(shape))
    return Packed(*tables, np.concatenate(token_places), starts)


def padded_length(tokens: int) -> int:
    """The shortest allowed row for this many tokens.

    For each length, the runtime compiles and keeps kernels, which takes milliseconds and most of a megabyte,
    so only one of eight lengths is used.
    """
    return -(-tokens // _STEP) * _STEP


def _arranged(lengths: Sequence[int]) -> tuple[int, list[list[int]]]:
    """The length of the rows, and the numbers of the texts in each row: the fastest of a few lengths."""
    total, order = sum(lengths), sorted(range(len(lengths)), key=lambda number: -lengths[number])
    even = -(-total // -(-total // _ROW))  # if no text is longer than that
    longest = padded_length(max(lengths))
    shared = max(longest, padded_length(even))
    tried = [longest, *(shared + more * _STEP for more in range(_TRIES)), padded_length(total)]
    layouts = [(length, _rows(lengths, order, length)) for length in tried]
    return min(layouts, key=lambda layout: len(layout[1]) * layout[0] * (_ALIKE + layout[0]))


def _rows(lengths: Sequence[int], order: Sequence[int], length: int) -> list[list[int]]:
    """Put each text into the first row that has room for it."""
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
