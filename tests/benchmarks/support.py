"""Precision and recall of the decision whether passages support a question.

    python -m tests.benchmarks.support           prints a table
    python -m tests.benchmarks.support --fit     weights fitted on the ``tune`` half as well
    python -m tests.benchmarks.support --wrong   each wrong decision as well

Each question is judged twice: with the passages it was written for, and with the 5 nearest of all passages.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from builtin_plugins.embeddings.catalog import MODELS, LocalModel
from builtin_plugins.embeddings.settings import EmbeddingsSettings
from builtin_plugins.rag.answering.passages import Passage
from builtin_plugins.rag.answering.sentences import split_sentences
from builtin_plugins.rag.answering.support import (
    Evidence,
    Scored,
    gather,
    judge,
    probability,
    weights_for,
)
from kernel.sdk import Embedded, contracts

DATA = Path(__file__).parent / "data" / "support.json"
KINDS = ("same domain", "off topic", "nonsense", "other language")
MODES = ("sentences", "passages", "words")
Vector = np.ndarray[Any, np.dtype[np.float32]]


@dataclass(frozen=True)
class Case:
    """One question with the evidence for it."""

    question: str
    answered: bool
    kind: str
    split: str
    evidence: Evidence


class Corpus:
    """The passages, embedded whole and sentence by sentence, by one of the local models."""

    def __init__(self, texts: dict[str, str], model: LocalModel) -> None:
        engine = model.load(EmbeddingsSettings())

        def encode(texts: Sequence[str], purpose: contracts.Purpose = "passage") -> Vector:
            return engine.encode([model.prefixes[purpose] + text for text in texts])

        self._encode = cache(lambda question: encode([question], "query")[0])
        self._similarity = Embedded(np.empty((0, 0)), engine.identity, model.unrelated).similarity
        self.passages = {key: Passage(text, f"{key}.txt", 0.0, key, key) for key, text in texts.items()}
        self.whole = dict(zip(texts, encode(list(texts.values())), strict=True))
        self.sentences = {key: [piece.text for piece in split_sentences(text)] for key, text in texts.items()}
        self.vectors = {key: encode(pieces) for key, pieces in self.sentences.items()}

    def evidence(self, question: str, keys: Sequence[str], mode: str) -> Evidence:
        vector = self._encode(question)
        passages = [self.passages[key] for key in keys]
        if mode == "words":
            return gather(question, passages)
        if mode == "passages":
            return gather(
                question,
                passages,
                cosines=[self._similarity(float(self.whole[key] @ vector)) for key in keys],
            )
        scored = [
            Scored(text, self._similarity(float(score)))
            for key in keys
            for text, score in zip(self.sentences[key], self.vectors[key] @ vector, strict=True)
        ]
        return gather(question, passages, sentences=scored)

    def nearest(self, question: str, count: int) -> list[str]:
        vector = self._encode(question)
        return sorted(self.whole, key=lambda key: -float(self.whole[key] @ vector))[:count]


def load(model: LocalModel) -> tuple[Corpus, list[dict[str, Any]]]:
    data = json.loads(DATA.read_text(encoding="utf-8"))
    return Corpus(data["passages"], model), data["questions"]


def cases(corpus: Corpus, questions: list[dict[str, Any]], mode: str, nearest: int | None) -> list[Case]:
    found = []
    for item in questions:
        keys = corpus.nearest(item["question"], nearest) if nearest else item["passages"]
        evidence = corpus.evidence(item["question"], keys, mode)
        found.append(Case(item["question"], item["answered"], item["kind"], item["split"], evidence))
    return found


def supported(case: Case) -> bool:
    return judge(case.evidence)


def row(found: list[Case]) -> str:
    said = [case for case in found if supported(case)]
    right = sum(case.answered for case in said)
    cells = [f"{right / max(len(said), 1):9.2f}", f"{right / max(sum(c.answered for c in found), 1):6.2f}"]
    for kind in KINDS:
        of_kind = [case for case in found if case.kind == kind]
        refused = sum(not supported(case) for case in of_kind)
        cells.append(f"{refused:>3}/{len(of_kind):<3}".rjust(14))
    return " ".join(cells)


def fit(found: list[Case]) -> str:
    from sklearn.linear_model import LogisticRegression

    tune = [case for case in found if case.split == "tune"]
    matrix = np.array([signals(case.evidence) for case in tune])
    model = LogisticRegression(C=3.0).fit(matrix, [case.answered for case in tune])
    return f"bias {model.intercept_[0]:.2f}, weights {[round(float(one), 2) for one in model.coef_[0]]}"


def signals(evidence: Evidence) -> list[float]:
    return [
        evidence.similarity or 0.0,
        evidence.coverage,
        evidence.sentence_coverage,
        float(evidence.missing_name),
        float(evidence.wrong_kind),
    ]


def main() -> None:
    for model in MODELS:
        table(model)


def table(model: LocalModel) -> None:
    corpus, questions = load(model)
    print(f"{model.name}: {len(questions)} questions; refused of those without an answer, by kind")
    print(f"{'signal':10} {'given':9} {'half':6} precision recall" + "".join(f"{kind:>15}" for kind in KINDS))
    for mode in MODES:
        for nearest in (None, 5):
            found = cases(corpus, questions, mode, nearest)
            for split in ("tune", "check"):
                part = [case for case in found if case.split == split]
                print(f"{mode:10} {'nearest 5' if nearest else 'its own':9} {split:6} {row(part)}")
            if "--fit" in sys.argv:
                print("   fitted on tune:", fit(found))
            if "--wrong" in sys.argv:
                print("\n".join(wrong(case) for case in found if supported(case) != case.answered))


def wrong(case: Case) -> str:
    chance = probability(case.evidence, weights_for(case.evidence))
    what = "missed" if case.answered else "let by"
    return f"   {what} {chance:.2f} {case.question} {signals(case.evidence)}"


if __name__ == "__main__":
    main()
