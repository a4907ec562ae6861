"""Prints how good answers without a model are: right words, length, refusals, and what they cost.

    python -m tests.benchmarks.answers [model ...]          one table for each embedding model
    python -m tests.benchmarks.answers --fit [model ...]    and the weights, fitted on the other half

A question is asked where its paragraph is (*there*), where it is missing but others on the subject are left
(*on topic*), and where everything is about something else (*off topic*). An answer is right when it holds the
expected words; one to a FAQ that people wrote, when the answer's own section is quoted. Figures are of the
half of the sets that no weight was chosen on. AUROC is how often a right answer has more confidence than
another one; milliseconds are those of the answer alone, its passages read before.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from builtin_plugins.embeddings.catalog import MODELS, LocalModel
from builtin_plugins.embeddings.engines.base import EmbeddingEngine, Vectors
from builtin_plugins.embeddings.settings import EmbeddingsSettings
from builtin_plugins.extractive_answers.answering import answer
from builtin_plugins.extractive_answers.support import Signs
from builtin_plugins.extractive_answers.windows import Rarity, best_windows, text_of
from builtin_plugins.inference import api as inference
from builtin_plugins.rag.answering.languages import LanguageDetector
from builtin_plugins.rag.answering.matching import asked_words, quotable
from builtin_plugins.rag.answering.words import count_words
from builtin_plugins.rag.passages import Passage
from builtin_plugins.vectors.dense import DenseIndex
from builtin_plugins.vectors.fusion import hybrid, weight_for
from builtin_plugins.vectors.text import TextIndex
from tests.benchmarks.answer_sets import HELD_OUT, Case, Collection, collections
from tests.benchmarks.language_sets import told

TOP_K = 5


@dataclass(frozen=True)
class Given:
    """What came of one question."""

    case: Case
    right: bool
    refused: bool
    words: int
    confidence: float
    milliseconds: float
    signs: Signs | None


class Answerer:
    """One collection of paragraphs, asked as a pipeline asks it."""

    def __init__(self, one: Collection, model: LocalModel, engine: EmbeddingEngine) -> None:
        self._paragraphs, self._model, self._engine = one.paragraphs, model, engine
        self._detector = LanguageDetector()
        self._of_model = model.embedded(np.empty((0, 0)), engine.identity)
        labels = np.arange(len(self._paragraphs))
        self._near, self._worded = DenseIndex(engine.dimension), TextIndex()
        self._near.add(labels, self._encode(self._paragraphs, "passage"))
        self._told = told(self._paragraphs)
        self._worded.add(labels, self._told)
        self._questions: dict[str, Vectors] = {}

    def given(self, case: Case) -> Given:
        language, passages = self._detector.of(case.question), self._passages(case)
        quotable(asked_words(case.question, language), passages)
        started = time.perf_counter()
        asked = asked_words(case.question, language)
        found = quotable(asked, passages)
        made = answer(asked, found)
        took = 1000 * (time.perf_counter() - started)
        text = " ".join(quote.text for quote in made.quotes)
        quoted = {int(passages[quote.passage].chunk_id) for quote in made.quotes}
        right = case.kind == "there" and case.is_answered(text, quoted)
        windows = best_windows(Rarity(asked, found), found)
        signs = (
            Signs.read(asked, found, windows[0].passage, text_of(windows[0], found))
            if windows and asked.words
            else None
        )
        refused = not made.is_enough
        return Given(case, right, refused, count_words(text), made.probability, took, signs)

    def _passages(self, case: Case) -> list[Passage]:
        vector, text = self._vector(case.question), case.question
        legs = partial(self._near.search, vector), partial(self._worded.search, text)
        weight = weight_for(text, self._of_model.share_in(self._detector.of(text)))
        left = (
            None if case.kind == "there" else np.setdiff1d(np.arange(len(self._paragraphs)), list(case.own))
        )
        ranked = hybrid(*legs, TOP_K, weight=weight, unrelated=self._model.unrelated, allowed=left)
        words = ranked.words if ranked.words is not None else ranked.scores
        rows = zip(ranked.labels.tolist(), ranked.scores.tolist(), ranked.cosines.tolist(), words.tolist(),
                   strict=True)  # fmt: skip
        return [
            Passage(
                self._paragraphs[label], f"{label}.txt", float(score), str(label), str(label),
                near=self._of_model.similarity(cosine), matched=matched, language=self._told[label].language,
            )
            for label, score, cosine, matched in rows
        ]  # fmt: skip

    def _vector(self, text: str) -> Vectors:
        if text not in self._questions:
            self._questions[text] = self._encode([text], "query")[0]
        return self._questions[text]

    def _encode(self, texts: Sequence[str], purpose: inference.Purpose) -> Vectors:
        return self._engine.encode([self._model.prefixes[purpose] + text for text in texts])


def auroc(given: Sequence[Given]) -> float:
    """How often a right answer has more confidence than another one."""
    right = np.array([one.confidence for one in given if one.right])
    wrong = np.array([one.confidence for one in given if not one.right and not one.refused])
    if not len(right) or not len(wrong):
        return float("nan")
    return float(np.mean((right[:, None] > wrong) + 0.5 * (right[:, None] == wrong)))


def curve(given: Sequence[Given]) -> Iterator[str]:
    told = [one for one in given if not one.refused]
    for low in np.arange(0.0, 1.0, 0.2):
        part = [one.right for one in told if low <= one.confidence < low + 0.2 + (low > 0.7)]
        share = f"{np.mean(part):6.2f}" if part else "     -"
        yield f"   confidence {low:.1f} to {low + 0.2:.1f}: {share} right of {len(part)}"


HEADS = ("right", "refused", "words", "on topic", "off topic", "AUROC", "ms")


def report(name: str, given: Sequence[Given]) -> str:
    """A line of the table: shares of right answers and refusals, words, refusals where nothing answers."""
    there, on, off = ([one for one in given if one.case.kind == kind] for kind in ("there", "on", "off"))
    figures = (
        _mean([one.right and not one.refused for one in there]),
        _mean([one.refused for one in there]),
        _mean([one.words for one in there if not one.refused]),
        _mean([one.refused for one in on]),
        _mean([one.refused for one in off]),
        auroc(given),
        float(np.median([one.milliseconds for one in given])),
    )
    shown = "".join("          -" if np.isnan(figure) else f"{figure:11.3f}" for figure in figures)
    return f"{name:20}{shown}{len(there):6}{len(on):6}{len(off):6}"


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


def main() -> None:
    names = [one for one in sys.argv[1:] if one != "--fit"] or [model.name for model in MODELS]
    for model in (model for model in MODELS if model.name in names):
        engine = model.load(EmbeddingsSettings())
        print(f"\n{model.name:20}" + "".join(f"{head:>11}" for head in HEADS) + "   questions")
        groups, everything = defaultdict[str, list[Given]](list), list[Given]()
        for one in collections():
            answerer = Answerer(one, model, engine)
            made = [answerer.given(case) for case in one.cases]
            everything += made
            groups[one.group] += [each for each in made if each.case.half == HELD_OUT]
        print(*(report(name, made) for name, made in groups.items()), sep="\n")
        held = [one for made in groups.values() for one in made]
        print(report("all", held), *curve(held), sep="\n")
        if "--fit" in sys.argv:
            from tests.benchmarks.answer_weights import fit

            print(fit(everything))


if __name__ == "__main__":
    main()
