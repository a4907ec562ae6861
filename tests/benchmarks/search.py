"""Prints what the indexes of one collection cost, alone and against their alternatives.

`python -m tests.benchmarks.search [chunks]` (default 100,000): seconds to fill from rows, memory,
milliseconds a query with and without filters; for BM25 the same of tantivy (used), SQLite FTS5 and bm25s.
The texts are made of invented words with the frequencies of a language (Zipf), a hundred to a text; the
vectors lie around centres.
"""

from __future__ import annotations

import gc
import sqlite3
import sys
import time
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import psutil

from builtin_plugins.vectors.dense import DenseIndex
from builtin_plugins.vectors.text import TextIndex

CHUNKS = 100_000
DIMENSION = 384
BLOCK = 5_000
K = 30
ALLOWED = 10_000

Labels = npt.NDArray[np.int64]


class Texts:
    """Deterministic texts and questions from one vocabulary."""

    def __init__(self, seed: int = 1, size: int = 60_000) -> None:
        self._chance = np.random.default_rng(seed)
        self._words = np.array([self._word(number) for number in range(size)])
        weights = 1 / np.arange(1, size + 1) ** 1.05
        self._shares = np.cumsum(weights / weights.sum())

    @staticmethod
    def _word(number: int) -> str:
        """Number 0 is `ba`, and so on: each number another word."""
        syllables = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
        word = syllables[number % 70]
        while number := number // 70:
            word += syllables[number % 70]
        return word

    def passages(self, count: int) -> list[str]:
        picks = np.searchsorted(self._shares, self._chance.random((count, 100)))
        return [" ".join(row) for row in self._words[picks]]

    def question(self) -> str:
        """Four words as they come and three rarer ones."""
        common = np.searchsorted(self._shares, self._chance.random(4))
        return " ".join(self._words[np.concatenate([common, self._chance.integers(100, 20_000, 3)])])


class Searched(Protocol):
    def fill(self, texts: list[str]) -> None: ...
    def search(self, question: str, allowed: Labels | None) -> object: ...
    def add(self, first: int, texts: list[str]) -> None: ...


class Tantivy:
    def __init__(self) -> None:
        self._index = TextIndex()

    def fill(self, texts: list[str]) -> None:
        for start in range(0, len(texts), BLOCK):
            self.add(start, texts[start : start + BLOCK])

    def search(self, question: str, allowed: Labels | None) -> object:
        return self._index.search(question, K, allowed)

    def add(self, first: int, texts: list[str]) -> None:
        self._index.add(np.arange(first, first + len(texts)), texts)


