"""Prints how good answers without a model are: right words, length, whether confidence can be trusted.

`python -m tests.benchmarks.answers`. Encyclopaedic paragraphs in six languages: an answer is right when it
holds the expected words. Each question is also asked where its paragraph is missing: what is answered there
is wrong. Confidence is judged by AUROC, right answers above wrong ones, and by a curve.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from builtin_plugins.embeddings.catalog import MODELS, LocalModel
from builtin_plugins.embeddings.engines.base import EmbeddingEngine, Vectors
from builtin_plugins.embeddings.settings import EmbeddingsSettings
from builtin_plugins.rag.answering import extractive
from builtin_plugins.rag.answering.calibration import Calibration, Signs, calibration_of
from builtin_plugins.rag.answering.languages import LanguageDetector
from builtin_plugins.rag.answering.passages import Passage
from builtin_plugins.rag.answering.support import Scored, gather
from kernel.sdk import Embedded, contracts
from kernel.stores.dense import DenseIndex
from kernel.stores.fusion import hybrid, weight_for
from kernel.stores.text import TextIndex
from tests.benchmarks.language_sets import ARTICLE_LANGUAGES, Asked, LanguageSet, articles, told, towns

TOP_K = 5


@dataclass(frozen=True)
class Given:
    """What came of one question; `there` tells whether its paragraph could be found at all."""

    right: bool
    refused: bool
    words: int
    confidence: float
    there: bool


@dataclass(frozen=True)
class Found:
    """What the answerer chooses from; `scores` are the sentences' similarities."""

    asked: Asked
    there: bool
    passages: Sequence[Passage]
    candidates: Sequence[extractive.Candidate]
    scores: Sequence[float]

    def is_right(self, one: extractive.Candidate) -> bool:
        return self.there and self.asked.expected.casefold() in one.text.casefold()


class Answerer:
    """One collection of paragraphs, asked as a pipeline asks it."""

    def __init__(self, collection: LanguageSet, model: LocalModel, engine: EmbeddingEngine) -> None:
        self.collection, self._model, self._engine = collection, model, engine
        self._languages = LanguageDetector()
        self._similarity = Embedded(np.empty((0, 0)), engine.identity, model.unrelated).similarity
        labels = np.arange(len(collection.paragraphs))
        self._near, self._worded = DenseIndex(engine.dimension), TextIndex()
        self._near.add(labels, self.encode(collection.paragraphs, "passage"))
        self._worded.add(labels, told(collection.paragraphs))

    def encode(self, texts: Sequence[str], purpose: contracts.Purpose) -> Vectors:
        return self._engine.encode([self._model.prefixes[purpose] + text for text in texts])

    def found(self, asked: Asked, *, there: bool) -> Found:
        vector = self.encode([asked.text], "query")[0]
        others = np.delete(np.arange(len(self.collection.paragraphs)), asked.paragraph)
        legs = partial(self._near.search, vector), partial(self._worded.search, asked.text)
        weight, unrelated = weight_for(asked.text, self._model.meaning), self._model.unrelated
        found = hybrid(*legs, TOP_K, weight=weight, unrelated=unrelated, allowed=None if there else others)
        passages = [
            Passage(self.collection.paragraphs[label], f"{label}.txt", float(score), str(label), str(label))
            for label, score in zip(found.labels.tolist(), found.scores.tolist(), strict=True)
        ]
        candidates = extractive.candidates(asked.text, passages, language=self._languages.of(asked.text))
        cosines = self.encode([one.text for one in candidates], "passage") @ vector
        scores = [self._similarity(float(cosine)) for cosine in cosines]
        return Found(asked, there, passages, candidates, scores)

    def ask(self, asked: Asked, *, there: bool) -> Given:
        found = self.found(asked, there=there)
        how = calibration_of(self._model.name)
        made = extractive.compose(asked.text, found.passages, found.candidates, found.scores, calibration=how)
        right = there and made.supported and asked.expected.casefold() in made.text.casefold()
        words = extractive.count_words(made.text)
        return Given(right, not made.supported, words, made.confidence, there)


