"""Prints how well each leg ranks paragraphs in ten languages, and both legs together.

`python -m tests.benchmarks.retrieval_languages [model ...]`: nDCG@10 of both local models, or of those named,
by words, by vectors and by both, on all sets of paragraphs; how often the right paragraph comes first by
both; and by how much both are above the better leg, with a 95 % interval (paired bootstrap over questions).
Of the towns, also how often a question in English finds the right paragraph among the first five.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from builtin_plugins.embeddings.catalog import MODELS, LocalModel
from builtin_plugins.embeddings.engines.base import EmbeddingEngine, Vectors
from builtin_plugins.embeddings.settings import EmbeddingsSettings
from builtin_plugins.evaluation.services.statistics import intervals
from builtin_plugins.inference import api as inference
from builtin_plugins.rag.answering.languages import LanguageDetector
from builtin_plugins.vectors.dense import DenseIndex
from builtin_plugins.vectors.fusion import hybrid, weight_for
from builtin_plugins.vectors.text import TextIndex
from tests.benchmarks.answer_sets import handbook, subjects, unseen
from tests.benchmarks.evaluation_sets import SETS, Question, load, ndcg
from tests.benchmarks.language_sets import ARTICLE_LANGUAGES, LANGUAGES, LanguageSet, articles, told, towns

DEPTH = 10
LEGS = ("text", "dense", "hybrid")
_HANDBOOKS = ("brattvik", "nordlys")
_EVERY = 3  # of the questions about towns, which are many and alike
_RIGHT = 2  # grade


@dataclass(frozen=True)
class Paragraphs:
    """A set of paragraphs with graded questions."""

    name: str
    language: str
    texts: Sequence[str]
    questions: Sequence[Question]


def every_set() -> Iterator[Paragraphs]:
    for language in LANGUAGES:
        if language in ARTICLE_LANGUAGES:
            yield _of("articles", articles(language))
            yield _of("subjects", subjects(language).collection)
        if language == "de":
            yield _of("unseen", unseen().collection)
        yield _of("towns", towns(language), _EVERY)
        if language == "en":
            yield from (_graded(name) for name in SETS)
            yield from (_of(name, handbook(name).collection) for name in _HANDBOOKS)


def _of(name: str, found: LanguageSet, every: int = 1) -> Paragraphs:
    asked = [one for one in found.questions if one.paragraph >= 0][::every]
    questions = [Question(one.text, {one.paragraph: _RIGHT}) for one in asked]
    return Paragraphs(name, found.language, found.paragraphs, questions)


def _graded(name: str) -> Paragraphs:
    found = load(name)
    return Paragraphs(name, "en", found.passages, found.questions)


class Shelf:
    """Paragraphs in both indexes."""

    def __init__(self, texts: Sequence[str], model: LocalModel, engine: EmbeddingEngine) -> None:
        self._model, self._engine = model, engine
        self._of_model = model.embedded(np.empty((0, 0)), engine.identity)
        self._detector = LanguageDetector()
        labels = np.arange(len(texts))
        self._near, self._worded = DenseIndex(engine.dimension), TextIndex()
        self._near.add(labels, self._encode(texts, "passage"))
        self._worded.add(labels, told(texts))

    def _encode(self, texts: Sequence[str], purpose: inference.Purpose) -> Vectors:
        return self._engine.encode([self._model.prefixes[purpose] + text for text in texts])

    def found(self, questions: Sequence[str], leg: str, k: int) -> list[list[int]]:
        vectors = self._encode(questions, "query")
        return [self._by(leg, text, vector, k) for text, vector in zip(questions, vectors, strict=True)]

    def _by(self, leg: str, text: str, vector: Vectors, k: int) -> list[int]:
        near, worded = partial(self._near.search, vector), partial(self._worded.search, text)
        if leg == "dense":
            return list(near(k).labels.tolist())
        if leg == "text":
            return list(worded(k).labels.tolist())
        share = self._of_model.share_in(self._detector.of(text))
        both = hybrid(near, worded, k, weight=weight_for(text, share), unrelated=self._model.unrelated)
        return list(both.labels.tolist())


@dataclass(frozen=True)
class Ranked:
    """nDCG@10 of each question by each leg, and whether a right paragraph comes first by both."""

    of: Paragraphs
    gains: dict[str, Vectors]
    first: float

    @classmethod
    def measure(cls, one: Paragraphs, model: LocalModel, engine: EmbeddingEngine) -> Ranked:
        shelf, asked = Shelf(one.texts, model, engine), [each.text for each in one.questions]
        found = {leg: shelf.found(asked, leg, DEPTH) for leg in LEGS}
        gains = {
            leg: np.array(
                [ndcg(places, each.grades) for places, each in zip(lists, one.questions, strict=True)]
            )
            for leg, lists in found.items()
        }
        both = zip(found["hybrid"], one.questions, strict=True)
        return cls(one, gains, float(np.mean([each.grades.get(places[0], 0) > 0 for places, each in both])))

    def row(self) -> str:
        figures = "".join(f"{self.gains[leg].mean():9.3f}" for leg in LEGS)
        more, low, high = self._above_better()
        asked = f"{len(self.of.questions):10}{more:+13.3f} [{low:+.3f}, {high:+.3f}]"
        return f"{self.of.language} {self.of.name:12}{figures}{self.first:9.3f}{asked}"

    def _above_better(self) -> tuple[float, float, float]:
        better = max(("dense", "text"), key=lambda leg: self.gains[leg].mean())
        above = self.gains["hybrid"] - self.gains[better]
        return float(above.mean()), *intervals([above.tolist()])[0]


def means(name: str, ranked: Sequence[Ranked]) -> str:
    figures = [float(np.mean([one.gains[leg].mean() for one in ranked])) for leg in LEGS]
    first = float(np.mean([one.first for one in ranked]))
    return f"{name:15}" + "".join(f"{figure:9.3f}" for figure in (*figures, first))


def from_english(language: str, model: LocalModel, engine: EmbeddingEngine) -> float:
    """How often a question in English has its paragraph about a town among the first five."""
    collection, asked = towns(language), towns("en").questions
    found = Shelf(collection.paragraphs, model, engine).found([one.text for one in asked], "hybrid", 5)
    return float(np.mean([one.paragraph in places for one, places in zip(asked, found, strict=True)]))


def main() -> None:
    names = sys.argv[1:] or [model.name for model in MODELS]
    heads = "".join(f"{head:>9}" for head in (*LEGS, "first")) + f"{'questions':>10}  above the better leg"
    for model in (model for model in MODELS if model.name in names):
        engine = model.load(EmbeddingsSettings())
        print(f"\n{model.name}\n{'':15}{heads}")
        ranked = list[Ranked]()
        for one in every_set():
            ranked.append(Ranked.measure(one, model, engine))
            print(ranked[-1].row(), flush=True)
        for language in LANGUAGES:
            print(means(language, [one for one in ranked if one.of.language == language]))
        print(means("without English", [one for one in ranked if one.of.language != "en"]))
        print(means("towns", [one for one in ranked if one.of.name == "towns"]))
        for language in LANGUAGES[1:]:
            print(
                f"from English to {language}, first five: {from_english(language, model, engine):.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
