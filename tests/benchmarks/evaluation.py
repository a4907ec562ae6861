"""Prints nDCG@10 of vectors, BM25 and both together, for the reference engine and for OpenVINO.

`python -m tests.benchmarks.evaluation`. Expected: hybrid is not below the better leg on any set, and the
engines differ by less than 0.005.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import starmap

import numpy as np

from builtin_plugins.embeddings.engines.base import EmbeddingEngine, Vectors
from builtin_plugins.embeddings.engines.minilm import MiniLm
from builtin_plugins.embeddings.engines.openvino import OpenVinoEngine
from builtin_plugins.embeddings.engines.sentence_transformers import SentenceTransformersEngine
from builtin_plugins.embeddings.weights import find_weights
from builtin_plugins.vectors.dense import DenseIndex
from builtin_plugins.vectors.fusion import Ranking, hybrid, weight_for
from builtin_plugins.vectors.text import TextIndex
from tests.benchmarks.evaluation_sets import SETS, EvaluationSet, Question, load, ndcg

K = 10
Rank = Callable[[Question, Vectors], Ranking]


@dataclass(frozen=True)
class Quality:
    """Mean nDCG@10 over one set."""

    dense: float
    text: float
    hybrid: float

    @property
    def margin(self) -> float:
        return self.hybrid - max(self.dense, self.text)


def measure(collection: EvaluationSet, engine: EmbeddingEngine) -> Quality:
    labels = np.arange(len(collection.passages))
    near, worded = DenseIndex(engine.dimension), TextIndex()
    near.add(labels, engine.encode(collection.passages))
    worded.add(labels, collection.passages)
    vectors = engine.encode([question.text for question in collection.questions])

    def both(question: Question, vector: Vectors) -> Ranking:
        return hybrid(
            partial(near.search, vector),
            partial(worded.search, question.text),
            K,
            weight=weight_for(question.text),
        )

    def mean(rank: Rank) -> float:
        rankings = starmap(rank, zip(collection.questions, vectors, strict=True))
        grades = [question.grades for question in collection.questions]
        return float(
            np.mean([ndcg(found.labels, known) for found, known in zip(rankings, grades, strict=True)])
        )

    return Quality(
        dense=mean(lambda _, vector: near.search(vector, K)),
        text=mean(lambda question, _: worded.search(question.text, K)),
        hybrid=mean(both),
    )


def main() -> None:
    weights = find_weights()
    print(f"{'set':<12}{'engine':<58}{'dense':>8}{'bm25':>8}{'hybrid':>8}{'margin':>9}")
    for engine in (SentenceTransformersEngine(weights), OpenVinoEngine(MiniLm(weights))):
        for name in SETS:
            quality = measure(load(name), engine)
            row = (quality.dense, quality.text, quality.hybrid)
            figures = "".join(f"{figure:8.4f}" for figure in row)
            print(f"{name:<12}{engine.identity:<58}{figures}{quality.margin:+9.4f}")


if __name__ == "__main__":
    main()