def auroc(given: Sequence[Given]) -> float:
    """How often a right answer has more confidence than a wrong one."""
    right = [one.confidence for one in given if one.right]
    wrong = [one.confidence for one in given if not one.right and not one.refused]
    if not right or not wrong:
        return float("nan")
    pairs = [(a > b) + 0.5 * (a == b) for a in right for b in wrong]
    return float(np.mean(pairs))


def curve(given: Sequence[Given]) -> Iterator[str]:
    """The share of right answers by confidence."""
    told = [one for one in given if not one.refused]
    for low in np.arange(0.0, 1.0, 0.2):
        part = [one.right for one in told if low <= one.confidence < low + 0.2 + (low > 0.7)]
        share = f"{np.mean(part):6.2f}" if part else "     -"
        yield f"   confidence {low:.1f} to {low + 0.2:.1f}: {share} right of {len(part)}"


def report(name: str, given: Sequence[Given]) -> str:
    here = [one for one in given if one.there]
    away = [one for one in given if not one.there]
    figures = (
        float(np.mean([one.right for one in here])),
        float(np.mean([one.refused for one in here])),
        float(np.mean([one.words for one in here if not one.refused])),
        float(np.mean([one.refused for one in away])),
        auroc(here),
        auroc(given),
    )
    return f"{name:14}" + "".join(f"{figure:10.3f}" for figure in figures)


def fit(everything: Sequence[Found], model: str) -> Calibration:
    """Weights from every second question: of sentences first, then of the best sentence's signs."""
    from sklearn.linear_model import LogisticRegression

    tune = [found for found in (*everything[::4], *everything[1::4]) if found.candidates]
    answerable = [found for found in tune if found.there]
    rows = [row for found in answerable for row in extractive.features(found.candidates, found.scores)]
    labels = [found.is_right(one) for found in answerable for one in found.candidates]
    how = calibration_of(model)
    worth = LogisticRegression(C=3.0, max_iter=1000).fit(rows, labels).coef_[0]
    print("worth by fit:", worth.round(2).tolist())
    signs, right = zip(*(best_signs(found, how) for found in tune), strict=True)
    sure = LogisticRegression(C=1.0, max_iter=1000).fit(
        signs, right, [1.0 + 4.0 * (found.there and not one) for found, one in zip(tune, right, strict=True)]
    )
    return replace(how, bias=round(float(sure.intercept_[0]), 2), sure=tuple(sure.coef_[0].round(2).tolist()))


def best_signs(found: Found, how: Calibration) -> tuple[tuple[float, ...], bool]:
    """The signs for an answer, and whether it would be right."""
    scored = [Scored(one.text, score) for one, score in zip(found.candidates, found.scores, strict=True)]
    worth = extractive.worths(how, found.candidates, found.scores)
    order = sorted(range(len(worth)), key=lambda at: -worth[at])
    evidence = gather(found.asked.text, found.passages, sentences=scored)
    best = found.candidates[order[0]]
    signs = Signs.read(evidence, found.passages, best, [worth[at] for at in order])
    quoted = [found.candidates[at] for at in order[:2] if worth[at] > worth[order[0]] - how.near]
    return signs.values(), any(found.is_right(one) for one in quoted)


def main() -> None:
    names = [one for one in sys.argv[1:] if one != "--fit"] or [model.name for model in MODELS]
    for model in (model for model in MODELS if model.name in names):
        engine = model.load(EmbeddingsSettings())
        heads = ("right", "refused", "words", "ref. none", "AUROC", "with none")
        print(f"\n{model.name:14}" + "".join(f"{head:>10}" for head in heads))
        everything, chosen = list[Given](), list[Found]()
        for language in ARTICLE_LANGUAGES:
            for kind, collection in (("articles", articles(language)), ("towns", towns(language))):
                answerer = Answerer(collection, model, engine)
                asked = collection.questions[:: 1 if kind == "articles" else 7]
                given = [answerer.ask(one, there=there) for one in asked for there in (True, False)]
                everything += given
                if "--fit" in sys.argv:
                    chosen += [answerer.found(one, there=there) for one in asked for there in (True, False)]
                print(report(f"{language} {kind}", given), flush=True)
        print(report("all", everything), *curve(everything), sep="\n")
        if chosen:
            print(fit(chosen, model.name))


if __name__ == "__main__":
    main()
