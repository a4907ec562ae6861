"""Prints how often the right paragraph comes first in ten languages, by each leg and by both together.

`python -m tests.benchmarks.retrieval_languages`. Both local models; questions in English over paragraphs in
the other languages as well (the right one among the first five).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from builtin_plugins.embeddings.catalog import MODELS, LocalModel
from builtin_plugins.embeddings.engines.base import EmbeddingEngine, Vectors
from builtin_plugins.embeddings.settings import EmbeddingsSettings
from builtin_plugins.rag.answering.languages import LanguageDetector
from kernel.sdk import contracts
from kernel.stores.dense import DenseIndex
from kernel.stores.fusion import hybrid, weight_for
from kernel.stores.text import TextIndex
from tests.benchmarks.language_sets import LANGUAGES, LanguageSet, told, towns

LEGS = ("dense", "text", "hybrid")


class Shelf:
    """The paragraphs of one language in both indexes."""

    def __init__(self, collection: LanguageSet, model: LocalModel, engine: EmbeddingEngine) -> None:
        self._model, self._engine = model, engine
        self._of_model = model.embedded(np.empty((0, 0)), engine.identity)
        self._detector = LanguageDetector()
        self.collection = collection
        labels = np.arange(len(collection.paragraphs))
        self._near, self._worded = DenseIndex(engine.dimension), TextIndex()
        self._near.add(labels, self.encode(collection.paragraphs, "passage"))
        self._worded.add(labels, told(collection.paragraphs))

    def encode(self, texts: Sequence[str], purpose: contracts.Purpose) -> Vectors:
        return self._engine.encode([self._model.prefixes[purpose] + text for text in texts])

    def found(self, questions: Sequence[str], leg: str, k: int) -> list[list[int]]:
        """The first `k` places for each question."""
        vectors = self.encode(questions, "query")
        return [self._of(leg, text, vector, k) for text, vector in zip(questions, vectors, strict=True)]

    def _of(self, leg: str, text: str, vector: Vectors, k: int) -> list[int]:
        near, worded = partial(self._near.search, vector), partial(self._worded.search, text)
        if leg == "dense":
            return list(near(k).labels.tolist())
        if leg == "text":
            return list(worded(k).labels.tolist())
        share = self._of_model.share_in(self._detector.of(text))
        both = hybrid(near, worded, k, weight=weight_for(text, share), unrelated=self._model.unrelated)
        return list(both.labels.tolist())


def share(found: Sequence[Sequence[int]], right: Sequence[int]) -> float:
    """Of the questions whose paragraph is among those found."""
    return float(np.mean([place in places for places, place in zip(found, right, strict=True)]))


def main() -> None:
    english = [question.text for question in towns("en").questions]
    for model in MODELS:
        engine = model.load(EmbeddingsSettings())
        print(f"\n{model.name}\n{'':10}" + "".join(f"{leg:>9}" for leg in LEGS) + f"{'from en, 5':>12}")
        rows = []
        for language in LANGUAGES:
            shelf = Shelf(towns(language), model, engine)
            asked = shelf.collection.questions
            right = [question.paragraph for question in asked]
            row = [share(shelf.found([one.text for one in asked], leg, 1), right) for leg in LEGS]
            row.append(share(shelf.found(english, "hybrid", 5), right))
            rows.append(row)
            print(f"{language:10}" + "".join(f"{figure:9.3f}" for figure in row[:3]) + f"{row[3]:12.3f}")
        print(f"{'mean':10}" + "".join(f"{figure:9.3f}" for figure in np.mean(rows, axis=0)))


if __name__ == "__main__":
    main()
