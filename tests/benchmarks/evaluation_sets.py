"""Reads the evaluation sets and measures rankings against them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

DATA = Path(__file__).parent / "data"
SETS = ("codes", "paraphrase", "handbook")


@dataclass(frozen=True)
class Question:
    """A question and the grades of the passages (by place in the set) that bear on it: 2 answers, 1 helps."""

    text: str
    grades: Mapping[int, int]


@dataclass(frozen=True)
class EvaluationSet:
    name: str
    passages: list[str]
    questions: list[Question]


def load(name: str) -> EvaluationSet:
    lines = (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    entries = [json.loads(line) for line in lines]
    passages = [entry for entry in entries if "id" in entry]
    place = {entry["id"]: index for index, entry in enumerate(passages)}
    questions = [
        Question(entry["question"], {place[name]: grade for name, grade in entry["relevant"].items()})
        for entry in entries
        if "question" in entry
    ]
    return EvaluationSet(name, [entry["text"] for entry in passages], questions)


def ndcg(labels: Iterable[int], grades: Mapping[int, int], k: int = 10) -> float:
    """nDCG@k with the gain 2^grade - 1 (Burges et al. 2005)."""
    found = [grades.get(int(label), 0) for label in labels][:k]
    ideal = sorted(grades.values(), reverse=True)[:k]
    return _gain(found) / _gain(ideal)


def _gain(grades: list[int]) -> float:
    gains = np.exp2(grades) - 1.0
    return float(np.sum(gains / np.log2(np.arange(2, len(grades) + 2))))