class Bm25s:
    """Has no addition: it is built again."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def fill(self, texts: list[str]) -> None:
        import bm25s

        self._texts = texts
        self._index = bm25s.BM25()
        self._index.index([text.split() for text in texts], show_progress=False)

    def search(self, question: str, allowed: Labels | None) -> object:
        mask = None
        if allowed is not None:
            mask = np.zeros(len(self._texts), np.float32)
            mask[allowed] = 1
        return self._index.retrieve([question.split()], k=K, show_progress=False, weight_mask=mask)

    def add(self, first: int, texts: list[str]) -> None:
        self.fill(self._texts + texts)


class Fts5:
    def __init__(self) -> None:
        self._database = sqlite3.connect(":memory:")
        self._database.execute("create virtual table t using fts5(x, tokenize = 'porter unicode61')")

    def fill(self, texts: list[str]) -> None:
        self.add(0, texts)

    def search(self, question: str, allowed: Labels | None) -> object:
        words = " OR ".join(f'"{word}"' for word in question.split())
        query, values = "select rowid, rank from t where t match ?", [words]
        if allowed is not None:
            query += " and +rowid in (select value from json_each(?))"  # with +, words are looked up first
            values.append(str(allowed.tolist()))
        return self._database.execute(f"{query} order by rank limit {K}", values).fetchall()

    def add(self, first: int, texts: list[str]) -> None:
        self._database.executemany("insert into t (rowid, x) values (?, ?)", enumerate(texts, first))


def text_row(name: str, index: Searched, texts: list[str], maker: Texts, repeats: int) -> None:
    before, chance = _resident(), np.random.default_rng(2)
    seconds = _seconds(lambda: index.fill(texts))
    memory = _resident() - before
    questions = [maker.question() for _ in range(repeats)]
    allowed = np.sort(chance.choice(len(texts), min(ALLOWED, len(texts)), replace=False))
    columns = [
        _quantiles([lambda q=q: index.search(q, None) for q in questions]),  # type: ignore[misc]
        _quantiles([lambda q=q: index.search(q, allowed) for q in questions]),  # type: ignore[misc]
        _quantiles([lambda q=q: index.search(q, allowed[:100]) for q in questions]),  # type: ignore[misc]
    ]
    more = maker.passages(100)
    added = _seconds(lambda: index.add(len(texts), more)) * 1000
    print(f"{name:<10}{seconds:8.1f}{memory:8.0f}" + "".join(f"{c:>18}" for c in columns) + f"{added:12.1f}")


def dense_rows(count: int) -> None:
    before, vectors = _resident(), Vectors()
    rows = vectors.make(count)
    before += rows.nbytes / 1e6
    index = DenseIndex(DIMENSION, exact_up_to=min(count - 1, 200_000))
    seconds = _seconds(lambda: _fill(index, rows))
    _dense_row("SQfp16", index, seconds, _resident() - before, vectors)
    exact = [set(index.search(query, 10).labels.tolist()) for query in vectors.queries]
    seconds = _seconds(index.build_approximate)
    _dense_row("IVF,SQ8", index, seconds, _resident() - before, vectors)
    near = [set(index.search(query, 10).labels.tolist()) for query in vectors.queries]
    recall = np.mean([len(a & b) / 10 for a, b in zip(exact, near, strict=True)])
    print(f"recall@10 of IVF,SQ8 against exact: {recall:.3f}")


class Vectors:
    """Vectors of length 1 around centres around centres, as those of texts on related topics are."""

    def __init__(self) -> None:
        self._chance = np.random.default_rng(3)
        topics = self._chance.normal(size=(50, DIMENSION))
        finer = topics[self._chance.integers(0, 50, 4_000)] + 0.8 * self._chance.normal(
            size=(4_000, DIMENSION)
        )
        self._centres = finer.astype(np.float32)
        self.queries = self.make(100)

    def make(self, count: int) -> npt.NDArray[np.float32]:
        rows = self._centres[self._chance.integers(0, len(self._centres), count)]
        rows += 0.7 * self._chance.standard_normal(rows.shape, np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return rows


def _fill(index: DenseIndex, rows: npt.NDArray[np.float32]) -> None:
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK]
        index.add(np.arange(start, start + len(block)), block)


def _dense_row(name: str, index: DenseIndex, seconds: float, memory: float, vectors: Vectors) -> None:
    allowed = np.arange(0, index.count, max(1, index.count // ALLOWED))
    columns = [
        _quantiles([lambda q=q: index.search(q, K) for q in vectors.queries]),  # type: ignore[misc]
        _quantiles([lambda q=q: index.search(q, K, allowed) for q in vectors.queries]),  # type: ignore[misc]
        _quantiles([lambda q=q: index.search(q, K, allowed[:100]) for q in vectors.queries]),  # type: ignore[misc]
    ]
    print(f"{name:<10}{seconds:8.1f}{memory:8.0f}" + "".join(f"{c:>18}" for c in columns))


def _seconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def _quantiles(actions: Sequence[Callable[[], object]]) -> str:
    p50, p99 = np.quantile([_seconds(action) for action in actions], [0.5, 0.99]) * 1000
    return f"{p50:.2f} / {p99:.2f}"


def _resident() -> float:
    gc.collect()
    return psutil.Process().memory_info().rss / 1e6


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else CHUNKS
    heads = "".join(f"{head:>18}" for head in ("p50/p99 ms", f"{ALLOWED} allowed", "100 allowed"))
    print(f"{count} chunks\n{'dense':<10}{'fill s':>8}{'MB':>8}{heads}")
    dense_rows(count)
    maker = Texts()
    texts = maker.passages(count)
    print(f"\n{'BM25':<10}{'fill s':>8}{'MB':>8}{heads}{'add 100 ms':>12}")
    text_row("tantivy", Tantivy(), texts, maker, repeats=100)
    text_row("fts5", Fts5(), texts, maker, repeats=10)
    text_row("bm25s", Bm25s(), texts, maker, repeats=30)


if __name__ == "__main__":
    main()
