"""Prints how good answers without a model are: right words, length, refusals, whether confidence can be
trusted.

    python -m tests.benchmarks.answers [model ...]         one table for each model
    python -m tests.benchmarks.answers --fit [model ...]   weights fitted on one half of the sets as well

An answer is right when it holds the expected words. Each question is also asked where its paragraph is
missing: what is answered there is wrong. Figures are of the half of the sets that no weight was chosen on
(`answer_sets`). Confidence is judged by AUROC, right answers above wrong ones, and by a curve. `search` is
how often a search says what the answerer decides, `clear` how often without embedding a sentence; `model` how
often a model would be asked, where the paragraph is there and where it is not. Nonsense and manuals are
reported by themselves.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from builtin_plugins.embeddings.catalog import MODELS, LocalModel
from builtin_plugins.embeddings.engines.base import EmbeddingEngine, Vectors
from builtin_plugins.embeddings.settings import EmbeddingsSettings
from builtin_plugins.rag.answering import extractive
from builtin_plugins.rag.answering.calibration import Calibration, calibration_of
from builtin_plugins.rag.answering.candidate import Candidate, Near, count_words
from builtin_plugins.rag.answering.coverage import subject_of
from builtin_plugins.rag.answering.languages import LanguageDetector
from builtin_plugins.rag.answering.passages import Passage
from builtin_plugins.rag.answering.weighing import Weighed, weigh
from kernel.sdk import contracts
from kernel.stores.dense import DenseIndex
from kernel.stores.fusion import hybrid, weight_for
from kernel.stores.text import TextIndex
from tests.benchmarks.answer_sets import HELD_OUT, AnswerSet, Labelled, answer_sets, nonsense
from tests.benchmarks.language_sets import told
from tests.benchmarks.manuals import manuals

TOP_K = 5


@dataclass(frozen=True)
class Found:
    """What the answerer chooses from; `there` tells whether its paragraph is."""

    asked: Labelled
    there: bool
    passages: Sequence[Passage]
    candidates: Sequence[Candidate]
    near: Near
    language: str | None

    def is_right(self, text: str, passages: Sequence[int]) -> bool:
        """Whether a text from these passages (1-based) answers."""
        wanted = self.asked.asked
        if not self.there or wanted.paragraph < 0:
            return False
        if wanted.expected:
            return wanted.expected.casefold() in text.casefold()
        return any(self.passages[one - 1].chunk_id == str(wanted.paragraph) for one in passages)


@dataclass(frozen=True)
class Given:
    """What came of one question."""

    right: bool
    refused: bool
    words: int
    confidence: float
    there: bool
    half: int
    agreed: bool
    clear: bool
    hopeful: bool


class Answerer:
    """One collection of paragraphs, asked as a pipeline asks it."""

    def __init__(self, one: AnswerSet, model: LocalModel, engine: EmbeddingEngine) -> None:
        self._paragraphs = one.collection.paragraphs
        self._model, self._engine = model, engine
        self._detector = LanguageDetector()
        self._of_model = model.embedded(np.empty((0, 0)), engine.identity)
        self._similarity = self._of_model.similarity
        self._known: dict[str, Vectors] = {}
        labels = np.arange(len(self._paragraphs))
        self._near, self._worded = DenseIndex(engine.dimension), TextIndex()
        self._near.add(labels, self._encode(self._paragraphs, "passage"))
        self._told = told(self._paragraphs)
        self._worded.add(labels, self._told)

    def found(self, labelled: Labelled, *, there: bool) -> Found:
        """What there is to answer from, without the question's own paragraph where it is not to be there."""
        asked = labelled.asked
        vector = self._encode([asked.text], "query")[0]
        language = self._detector.of(asked.text)
        others = np.delete(np.arange(len(self._paragraphs)), asked.paragraph)
        legs = partial(self._near.search, vector), partial(self._worded.search, asked.text)
        weight = weight_for(asked.text, self._of_model.share_in(language))
        unrelated = self._model.unrelated
        ranked = hybrid(*legs, TOP_K, weight=weight, unrelated=unrelated, allowed=None if there else others)
        words = ranked.words if ranked.words is not None else ranked.scores
        rows = zip(ranked.labels.tolist(), ranked.scores.tolist(), ranked.cosines.tolist(), words.tolist(),
                   strict=True)  # fmt: skip
        passages = [
            Passage(
                self._paragraphs[label], f"{label}.txt", float(score), str(label), str(label),
                near=self._similarity(cosine), matched=matched, language=self._told[label].language,
            )
            for label, score, cosine, matched in rows
        ]  # fmt: skip
        candidates = extractive.candidates(asked.text, passages, language=language)
        subject = subject_of(asked.text, passages)
        wanted = [vector, *(self._encode([subject], "query") if subject else ())]
        cosines = np.array(wanted) @ self._of_sentences([one.whole for one in candidates]).T
        near = Near(*([self._similarity(cosine) for cosine in row] for row in cosines.tolist()))
        return Found(labelled, there, passages, candidates, near, language)

    def _encode(self, texts: Sequence[str], purpose: contracts.Purpose) -> Vectors:
        return self._engine.encode([self._model.prefixes[purpose] + text for text in texts])

    def _of_sentences(self, texts: Sequence[str]) -> Vectors:
        """Each is embedded once: most are asked for with the paragraph and without it."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known.update(zip(new, self._encode(new, "passage"), strict=True))
        return np.array([self._known[text] for text in texts], np.float32).reshape(len(texts), -1)


def every_found(one: AnswerSet, model: LocalModel, engine: EmbeddingEngine) -> list[Found]:
    """Each question of a set, with its paragraph and without it."""
    answerer = Answerer(one, model, engine)
    asked = [(question, there) for question in one.questions for there in (True, False)]
    return [answerer.found(one, there=there) for one, there in asked if there or not one.alone]


def weighed(found: Found, how: Calibration, *, by_glance: bool = False) -> Weighed:
    """What speaks for an answer; at a glance no sentence has a vector."""
    near = None if by_glance else found.near
    asked = found.asked.asked.text
    return weigh(asked, found.passages, found.candidates, near, how, language=found.language)


def given(found: Found, how: Calibration) -> Given:
    """What the answerer makes of it."""
    worth, glance = weighed(found, how), weighed(found, how, by_glance=True)
    made = extractive.compose(worth, language=found.language)
    there = found.there and found.asked.asked.paragraph >= 0
    right = made.supported and found.is_right(made.text, made.cited)
    told = (right, not made.supported, count_words(made.text), made.confidence, there, found.asked.half)
    searched = glance.supported if glance.is_clear else made.supported
    return Given(*told, searched == made.supported, glance.is_clear, worth.hopeful)


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


HEADS = (
    *("right", "refused", "words", "ref. none", "AUROC", "with none"),
    *("search", "clear", "model", "model, none"),
)


def report(name: str, given: Sequence[Given]) -> str:
    here = [one for one in given if one.there]
    away = [one for one in given if not one.there]
    figures = (
        _mean([one.right for one in here]),
        _mean([one.refused for one in here]),
        _mean([one.words for one in here if not one.refused]),
        _mean([one.refused for one in away]),
        auroc(here),
        auroc(given),
        _mean([one.agreed for one in given]),
        _mean([one.clear for one in given]),
        _mean([one.hopeful for one in here]),
        _mean([one.hopeful for one in away]),
    )
    return f"{name:16}" + "".join(f"{figure:11.3f}" for figure in figures) + f"{len(here):6}{len(away):6}"


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


def _group(name: str) -> str:
    """Sets that are reported together: a language's paragraphs about something else each, and those alike."""
    language, _, kind = name.partition(" ")
    kind = kind.split(" ")[0]
    if kind in ("articles", "towns"):
        return f"{language} paragraphs"
    return kind if kind in ("single", "across") else name


def main() -> None:
    names = [one for one in sys.argv[1:] if one != "--fit"] or [model.name for model in MODELS]
    for model in (model for model in MODELS if model.name in names):
        engine = model.load(EmbeddingsSettings())
        print(f"\n{model.name:16}" + "".join(f"{head:>11}" for head in HEADS))
        everything, chosen = defaultdict[str, list[Given]](list), list[Found]()
        for one in answer_sets():
            found = every_found(one, model, engine)
            made = [given(each, calibration_of(model.name)) for each in found]
            held = [each for each in made if each.half == HELD_OUT]
            everything[_group(one.name)] += held
            chosen += found
            print(report(one.name, held), flush=True)
        print("", *(report(name, made) for name, made in everything.items()), sep="\n")
        both = [one for made in everything.values() for one in made]
        print(report("all", both), *curve(both), sep="\n")
        for one in (nonsense(), *manuals()):
            found = every_found(one, model, engine)
            print(report(one.name, [given(each, calibration_of(model.name)) for each in found]), flush=True)
        if "--fit" in sys.argv:
            from tests.benchmarks.answer_weights import fit

            print(fit([one for one in chosen if one.asked.half != HELD_OUT], model.name))


if __name__ == "__main__":
    main()
